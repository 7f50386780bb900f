"""`antiphon chat`: a conversation with a model that has tools, in the terminal."""

import argparse
import contextlib
import importlib
import os
import sys
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

from antiphon.agent import Agent
from antiphon.cli._asking import (
    Session,
    add_arguments,
    make_agent,
    model_spec,
    open_model,
    store_of,
    told,
    tools_of,
)
from antiphon.cli._main import Subparsers
from antiphon.cli._terminal import Terminal, call_text, clipped
from antiphon.errors import AntiphonError, UsageError
from antiphon.events import Trajectory, body_of
from antiphon.messages import Message, Usage
from antiphon.models import Model

_EPILOG = """\
In the conversation: /help, /tools, /history, /model [SPEC], /save FILE,
/clear, /quit.
Ctrl-C stops an answer, Ctrl-D ends the conversation.

example:
  antiphon chat --model ollama/qwen3"""

_MAX_TYPED = 1000  # lines
_MAX_LINE_CHARS = 200  # of a message, as /history shows it

_HELP = """\
/tools          what the model may call
/history        what was said so far
/model [SPEC]   which model answers; with SPEC, another one from now on
/save FILE      write the conversation so far as a trajectory
/clear          forget the conversation
/quit           end it (also Ctrl-D)
Ctrl-C stops an answer."""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon chat`."""
    parser = subparsers.add_parser(
        "chat",
        help="talk with a model that has tools, in the terminal",
        description="Talk with a model that has tools; it remembers the conversation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Talk until the person leaves.

    Raises:
        UsageError: The arguments cannot be used.
        ModelError: The model cannot be opened.
    """
    tools_of(args)  # a tool that cannot be had is told before a model is opened
    terminal = Terminal()
    with _typed_before(), Session(terminal.show, store_of(args), args.session) as session:
        chat = Chat(args, session, terminal)
        try:
            chat.talk()
        finally:
            session.close(chat.model)
    return 0


@contextlib.contextmanager
def _typed_before() -> Generator[None]:
    """Arrow keys while typing, and what was typed in earlier conversations; for the user alone."""
    try:
        readline = importlib.import_module("readline")
    except ImportError:  # there is none on Windows
        yield
        return
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    path = Path(state) / "antiphon" / "history"
    with contextlib.suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_MAX_TYPED)
    try:
        yield
    finally:
        if sys.stdin.isatty():
            with contextlib.suppress(OSError):  # a home that cannot be written to
                path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                path.touch(0o600)
                readline.write_history_file(path)


class Chat:
    """A conversation on its way."""

    def __init__(self, args: argparse.Namespace, session: Session, terminal: Terminal) -> None:
        self._args = args
        self._session = session
        self._terminal = terminal
        self.model: Model = open_model(model_spec(args))
        self._agent: Agent = make_agent(args, self.model)
        self._turns: list[Trajectory] = []
        self._commands: dict[str, Callable[[str], None]] = {
            "/help": lambda _: self._terminal.say(_HELP),
            "/tools": lambda _: self._tools(),
            "/history": lambda _: self._history(),
            "/model": self._model,
            "/save": self._save,
            "/clear": lambda _: self._turns.clear(),
        }

    @property
    def history(self) -> tuple[Message, ...]:
        """Everything said so far."""
        return body_of(self._turns[-1].conversation) if self._turns else ()

    def talk(self) -> None:
        """Read, answer, and again, until /quit or the end of the input."""
        if sys.stdin.isatty():
            self._terminal.say(f"{self.model.spec}; /help tells the commands, Ctrl-D ends")
        while (line := _read()) is not None:
            name, _, rest = line.strip().partition(" ")
            if name in ("/quit", "/exit"):
                return
            try:
                if name in self._commands:
                    self._commands[name](rest.strip())
                elif name.startswith("/") and name[1:].isalpha():
                    known = ", ".join([*self._commands, "/quit"])
                    raise UsageError(f"no command {name!r}; known: {known}")
                elif line.strip():
                    self._answer(line.strip())
            except AntiphonError as error:
                self._terminal.say(f"! {error}")

    def _answer(self, line: str) -> None:
        try:
            history = () if self._args.session else self.history  # the store remembers a session
            result = self._session.ask(self._agent, line, history, told(self._args))
        except KeyboardInterrupt:
            self._terminal.say("stopped")
        else:
            if result.error is not None:
                self._terminal.say(f"! {result.error}")
        if self._session.run is not None:
            self._turns.append(self._session.run.trajectory)

    def _tools(self) -> None:
        for tool in self._agent.own_tools:
            first = (tool.spec.description.splitlines() or [""])[0]
            self._terminal.say(f"{tool.name}: {first}")

    def _history(self) -> None:
        for message in self.history:
            calls = "; ".join(call_text(call) for call in message.tool_calls)
            said = " ".join(part for part in (message.text, calls) if part)
            self._terminal.say(f"{message.role}: {clipped(said, _MAX_LINE_CHARS)}")
        if not self.history:
            self._terminal.say("nothing was said yet")

    def _model(self, spec: str) -> None:
        if spec:
            args = argparse.Namespace(**{**vars(self._args), "model": spec})
            model = open_model(model_spec(args))
            self._session.close(self.model)
            self._args, self.model = args, model
            self._agent = make_agent(args, model)
        self._terminal.say(self.model.spec)

    def _save(self, path: str) -> None:
        if not path:
            raise UsageError("/save needs a file; for example /save talk.json")
        if not self._turns:
            raise UsageError("there is nothing to save yet; say something first")
        joined(self._turns).save(Path(path))
        self._terminal.say(f"saved {path}")


def joined(turns: list[Trajectory]) -> Trajectory:
    """The runs of one conversation as one record; each began with the messages so far."""
    return replace(
        turns[-1],
        id=turns[0].id,
        started_at=turns[0].started_at,
        steps=tuple(step for turn in turns for step in turn.steps),
        events=tuple(event for turn in turns for event in turn.events),
        children=tuple(child for turn in turns for child in turn.children),
        usage=sum((turn.usage for turn in turns), Usage()),
    )


def _read() -> str | None:
    """The next line; ``None`` at the end."""
    while True:
        try:
            if sys.stdin.isatty():
                return input("> ")
            return sys.stdin.readline() or None
        except EOFError:
            return None
        except KeyboardInterrupt:
            print(file=sys.stderr)
