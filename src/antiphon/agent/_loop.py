"""The loop that runs every agent: ask the model, execute its calls together, until it answers.

There is no second loop: a run that is awaited, iterated, resumed or called as a tool goes through
this one and makes the same events in the same order.  What a model or a tool did wrong becomes a
message to the model; only a model that gives no completion, and a program's own mistakes, end a run
from outside.

The history is never walked again: a step appends, and its cost does not depend on those before it.
"""

import asyncio
import inspect
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from antiphon.agent._calls import (
    CANCELLED,
    UNKNOWN_OUTCOME,
    Ids,
    call_ids,
    cut_reason,
    invalid_result,
    n_calls,
    refused_results,
    unanswered,
    with_own_ids,
)
from antiphon.agent._offer import Offer, agent_row
from antiphon.agent._record import Record
from antiphon.errors import ModelError, ModelResponseError, UsageError
from antiphon.events import (
    ApprovalEvent,
    CallDeltaEvent,
    CallEvent,
    DecisionEvent,
    Event,
    FeedbackEvent,
    HandoffEvent,
    InvalidCallEvent,
    LimitEvent,
    ResultEvent,
    RetryEvent,
    RunEnd,
    RunStart,
    RunStopReason,
    Step,
    StepEnd,
    StepStart,
    TextEvent,
    ThinkingEvent,
    Trajectory,
)
from antiphon.messages import (
    Completion,
    Conversation,
    Delta,
    JsonObject,
    JsonValue,
    Message,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    dump_json,
)
from antiphon.models import Model, ModelOutput, Retry, load_model
from antiphon.tools import RunContext, unknown_tool_result

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent

EMPTY_REPLY = "Your last reply was empty. Answer, or call a tool."
"""What the model is told of a reply without text and calls."""

CALL_AS_TEXT = (
    "Your last reply wrote a tool call as text, so it was not executed. Call the tool through the "
    "tool interface, or answer without the markup."
)
"""What the model is told of a reply that holds the markup of a call and no call."""

