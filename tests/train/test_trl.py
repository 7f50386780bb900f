"""TRL's trainers on our rows: what a tool said counts for nothing, and runs are learned from."""

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import MissingExtraError
from antiphon.train import make_dpo_trainer
from antiphon.train._trl import PairCollator

torch: Any = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

# TRL's and peft's, of names of transformers that they still use.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")

ROW = {
    "prompt_ids": [1, 2],
    "chosen_ids": [3, 4, 5],
    "chosen_mask": [1, 0, 1],
    "rejected_ids": [6],
    "rejected_mask": [1],
}
PAIR = {
    "messages": [
        {"role": "user", "content": "2+2?"},
        {"role": "tool_call", "content": '{"name": "add", "arguments": {"a": 2}}'},
        {"role": "tool", "content": "4"},
        {"role": "assistant", "content": "4"},
    ],
    "rejected_response": "5",
}


@pytest.fixture
def trainable(base: Path, tmp_path: Path) -> Path:
    """The tiny model with a tokenizer that transformers loads."""
    directory = tmp_path / "model"
    directory.mkdir()
    for file in base.iterdir():
        (directory / file.name).write_bytes(file.read_bytes())
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|im_end|>",
    }
    (directory / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return directory


def test_better_answers_come_first_and_what_was_read_does_not_count() -> None:
    batch = PairCollator(pad_id=9)([ROW])

    assert batch["input_ids"].tolist() == [[1, 2, 3, 4, 5], [1, 2, 6, 9, 9]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    assert batch["completion_mask"].tolist() == [[0, 0, 1, 0, 1], [0, 0, 1, 0, 0]]


@pytest.mark.slow
def test_a_pair_is_learned(trainable: Path, tmp_path: Path) -> None:
    pytest.importorskip("trl")
    pytest.importorskip("datasets")
    rows = tmp_path / "pairs.jsonl"
    rows.write_text("\n".join([json.dumps(PAIR)] * 2), "utf-8")

    logged = import_module("train_on_preferences").main(
        trainable, rows, steps=4, out=tmp_path / "out"
    )

    margins = [line["rewards/margins"] for line in logged if "rewards/margins" in line]
    assert margins[0] == 0
    assert margins[-1] > margins[1] > 0


@pytest.mark.slow
def test_runs_of_an_agent_are_learned_from(
    trainable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("trl")
    pytest.importorskip("datasets")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")

    logged = import_module("train_on_rewards").main(trainable, steps=1, out=tmp_path / "out")

    assert 0 <= logged[0]["reward"] <= 1
    assert logged[0]["completions/max_length"] > 0


@pytest.mark.skipif(find_spec("trl") is not None, reason="TRL is here")
def test_without_trl_it_says_so() -> None:
    with pytest.raises(MissingExtraError, match=r"preferences needs the .trl. extra"):
        make_dpo_trainer(pad_id=0)
