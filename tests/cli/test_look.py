"""`antiphon data check --fix`, `--html` and `dedupe --near` on a file of rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli import main

Capture = pytest.CaptureFixture[str]

USER: dict[str, Any] = {"role": "user", "content": "When does the ferry to Holm leave today?"}
SAID: dict[str, Any] = {"role": "assistant", "content": "At nine, from the old harbour."}
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c", "function": {"name": "ferry", "arguments": "{}"}}],
}


def file_of(tmp_path: Path, *rows: Any) -> Path:
    path = tmp_path / "rows.jsonl"
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(lines), "utf-8")
    return path


def test_what_is_safe_is_mended_and_what_is_left_is_told(tmp_path: Path, capsys: Capture) -> None:
    source = file_of(
        tmp_path,
        {"messages": [USER, USER, SAID]},
        {"messages": [USER, CALL, SAID], "tools": [{"name": "boat", "parameters": {}}]},
        {"messages": [USER, USER, SAID]},
        "{broken",
    )
    out = tmp_path / "mended.jsonl"

    assert main(["data", "check", str(source), "--fix", str(out)]) == 1

    told = capsys.readouterr().out
    assert "mended: user_twice 2" in told
    assert "rows left out: duplicate 1, unreadable 1" in told
    assert "2 rows written; left in them: 2 errors" in told
    assert [len(json.loads(line)["messages"]) for line in out.read_text().splitlines()] == [2, 3]
    assert main(["data", "check", str(source), "--fix", str(source)]) == 2


def test_a_clean_file_passes_behind_its_mends(tmp_path: Path, capsys: Capture) -> None:
    source, out = file_of(tmp_path, {"messages": [USER, USER, SAID]}), tmp_path / "mended.jsonl"

    assert main(["data", "check", str(source), "--fix", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "n_rows": 1,
        "mended": {"user_twice": 1},
        "left_out": {},
        "left": {},
    }


@pytest.mark.parametrize("verb", ["check", "stats"])
def test_a_page_shows_what_is_in_a_file(tmp_path: Path, verb: str, capsys: Capture) -> None:
    source = file_of(tmp_path, {"messages": [USER, SAID]}, {"messages": [USER, USER, CALL]})
    page = tmp_path / "page.html"

    main(["data", verb, str(source), "--html", str(page)])

    text = page.read_text("utf-8")
    assert "Calls per message" in text
    assert "LATIN" in text
    assert ("user_twice" in text) == (verb == "check")


def test_rows_that_are_nearly_another_are_dropped_when_asked(
    tmp_path: Path, capsys: Capture
) -> None:
    nearly = {**USER, "content": USER["content"].replace("today", "todayy")}
    other = {**USER, "content": "What is seventeen times three, please?"}
    source = file_of(
        tmp_path,
        {"messages": [USER, SAID]},
        {"messages": [nearly, SAID]},
        {"messages": [other, SAID]},
    )

    assert main(["data", "dedupe", str(source), str(tmp_path / "a.jsonl")]) == 0
    assert "3 of 3 rows kept" in capsys.readouterr().out
    assert main(["data", "dedupe", str(source), str(tmp_path / "b.jsonl"), "--near", "0.8"]) == 0
    assert "2 of 3 rows kept, 1 nearly like another" in capsys.readouterr().out
