"""What `antiphon run` and `antiphon chat` have in common: arguments, one question, approval."""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from antiphon.agent import Agent, Decision, Run, RunResult, undecided_calls
from antiphon.cli._terminal import call_text, printable
from antiphon.cli._tools import find_tools
from antiphon.errors import RunError, UsageError
from antiphon.events import Event, dump_row
from antiphon.messages import JsonObject, Message, ToolCall
from antiphon.models import Model, load_model
from antiphon.store import Store, open_store
from antiphon.strategies import PlanAndExecute, Reflexion, Runnable, contains, judge
from antiphon.tools import Tool
from antiphon.tools.builtin import DEMO_TOOLS

Show = Callable[[Event], None]

TERMINATED = 128 + signal.SIGTERM
"""The exit code of a command that was told to end."""


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
    parser.add_argument(
        "--store",
        metavar="STORE",
        help="keep runs here as they happen: a file, or postgresql://HOST/DATABASE; antiphon runs "
        "shows them",
    )
    parser.add_argument(
        "--session", metavar="NAME", default="", help="in a store, the conversation to go on with"
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


def strategy_of(args: argparse.Namespace, agent: Agent) -> Runnable:
    """Who answers: the agent, or a strategy around it.

    Raises:
        UsageError: The arguments do not fit together.
    """
    strategy = getattr(args, "strategy", "loop")
    expected = getattr(args, "expect", None)
    if expected is not None and strategy != "reflexion":
        raise UsageError("--expect is for --strategy reflexion; leave it out")
    most = agent.max_steps
    match strategy:
        case "plan":
            return PlanAndExecute(agent, max_steps=most)
        case "rewoo":
            return PlanAndExecute.rewoo(agent, max_steps=most)
        case "compiler":
            return PlanAndExecute.compiler(agent, max_steps=most)
        case "reflexion":
            by = judge(agent.model) if expected is None else contains(expected)
            return Reflexion(agent, by, reset=_nothing_to_undo, max_steps=most)
        case _:
            return agent


def _nothing_to_undo() -> None:
    """Whoever asks for a strategy that tries again has chosen tools that may be called again."""


def store_of(args: argparse.Namespace) -> Store | None:
    """The store that the arguments name, if they name one.

    Raises:
        UsageError: A session is named and no store.
        DataError: The store cannot be opened.
    """
    if args.session and not args.store:
        raise UsageError("--session needs a store to be kept in; add --store FILE")
    return open_store(args.store) if args.store else None


def told(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments that a run is gone on with, as its record keeps them."""
    names = ("model", "tools", "no_tools", "format", "system", "max_steps", "strategy", "expect")
    return {"cli": {name: getattr(args, name) for name in names if hasattr(args, name)}}


def open_model(spec: str) -> Model:
    """Open a model.

    Raises:
        UsageError: There is no such spec.
        ModelError: It cannot be opened.
    """
    return load_model(spec)


class Session:
    """Runs one after the other in one event loop; a person is asked between, never inside it."""

    def __init__(self, show: Show, store: Store | None = None, session: str = "") -> None:
        self._runner = asyncio.Runner()
        self._show = show
        self._store = store
        self._session = session
        self.run: Run | None = None
        self._task: asyncio.Task[Any] | None = None
        self._is_terminated = False
        self._before: Any = None

    def __enter__(self) -> "Session":
        self._runner.__enter__()
        if threading.current_thread() is threading.main_thread():  # signals reach no other
            self._before = signal.signal(signal.SIGTERM, self._terminate)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGTERM, self._before)
        self._runner.close()

    def _terminate(self, number: int, frame: object) -> None:
        """Stop as Ctrl-C does, so that what there is can still be written."""
        self._is_terminated = True
        if self._task is None:
            raise SystemExit(TERMINATED)
        # Not by SIGINT: a shell has a command in the background ignore that one.
        self._runner.get_loop().call_soon_threadsafe(self._task.cancel)

    def close(self, model: Model) -> None:
        """Give back what a model holds."""
        self._runner.run(model.close())

    def ask(
        self,
        agent: Runnable,
        question: str,
        history: Sequence[Message] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> RunResult:
        """One question, to its end; calls that need a person are asked about on the terminal.

        Raises:
            KeyboardInterrupt: Ctrl-C; `run` holds the record so far.
        """
        run = agent.run(
            question, history=history, metadata=metadata, store=self._store, session=self._session
        )
        return self._decided(agent, self._follow(run))

    def resume(self, agent: Runnable, run_id: str) -> RunResult:
        """Go on with a run of the store, asking as `ask` does.

        Raises:
            UsageError: The run is finished.
            RunError: Another process is running it.
            KeyboardInterrupt: Ctrl-C; `run` holds the record so far.
        """
        assert self._store is not None
        known = self._store.load(run_id)
        decisions = {}
        if known.stop_reason == "pending" and sys.stdin.isatty():
            decisions = {call.id: decide(call) for call in undecided_calls(known)}
        run = agent.resume(run_id, decisions, store=self._store)
        return self._decided(agent, self._follow(run))

    def _decided(self, agent: Runnable, result: RunResult) -> RunResult:
        while result.pending and sys.stdin.isatty():
            decisions = {call.id: decide(call) for call in result.pending}
            paused = result.trajectory if self._store is None else result.trajectory.id
            result = self._follow(agent.resume(paused, decisions, store=self._store))
        return result

    def _follow(self, run: Run) -> RunResult:
        self.run = run
        try:
            return self._runner.run(self._events(run))
        except asyncio.CancelledError:
            if self._is_terminated:
                raise SystemExit(TERMINATED) from None
            raise
        finally:
            self._task = None

    async def _events(self, run: Run) -> RunResult:
        self._task = asyncio.current_task()
        with contextlib.suppress(RunError):  # the result says it, too
            async for event in run:
                self._show(event)
        return await run


def decide(call: ToolCall) -> Decision:
    """Ask on the terminal whether a call may be executed."""
    print(f"? {call_text(call)}", file=sys.stderr)
    question = "  execute it? [y]es, [n]o, [e]dit the arguments, or a reason why not: "
    answer = _answer_to(question)
    match answer.lower():
        case "y" | "yes":
            return Decision(True)
        case "e" | "edit":
            return _edited(call)
        case "" | "n" | "no":
            return Decision(False)
        case _:
            return Decision(False, reason=answer)


def _edited(call: ToolCall) -> Decision:
    """Ask for other arguments until they are JSON; nothing at all refuses the call."""
    print(f"  now: {printable(dump_row(call.arguments))}", file=sys.stderr)
    while text := _answer_to("  arguments as a JSON object, or nothing to refuse: "):
        try:
            arguments: Any = json.loads(text)
        except ValueError as error:
            print(f"  not JSON: {error}", file=sys.stderr)
            continue
        if isinstance(arguments, dict):
            return Decision(True, cast("JsonObject", arguments))
        print("  not an object: begin with {", file=sys.stderr)
    return Decision(False)


def _answer_to(question: str) -> str:
    print(question, end="", file=sys.stderr, flush=True)
    try:
        return input().strip()
    except EOFError:
        return ""
