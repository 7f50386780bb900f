"""What `antiphon run` and `antiphon chat` have in common: arguments, one question, approval."""

import argparse
import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from antiphon.agent import Agent, Decision, Run, RunResult
from antiphon.cli._terminal import call_text
from antiphon.cli._tools import find_tools
from antiphon.errors import RunError, UsageError
from antiphon.events import Event
from antiphon.messages import Message, ToolCall
from antiphon.models import Model, load_model
from antiphon.tools import Tool
from antiphon.tools.builtin import DEMO_TOOLS

Show = Callable[[Event], None]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that say who answers."""
    parser.add_argument(
        "--model",
        metavar="SPEC",
        default="local",
        help="local (default), openai/NAME, ollama/NAME, http://HOST:PORT/v1#NAME, hf/ID, "
        "gguf/FILE or script/FILE",
    )
    parser.add_argument(
        "--tools",
        metavar="MODULE:NAME",
        nargs="+",
        action="extend",
        help="what may be called: MODULE:NAME, MODULE (all in it) or path.py:NAME; without it a "
        "demonstration set that works offline",
    )
    parser.add_argument("--no-tools", action="store_true", help="nothing may be called")
    parser.add_argument(
        "--format",
        metavar="NAME",
        help="write and read calls as this family does, such as react_en",
    )
    parser.add_argument("--system", metavar="TEXT", default="", help="instructions for the model")
    parser.add_argument(
        "--max-steps", metavar="N", type=int, default=20, help="the most model calls (default 20)"
    )


def model_spec(args: argparse.Namespace) -> str:
    """The spec, with the format where one is asked for."""
    if not args.format:
        return args.model
    return f"{args.model}{'&' if '?' in args.model else '?'}format={args.format}"


def tools_of(args: argparse.Namespace) -> Sequence[Tool[..., Any]]:
    """The tools that the arguments name.

    Raises:
        UsageError: One of them cannot be had.
    """
    if args.no_tools and args.tools:
        raise UsageError("--no-tools and --tools do not go together; leave one out")
    if args.no_tools:
        return ()
    return find_tools(args.tools) if args.tools else DEMO_TOOLS


def make_agent(args: argparse.Namespace, model: Model) -> Agent:
    """The agent that the arguments describe, with an opened model.

    Raises:
        UsageError: The arguments do not fit together.
    """
    if args.max_steps < 1:
        raise UsageError(f"--max-steps must be 1 or more, got {args.max_steps}")
    return Agent(
        name="antiphon",
        instructions=args.system,
        model=model,
        tools=tools_of(args),
        max_steps=args.max_steps,
    )


def open_model(spec: str) -> Model:
    """Open a model.

    Raises:
        UsageError: There is no such spec.
        ModelError: It cannot be opened.
    """
    return load_model(spec)


class Session:
    """Runs one after the other in one event loop; a person is asked between, never inside it."""

    def __init__(self, show: Show) -> None:
        self._runner = asyncio.Runner()
        self._show = show
        self.run: Run | None = None

    def __enter__(self) -> "Session":
        self._runner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._runner.close()

    def close(self, model: Model) -> None:
        """Give back what a model holds."""
        self._runner.run(model.close())

    def ask(self, agent: Agent, question: str, history: Sequence[Message] = ()) -> RunResult:
        """One question, to its end; calls that need a person are asked about on the terminal.

        Raises:
            KeyboardInterrupt: Ctrl-C; `run` holds the record so far.
        """
        result = self._follow(agent.run(question, history=history))
        while result.pending and sys.stdin.isatty():
            decisions = {call.id: decide(call) for call in result.pending}
            result = self._follow(agent.resume(result.trajectory, decisions))
        return result

    def _follow(self, run: Run) -> RunResult:
        self.run = run
        return self._runner.run(self._events(run))

    async def _events(self, run: Run) -> RunResult:
        with contextlib.suppress(RunError):  # the result says it, too
            async for event in run:
                self._show(event)
        return await run


def decide(call: ToolCall) -> Decision:
    """Ask on the terminal whether a call may be executed."""
    print(f"? {call_text(call)}", file=sys.stderr)
    print("  execute it? [y]es, [n]o, or a reason why not: ", end="", file=sys.stderr, flush=True)
    try:
        answer = input().strip()
    except EOFError:
        answer = "n"
    if answer.lower() in ("y", "yes"):
        return Decision(True)
    return Decision(False, reason="" if answer.lower() in ("", "n", "no") else answer)
