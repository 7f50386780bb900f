"""What a program may do around a run's steps: look, change, stop, ask.

A hook is a function, plain or async; what it returns decides.  ``None`` lets things be.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast

from antiphon.events import Trajectory
from antiphon.messages import Completion, Conversation, ToolCall, ToolResult
from antiphon.tools import RunContext

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stop:
    """End the run as refused; the reason is its output."""

    reason: str
    """What whoever asked is told."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Go on with another text or value in place of the one that was checked."""

    value: Any
    """What to go on with."""


@dataclass(frozen=True, slots=True)
class Again:
    """Send an answer back to the model."""

    feedback: str
    """What the model is told."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Let a person decide about a call, as for a tool that needs consent."""

    reason: str = ""
    """Why."""


class Stopped(Exception):
    """A hook or guardrail ended the run."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Maybe: TypeAlias = T | Awaitable[T | None] | None
Context: TypeAlias = RunContext[Any]


@dataclass(frozen=True, kw_only=True)
class Hooks:
    """Functions called around models, tools and handoffs, in the order of `Agent.hooks`."""

    before_model: Callable[[Context, Conversation], Maybe[Conversation | Stop]] | None = None
    """Before each model call; may change what the model is shown."""
    after_model: Callable[[Context, Completion], Maybe[Completion | Again | Stop]] | None = None
    """After each model call; may change what came back, or ask for it again."""
    before_tool: Callable[[Context, ToolCall], Maybe[ToolCall | ToolResult | Ask | Stop]] | None = (
        None
    )
    """Before each call; may change it, answer it, or let a person decide."""
    after_tool: Callable[[Context, ToolCall, ToolResult], Maybe[ToolResult | Stop]] | None = None
    """After each call; may change what the model reads of it."""
    on_handoff: Callable[[Context, str, str], Maybe[Stop]] | None = None
    """When one agent, by name, hands over to another."""
    on_end: Callable[[Context, Trajectory], Maybe[object]] | None = None
    """When the run is over, however it ended."""


Verdict: TypeAlias = Stop | Replace | Again


@dataclass(frozen=True, kw_only=True)
class Guardrail:
    """A check of what goes into a run or comes out of it."""

    check: Callable[[Context, Any], Maybe[Verdict]]
    """Given the question as text, or the answer as text or value; ``None`` lets it pass."""
    on: Literal["input", "output"] = "input"
    """What is checked. `Again` is for output; `Replace` of input needs ``beside=False``."""
    beside: bool = True
    """Whether an input check runs beside the first model call, which a `Stop` cancels."""


async def settled(value: Maybe[T]) -> T | None:
    """What a plain or async function returned."""
    return cast("T | None", await value if inspect.isawaitable(value) else value)


async def checked(guardrails: Iterable[Guardrail], context: Context, value: Any) -> Any:
    """A value after all checks of it: the value, another one, or what to tell the model (`Again`).

    Raises:
        Stopped: A check ended the run.
    """
    for guardrail in guardrails:
        match await settled(guardrail.check(context, value)):
            case Stop(reason):
                raise Stopped(reason)
            case Again() as again:
                return again
            case Replace(changed):
                value = changed
            case None:
                pass
    return value
