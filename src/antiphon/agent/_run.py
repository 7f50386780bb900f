"""One execution of an agent or a strategy: awaited it is the result, iterated it is the events.

How it goes (`_course.py`) goes on in a task of its own.  While a run is iterated, that waits after
each event until the next one is asked for, so that nothing happens behind the reader's back:
breaking out of the iteration stops the run before its next model call or tool.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, Awaitable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from antiphon.agent._calls import Ids
from antiphon.agent._cost import cost_of
from antiphon.agent._course import CURRENT, CourseMaker
from antiphon.agent._history import closed, mend
from antiphon.agent._nested import INSIDE, undecided_calls
from antiphon.agent._record import split_usage
from antiphon.agent._start import ApproveFunction, Decision, Start
from antiphon.errors import AntiphonError, RunError, UsageError, clip
from antiphon.events import (
    DecisionEvent,
    Event,
    RunStopReason,
    Trajectory,
    body_of,
)
from antiphon.messages import Conversation, Message, ToolCall, Usage
from antiphon.models import Price
from antiphon.store import Store
from antiphon.tools import RunContext

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent
    from antiphon.agent._runnable import Runnable

ResultT = TypeVar("ResultT")

Input: TypeAlias = str | Message | Sequence[Message] | Conversation
"""What a run is asked: text, a message, or messages."""


@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """How a run ended."""

    trajectory: Trajectory
    """The whole record."""
    stop_reason: RunStopReason
    """Why it ended."""
    agent: "Agent"
    """The agent that spoke last."""
    text: str
    """The last answer as text; empty where there is none."""
    value: Any = None
    """The last answer as a value: of the `output_type` where there is one, else the text."""
    error: AntiphonError | None = None
    """What broke, when `stop_reason` is ``error``."""
    pending: tuple[ToolCall, ...] = ()
    """Calls that wait for a person, when `stop_reason` is ``pending``."""
    n_given: int = 0
    """How many of `messages` the run was given."""

    @property
    def output(self) -> Any:
        """The last answer.

        Raises:
            RunError: Something broke and there is no answer; what broke is the cause.
        """
        if self.trajectory.error:
            raise RunError(no_answer(self.trajectory.error)) from self.error
        return self.value

    @property
    def usage(self) -> Usage:
        """What all model calls cost together, those of agents that are tools included."""
        return self.trajectory.total_usage

    @property
    def usage_by_agent(self) -> dict[str, Usage]:
        """`usage`, by the agent's name."""
        return split_usage(self.trajectory, lambda step: step.agent)

    @property
    def usage_by_model(self) -> dict[str, Usage]:
        """`usage`, by the model's own name."""
        return split_usage(self.trajectory, lambda step: step.completion.model)

    def cost(self, prices: Mapping[str, Price]) -> float:
        """What the run cost.

        Args:
            prices: What models cost, by the names of `usage_by_model`.
        """
        return cost_of(self.usage_by_model, prices)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole conversation without instructions, fit to be another run's `history`."""
        return body_of(self.trajectory.conversation)

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """What this run added to the messages it was given."""
        return self.messages[self.n_given :]

    def __str__(self) -> str:
        return str(self.output)

    def __repr__(self) -> str:
        """Short: `asyncio.run` makes the repr of what it returns, twice, and throws it away."""
        return f"RunResult({self.stop_reason}, {clip(self.text)})"


def no_answer(reason: str) -> str:
    """What a RunError says of a run that something broke."""
    return f"the run has no answer: {reason}"


