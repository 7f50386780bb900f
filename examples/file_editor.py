"""An editor of files that a person watches: each change is shown as a diff and waits for a yes.

Reading is free; ``write_file`` has ``approval=True``.  The person may agree, or refuse with a
reason that the model reads; the run waits as a value, so that the answer may also come later, from
another process (`Agent.resume`).  Nothing outside the folder can be read or written.

In a terminal you are asked; else a scripted person refuses once and agrees once.

    python examples/file_editor.py
"""

import difflib
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from antiphon import Agent, Message, ScriptedModel, ToolCall
from antiphon.agent import Decision, RunResult
from antiphon.tools.builtin import files

BEFORE = "# Notes\n\nThe meating is on Tusday.\n"
WRONG = "# Notes\n\nThe meeting is on Monday.\n"
RIGHT = "# Notes\n\nThe meeting is on Tuesday.\n"

Ask = Callable[[str], str]
"""Shows a person a diff; gives what they say."""


def editor(folder: Path, model: ScriptedModel) -> Agent:
    """An agent that may read and search a folder, and write to it when a person agrees."""
    tools = [
        one.with_options(approval=True) if one.name == "write_file" else one
        for one in files(folder)
    ]
    return Agent(
        name="editor",
        instructions="Mend spelling. Read a file before you write it, and change nothing else.",
        model=model,
        tools=tools,
    )


def diff(folder: Path, call: ToolCall) -> str:
    """What a call would change."""
    path = str(call.arguments["path"])
    old = (folder / path).read_text("utf-8") if (folder / path).is_file() else ""
    new = str(call.arguments["content"])
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{path} (now)", f"{path} (then)", lineterm=""
    )
    return "\n".join(lines)


def decide(folder: Path, ask: Ask) -> Callable[[ToolCall], Decision]:
    """A person's decision about each write: an empty answer or "y" agrees, all else refuses."""

    def decision(call: ToolCall) -> Decision:
        said = ask(diff(folder, call)).strip()
        if said.lower() in ("", "y", "yes"):
            return Decision(True)
        return Decision(False, reason=said)

    return decision


def on_terminal(shown: str) -> str:
    """Ask whoever sits there."""
    print(shown)
    return input("write it? [Y/reason why not] ")


def scripted(answers: Iterator[str]) -> Ask:
    """Answers of a person who is not there."""

    def ask(shown: str) -> str:
        said = next(answers)
        print(f"{shown}\n  the person says: {said}")
        return said

    return ask


def writes(content: str) -> Message:
    """What the scripted model writes to change the file."""
    arguments = {"path": "notes.md", "content": content}
    return Message.assistant(tool_calls=[ToolCall("write_file", dict(arguments))])


def main(ask: Ask | None = None) -> tuple[RunResult, str]:
    """Mend one file; gives the run, and what the file says afterwards."""
    if ask is None:
        answers = iter(["it is on Tuesday, read again", "y"])
        ask = on_terminal if sys.stdin.isatty() else scripted(answers)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "notes.md").write_text(BEFORE, encoding="utf-8")
        reads = Message.assistant(tool_calls=[ToolCall("read_file", {"path": "notes.md"})])
        model = ScriptedModel([reads, writes(WRONG), writes(RIGHT), "The spelling is mended."])
        agent = editor(folder, model)
        result = agent.run("Mend notes.md.", approve=decide(folder, ask)).wait()
        print(result.output)
        return result, (folder / "notes.md").read_text("utf-8")


if __name__ == "__main__":
    main()