_CALL_MARKUP = re.compile(
    r"<tool_call>|<function=|\[TOOL_CALLS\]|<\|python_tag\|>|tool▁calls▁begin"
)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about a call."""

    approved: bool
    """Whether to execute it."""
    arguments: "JsonObject | None" = None
    """What to call it with instead, where the person changed the arguments."""
    reason: str = ""
    """Why not, as the model reads it."""


ApproveFunction: TypeAlias = Callable[[ToolCall], bool | Decision | Awaitable[bool | Decision]]
"""Asked about each call that needs a person's consent, in the calls' order."""


@dataclass(slots=True)
class Start:
    """What a run begins with, or goes on from."""

    agent: "Agent"
    """The agent that begins."""
    messages: list[Message] = field(default_factory=list[Message])
    """What is said before the first step, the question last; fit to be sent."""
    question: str = ""
    """The question as text, for the record."""
    deps: object = None
    """For tools."""
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """Context variables."""
    approve: ApproveFunction | None = None
    """Asked about calls that need consent."""
    metadata: JsonObject = field(default_factory=dict[str, JsonValue])
    """Kept in the record."""
    earlier: Trajectory | None = None
    """The record of a run that goes on."""
    decisions: Mapping[str, Decision] = field(default_factory=dict[str, Decision])
    """By call id, for calls that wait."""


CURRENT: ContextVar["Loop | None"] = ContextVar("antiphon_run", default=None)
"""The loop whose tool is being executed, for agents that are tools."""

Emit: TypeAlias = Callable[[], Awaitable[None]]


class Loop:
    """The state of one run on its way."""

    def __init__(self, start: Start, shown: Emit) -> None:
        """Set up; nothing begins.

        Args:
            start: What the run begins with.
            shown: Awaited after each event, until whoever looks wants the next one.
        """
        self._start = start
        self._shown = shown
        self.agent = start.agent
        self.record = (
            Record(uuid.uuid4().hex, datetime.now(UTC).isoformat(timespec="milliseconds"))
            if start.earlier is None
            else Record.of(start.earlier)
        )
        self.cancelled = False
        self.parent: Loop | None = None
        self.output: Any = ""
        self.error: ModelError | None = None
        self.stop_reason: RunStopReason | None = None
        self.pending: tuple[ToolCall, ...] = ()
        self.n_given = len(start.messages)
        self._context: RunContext[Any] = RunContext(deps=start.deps, state=start.state)
        self._offers: dict[int, Offer] = {}
        self._opened: dict[str, Model] = {}
        self._view: list[Message] | None = None
        self._system = Message.system("")
        self._begun = perf_counter()
        self._n_before = len(self.record.steps)
        self._n_handoffs = 0
        self._n_bad = 0
        self.reason = ""
        self._open: _OpenCalls | None = None

    # The life of a run

    async def run(self) -> None:
        """Go until the run is over; `record` and the fields tell how it ended."""
        CURRENT.set(self)
        stop: RunStopReason = "error"
        failed = "the program around the run failed"
        timeout = self._start.agent.timeout
        clock = asyncio.timeout(timeout)
        try:
            async with self._models_closed(), clock:
                if self.cancelled:
                    raise asyncio.CancelledError
                stop = await self._steps()
            failed = ""
        except TimeoutError:
            if not clock.expired():
                raise
            self._close_calls(CANCELLED)
            self._note(LimitEvent("timeout", timeout or 0.0, time=self._now()))
            stop, failed = "time_limit", ""
        except asyncio.CancelledError:
            self._close_calls(CANCELLED)
            stop, failed = "cancelled", ""
        except ModelError as error:
            self.error, failed = error, str(error)
        finally:
            self.reason = failed or self.reason
            self._end(stop)
        await self._shown()

    @asynccontextmanager
    async def _models_closed(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self.parent is None:
                for model in self._opened.values():
                    await model.close()

    def _end(self, stop: RunStopReason) -> None:
        self.stop_reason = stop
        if stop not in ("answer", "stopped_by_tool"):
            self.output = self._last_text()
        usage = self.record.total_usage
        text = self.output if isinstance(self.output, str) else str(self.output)
        self._note(RunEnd(stop, text, usage, self.reason, time=self._now()))
        if self.parent is not None:
            self.parent.record.children.append(self.trajectory())

    def trajectory(self) -> Trajectory:
        """The record so far, as a value."""
        end = self.record.events[-1] if self.record.events else None
        over = isinstance(end, RunEnd)
        return self.record.trajectory(
            self.stop_reason or "cancelled",
            end.output if over else self._last_text(),
            end.error if over else "",
            self._context.state,
        )

    def _last_text(self) -> str:
        for step in reversed(self.record.steps):
            if step.completion.message.text:
                return step.completion.message.text
        return ""

    def _now(self) -> float:
        return round(perf_counter() - self._begun, 6)

    def _note(self, event: Event) -> None:
        self.record.events.append(event)

    async def _emit(self, event: Event) -> None:
        self._note(event)
        await self._shown()

    # Steps

    async def _steps(self) -> RunStopReason:
        if self._start.earlier is None:
            self.record.messages.extend(self._start.messages)
            self.record.metadata = self._start.metadata
            model = self._model().spec
            event = RunStart(self.agent.name, model, self._start.question, time=self._now())
            await self._emit(event)
            ids = call_ids(self.record.messages)
        else:
            ids = call_ids(self.record.messages)
        self._ids = Ids(ids)
        stop = await self._go_on() if self._start.earlier is not None else None
        while stop is None:
            stop = await self._limit() or await self._step()
        return stop

    async def _go_on(self) -> RunStopReason | None:
        """Answer the calls that the earlier part of the run left open."""
        steps = self.record.steps
        if not steps:
            return None
        last = len(steps) - 1
        self.agent = self._named(steps[last].agent)
        message = steps[last].completion.message
        offer = self._offer(self.agent)
        if not n_calls(message) or self.record.messages[-1].role == "tool":
            return None
        paused = self._start.earlier is not None and self._start.earlier.stop_reason == "pending"
        results = await self._execute(last, message, offer, under_way=not paused)
        return await self._after_calls(last, steps[last].completion, results)

    async def _limit(self) -> RunStopReason | None:
        first = self._start.agent
        n = len(self.record.steps) - self._n_before
        if n >= first.max_steps:
            await self._emit(LimitEvent("max_steps", first.max_steps, time=self._now()))
            return "step_limit"
        usage = self.record.total_usage
        n_tokens = usage.input_tokens + usage.output_tokens
        if first.max_tokens is not None and n_tokens >= first.max_tokens:
            await self._emit(LimitEvent("max_tokens", first.max_tokens, time=self._now()))
            return "token_limit"
        return None

    async def _step(self) -> RunStopReason | None:
        index = len(self.record.steps)
        offer = self._offer(self.agent)
        system = await self._instructions()
        started = self._now()
        await self._emit(StepStart(index, self.agent.name, time=started))
        n_shown = len(self.record.messages)
        completion = await self._complete(index, self._conversation(system, offer))
        message = with_own_ids(completion.message, self._ids)
        if message is not completion.message:
            completion = replace(completion, message=message)
        self.record.steps.append(
            Step(
                agent=self.agent.name,
                n_prompt_messages=n_shown,
                completion=completion,
                system=system,
                started=started,
                ended=self._now(),
                tools=tuple(offer.tools),
                shown=None if self._view is None else tuple(self._view),
            )
        )
        self.record.usage += (
            completion.usage
            if completion.usage.n_requests
            else replace(completion.usage, n_requests=1)
        )
        if message.parts or n_calls(message):
            self._say(message)
        return await self._judge(index, completion, offer)

    def _say(self, *messages: Message) -> None:
        self.record.messages.extend(messages)
        if self._view is not None:
            self._view.extend(messages)

    async def _judge(
        self, index: int, completion: Completion, offer: Offer
    ) -> RunStopReason | None:
        """What follows from a reply."""
        message, why = completion.message, completion.stop_reason
        if why in ("refusal", "content_filter", "error", "cancelled"):
            if why != "refusal":
                self.reason = f"the reply ended with {why} and is not whole"
            await self._refuse_calls(index, message, f"the reply ended with {why}")
            return await self._end_step(
                index, "error" if why in ("error", "cancelled") else "refused"
            )
        if n_calls(message) and why == "length":
            reason = cut_reason(completion.usage.output_tokens)
            await self._refuse_calls(index, message, reason)
            return await self._end_step(index, await self._count_bad("token_limit"))
        if n_calls(message):
            results = await self._execute(index, message, offer)
            return await self._after_calls(index, completion, results)
        if why == "length":
            n_tokens = completion.usage.output_tokens
            await self._emit(LimitEvent("output_tokens", n_tokens, time=self._now()))
            return await self._end_step(index, "token_limit")
        if not message.text.strip():
            stop = await self._ask_again(index, EMPTY_REPLY, "was empty")
            return await self._end_step(index, stop)
        if not completion.format and _has_written_call(message.text, offer):
            stop = await self._ask_again(
                index,
                CALL_AS_TEXT,
                "wrote a call as text; its server may "
                "not read this model's calls: name its format, as in MODEL?format=hermes",
            )
            return await self._end_step(index, stop)
        self.output = message.text
        return await self._end_step(index, "answer")

    async def _end_step(self, index: int, stop: RunStopReason | None) -> RunStopReason | None:
        completion = self.record.steps[index].completion
        self.record.steps[index] = replace(self.record.steps[index], ended=self._now())
        await self._emit(StepEnd(index, completion.stop_reason, completion.usage, time=self._now()))
        return stop

    async def _count_bad(self, stop: RunStopReason) -> RunStopReason | None:
        """One more reply that is of no use; too many in a row end the run."""
        self._n_bad += 1
        if self._n_bad <= self._start.agent.max_mends:
            return None
        await self._emit(LimitEvent("max_mends", self._start.agent.max_mends, time=self._now()))
        return stop

    async def _ask_again(self, index: int, text: str, why: str) -> RunStopReason | None:
        stop = await self._count_bad("error")
        if stop is not None:
            self.reason = f"the model was asked {self._n_bad} times and its last reply {why}"
        else:
            self._say(Message.user(text))
            await self._emit(FeedbackEvent(index, text, time=self._now()))
        return stop

    # Models

    def _model(self) -> Model:
        model = self.agent.model
        if not isinstance(model, str):
            return model
        if model not in self.opened:
            self.opened[model] = load_model(model)
        return self.opened[model]

    @property
    def opened(self) -> dict[str, Model]:
        """Models that the outermost run opened, by spec; its children share them."""
        return self._opened if self.parent is None else self.parent.opened

    async def _instructions(self) -> str:
        told = self.agent.instructions
        if callable(told):
            self._context.agent, self._context.step = self.agent.name, len(self.record.steps)
            made = told(self._context)
            told = await made if inspect.isawaitable(made) else made
        return told

    def _conversation(self, system: str, offer: Offer) -> Conversation:
        if self.record.system is None and system and not self.record.steps:
            self.record.system = system
        if system and system != self._system.text:
            self._system = Message.system(system)
        body = self.record.messages if self._view is None else self._view
        messages = (self._system, *body) if system else tuple(body)
        return Conversation(messages, offer.specs)

    async def _complete(self, index: int, conversation: Conversation) -> Completion:
        completion: Completion | None = None
        n_shown = 0
        model = self._model()
        async with _closed_after(model.stream(conversation, self.agent.settings)) as outputs:
            async for output in outputs:
                if isinstance(output, Completion):
                    completion = output
                    continue
                await self._emit(_delta_event(index, output, n_shown, self._now()))
                if isinstance(output, Retry):
                    n_shown = 0
                elif not isinstance(output, ToolCallDelta):
                    n_shown += len(output.text)
        if completion is None:
            raise ModelResponseError(
                f"model {model.spec!r} ended its stream without a completion; "
                "a Model yields exactly one, last"
            )
        return completion

    # Calls

    def _offer(self, agent: "Agent") -> Offer:
        offer = self._offers.get(id(agent))
        if offer is None:
            offer = self._offers[id(agent)] = Offer.of(agent)
            self.record.specs.update({spec.name: spec for spec in offer.specs})
            self.record.agents[agent.name] = agent_row(agent, self._model().spec, offer)
        return offer

    async def _refuse_calls(self, index: int, message: Message, why: str) -> None:
        results = refused_results(message, why)
        for call in message.tool_calls:
            await self._emit(CallEvent(index, call, time=self._now()))
        for invalid in message.invalid_tool_calls:
            await self._emit(InvalidCallEvent(index, invalid, time=self._now()))
        for result in results:
            await self._emit(ResultEvent(index, result, time=self._now()))
        self._answer(index, results)

    async def _execute(
        self, index: int, message: Message, offer: Offer, *, under_way: bool = False
    ) -> list[ToolResult] | None:
        """Answer every call of a reply; ``None`` where some wait for a person.

        Args:
            index: The step.
            message: The reply.
            offer: What may be called.
            under_way: Whether calls that the record shows as begun may have taken effect.
        """
        seen = self._seen(CallEvent)
        for call in message.tool_calls:
            if call.id not in seen:
                await self._emit(CallEvent(index, call, time=self._now()))
        for invalid in message.invalid_tool_calls:
            if invalid.id not in seen:
                await self._emit(InvalidCallEvent(index, invalid, time=self._now()))
        work = _OpenCalls(index, message)
        self._open = work
        begun = seen if under_way else set[str]()
        for result in self.record.steps[index].results:
            work.results[result.call_id] = result
        for call in message.tool_calls:
            if call.id in begun and call.id not in work.results:
                known = offer.tools.get(call.name)
                if known is None or not known.idempotent:
                    work.results[call.id] = unanswered(call, UNKNOWN_OUTCOME)
        calls = await self._decide(index, message, offer, work)
        if calls is None:
            self._open = None
            return None
        for invalid in message.invalid_tool_calls:
            work.results.setdefault(invalid.id, invalid_result(invalid))
        return await self._execute_together(index, calls, offer, work)

    def _seen(self, kind: type[CallEvent] | type[ApprovalEvent]) -> set[str]:
        """Ids of calls that the earlier part of a resumed run had an event of this kind for."""
        earlier = self._start.earlier
        events = () if earlier is None else earlier.events
        return {
            e.call.id
            for e in events
            if isinstance(e, CallEvent | ApprovalEvent) and type(e) is kind
        }

    async def _decide(
        self, index: int, message: Message, offer: Offer, work: "_OpenCalls"
    ) -> list[ToolCall] | None:
        """The calls to execute, as a person allowed them; ``None`` to wait for one."""
        waiting = [
            call
            for call in message.tool_calls
            if call.id not in work.results and _needs_approval(offer, call)
        ]
        if not waiting:
            return list(message.tool_calls)
        asked = self._seen(ApprovalEvent)
        for call in waiting:
            if call.id not in asked:
                await self._emit(ApprovalEvent(index, call, time=self._now()))
        approve = self._approve
        open_calls = [call for call in waiting if call.id not in self._start.decisions]
        if open_calls and approve is None:
            self.pending = tuple(open_calls)
            return None
        decided = {call.id: call for call in message.tool_calls}
        for call in waiting:
            decision = self._start.decisions.get(call.id)
            if decision is None:
                decision = await _asked(cast("ApproveFunction", approve), call)
            await self._emit(
                DecisionEvent(
                    index,
                    call.id,
                    decision.approved,
                    decision.arguments,
                    decision.reason,
                    time=self._now(),
                )
            )
            if not decision.approved:
                work.results[call.id] = unanswered(call, _refusal(decision))
            elif decision.arguments is not None:
                decided[call.id] = replace(call, arguments=decision.arguments)
                work.edited.add(call.id)
        return list(decided.values())

    @property
    def _approve(self) -> ApproveFunction | None:
        if self._start.approve is None and self.parent is not None:
            return self.parent._approve
        return self._start.approve

    async def _execute_together(
        self, index: int, calls: Sequence[ToolCall], offer: Offer, work: "_OpenCalls"
    ) -> list[ToolResult]:
        """Execute calls at the same time; their results come in the calls' order."""
        taken_over = False
        async with asyncio.TaskGroup() as group:
            tasks = {
                call.id: group.create_task(self._call(call, offer, work))
                for call in calls
                if call.id not in work.results
            }
            for id in work.order:
                if id in tasks:
                    await tasks[id]
                result = work.results[id]
                if self._target(result) is not None:
                    if taken_over:
                        result = work.results[id] = _late_handoff(result)
                    taken_over = True
                work.n_told += 1
                await self._tell(index, result, work.durations.get(id, 0.0), offer)
        self._open = None
        results = [work.results[id] for id in work.order]
        self._answer(index, results)
        return results

    async def _tell(self, index: int, result: ToolResult, duration: float, offer: Offer) -> None:
        await self._emit(ResultEvent(index, result, duration, time=self._now()))
        if result.full_text is not None and result.name in offer.tools:
            limit = offer.tools[result.name].max_chars
            await self._emit(LimitEvent("output_chars", limit, time=self._now()))

    async def _call(self, call: ToolCall, offer: Offer, work: "_OpenCalls") -> None:
        started = perf_counter()
        known = offer.tools.get(call.name)
        if known is None:
            result = unknown_tool_result(call, list(offer.tools.values()))
        else:
            context = self._context.for_call(call.name, call.id)
            context.agent, context.step = self.agent.name, work.index
            result = await known.call(call.arguments, context, call.id)
        if call.repairs:
            result = replace(result, repairs=(*call.repairs, *result.repairs))
        if call.id in work.edited:
            result = replace(result, text=_edited_note(call) + result.text)
        work.durations[call.id] = perf_counter() - started
        work.results[call.id] = result

    def _answer(self, index: int, results: Sequence[ToolResult]) -> None:
        self.record.answer_step(index, results)
        if self._view is not None:
            self._view.extend(Message.from_result(result) for result in results)

    def _close_calls(self, text: str) -> None:
        """Answer what is still open, so that the record can be gone on from."""
        work = self._open
        if work is None:
            return
        self._open = None
        calls = (*work.message.tool_calls, *work.message.invalid_tool_calls)
        for n, call in enumerate(calls):
            result = work.results.setdefault(call.id, unanswered(call, text))
            if n >= work.n_told:
                self._note(
                    ResultEvent(work.index, result, work.durations.get(call.id, 0.0), self._now())
                )
        self._answer(work.index, [work.results[call.id] for call in calls])

    async def _after_calls(
        self, index: int, completion: Completion, results: list[ToolResult] | None
    ) -> RunStopReason | None:
        """What follows from the answers."""
        if results is None:
            return "pending"
        if completion.message.tool_calls:
            self._n_bad = 0
        final = next(
            (r for r in results if r.name in self.agent.final_tools and not r.is_error), None
        )
        if final is not None:
            self.output = final.value if final.value is not None else final.text
            return await self._end_step(index, "stopped_by_tool")
        taking = next((r for r in results if self._target(r) is not None), None)
        stop = None if taking is None else await self._hand_over(index, taking)
        return await self._end_step(index, stop)

    # Handoffs

    def _target(self, result: ToolResult) -> "Agent | None":
        """The agent that a tool returned, if it did: an agent is whatever ours is one of."""
        value = result.value
        return value if isinstance(value, type(self._start.agent)) and not result.is_error else None

    async def _hand_over(self, index: int, result: ToolResult) -> RunStopReason | None:
        target = self._target(result)
        assert target is not None
        limit = self._start.agent.max_handoffs
        if self._n_handoffs >= limit:
            await self._emit(LimitEvent("max_handoffs", limit, time=self._now()))
            return "handoff_limit"
        self._n_handoffs += 1
        await self._emit(HandoffEvent(index, self.agent.name, target.name, time=self._now()))
        shorten = self._offer(self.agent).filters.get(result.name)
        self.agent = target
        if shorten is not None:
            body = self.record.messages if self._view is None else self._view
            self._view = list(shorten(tuple(body)))
        return None

    def _named(self, name: str) -> "Agent":
        """The agent of that name, from the first one and whom it may hand over to."""
        waiting, seen = [self._start.agent], dict[str, "Agent"]()
        while waiting:
            agent = waiting.pop()
            if agent.name in seen:
                continue
            seen[agent.name] = agent
            waiting += [handoff.target() for handoff in agent.own_handoffs]
        if name not in seen:
            raise UsageError(
                f"the run was with agent {name!r}; resume it with an agent that is, or hands over "
                f"to, it. Known here: {', '.join(seen)}"
            )
        return seen[name]