class Run:
    """An execution that has begun or will when it is first awaited or iterated."""

    def __init__(self, start: Start, course: CourseMaker) -> None:
        self._course = course(start, self._wait_for_reader)
        self._task: asyncio.Task[None] | None = None
        self._arrived = asyncio.Event()
        self._wanted = asyncio.Event()
        self._paced = False
        self._n_earlier = len(self._course.record.events)

    @classmethod
    def begin(
        cls,
        who: "Runnable",
        input: Input,
        *,
        history: Sequence[Message],
        deps: object,
        state: dict[str, Any] | None,
        approve: ApproveFunction | None,
        metadata: Mapping[str, Any] | None,
        store: Store | None,
        session: str,
    ) -> "Run":
        """A new run; see `Runnable.run`."""
        if session and store is None:
            raise UsageError(f"session {session!r} needs a store: agent.run(..., store=...)")
        before = _said_in(store, session)
        messages = mend([*before, *history, *_messages(input)], Ids())
        question = next((m.text for m in reversed(messages) if m.role == "user"), "")
        id = uuid.uuid4().hex
        journal = None
        if store is not None:
            journal = store.begin(id, session=session, agent=who.name, question=question)
        return cls(
            Start(
                who.root,
                messages,
                question=question,
                session=session,
                run_id=id,
                journal=journal,
                deps=deps,
                state={} if state is None else state,
                approve=approve,
                metadata=dict(metadata or {}),
            ),
            who.course,
        )

    @classmethod
    def again(
        cls,
        who: "Runnable",
        trajectory: Trajectory | str,
        decisions: Mapping[str, bool | Decision],
        *,
        deps: object,
        state: dict[str, Any] | None,
        approve: ApproveFunction | None,
        store: Store | None,
    ) -> "Run":
        """A run that goes on; see `Runnable.resume`."""
        journal = None
        if isinstance(trajectory, str):
            if store is None:
                raise UsageError(f"run {trajectory!r} is named by its id; give its store, too")
            id, trajectory = trajectory, store.load(trajectory)
            _check_resumable(trajectory, decisions)
            journal = store.claim(id)
        _check_resumable(trajectory, decisions)
        return cls(
            Start(
                who.root,
                deps=deps,
                state=dict(trajectory.state) if state is None else state,
                approve=approve,
                earlier=trajectory,
                journal=journal,
                decisions={
                    id: d if isinstance(d, Decision) else Decision(d) for id, d in decisions.items()
                },
            ),
            who.course,
        )

    @classmethod
    def within(cls, who: "Runnable", question: str, context: RunContext[Any]) -> "Run":
        """A run inside a call: a new one, or the one that was paused in it."""
        inside = INSIDE.get()
        INSIDE.set(None)  # what runs inside this run has its own calls
        deps, state = context.deps, context.state
        if inside is None or inside.call_id != context.call_id:
            run = who.run(question, deps=deps, state=state)
        else:
            run = who.resume(inside.trajectory, inside.decisions, deps=deps, state=state)
        return run.under(context.call_id)

    def under(self, call_id: str) -> "Run":
        """Make this the child of the run whose tool is being executed, if there is one.

        Args:
            call_id: What that run knows it by.
        """
        parent = CURRENT.get()
        if parent is not None:
            self._course.beneath(parent, call_id)
        return self

    @property
    def id(self) -> str:
        """The run's id, which its trajectory has too."""
        return self._course.record.id

    @property
    def trajectory(self) -> Trajectory:
        """The record so far, at any moment, whatever happened."""
        return self._course.trajectory()

    def __await__(self) -> Generator[Any, None, RunResult]:
        return self._finish().__await__()

    async def __aiter__(self) -> AsyncGenerator[Event]:
        """The events, from the first one; of a resumed run, those that are new.

        The first to iterate sets the pace and stops the run by leaving; others only look.

        Raises:
            RunError: After the last event, where the run ended without an answer because something
                broke; the same that `RunResult.output` raises.
        """
        record = self._course.record
        events = record.events
        leads = self._task is None
        self._paced = leads
        task = self._begin()
        n = self._n_earlier
        try:
            while n < record.n_shown or not task.done():
                if n < record.n_shown:
                    n += 1
                    yield events[n - 1]
                    continue
                self._arrived.clear()
                self._wanted.set()
                await self._arrived.wait()
        finally:
            if leads:
                await self._stop()
        task.result()
        if self._course.reason:
            raise RunError(no_answer(self._course.reason)) from self._course.error

    def wait(self) -> RunResult:
        """Run to the end from plain code.

        Raises:
            RunError: An event loop is already running in this thread.
        """
        return run_sync(self)

    def cancel(self) -> None:
        """Stop the run: tasks end, open calls are answered as cancelled, the record is kept.

        May be called from any thread, and before the run has begun.
        """
        self._course.cancelled = True
        if self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    def _begin(self) -> "asyncio.Task[None]":
        if self._task is None:
            self._task = asyncio.create_task(self._course.run(), name=f"antiphon run {self.id}")
            self._task.add_done_callback(lambda _: self._arrived.set())
        return self._task

    async def _wait_for_reader(self) -> None:
        """Called by the loop after each event."""
        self._arrived.set()
        if self._paced and self._course.stop_reason is None:
            self._wanted.clear()
            await self._wanted.wait()

    async def _stop(self) -> None:
        task = self._begin()
        self._paced = False
        if not task.done():
            task.cancel()
            await asyncio.wait([task])

    async def _finish(self) -> RunResult:
        task = self._begin()
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            await self._stop()
            raise
        task.result()
        course = self._course
        trajectory = course.trajectory()
        return RunResult(
            trajectory=trajectory,
            stop_reason=trajectory.stop_reason,
            agent=course.agent,
            text=trajectory.output,
            value=course.output,
            error=course.error,
            pending=course.pending,
            n_given=course.n_given,
        )


