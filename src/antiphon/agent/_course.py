"""How a run goes, whoever drives it: the loop of one agent, or a strategy around several.

A `Run` drives one `Course`.  The course whose tool or part is being executed is `CURRENT`, so that
runs inside it become its children without being passed through every function between.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from antiphon.agent._record import Record
from antiphon.agent._start import ApproveFunction, Start
from antiphon.errors import AntiphonError
from antiphon.events import RunStopReason, Trajectory
from antiphon.messages import ToolCall
from antiphon.models import Model

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent


class Course(Protocol):
    """What a Run drives and reads.  Fields tell how it stands, at any moment."""

    record: Record
    """What has happened so far."""
    agent: "Agent"
    """Who speaks."""
    cancelled: bool
    """Set before it begins, where it is not to begin."""
    output: Any
    """The last answer as a value."""
    error: AntiphonError | None
    """What broke."""
    reason: str
    """Why there is no answer; empty where there is one, or a limit was reached."""
    stop_reason: RunStopReason | None
    """How it ended, once it has."""

    @property
    def n_given(self) -> int:
        """How many messages of the conversation it was given."""
        ...

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """Calls that wait for a person."""
        ...

    @property
    def opened(self) -> dict[str, Model]:
        """Models that it opened by their specs, which runs inside it share."""
        ...

    async def run(self) -> None:
        """Go until it is over."""
        ...

    def trajectory(self) -> Trajectory:
        """The record so far."""
        ...

    def beneath(self, parent: "Course", call_id: str) -> None:
        """Make it a part of another, which it shares models with."""
        ...

    def adopt(self, child: Trajectory) -> None:
        """Keep the record of a run inside it."""
        ...

    def approver(self) -> ApproveFunction | None:
        """Who decides about calls that need a person, if anyone is there."""
        ...


CourseMaker: TypeAlias = Callable[[Start, Callable[[], Awaitable[None]]], Course]
"""Makes a course; given what it begins with, and what to await after each event."""

CURRENT: ContextVar[Course | None] = ContextVar("antiphon_run", default=None)
"""The course whose tool or part is being executed."""
