"""`antiphon chat`: a conversation that remembers, is saved, and lets a person decide."""

import contextlib
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Decision
from antiphon.cli import main
from antiphon.cli._asking import decide
from antiphon.events import Trajectory
from antiphon.messages import ToolCall


def chat(
    lines: list[str], answers: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> int:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(answers))
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
    return main(["chat", "--model", f"script/{script}"])


def test_a_conversation_is_continued_and_saved_as_one_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "talk.json"

    code = chat(
        ["Hello", "", "And you?", f"/save {out}", "/quit", "never read"],
        ["Hi.", "Fine."],
        tmp_path,
        monkeypatch,
    )

    record = Trajectory.load(out)
    assert code == 0
    assert capsys.readouterr().out == "Hi.\nFine.\n"
    assert [m.text for m in record.conversation.messages] == ["Hello", "Hi.", "And you?", "Fine."]
    assert [step.n_prompt_messages for step in record.steps] == [1, 3]


def test_the_end_of_the_input_ends_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert chat(["Hello"], ["Hi."], tmp_path, monkeypatch) == 0


def test_commands_tell_and_change_and_a_wrong_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.json"
    other.write_text('["I am another."]')

    chat(
        ["/help", "/tools", "/save", "/dance", f"/model script/{other}", "Who?", "/model nonsense"],
        [],
        tmp_path,
        monkeypatch,
    )

    out, err = capsys.readouterr()
    assert out == "I am another.\n"
    assert "/save FILE" in err
    assert "calculator:" in err
    assert "/save needs a file" in err
    assert "no command '/dance'" in err
    assert "nonsense" in err


def test_an_answer_that_fails_does_not_end_the_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = chat(["Hello", "Again", "/clear", "/help"], ["Hi."], tmp_path, monkeypatch)

    out, err = capsys.readouterr()
    assert (code, out) == (0, "Hi.\n")
    assert "the script has 1 answers" in err
    assert "/quit" in err


def test_what_was_said_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chat(["/history", "Hello\tthere", "/history"], ["Hi.\nWell?"], tmp_path, monkeypatch)

    told = capsys.readouterr().err
    assert "nothing was said yet" in told
    assert "user: Hello there\nassistant: Hi. Well?" in told


@pytest.mark.parametrize(
    ("typed", "decision"),
    [
        (["y"], Decision(True)),
        (["no"], Decision(False)),
        ([], Decision(False)),
        (["too dear"], Decision(False, reason="too dear")),
        (["e", '{"amount": 3}'], Decision(True, {"amount": 3})),
        (["e", "{broken", "[3]", '{"amount": 4}'], Decision(True, {"amount": 4})),
        (["e", ""], Decision(False)),
    ],
)
def test_a_person_agrees_refuses_or_changes_the_arguments(
    typed: list[str], decision: Decision, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in typed)))

    assert decide(ToolCall("pay", {"amount": 5}, "c1")) == decision


def test_a_terminal_shows_markdown_and_remembers_what_was_typed(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('["It is **42**."]')
    state = tmp_path / "state"
    main_end, other_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "antiphon", "chat", "--model", f"script/{script}"],
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "", "XDG_STATE_HOME": str(state)},
    )
    os.close(other_end)
    os.write(main_end, b"How much?\n/quit\n")
    shown = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while piece := os.read(main_end, 4096):
            shown += piece
    process.wait(timeout=20)
    os.close(main_end)

    assert b"It is \x1b[1m42\x1b[0m." in shown
    kept = (state / "antiphon" / "history").read_text()
    assert "How much?" in kept
    assert (state / "antiphon" / "history").stat().st_mode & 0o077 == 0
