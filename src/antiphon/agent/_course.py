"""How a run goes, whoever drives it: the loop of one agent, or a strategy around several.

A `Run` drives one `Course`.  What every course shares is here: how it begins and ends, its limits,
its record and journal, and the runs inside it.  The course whose tool or part is being executed is
`CURRENT`, so that runs inside it become its children without being passed through every function
between.
"""

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from antiphon.agent._cost import Budget
from antiphon.agent._hooks import Stopped
from antiphon.agent._nested import decisions_inside
from antiphon.agent._record import Record, json_state
from antiphon.agent._start import ApproveFunction, Start
from antiphon.agent._telemetry import ACTIVE, run_span
from antiphon.agent._telling import Shown, Telling
from antiphon.errors import AntiphonError, ModelError, PlanError, RunError
from antiphon.events import Event, LimitEvent, RunEnd, RunStopReason, Trajectory
from antiphon.messages import Message, ToolCall, message_to_row
from antiphon.models import Model, load_model

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent
    from antiphon.agent._run import Input, Run, RunResult
    from antiphon.agent._runnable import Runnable


class Course(ABC):
    """The state of one run on its way.  Fields tell how it stands, at any moment."""

    def __init__(
        self,
        start: Start,
        shown: Shown,
        *,
        name: str,
        timeout: float | None,
        budget: Budget,
        told: Iterable[Event] = (),
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Set up; nothing begins.

        Args:
            start: What the run begins with, or goes on from.
            shown: Awaited after each event, until whoever looks wants the next one.
            name: What the record calls who begins.
            timeout: Seconds until the run is stopped.
            budget: What it may use.
            told: Events of the record that going on from it will make once more.
            clock: What times are read from, in seconds, once the run has begun.
        """
        earlier = start.earlier
        self.start = start
        self.name = name
        self.agent: Agent = start.agent
        """Who speaks."""
        self.record = _new_record(start) if earlier is None else Record.of(earlier)
        """What has happened so far."""
        self.cancelled = False
        """Set before it begins, where it is not to begin."""
        self.parent: Course | None = None
        """The run around it."""
        self.output: Any = ""
        """The last answer as a value."""
        self.output_text = ""
        """The same as text."""
        self.error: AntiphonError | None = None
        """What broke."""
        self.reason = ""
        """Why there is no answer; empty where there is one, or a limit was reached."""
        self.stop_reason: RunStopReason | None = None
        """How it ended, once it has."""
        self.pending: tuple[ToolCall, ...] = ()
        """Calls that wait for a person."""
        self.opened: dict[str, Model] = {}
        """Models that were opened by their specs, which runs inside it share."""
        self.budget = budget
        """What it may use."""
        if earlier is not None:
            budget.take_up(earlier)
        self.telling = Telling(start, self.record, shown, told, clock)
        """How events are told."""
        self._timeout = timeout

    # The life of a run

    async def run(self) -> None:
        """Go until the run is over; `record` and the fields tell how it ended."""
        CURRENT.set(self)
        ACTIVE.set(self.start.agent.telemetry or ACTIVE.get())
        self.telling.begin()
        with run_span(self.name, self.record.id, self.start.session) as span:
            await self._live()
            if span is not None:
                span.ended(self.stop_reason or "error", self.reason)

    async def _live(self) -> None:
        stop: RunStopReason = "error"
        failed = "the program around the run failed"
        deadline = asyncio.timeout(self._timeout)
        try:
            async with self._models_closed(), deadline:
                if self.cancelled:
                    raise asyncio.CancelledError
                stop = await self.go()
            failed = ""
        except TimeoutError:
            if not deadline.expired():
                raise
            self.broken_off()
            self.telling.note(LimitEvent("timeout", self._timeout or 0.0, time=self.now()))
            stop, failed = "time_limit", ""
        except asyncio.CancelledError:
            self.broken_off()
            stop, failed = "cancelled", ""
        except (ModelError, PlanError) as error:
            self.error, failed = error, str(error)
        except Stopped as stopped:
            self.broken_off("This call was not executed: the run was stopped.")
            stop, failed = "refused", ""
            self.output = self.output_text = stopped.reason
        finally:
            self.reason = failed or self.reason
            self._end(stop)
        await self.telling.kept()
        await self.tell_end()
        await self.telling.shown()

    @abstractmethod
    async def go(self) -> RunStopReason:
        """What it does, from the beginning or from where the record ends; how it ended.

        Raises:
            ModelError: A model gives no completion.
            PlanError: There is no plan.
            Stopped: A hook or a check ended it.
        """

    def broken_off(self, why: str = "") -> None:
        """Settle what is open, so that the record can be gone on from.

        Args:
            why: What is said of calls that are open; that they were cancelled where empty.
        """
        return

    @abstractmethod
    def conclude(self) -> None:
        """Set the last answer, and say it where that was not done."""

    async def tell_end(self) -> None:
        """Tell those who want to know that the run is over."""
        return

    @asynccontextmanager
    async def _models_closed(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self.parent is None:
                for model in self.opened.values():
                    await model.close()

    def _end(self, stop: RunStopReason) -> None:
        self.stop_reason = stop
        self.conclude()
        usage = self.record.total_usage
        self.telling.note(RunEnd(stop, self.output_text, usage, self.reason, time=self.now()))
        if self.parent is not None:
            self.parent.adopt(self.trajectory())

    # What it tells and keeps

    def now(self) -> float:
        """Seconds since the run began."""
        return self.telling.now()

    @property
    def n_given(self) -> int:
        """How many messages of the conversation the run was given."""
        return len(self.start.messages)

    def keep_start(self) -> None:
        """Keep what the run begins with in the journal."""
        if self.start.journal is None:
            return
        self.start.keep(
            "start",
            {
                "id": self.record.id,
                "started_at": self.record.started_at,
                "agent": self.name,
                "messages": [message_to_row(message) for message in self.record.messages],
                "metadata": self.record.metadata,
            },
        )

    def keep_state(self) -> None:
        """Keep the context variables in the journal."""
        if self.start.journal is not None and self.start.state:
            self.start.keep("state", json_state(self.start.state))

    def adopt(self, child: Trajectory) -> None:
        """Keep the record of a run inside this one; of one that went on, the longer record."""
        self.record.adopt(child)
        if self.start.journal is not None:
            self.start.keep("child", child.to_row())

    def trajectory(self) -> Trajectory:
        """The record so far, as a value."""
        end = self.record.events[-1] if self.record.events else None
        over = isinstance(end, RunEnd)
        return self.record.trajectory(
            self.stop_reason or "cancelled",
            end.output if over else self.last_text(),
            end.error if over else "",
            self.start.state,
        )

    def last_text(self) -> str:
        """What was said last, for the record of a run that is not over."""
        return ""

    # The runs around and inside

    def beneath(self, parent: "Course", call_id: str) -> None:
        """Make this a part of another run, which it shares models with, and what it may use.

        Args:
            parent: The run around it.
            call_id: What the parent knows it by.
        """
        self.parent = parent
        self.record.call_id = call_id
        self.opened = parent.opened
        self.budget.around = parent.budget

    def approver(self) -> ApproveFunction | None:
        """Who decides about calls that need a person, if anyone is there."""
        if self.start.approve is None and self.parent is not None:
            return self.parent.approver()
        return self.start.approve

    def open_model(self, given: "Model | str") -> Model:
        """A model, opened if it is named by its spec; the outermost run closes it."""
        if not isinstance(given, str):
            return given
        if given not in self.opened:
            self.opened[given] = load_model(given)
        return self.opened[given]

    def earlier_part(self, key: str) -> Trajectory | None:
        """The record of a part, where there is one."""
        return next((child for child in self.record.children if child.call_id == key), None)

    def goes_on(self, key: str) -> bool:
        """Whether a part has paused or was broken off."""
        earlier = self.earlier_part(key)
        return earlier is not None and earlier.stop_reason in ("pending", "cancelled")

    def part(
        self,
        who: "Runnable",
        input: "Input",
        *,
        key: str,
        role: str = "",
        history: Sequence[Message] = (),
    ) -> "Run":
        """The run of a part: a new one, or the one that paused or was broken off, going on.

        Args:
            who: Who does it.
            input: What it is asked, where it is new.
            key: What the record of the part is known by.
            role: What it is in this run.
            history: What was said before.
        """
        earlier = self.earlier_part(key)
        if earlier is not None and self.goes_on(key):
            run = who.resume(
                earlier,
                decisions_inside(key, self.start.decisions),
                deps=self.start.deps,
                state=self.start.state,
            )
        else:
            run = who.run(
                input,
                history=history,
                deps=self.start.deps,
                state=self.start.state,
                metadata={"role": role} if role else {},
            )
        return run.under(key)

    async def follow(self, run: "Run", show: "Callable[[Event], Awaitable[None]]") -> "RunResult":
        """How a part ends, its events shown as they happen.

        Args:
            run: The part.
            show: Given each event.
        """
        async with aclosing(aiter(run)) as events:  # who is stopped here stops the part, too
            with suppress(RunError):  # the result says it, too
                async for event in events:
                    await show(event)
        return await run


CourseMaker: TypeAlias = Callable[[Start, Shown], Course]
"""Makes a course; given what it begins with, and what to await after each event."""

CURRENT: ContextVar[Course | None] = ContextVar("antiphon_run", default=None)
"""The course whose tool or part is being executed."""


def _new_record(start: Start) -> Record:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Record(start.run_id or uuid.uuid4().hex, now, metadata=start.metadata)
