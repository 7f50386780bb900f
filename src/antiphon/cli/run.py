"""`antiphon run`: one question, answered by a model with tools."""

import argparse
import sys
from pathlib import Path

from antiphon.agent import RunResult
from antiphon.cli._asking import (
    Session,
    add_arguments,
    make_agent,
    model_spec,
    open_model,
    store_of,
    strategy_of,
    told,
    tools_of,
)
from antiphon.cli._main import Subparsers
from antiphon.cli._terminal import Terminal, call_text
from antiphon.errors import DataError, RunError, UsageError
from antiphon.events import Event, dump_row, event_to_row

_EPILOG = """\
The answer goes to stdout, everything else to stderr. Exit codes: 0 answered, 1 not answered,
2 misused, 130 interrupted, 143 terminated; --out is written in every case.

example:
  antiphon run "What is 17.5% of 2340?" --out run.json"""


def add_parser(subparsers: Subparsers) -> None:
    """The arguments of `antiphon run`."""
    parser = subparsers.add_parser(
        "run",
        help="ask a question and let a model answer it with tools",
        description="Ask a question; the model answers it, calling tools as it needs them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "question", metavar="QUESTION", nargs="?", help="what to ask; - reads it from stdin"
    )
    add_arguments(parser)
    parser.add_argument(
        "--strategy",
        choices=("loop", "plan", "rewoo", "compiler", "reflexion"),
        default="loop",
        help="how to go about it (default loop): plan, also as ReWOO or LLMCompiler have it, or "
        "reflexion, with --expect or else judged by the model itself",
    )
    parser.add_argument("--expect", metavar="TEXT", help="for reflexion: what a right answer says")
    parser.add_argument("--out", metavar="FILE", help="write the trajectory to this file")
    parser.add_argument(
        "--json", action="store_true", help="write every event as a line of JSON to stdout"
    )


def run(args: argparse.Namespace) -> int:
    """Answer the question.

    Raises:
        UsageError: The arguments cannot be used.
        AntiphonError: There is no answer, because of the model.
    """
    question = _question(args.question)
    out = None if args.out is None else _writable(Path(args.out))
    tools_of(args)  # a tool that cannot be had is told before a model is opened
    model = open_model(model_spec(args))
    show = show_json if args.json else Terminal().show
    with Session(show, store_of(args), args.session) as session:
        try:
            runner = strategy_of(args, make_agent(args, model))
            result = session.ask(runner, question, metadata=told(args))
        finally:
            if out is not None and session.run is not None:
                session.run.trajectory.save(out)
            session.close(model)
    return exit_code(result)


def _question(given: str | None) -> str:
    text = sys.stdin.read() if given == "-" else given
    if text is None or not text.strip():
        raise UsageError(
            "a question is missing; ask one: antiphon run QUESTION (it stands before --tools)"
        )
    return text


def _writable(path: Path) -> Path:
    if path.is_dir() or not path.absolute().parent.is_dir():
        what = "it is a directory" if path.is_dir() else "there is no such directory"
        raise DataError(f"cannot be written: {what}", path=path)
    return path


def show_json(event: Event) -> None:
    """Write an event as a line of JSON."""
    sys.stdout.write(dump_row(event_to_row(event)) + "\n")
    sys.stdout.flush()


def exit_code(result: RunResult) -> int:
    """0 for a run with an answer.

    Raises:
        AntiphonError: There is none; it says why.
    """
    if result.stop_reason in ("answer", "stopped_by_tool"):
        return 0
    if result.error is not None:
        raise result.error
    raise RunError(_why(result))


def _why(result: RunResult) -> str:
    match result.stop_reason:
        case "pending":
            waiting = ", ".join(call_text(call) for call in result.pending)
            return f"not answered: {waiting} needs a person's consent; run it in a terminal"
        case reason:
            return f"not answered: {result.trajectory.error or f'the run stopped with {reason}'}"
