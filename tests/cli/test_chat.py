"""`antiphon chat`: a conversation that remembers, is saved, and lets a person decide."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli import main
from antiphon.events import Trajectory


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
