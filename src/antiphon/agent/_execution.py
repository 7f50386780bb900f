"""Answering the calls of one reply: who may decide, what runs together, in which order it is told.

Each call has exactly one answer, and the answers keep the calls' order.  A call that has an answer
is never executed again: not after a pause, a crash, or a resume.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from antiphon.agent._calls import (
    CANCELLED,
    UNKNOWN_OUTCOME,
    invalid_result,
    late_handoff,
    refused_results,
    unanswered,
)
from antiphon.agent._hooks import Ask, Hooks, Stop, Stopped, settled
from antiphon.agent._nested import INSIDE, Paused, held, paused_inside, waiting_inside
from antiphon.agent._observing import Observing
from antiphon.agent._offer import Offer
from antiphon.agent._record import Record, json_state
from antiphon.agent._runnable import Runnable
from antiphon.agent._start import ApproveFunction, Decision, Start
from antiphon.agent._telemetry import call_span
from antiphon.agent._telling import Telling
from antiphon.errors import first_error
from antiphon.events import (
    ApprovalEvent,
    CallEvent,
    DecisionEvent,
    Event,
    InvalidCallEvent,
    LimitEvent,
    ResultEvent,
    StepEnd,
    result_to_row,
)
from antiphon.messages import Message, ToolCall, ToolResult, dump_json
from antiphon.tools import RunContext, unknown_tool_result


@dataclass(slots=True)
class OpenCalls:
    """The calls of a step while they are answered."""

    index: int
    """The step."""
    message: Message
    """The reply that holds them."""
    offer: Offer
    """What may be called."""
    context: RunContext[Any]
    """The run's context, with the agent and the step."""
    hooks: Sequence[Hooks] = ()
    """The agent's."""
    calls: dict[str, ToolCall] = field(default_factory=dict[str, ToolCall])
    """What is executed, by id: as the model asked, or as a person or a hook changed it."""
    results: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    """Answers so far, by call id."""
    durations: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds that calls took."""
    decisions: dict[str, Decision] = field(default_factory=dict[str, Decision])
    """What was decided about calls of runs inside these calls, by their outer ids."""
    paused: dict[str, Paused] = field(default_factory=dict[str, Paused])
    """Calls whose inner runs wait for a person, by call id."""
    edited: set[str] = field(default_factory=set[str])
    """Ids of calls whose arguments a person changed."""
    n_told: int = 0
    """How many results were emitted."""

    @property
    def order(self) -> list[str]:
        """The ids, in the calls' order."""
        calls = (*self.message.tool_calls, *self.message.invalid_tool_calls)
        return [call.id for call in calls]


