"""`antiphon run`: what a person and a script see of a run, and how it fails."""

import json
import os
import pty
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli import main
from antiphon.events import Trajectory

CALL: dict[str, Any] = {
    "content": "Let me see.",
    "reasoning_content": "percent",
    "tool_calls": [
        {"id": "c1", "function": {"name": "calculator", "arguments": {"expression": "2340*0.175"}}}
    ],
}


@pytest.fixture
def script(tmp_path: Path) -> str:
    return make_script(tmp_path, CALL, "It is 409.5.")


def make_script(tmp_path: Path, *answers: Any) -> str:
    path = tmp_path / "script.json"
    path.write_text(json.dumps(list(answers)))
    return f"script/{path}"


def call_of(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"id": "c1", "function": {"name": tool, "arguments": arguments}}]}


def test_in_a_pipe_stdout_is_the_answer_and_stderr_tells_the_rest(
    script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["run", "What is 17.5% of 2340?", "--model", script])

    out, err = capsys.readouterr()
    assert (code, out) == (0, "It is 409.5.\n")
    assert 'calculator(expression="2340*0.175")' in err
    assert "409.5" in err
    assert "percent" in err
    assert "2 steps" in err
    assert "\x1b" not in err


def test_json_writes_one_event_a_line(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["run", "Q", "--model", script, "--json"])

    out, err = capsys.readouterr()
    events = [json.loads(line) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert (events[0]["type"], events[-1]["type"]) == ("run_start", "run_end")
    assert events[-1]["output"] == "It is 409.5."


def test_out_is_the_trajectory(script: str, tmp_path: Path) -> None:
    out = tmp_path / "run.json"

    main(["run", "Q", "--model", script, "--out", str(out), "--system", "Be brief."])

    trajectory = Trajectory.load(out)
    assert trajectory.output == "It is 409.5."
    assert trajectory.steps[0].system == "Be brief."
    assert [r.text for r in trajectory.steps[0].results] == ["409.5"]


def test_tools_come_from_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tools = tmp_path / "mine.py"
    tools.write_text('def greet(name: str) -> str:\n    "Greets."\n    return f"Hi {name}"\n')
    model = make_script(tmp_path, call_of("greet", name="Ada"), "Done.")

    code = main(["run", "Q", "--model", model, "--tools", f"{tools}:greet"])

    assert code == 0
    assert "Hi Ada" in capsys.readouterr().err


def test_the_question_may_come_from_stdin(
    script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    question = tmp_path / "question.txt"
    question.write_text("How much?\n")
    out = tmp_path / "run.json"

    with question.open() as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        main(["run", "-", "--model", script, "--out", str(out)])

    assert Trajectory.load(out).events[0].input == "How much?\n"  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def test_control_sequences_of_a_model_are_shown_and_not_obeyed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_script(tmp_path, call_of("\x1b[2Jboom"), "ok")

    main(["run", "Q", "--model", model])

    err = capsys.readouterr().err
    assert "\x1b" not in err
    assert "\\x1b[2Jboom" in err


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        ([], 2, "a question is missing"),
        (["  "], 2, "a question is missing"),
        (["Q", "--model", "no-such-thing"], 2, "no-such-thing"),
        (["Q", "--tools", "no_such_module:f"], 2, "no module named 'no_such_module'"),
        (["Q", "--tools", "json:no_such"], 2, "'json' has no 'no_such'; it has: "),
        (["Q", "--tools", "nowhere.py:f"], 2, "no file 'nowhere.py'"),
        (["Q", "--tools", ":f"], 2, "the module is missing"),
        (["Q", "--tools", "string:digits"], 2, "no tool and no function"),
        (["Q", "--no-tools", "--tools", "json"], 2, "do not go together"),
        (["Q", "--max-steps", "0"], 2, "--max-steps must be 1 or more"),
        (["Q", "--out", "/nowhere/at/all.json"], 1, "no such directory"),
        (["Q", "--model", "http://127.0.0.1:9/v1#m"], 1, "127.0.0.1:9"),
        (["Q", "--model", "script/nowhere.json"], 1, "nowhere.json"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_an_exit_code(
    arguments: list[str], code: int, reason: str, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if "--model" not in arguments:
        arguments = [*arguments, "--model", script]

    assert main(["run", *arguments]) == code

    err = capsys.readouterr().err
    assert reason in err
    assert "Traceback" not in err
    assert err.startswith("antiphon: ")
    assert len([line for line in err.splitlines() if line.startswith("antiphon")]) == 1


def test_a_tool_module_that_breaks_on_import_is_named(
    tmp_path: Path, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")

    assert main(["run", "Q", "--model", script, "--tools", str(broken)]) == 2

    assert "cannot be imported: SyntaxError" in capsys.readouterr().err


def test_a_run_that_is_stopped_by_a_limit_fails_and_is_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = make_script(tmp_path, CALL, CALL)
    out = tmp_path / "run.json"

    code = main(["run", "Q", "--model", model, "--max-steps", "1", "--out", str(out)])

    assert code == 1
    assert "step_limit" in capsys.readouterr().err
    assert Trajectory.load(out).stop_reason == "step_limit"


def test_a_call_that_needs_a_person_is_not_executed_without_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = tmp_path / "mine.py"
    tools.write_text(
        "from antiphon import tool\n\n\n@tool(approval=True)\ndef pay(amount: int) -> str:\n"
        '    "Pays."\n    raise AssertionError("paid")\n'
    )
    model = make_script(tmp_path, call_of("pay", amount=5), "Done.")

    assert main(["run", "Q", "--model", model, "--tools", str(tools)]) == 1

    assert "pay(amount=5) needs a person's consent" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("sent", "code", "interrupts"),
    [
        (signal.SIGINT, 130, signal.SIG_DFL),
        (signal.SIGTERM, 143, signal.SIG_DFL),
        (signal.SIGTERM, 143, signal.SIG_IGN),  # a shell's command in the background
    ],
)
def test_a_stopped_command_leaves_a_readable_record_and_no_process(
    sent: signal.Signals, code: int, interrupts: signal.Handlers, tmp_path: Path
) -> None:
    tools = tmp_path / "mine.py"
    tools.write_text(
        "import time\n\n\ndef hang() -> str:\n    'Hangs.'\n    time.sleep(60)\n    return ''\n"
    )
    out = tmp_path / "run.json"
    model = make_script(tmp_path, call_of("hang"), "Done.")
    options = ["--model", model, "--tools", str(tools), "--out", str(out)]
    process = subprocess.Popen(
        [sys.executable, "-m", "antiphon", "run", "Q", *options],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, interrupts),
    )
    assert process.stderr is not None
    while "hang()" not in process.stderr.readline():
        pass
    process.send_signal(sent)
    _, err = process.communicate(timeout=20)

    assert process.returncode == code
    assert "Traceback" not in err
    trajectory = Trajectory.load(out)
    assert trajectory.stop_reason == "cancelled"
    assert "cancelled" in trajectory.conversation.messages[-1].text


def in_terminal(arguments: list[str], **environ: str) -> str:
    """What a terminal shows of a command."""
    main_end, other_end = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "antiphon", *arguments],
        stdin=other_end,
        stdout=other_end,
        stderr=other_end,
        env={**os.environ, "TERM": "xterm", **environ},
    )
    os.close(other_end)
    shown = b""
    while True:
        try:
            piece = os.read(main_end, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    process.wait(timeout=20)
    os.close(main_end)
    return shown.decode()


def test_a_terminal_shows_text_as_it_comes_and_reasoning_dimmed(script: str) -> None:
    shown = in_terminal(["run", "Q", "--model", script], NO_COLOR="")

    assert "\x1b[2mpercent" in shown
    assert shown.index("Let me see.") < shown.index("calculator(") < shown.index("It is 409.5.")


def test_no_color_is_respected(script: str) -> None:
    assert "\x1b" not in in_terminal(["run", "Q", "--model", script], NO_COLOR="1")


def test_a_plan_is_shown_as_it_goes_and_the_answer_alone_on_stdout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = [{"id": "a", "tool": "calculator", "arguments": {"expression": "6 * 7"}}]
    script = tmp_path / "script.json"
    script.write_text(json.dumps([json.dumps({"tasks": tasks}), "It is 42."]))

    code = main(["run", "6 x 7?", "--model", f"script/{script}", "--strategy", "plan"])

    shown = capsys.readouterr()
    assert (code, shown.out) == (0, "It is 42.\n")
    assert "plan proposed" in shown.err
    assert '○ a calculator(expression="6 * 7")' in shown.err
    assert "● a 42" in shown.err


def test_a_limit_of_model_calls_holds_over_a_whole_strategy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = [{"id": "a", "prompt": "Multiply."}, {"id": "b", "prompt": "Check."}]
    script = tmp_path / "script.json"
    script.write_text(json.dumps([json.dumps({"tasks": tasks}), "42", "right", "It is 42."]))
    command = ["run", "6 x 7?", "--model", f"script/{script}", "--strategy", "plan"]
    out = tmp_path / "run.json"

    stopped = main([*command, "--max-steps", "2", "--out", str(out)])
    record = Trajectory.load(out)
    assert (stopped, record.stop_reason, record.total_usage.n_requests) == (1, "step_limit", 2)
    assert "step_limit" in capsys.readouterr().err
    assert main([*command, "--max-steps", "4"]) == 0
    assert capsys.readouterr().out == "It is 42.\n"


def test_reflexion_tries_until_the_answer_says_what_is_expected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(["Sydney", "The largest is not the capital.", "Canberra"]))
    words = ["--strategy", "reflexion", "--expect", "canberra", "--no-tools"]

    code = main(["run", "Capital of Australia?", "--model", f"script/{script}", *words])

    shown = capsys.readouterr()
    assert (code, shown.out) == (0, "Canberra\n")
    assert "✗ attempt 1 failed, score 0" in shown.err
    assert "✓ attempt 2 passed, score 1" in shown.err
