"""Pairs and judged answers as TRL reads them: the prompt is served, what was read counts not."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli import main
from antiphon.datasets import read_preference, read_row
from antiphon.encode import Encoder, FastTokenizer, encode_answer, pair_row
from antiphon.errors import EncodeError
from antiphon.formats import get_format

USER = {"role": "user", "content": "2+2?"}
CALL = {"role": "tool_call", "content": '{"name": "add", "arguments": {"a": 2}}'}
RESULT = {"role": "tool", "content": "4"}
GOOD = {"role": "assistant", "content": "4"}
BAD = {"role": "assistant", "content": "5"}
PAIR: dict[str, Any] = {"messages": [USER, CALL, RESULT, GOOD], "rejected_response": [BAD]}


@pytest.fixture(scope="module")
def encoder(qwen2_5: FastTokenizer) -> Encoder:
    return Encoder(qwen2_5, get_format("qwen2_5"))


def test_both_answers_stand_behind_the_prompt_that_is_served(encoder: Encoder) -> None:
    pair = read_preference(PAIR)

    row = pair_row(encoder, pair.chosen, pair.rejected, pair.n_shared, margin=0.5)

    asked = encoder.format.render(read_row({"messages": [USER]}), generate=True)
    assert row["prompt_ids"] == encoder.encode_prompt(asked)
    assert encoder.tokenizer.decode(row["rejected_ids"]) == "5<|im_end|>\n"
    wrote = [i for i, m in zip(row["chosen_ids"], row["chosen_mask"], strict=True) if m]
    assert encoder.tokenizer.decode(wrote) == (
        '<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call><|im_end|>4<|im_end|>'
    )
    assert row["margin"] == 0.5


def test_an_answer_that_is_rewritten_is_refused(qwen3: FastTokenizer) -> None:
    encoder = Encoder(qwen3, get_format("qwen3"))
    thought = GOOD | {"reasoning_content": "Easy."}
    conversation = read_row({"messages": [USER, thought, USER, thought]})

    with pytest.raises(EncodeError, match="qwen3 rewrites history; end the conversation"):
        encode_answer(encoder, conversation, 1)


@pytest.mark.parametrize(
    ("purpose", "row", "columns"),
    [
        ("dpo", PAIR, "chosen_ids chosen_mask prompt_ids rejected_ids rejected_mask"),
        ("reward", PAIR | {"margin": 1}, "chosen_ids margin rejected_ids"),
        (
            "kto",
            {"messages": [USER, BAD], "label": False},
            "completion_ids completion_mask label prompt_ids",
        ),
        ("grpo", {"messages": [USER, GOOD], "answer": "4"}, "answer prompt prompt_ids"),
    ],
)
def test_rows_are_written_in_the_columns_of_each_trainer(
    tmp_path: Path, purpose: str, row: dict[str, Any], columns: str
) -> None:
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(row) + "\n" + json.dumps({"messages": [], "label": 3}), "utf-8")
    words = ["encode", str(source), "--tokenizer", "qwen2_5", "--format", "qwen2_5"]

    assert main([*words, "--for", purpose, "--out", str(out)]) == 1

    (line,) = out.read_text("utf-8").splitlines()
    assert sorted(json.loads(line)) == columns.split()


def test_a_pair_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    source, out = tmp_path / "rows.jsonl", tmp_path / "out.jsonl"
    source.write_text(json.dumps(PAIR), "utf-8")
    words = ["encode", str(source), "--tokenizer", "qwen2_5", "--format", "qwen2_5"]

    assert main([*words, "--for", "dpo", "--out", str(out), "--max-tokens", "20"]) == 0
    assert out.read_text("utf-8") == ""