def run_sync(run: Awaitable[ResultT]) -> ResultT:
    """Await something from plain code.

    Args:
        run: A Run, or anything that can be awaited.

    Raises:
        RunError: An event loop is already running in this thread.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(_awaited(run))
    raise RunError(
        "an event loop is already running in this thread, so waiting here would stop it; "
        "write 'await agent.run(...)'"
    )


async def _awaited(run: Awaitable[ResultT]) -> ResultT:
    return await run


def _messages(input: Input) -> tuple[Message, ...]:
    if isinstance(input, str):
        return (Message.user(input),)
    if isinstance(input, Message):
        return (input,)
    messages = input.messages if isinstance(input, Conversation) else tuple(input)
    if not messages:
        raise UsageError("a run needs at least one message, got none")
    return messages


def _said_in(store: Store | None, session: str) -> tuple[Message, ...]:
    """Everything said in a conversation so far: its last run began with what was said before."""
    if store is None or not session:
        return ()
    runs = store.runs(session=session, limit=1)
    if not runs:
        return ()
    if runs[0].is_live:
        raise RunError(
            f"run {runs[0].id!r} of session {session!r} is still going; wait for its end"
        )
    return closed(store.load(runs[0].id))


def _check_resumable(trajectory: Trajectory, decisions: Mapping[str, bool | Decision]) -> None:
    if trajectory.stop_reason in ("answer", "stopped_by_tool"):
        raise UsageError(
            f"run {trajectory.id!r} is finished ({trajectory.stop_reason}); "
            "continue its conversation with agent.run(..., history=result.messages)"
        )
    waiting = _waiting(trajectory)
    unknown = [id for id in decisions if id not in waiting]
    if unknown:
        raise UsageError(
            f"no call {unknown[0]!r} waits for a decision; waiting: {', '.join(waiting) or 'none'}"
        )


def _waiting(trajectory: Trajectory) -> list[str]:
    """Ids of the calls that a decision may be about; those of a run inside stand behind its id."""
    if trajectory.stop_reason != "pending":
        return []
    steps = trajectory.steps[-1:]
    ids = [call.id for step in steps for call in step.completion.message.tool_calls]
    ids += [  # decided before: a person may think again
        event.call_id
        for event in trajectory.events
        if isinstance(event, DecisionEvent) and event.step == len(trajectory.steps) - 1
    ]
    return list(dict.fromkeys([*ids, *(call.id for call in undecided_calls(trajectory))]))
