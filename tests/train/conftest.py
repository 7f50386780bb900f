"""The tiny model and its rows, as fixtures."""

import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from antiphon.encode import EncodedRow, Encoder, load_tokenizer, to_row
from antiphon.formats import get_format
from tiny_training import CONVERSATIONS, conversation, tiny_model, tokenizer_json

# The folder of our tests of datasets is not the package of that name, which transformers looks for.
found = find_spec("datasets")
if found is not None and found.origin is None:
    sys.modules["datasets"] = None  # type: ignore[assignment]  # as if it was not installed


@pytest.fixture(scope="session")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a tokenizer of bytes and four marks."""
    directory = tmp_path_factory.mktemp("vocabulary")
    (directory / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    (directory / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}', "utf-8")
    return directory


@pytest.fixture(scope="session")
def encoder(vocabulary: Path) -> Encoder:
    """Qwen2.5's text in bytes; calls count twice."""
    return Encoder(load_tokenizer(vocabulary), get_format("qwen2_5"), loss="hermes")


@pytest.fixture(scope="session")
def rows(encoder: Encoder) -> list[EncodedRow]:
    """Six rows of different lengths, with weights 0, 1 and 2."""
    more = [conversation("Ven" * n, f"{n}:00") for n in (1, 2, 5)]
    short = [replace(c, tools=()) for c in (*CONVERSATIONS, *more)]
    return [to_row(encoder.encode(c), i) for i, c in enumerate(short)]


@pytest.fixture(scope="session")
def base(vocabulary: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model in a directory, with the tokenizer."""
    directory = tmp_path_factory.mktemp("base")
    tiny_model().save_pretrained(str(directory))
    for file in vocabulary.iterdir():
        (directory / file.name).write_bytes(file.read_bytes())
    return directory
