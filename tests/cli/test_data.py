"""`antiphon data` and `antiphon encode` from the command line."""

import json
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.encode import EncodedRows

Capture = pytest.CaptureFixture[str]
ROW = {
    "messages": [
        {"role": "user", "content": "Is the ferry running?"},
        {"role": "tool_call", "content": '{"name": "status", "arguments": {"route": "Holm"}}'},
        {"role": "tool_response", "content": "yes"},
        {"role": "assistant", "content": "It runs."},
    ]
}
LINE = json.dumps(ROW)


@pytest.fixture
def rows(tmp_path: Path) -> str:
    """Two sound rows, one of them twice, and a broken one."""
    path = tmp_path / "rows.jsonl"
    other = LINE.replace("Holm", "Vik")
    path.write_text(f"{LINE}\n{other}\n{{oops\n{LINE}\n")
    return str(path)


def test_rows_are_converted_and_what_is_lost_is_said(
    rows: str, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out.jsonl"

    code = main(["data", "convert", rows, str(out), "--to", "sharegpt"])

    captured = capsys.readouterr()
    assert code == 1
    assert captured.out.splitlines() == [
        "3 rows written",
        "3 rows lost call ids",
        "1 rows broken",
    ]
    assert f"{rows}:3: not JSON" in captured.err
    assert [len(json.loads(line)["conversations"]) for line in out.read_text().splitlines()] == [
        4,
        4,
        4,
    ]


def test_a_strict_conversion_leaves_no_file(rows: str, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out.jsonl"

    assert main(["data", "convert", rows, str(out), "--strict"]) == 1

    assert not out.exists()
    assert "rows.jsonl:3: not JSON" in capsys.readouterr().err


def test_the_input_is_not_overwritten(rows: str, capsys: Capture) -> None:
    assert main(["data", "dedupe", rows, rows]) == 2
    assert "would overwrite the input" in capsys.readouterr().err


def test_findings_name_line_message_and_kind(rows: str, capsys: Capture) -> None:
    assert main(["data", "check", rows]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert any(
        line.startswith(f"{rows}:1: message 1: warning: a call of 'status'") for line in lines
    )
    assert any(line.startswith(f"{rows}:3: error: not JSON") for line in lines)
    assert lines[-1].startswith("1 errors, 4 warnings: unknown_tool 3")


def test_duplicates_are_left_out(rows: str, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out.jsonl"

    main(["data", "dedupe", rows, str(out)])

    assert out.read_text().count("\n") == 2
    assert "2 of 3 rows kept" in capsys.readouterr().out


def test_rows_are_counted(rows: str, capsys: Capture) -> None:
    main(["data", "stats", rows, "--json"])

    counts = json.loads(capsys.readouterr().out)
    assert (counts["n_rows"], counts["n_broken"], counts["called"]) == (3, 1, {"status": 3})


def test_rows_become_shards(rows: str, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "encoded"

    code = main(["encode", rows, "--tokenizer", "qwen2_5", "--format", "hermes", "--out", str(out)])

    captured = capsys.readouterr()
    assert code == 1
    assert "rows read                  4" in captured.out
    assert f"antiphon: {rows}:3: not JSON" in captured.err
    assert [row.line for row in EncodedRows(out)] == [1, 2, 4]


def test_the_text_is_shown_with_what_is_trained(rows: str, capsys: Capture) -> None:
    arguments = ["--tokenizer", "qwen2_5", "--format", "hermes", "--loss", "hermes"]
    main(["encode", rows, *arguments, "--show", "--rows", "1"])

    text = capsys.readouterr().out
    assert '⟦<tool_call>\n{"name": "status", "arguments": {"route": "Holm"}}' in text
    assert "</tool_call>⟧*2⟦<|im_end|>⟧" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "nope", "--tokenizer", "qwen2_5"], "no format named 'nope'"),
        (["--format", "hermes", "--tokenizer", "nope"], "no tokenizer 'nope'"),
        (
            ["--format", "hermes", "--tokenizer", "qwen2_5", "--loss", "nope"],
            "no loss policy named 'nope'",
        ),
        (
            ["--format", "hermes", "--tokenizer", "qwen2_5", "--pack", "0"],
            "--pack must be 1 or more, got 0",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(
    arguments: list[str], message: str, rows: str, capsys: Capture
) -> None:
    assert main(["encode", rows, *arguments]) == 2

    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