class Execution:
    """Answers calls, for one run."""

    def __init__(
        self,
        start: Start,
        record: Record,
        telling: Telling,
        approve: Callable[[], ApproveFunction | None],
        say: Callable[..., None],
        observing: Observing,
    ) -> None:
        """Set up.

        Args:
            start: What the run began with.
            record: Where results are kept.
            telling: How events are told.
            approve: Gives the function that decides about calls, if there is one.
            say: Adds messages to the conversation.
            observing: What is shown of results.
        """
        self._start = start
        self._record = record
        self._telling = telling
        self._approve = approve
        self._say = say
        self._observing = observing
        self._open: OpenCalls | None = None
        self.pending: tuple[ToolCall, ...] = ()

    async def refuse(self, index: int, message: Message, why: str) -> None:
        """Answer every call of a reply with the reason why it is not executed."""
        await self._tell_calls(index, message)
        results = refused_results(message, why)
        for result in results:
            await self._telling.emit(ResultEvent(index, result, time=self._telling.now()))
        self._answer(index, results)

    async def answer(self, work: OpenCalls) -> list[ToolResult] | None:
        """Answer every call of a reply; ``None`` where some wait for a person."""
        index, message = work.index, work.message
        await self._tell_calls(index, message)
        self._open = work
        self._recall(work)
        work.calls = {call.id: call for call in message.tool_calls}
        for invalid in message.invalid_tool_calls:
            work.results.setdefault(invalid.id, invalid_result(invalid))
        asked = await self._before(work)
        if not await self._decide(work, asked):
            self._open = None
            return None
        return await self._together(work)

    async def _tell_calls(self, index: int, message: Message) -> None:
        for call in message.tool_calls:
            await self._telling.emit(CallEvent(index, call, time=self._telling.now()))
        for invalid in message.invalid_tool_calls:
            await self._telling.emit(InvalidCallEvent(index, invalid, time=self._telling.now()))

    def _recall(self, work: OpenCalls) -> None:
        """Take over what the earlier part of a resumed run knows of these calls."""
        earlier = self._start.earlier
        if earlier is None or work.index >= len(earlier.steps):
            return
        for result in earlier.steps[work.index].results:
            if result.name not in work.offer.handoffs:  # made anew: a record holds no agents
                work.results[result.call_id] = result
        if not _were_begun(earlier.events, work.index, n_calls=len(work.message.tool_calls)):
            return
        parts = {child.call_id for child in self._record.children}
        for call in work.message.tool_calls:
            known = work.offer.tools.get(call.name)
            handed = call.name in work.offer.handoffs and call.id in parts
            if call.id in work.results or handed or (known is not None and known.idempotent):
                continue
            work.results[call.id] = unanswered(call, UNKNOWN_OUTCOME)

    async def _before(self, work: OpenCalls) -> set[str]:
        """Let hooks look at the calls; ids of those that one wants a person to decide on."""
        asked: set[str] = set()
        for id, call in work.calls.items():
            if id in work.results:
                continue
            for hooks in work.hooks:
                if hooks.before_tool is None:
                    continue
                match await settled(hooks.before_tool(_context(work, call), work.calls[id])):
                    case Stop(reason):
                        raise Stopped(reason)
                    case Ask():
                        asked.add(id)
                    case ToolCall() as changed:
                        work.calls[id] = replace(changed, id=id)
                    case ToolResult() as result:
                        work.results[id] = replace(result, call_id=id)
                    case None:
                        pass
        return asked

    async def _decide(self, work: OpenCalls, asked: set[str]) -> bool:
        """Have a person decide; whether nothing is left that waits."""
        waiting = [
            call
            for id, call in work.calls.items()
            if id not in work.results and (id in asked or _needs_approval(work.offer, call))
        ]
        open_ids = [id for id in work.calls if id not in work.results]
        waiting += waiting_inside(self._record.children, open_ids)
        for call in waiting:
            await self._telling.emit(ApprovalEvent(work.index, call, time=self._telling.now()))
        approve = self._approve()
        decided = self._decided(work.index)
        undecided = [call for call in waiting if call.id not in decided]
        if undecided and approve is None:
            for call in waiting:  # what is decided stays so, however many records later it runs
                if call.id in decided:
                    await self._obey(work, call, decided[call.id])
            self.pending = tuple(undecided)
            return False
        for call in waiting:
            decision = decided.get(call.id)
            if decision is None and approve is not None:
                decision = await _asked(approve, call)
            assert decision is not None
            await self._obey(work, call, decision)
        return True

    def _decided(self, index: int) -> dict[str, Decision]:
        """What a person decided about the calls of a step, now or before."""
        earlier = self._start.earlier
        events = () if earlier is None else earlier.events
        before = {
            e.call_id: Decision(e.approved, e.arguments, e.reason)
            for e in events
            if isinstance(e, DecisionEvent) and e.step == index
        }
        return before | dict(self._start.decisions)

    async def _obey(self, work: OpenCalls, call: ToolCall, decision: Decision) -> None:
        await self._telling.emit(
            DecisionEvent(
                work.index,
                call.id,
                decision.approved,
                decision.arguments,
                decision.reason,
                time=self._telling.now(),
            )
        )
        if call.id not in work.calls:
            work.decisions[call.id] = decision  # the run inside obeys it
        elif not decision.approved:
            work.results[call.id] = unanswered(call, _refusal(decision))
        elif decision.arguments is not None:
            work.calls[call.id] = replace(call, arguments=decision.arguments)
            work.edited.add(call.id)

    async def _together(self, work: OpenCalls) -> list[ToolResult] | None:
        """Execute calls at the same time; their results are told in the calls' order.

        Returns:
            The results; ``None`` where a run inside a call waits for a person.
        """
        taken_over = False
        async with first_error(), asyncio.TaskGroup() as group:
            tasks: dict[str, asyncio.Task[None]] = {}
            before: asyncio.Task[None] | None = None
            for id, call in work.calls.items():
                if id in work.results:
                    continue
                known = work.offer.tools.get(call.name)
                if known is not None and known.serial:
                    before = tasks[id] = group.create_task(self._call_after(before, call, work))
                else:
                    tasks[id] = group.create_task(self._call(call, work))
            if self._observing.by_step and tasks:
                await asyncio.wait(tasks.values())
                await self._observe_step(work)
            for id in work.order:
                if id in tasks:
                    await tasks[id]
                if work.paused:
                    continue  # told when the run goes on, in order
                result = work.results[id]
                if self.target(result) is not None:
                    if taken_over:
                        result = work.results[id] = late_handoff(result)
                    taken_over = True
                work.n_told += 1
                await self._tell(work, result)
        self._open = None
        if work.paused:
            await self._pause(work)
            return None
        results = [work.results[id] for id in work.order]
        self._answer(work.index, results)
        return results

    async def _observe_step(self, work: OpenCalls) -> None:
        """Bring the results of a step within what is shown of all of them together."""
        ids = [id for id in work.order if id in work.results]
        shown = await self._observing.shown([work.results[id] for id in ids], whole_step=True)
        work.results.update(zip(ids, shown, strict=True))

    async def _pause(self, work: OpenCalls) -> None:
        """Wait for a person, with the runs inside; what is answered is kept with the step."""
        known = tuple(work.results[id] for id in work.order if id in work.results)
        self._record.steps[work.index] = replace(self._record.steps[work.index], results=known)
        self.pending = tuple(
            held(id, call) for id, paused in work.paused.items() for call in paused.pending
        )
        for call in self.pending:
            await self._telling.emit(ApprovalEvent(work.index, call, time=self._telling.now()))

    async def _call_after(
        self, before: "asyncio.Task[None] | None", call: ToolCall, work: OpenCalls
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        await self._call(call, work)

    async def _call(self, call: ToolCall, work: OpenCalls) -> None:
        started = perf_counter()
        known = work.offer.tools.get(call.name)
        if known is None:
            selection = work.offer.selection
            loaded = None if selection is None else selection.loaded(call)
            result = loaded or unknown_tool_result(call, list(work.offer.tools.values()))
        else:
            INSIDE.set(paused_inside(self._record.children, call.id, work.decisions))
            with call_span(call, known.spec) as span:
                result = await known.call(call.arguments, _context(work, call), call.id)
                if span is not None:
                    span.answered(result)
            if isinstance(result.value, Paused):
                work.paused[call.id] = result.value
                return
        for hooks in work.hooks:
            if hooks.after_tool is not None:
                match await settled(hooks.after_tool(_context(work, call), call, result)):
                    case Stop(reason):
                        raise Stopped(reason)
                    case ToolResult() as changed:
                        result = replace(changed, call_id=call.id)
                    case None:
                        pass
        if call.repairs:
            result = replace(result, repairs=(*call.repairs, *result.repairs))
        if call.id in work.edited:
            note = f"[A person changed the arguments to {dump_json(call.arguments)}.]\n"
            result = replace(result, text=note + result.text)
        [result] = await self._observing.shown([result], whole_step=False)
        if self._start.journal is not None:
            self._start.keep(
                "result",
                {
                    "step": work.index,
                    "result": result_to_row(result),
                    "state": json_state(self._start.state),
                },
            )
        work.durations[call.id] = perf_counter() - started
        work.results[call.id] = result

    async def _tell(self, work: OpenCalls, result: ToolResult) -> None:
        duration = work.durations.get(result.call_id, 0.0)
        await self._telling.emit(
            ResultEvent(work.index, result, duration, time=self._telling.now())
        )
        known = work.offer.tools.get(result.name)
        n_chars = 0 if result.full_text is None else len(result.full_text)
        if known is not None and n_chars > known.max_chars:
            limit = known.max_chars
            await self._telling.emit(LimitEvent("output_chars", limit, time=self._telling.now()))

    def _answer(self, index: int, results: Sequence[ToolResult]) -> None:
        self._record.steps[index] = replace(self._record.steps[index], results=tuple(results))
        self._say(*(Message.from_result(result) for result in results))

    def close(self, text: str = CANCELLED) -> None:
        """Answer what is still open, so that the record can be gone on from."""
        work = self._open
        if work is None:
            return
        self._open = None
        calls = (*work.message.tool_calls, *work.message.invalid_tool_calls)
        for n, call in enumerate(calls):
            result = work.results.setdefault(call.id, unanswered(call, text))
            if n >= work.n_told:
                duration = work.durations.get(call.id, 0.0)
                self._telling.note(ResultEvent(work.index, result, duration, self._telling.now()))
        self._answer(work.index, [work.results[call.id] for call in calls])
        completion = self._record.steps[work.index].completion
        self._telling.note(
            StepEnd(work.index, completion.stop_reason, completion.usage, self._telling.now())
        )

    def target(self, result: ToolResult) -> Runnable | None:
        """Whom a tool returned to take over, if it did."""
        value = result.value
        return value if isinstance(value, Runnable) and not result.is_error else None


def _context(work: OpenCalls, call: ToolCall) -> RunContext[Any]:
    return work.context.for_call(call.name, call.id)


def _were_begun(events: Sequence[Event], index: int, *, n_calls: int) -> bool:
    """Whether calls of a step may have taken effect before the record ends.

    They begin when all of them were told and every question to a person was answered.
    """
    told = asked = decided = 0
    for event in events:
        match event:
            case CallEvent(step=step) if step == index:
                told += 1
            case ApprovalEvent(step=step) if step == index:
                asked += 1
            case DecisionEvent(step=step) if step == index:
                decided += 1
            case _:
                pass
    return told == n_calls and asked <= decided


def _needs_approval(offer: Offer, call: ToolCall) -> bool:
    known = offer.tools.get(call.name)
    return known is not None and known.needs_approval(call.arguments)


async def _asked(approve: ApproveFunction, call: ToolCall) -> Decision:
    made: bool | Decision | Awaitable[bool | Decision] = approve(call)
    answer = await made if inspect.isawaitable(made) else made
    return answer if isinstance(answer, Decision) else Decision(answer)


def _refusal(decision: Decision) -> str:
    reason = f": {decision.reason}" if decision.reason else ""
    return f"A person refused this call{reason}. It was not executed."
