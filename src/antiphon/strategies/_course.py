"""How a run of a strategy goes: its parts are runs of agents, its record is theirs together.

A strategy asks no model itself: planner, executor, judge and all others are agents, each with a
run of its own in the one loop, which becomes a child of the strategy's run under a key such as
``planner:0`` or ``task:a:1`` and has its role as ``metadata["role"]``.  What this module adds is
what all strategies share: beginning and end, limits, the journal, and going on from a record.
"""

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from antiphon.agent import Agent, RunResult
from antiphon.agent._course import CURRENT, Course
from antiphon.agent._record import Record, json_state
from antiphon.agent._start import ApproveFunction, Start
from antiphon.agent._telling import Telling
from antiphon.errors import AntiphonError, ModelError, PlanError
from antiphon.events import Event, LimitEvent, RunEnd, RunStart, RunStopReason, Trajectory
from antiphon.messages import Message, ToolCall, message_to_row
from antiphon.models import Model, load_model


class StrategyCourse(ABC):
    """The state of one run of a strategy on its way."""

    def __init__(
        self,
        start: Start,
        shown: Callable[[], Awaitable[None]],
        *,
        name: str,
        timeout: float | None,
    ) -> None:
        """Set up; nothing begins.

        Args:
            start: What the run begins with, or goes on from.
            shown: Awaited after each event, until whoever looks wants the next one.
            name: What the record calls who begins.
            timeout: Seconds until the run is stopped.
        """
        self.start = start
        self.agent: Agent = start.agent
        self.name = name
        earlier = start.earlier
        self.record = _new_record(start) if earlier is None else Record.of(earlier)
        self.cancelled = False
        self.parent: Course | None = None
        self.output: Any = ""
        self.output_text = ""
        self.error: AntiphonError | None = None
        self.reason = ""
        self.stop_reason: RunStopReason | None = None
        self.pending: tuple[ToolCall, ...] = ()
        self.opened: dict[str, Model] = {}
        self._shown = shown
        self._timeout = timeout
        self._telling: Telling | None = None

    # What a Run drives

    @property
    def n_given(self) -> int:
        """How many messages of the conversation the run was given."""
        return len(self.start.messages)

    async def run(self) -> None:
        """Go until the run is over; `record` and the fields tell how it ended."""
        CURRENT.set(self)
        clock = asyncio.get_running_loop().time
        self._telling = Telling(self.record.events, self._shown, self.start.journal, (), clock)
        stop: RunStopReason = "error"
        failed = "the program around the run failed"
        deadline = asyncio.timeout(self._timeout)
        try:
            async with deadline:
                if self.cancelled:
                    raise asyncio.CancelledError
                await self._begin()
                stop = await self.go()
            failed = ""
        except TimeoutError:
            if not deadline.expired():
                raise
            self.telling.note(LimitEvent("timeout", self._timeout or 0.0, time=self.now()))
            stop, failed = "time_limit", ""
        except asyncio.CancelledError:
            stop, failed = "cancelled", ""
        except (ModelError, PlanError) as error:
            self.error, failed = error, str(error)
        finally:
            self.reason = failed or self.reason
            self._end(stop)
            if self.parent is None:
                for model in self.opened.values():
                    await model.close()
        await self.telling.shown()

    @abstractmethod
    async def go(self) -> RunStopReason:
        """What the strategy does, from the beginning or from where the record ends."""

    async def _begin(self) -> None:
        if self.start.earlier is not None:
            return
        self.record.messages.extend(self.start.messages)
        model = self.agent.model
        spec = model if isinstance(model, str) else model.spec
        agents = self.record.agents
        agents[self.name] = {"name": self.name, "strategy": type(self).__name__, "model": spec}
        if self.start.journal is not None:
            said = [message_to_row(message) for message in self.record.messages]
            self.start.journal.append(
                "start",
                {
                    "id": self.record.id,
                    "started_at": self.record.started_at,
                    "agent": self.name,
                    "messages": list(said),
                    "metadata": self.record.metadata,
                },
            )
            self.start.journal.append("agent", {"agent": agents[self.name], "tools": []})
        await self.emit(RunStart(self.name, spec, self.start.question, time=self.now()))

    def _end(self, stop: RunStopReason) -> None:
        self.stop_reason = stop
        if self.output_text:
            self.record.messages.append(Message.assistant(self.output_text))
        if self.start.journal is not None and self.start.state:
            self.start.journal.append("state", json_state(self.start.state))
        usage = self.record.total_usage
        self.telling.note(RunEnd(stop, self.output_text, usage, self.reason, time=self.now()))
        if self.parent is not None:
            self.parent.adopt(self.trajectory())

    def beneath(self, parent: Course, call_id: str) -> None:
        """Make this a part of another run, which it shares models with."""
        self.parent = parent
        self.record.call_id = call_id
        self.opened = parent.opened

    def adopt(self, child: Trajectory) -> None:
        """Keep the record of a part; of one that went on, the longer record."""
        children = self.record.children
        children[:] = [c for c in children if c.id != child.id]
        children.append(child)
        if self.start.journal is not None:
            self.start.journal.append("child", child.to_row())

    def approver(self) -> ApproveFunction | None:
        """Who decides about calls that need a person, if anyone is there."""
        if self.start.approve is None and self.parent is not None:
            return self.parent.approver()
        return self.start.approve

    def trajectory(self) -> Trajectory:
        """The record so far, as a value."""
        end = self.record.events[-1] if self.record.events else None
        over = isinstance(end, RunEnd)
        return self.record.trajectory(
            self.stop_reason or "cancelled",
            end.output if over else "",
            end.error if over else "",
            self.start.state,
        )

    # What strategies use

    @property
    def telling(self) -> Telling:
        """How events are told."""
        assert self._telling is not None  # a strategy tells nothing before its run
        return self._telling

    def now(self) -> float:
        """Seconds since the run began."""
        return self.telling.now()

    async def emit(self, event: Event) -> None:
        """Tell what happens now."""
        await self.telling.emit(replace(event, time=self.now()))

    @property
    def goal(self) -> str:
        """What is asked."""
        if self.start.earlier is None:
            return self.start.question
        said = self.record.messages
        return next((m.text for m in reversed(said) if m.role == "user"), "")

    @property
    def before(self) -> Sequence[Message]:
        """What was said before the question."""
        said = self.record.messages
        last = max((n for n, m in enumerate(said) if m.role == "user"), default=0)
        return said[:last]

    async def ask(
        self, agent: Any, input: Any, *, role: str, key: str, history: Sequence[Message] = ()
    ) -> RunResult:
        """Have an agent, or another strategy, do a part; its run becomes a child of this one.

        Args:
            agent: Who does it.
            input: What it is asked.
            role: What it is in this strategy.
            key: What the child's record is known by.
            history: What was said before.
        """
        run = agent.run(
            input,
            history=history,
            deps=self.start.deps,
            state=self.start.state,
            metadata={"role": role},
        )
        return await run.under(key)

    def accept(self, result: RunResult) -> None:
        """Take over a part's answer as the run's."""
        self.output, self.output_text = result.value, result.text
        self.agent = result.agent

    def model_of(self, given: "Model | str | None") -> "Model | str":
        """The model of a role: the one given, or the agent's own."""
        return self.start.agent.model if given is None else given

    def opened_model(self, given: "Model | str | None") -> Model:
        """The same, opened; the run closes it at its end."""
        model = self.model_of(given)
        if not isinstance(model, str):
            return model
        if model not in self.opened:
            self.opened[model] = load_model(model)
        return self.opened[model]


def _new_record(start: Start) -> Record:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Record(start.run_id or uuid.uuid4().hex, now, metadata=start.metadata)


def text_of(agent: Agent) -> str:
    """An agent's instructions, where they are text, for other roles that should know them."""
    return agent.instructions if isinstance(agent.instructions, str) else ""


def no_answer_reason(result: RunResult) -> str:
    """Why a part gave no answer."""
    return result.trajectory.error or result.stop_reason.replace("_", " ")


def answered(result: RunResult) -> bool:
    """Whether a part gave an answer."""
    return cast("str", result.stop_reason) in ("answer", "stopped_by_tool")