@dataclass(slots=True)
class _OpenCalls:
    """The calls of a step while they are answered."""

    index: int
    """The step."""
    message: Message
    """The reply that holds them."""
    results: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    """Answers so far, by call id."""
    durations: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds that calls took."""
    edited: set[str] = field(default_factory=set[str])
    """Ids of calls whose arguments a person changed."""
    n_told: int = 0
    """How many results were emitted."""

    @property
    def order(self) -> list[str]:
        """The ids, in the calls' order."""
        calls = (*self.message.tool_calls, *self.message.invalid_tool_calls)
        return [call.id for call in calls]


@asynccontextmanager
async def _closed_after(
    outputs: AsyncIterator[ModelOutput],
) -> AsyncGenerator[AsyncIterator[ModelOutput]]:
    """Ends a model's stream with the block, also when its reader was stopped."""
    try:
        yield outputs
    finally:
        close = getattr(outputs, "aclose", None)
        if close is not None:
            await close()


def _delta_event(index: int, output: Delta | Retry, n_shown: int, time: float) -> Event:
    match output:
        case TextDelta(text):
            return TextEvent(index, text, time)
        case ThinkingDelta(text):
            return ThinkingEvent(index, text, time)
        case ToolCallDelta(number, name, _, arguments):
            return CallDeltaEvent(index, number, name, arguments, time)
        case Retry(reason, wait):
            return RetryEvent(index, reason, wait, n_shown, time)


def _needs_approval(offer: Offer, call: ToolCall) -> bool:
    known = offer.tools.get(call.name)
    return known is not None and known.needs_approval(call.arguments)


def _has_written_call(text: str, offer: Offer) -> bool:
    """Whether a text holds a family's markup of a call, followed by the name of a tool on offer."""
    found = _CALL_MARKUP.search(text)
    return found is not None and any(name in text[found.end() :] for name in offer.tools)


async def _asked(approve: ApproveFunction, call: ToolCall) -> Decision:
    made = approve(call)
    answer = await made if inspect.isawaitable(made) else made
    return answer if isinstance(answer, Decision) else Decision(answer)


def _refusal(decision: Decision) -> str:
    reason = f": {decision.reason}" if decision.reason else ""
    return f"A person refused this call{reason}. It was not executed."


def _edited_note(call: ToolCall) -> str:
    return f"[A person changed the arguments to {dump_json(call.arguments)}.]\n"


def _late_handoff(result: ToolResult) -> ToolResult:
    return ToolResult(
        result.call_id,
        result.name,
        "Not handed over: another agent had already taken over in this reply.",
        is_error=True,
    )
