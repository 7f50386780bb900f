"""The seed's samples: the text, and the lengths of the runs that are not trained.

Text and numbers are those of ms-swift 3.x: the line feed behind the end mark is the server's and is
not trained, which later versions train.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.datasets import read_row
from antiphon.encode import Encoder, FastTokenizer
from antiphon.formats import get_format, list_formats

CASES = Path(__file__).parents[1] / "formats" / "cases" / "seed_samples.jsonl"
SAMPLES = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
VARIANTS: dict[str, dict[str, Any]] = {"react_en": {"arguments": "python"}}
TEXT_ONLY = [s for s in SAMPLES if "images" not in s["row"] and s["format"] in list_formats()]


@pytest.mark.parametrize("sample", TEXT_ONLY, ids=lambda s: s["id"])
def test_a_sample_has_the_seeds_text_and_masked_runs(
    sample: dict[str, Any], qwen2_5: FastTokenizer
) -> None:
    fmt = get_format(sample["format"], **VARIANTS.get(sample["format"], {}))

    example = Encoder(qwen2_5, fmt).encode(read_row(sample["row"]))

    assert qwen2_5.decode(example.token_ids.tolist()) == sample["text"]
    assert example.masked_runs() == sample["masked_runs"]
