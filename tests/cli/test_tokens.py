"""`antiphon data verify-tokens` and `rollouts` on a file of runs."""

import json
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.encode import Encoder, load_tokenizer
from antiphon.formats import get_format
from recorded_runs import record
from tiny_training import CONVERSATIONS, tokenizer_json

Capture = pytest.CaptureFixture[str]
RIGHT = '<tool_call>\n{"name": "ferry", "arguments": {"to": "Holm"}}\n</tool_call>'
OTHERWISE = '<tool_call>\n{"name":"ferry","arguments":{"to":"Holm"}}\n</tool_call>'


@pytest.fixture
def vocabulary(tmp_path: Path) -> Path:
    directory = tmp_path / "vocabulary"
    directory.mkdir()
    (directory / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    return directory


def runs(vocabulary: Path, *wrote: str) -> Path:
    encoder = Encoder(load_tokenizer(vocabulary), get_format("qwen2_5"))
    path = vocabulary.parent / "runs.jsonl"
    made = [record(encoder, CONVERSATIONS[0], [text, "At 9."]).to_json() for text in wrote]
    path.write_text("\n".join(made), "utf-8")
    return path


def test_an_exact_run_passes_and_another_is_told(vocabulary: Path, capsys: Capture) -> None:
    words = ["--tokenizer", str(vocabulary)]

    assert main(["data", "verify-tokens", str(runs(vocabulary, RIGHT)), *words]) == 0
    assert "extended" in capsys.readouterr().out
    path = runs(vocabulary, RIGHT, OTHERWISE)
    assert main(["data", "verify-tokens", str(path), *words]) == 1
    told = capsys.readouterr().out
    assert "r1: step 1: reserialised: it wrote" in told
    assert "an answer shown otherwise than sampled: a defect" in told
    assert main(["data", "verify-tokens", str(path), *words, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["verdicts"] == {
        "first": 2,
        "extended": 1,
        "reserialised": 1,
    }


def test_without_a_vocabulary_it_asks_for_one(vocabulary: Path, capsys: Capture) -> None:
    assert main(["data", "verify-tokens", str(runs(vocabulary, RIGHT))]) == 2
    assert "give --tokenizer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("to", "n_rows", "key"),
    [("trl", 3, "env_mask"), ("verl", 3, "response_mask"), ("verifiers", 2, "nodes")],
)
def test_runs_become_rows_of_a_trainer(
    vocabulary: Path, tmp_path: Path, capsys: Capture, to: str, n_rows: int, key: str
) -> None:
    path, out = runs(vocabulary, RIGHT, OTHERWISE), tmp_path / "out.jsonl"

    assert main(["data", "rollouts", str(path), str(out), "--to", to]) == 0

    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(rows) == n_rows
    assert all(key in row for row in rows)
    assert f"2 runs, {n_rows} rows" in capsys.readouterr().out
