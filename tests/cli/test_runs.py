"""`antiphon runs`: what a store keeps, and going on with what was broken off."""

import json
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.store import SqliteStore

Capture = pytest.CaptureFixture[str]
CALL = {
    "tool_calls": [
        {"id": "c1", "function": {"name": "calculator", "arguments": {"expression": "1+2"}}}
    ]
}


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "runs.db")


def ask(tmp_path: Path, store: str, question: str, *answers: object, session: str = "") -> int:
    script = tmp_path / f"{question}.json"
    script.write_text(json.dumps(answers))
    options = ["--session", session] if session else []
    return main(["run", question, "--model", f"script/{script}", "--store", store, *options])


def test_kept_runs_are_listed_and_shown(tmp_path: Path, store: str, capsys: Capture) -> None:
    ask(tmp_path, store, "sum", CALL, "It is 3.")
    capsys.readouterr()

    assert main(["runs", "list", "--store", store, "--json"]) == 0
    info = json.loads(capsys.readouterr().out)
    assert (info["question"], info["status"]) == ("sum", "answer")

    assert main(["runs", "show", info["id"][:8], "--store", store]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == "It is 3."


def test_a_run_that_broke_goes_on_with_its_tools(
    tmp_path: Path, store: str, capsys: Capture
) -> None:
    assert ask(tmp_path, store, "sum", CALL) == 1  # the script is over before the answer
    rest = tmp_path / "rest.json"
    rest.write_text('["It is 3."]')
    run_id = SqliteStore(store).runs()[0].id
    capsys.readouterr()

    code = main(["runs", "resume", run_id, "--store", store, "--model", f"script/{rest}"])

    out, err = capsys.readouterr()
    assert (code, out) == (0, "It is 3.\n")
    assert "calculator" not in err
    assert SqliteStore(store).load(run_id).output == "It is 3."


def test_a_session_goes_on_over_commands(tmp_path: Path, store: str, capsys: Capture) -> None:
    ask(tmp_path, store, "one", "First.", session="s")
    ask(tmp_path, store, "two", "Second.", session="s")

    run = SqliteStore(store).runs(session="s")[0]
    messages = SqliteStore(store).load(run.id).conversation.messages
    assert [m.text for m in messages] == ["one", "First.", "two", "Second."]


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["list", "--store", "nowhere.db"], 1, "there is no store"),
        (["list"], 2, "--store"),
        (["resume", "r9", "--store", "STORE"], 2, "no run 'r9'"),
        (["show", "r9", "--store", "STORE"], 2, "no run 'r9'"),
    ],
)
def test_what_is_not_there_is_one_line(
    arguments: list[str], code: int, reason: str, store: str, capsys: Capture
) -> None:
    SqliteStore(store).close()

    assert main(["runs", *(store if a == "STORE" else a for a in arguments)]) == code

    err = capsys.readouterr().err
    assert reason in err
    assert err.count("\n") == 1


def test_a_session_needs_a_store(tmp_path: Path, capsys: Capture) -> None:
    script = tmp_path / "s.json"
    script.write_text('["x"]')

    assert main(["run", "q", "--model", f"script/{script}", "--session", "s"]) == 2
    assert "--session needs a store" in capsys.readouterr().err
