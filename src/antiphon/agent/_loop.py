"""The loop that runs every agent: ask the model, execute its calls together, until it answers.

There is no second loop: a run that is awaited, iterated, resumed or called as a tool goes through
this one and makes the same events in the same order.  What a model or a tool did wrong becomes a
message to the model; only a model that gives no completion, and a program's own mistakes, end a run
from outside.

The history is never walked again: a step appends, and its cost does not depend on those before it.
"""

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from antiphon.agent._asking import Asked, Asking
from antiphon.agent._calls import (
    Ids,
    Repeats,
    call_ids,
    cut_reason,
    n_calls,
    repeated_note,
    with_own_ids,
)
from antiphon.agent._cost import Budget
from antiphon.agent._course import CURRENT, Course, CourseMaker
from antiphon.agent._execution import Execution, OpenCalls
from antiphon.agent._hooks import Again, Stopped, checked, settled
from antiphon.agent._insertion import insert_results
from antiphon.agent._observing import SUMMARISER, Observing
from antiphon.agent._offer import Offer, agent_row
from antiphon.agent._output import FINAL_TOOL, Unfit
from antiphon.agent._record import Record, is_said, json_state, open_step
from antiphon.agent._resume import speaker, told_again
from antiphon.agent._select import SELECTOR
from antiphon.agent._start import ApproveFunction, Start
from antiphon.agent._telemetry import ACTIVE, run_span
from antiphon.agent._telling import Shown, Telling
from antiphon.agent._view import View
from antiphon.errors import AntiphonError, ContextLengthError, ModelError, UsageError
from antiphon.events import (
    CompactionEvent,
    Event,
    FeedbackEvent,
    HandoffEvent,
    InsertionEvent,
    LimitEvent,
    RunEnd,
    RunStart,
    RunStopReason,
    Step,
    StepEnd,
    StepStart,
    Trajectory,
    step_to_row,
)
from antiphon.memory import Compacted, head_tail
from antiphon.messages import (
    Completion,
    Conversation,
    Message,
    ToolCall,
    ToolResult,
    message_to_row,
)
from antiphon.models import Model
from antiphon.tools import RunContext

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent

EMPTY_REPLY = "Your last reply was empty. Answer, or call a tool."
"""What the model is told of a reply without text and calls."""

CALL_AS_TEXT = (
    "Your last reply wrote a tool call as text, so it was not executed. Call the tool through the "
    "tool interface, or answer without the markup."
)
"""What the model is told of a reply that holds the markup of a call and no call."""

_MAX_SHORTENINGS = 5  # in one step

LAST_WORD = "You have used up your steps. Answer now, from what you know, without calling a tool."
"""What the model is told at its last step, where it may still answer."""

_SUMMARISED_TOKENS = 12_000
"""How much of a long result a summarising model is shown."""

_CALL_MARKUP = re.compile(
    r"<tool_call>|<function=|\[TOOL_CALLS\]|<\|python_tag\|>|tool▁calls▁begin"
)


class Loop:
    """The state of one run on its way."""

    def __init__(self, start: Start, shown: Shown) -> None:
        """Set up; nothing begins.

        Args:
            start: What the run begins with.
            shown: Awaited after each event, until whoever looks wants the next one.
        """
        self.start = start
        self.agent = start.agent
        self.record = _new_record(start) if start.earlier is None else Record.of(start.earlier)
        self.cancelled = False
        self.parent: Course | None = None
        self.output: Any = ""
        self.output_text = ""
        self.error: AntiphonError | None = None
        self.reason = ""
        self.stop_reason: RunStopReason | None = None
        self._redone = None if start.earlier is None else open_step(start.earlier)
        self._view = View(self.record)
        self._telling = Telling(
            self.record.events, shown, start.journal, told_again(start.earlier, self._redone)
        )
        known = (result for step in self.record.steps for result in step.results)
        self._observing = Observing(known, self._summarise)
        self.execution = Execution(
            start, self.record, self._telling, self.approver, self._view.say, self._observing
        )
        self._context: RunContext[Any] = RunContext(deps=start.deps, state=start.state)
        self._offers: dict[int, Offer] = {}
        self._asking = Asking(start, self.record, self._telling, self._about)
        self._budget = Budget(start.agent, self.record)
        self._ids = Ids()
        self._n_handoffs = sum(isinstance(e, HandoffEvent) for e in self.record.events)
        self._n_bad = 0
        self._repeats = Repeats()

    # The life of a run

    async def run(self) -> None:
        """Go until the run is over; `record` and the fields tell how it ended."""
        CURRENT.set(self)
        ACTIVE.set(self.start.agent.telemetry or ACTIVE.get())
        with run_span(self.agent.name, self.record.id, self.start.session) as span:
            await self._go()
            if span is not None:
                span.ended(self.stop_reason or "error", self.reason)

    async def _go(self) -> None:
        stop: RunStopReason = "error"
        failed = "the program around the run failed"
        timeout = self.start.agent.timeout
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
            self.execution.close()
            self._telling.note(LimitEvent("timeout", timeout or 0.0, time=self._telling.now()))
            stop, failed = "time_limit", ""
        except asyncio.CancelledError:
            self.execution.close()
            stop, failed = "cancelled", ""
        except ModelError as error:
            self.error, failed = error, str(error)
        except Stopped as stopped:
            self.execution.close("This call was not executed: the run was stopped.")
            stop, failed = "refused", ""
            self.output = self.output_text = stopped.reason
        finally:
            self.reason = failed or self.reason
            self._end(stop)
        await self._tell_end()
        await self._telling.shown()

    @asynccontextmanager
    async def _models_closed(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            if self.parent is None:
                await self._asking.close()

    def _end(self, stop: RunStopReason) -> None:
        self.stop_reason = stop
        if stop not in ("answer", "stopped_by_tool") and not self.output_text:
            self.output = self.output_text = self._last_text()
        usage = self.record.total_usage
        self._telling.note(
            RunEnd(stop, self.output_text, usage, self.reason, time=self._telling.now())
        )
        if self.parent is not None:
            self.parent.adopt(self.trajectory())

    async def _tell_end(self) -> None:
        if self.start.agent.memory is not None:
            self.start.agent.memory.learn(self.trajectory())
        for hooks in self.agent.hooks:
            if hooks.on_end is not None:
                await settled(hooks.on_end(self._about(), self.trajectory()))

    @property
    def n_given(self) -> int:
        """How many messages of the conversation the run was given."""
        return len(self.start.messages) - self._asking.n_led

    @property
    def pending(self) -> tuple[ToolCall, ...]:
        """Calls that wait for a person."""
        return self.execution.pending

    @property
    def opened(self) -> dict[str, Model]:
        """Models that were opened by their specs, which runs inside this one share."""
        return self._asking.opened

    def beneath(self, parent: Course, call_id: str) -> None:
        """Make this the run of a tool of another run, which it shares models with."""
        self.parent = parent
        self.record.call_id = call_id
        self._asking.share(parent.opened)

    def adopt(self, child: Trajectory) -> None:
        """Keep the record of a run that a tool of this run made."""
        self.record.adopt(child)
        if self.start.journal is not None:
            self.start.journal.append("child", child.to_row())

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

    async def _emit(self, event: Event) -> None:
        await self._telling.emit(event)

    def _about(self) -> RunContext[Any]:
        """The run's context, for functions that are no tools."""
        self._context.agent, self._context.step = self.agent.name, len(self.record.steps)
        return self._context

    # Steps

    async def _steps(self) -> RunStopReason:
        if self.start.earlier is None:
            self.record.messages.extend(self.start.messages)
            if self.agent.memory is not None:
                self.agent.memory.put_before(self.record.messages, self.start.question)
            self._keep_start()
            event = RunStart(
                self.agent.name, self._asking.model(self.agent).spec, self.start.question
            )
            await self._emit(replace(event, time=self._telling.now()))
            self._ids = Ids(call_ids(self.record.messages))
            stop = None
        else:
            self._ids = Ids(call_ids(self.record.messages))
            self._repeats = Repeats(self.record.messages)
            stop = await self._go_on(self.start.earlier)
        while stop is None:
            stop = await self._limit() or await self._step()
        return stop

    def _keep_start(self) -> None:
        if self.start.journal is None:
            return
        self.start.journal.append(
            "start",
            {
                "id": self.record.id,
                "started_at": self.record.started_at,
                "agent": self.agent.name,
                "messages": [message_to_row(message) for message in self.record.messages],
                "metadata": self.record.metadata,
            },
        )

    async def _go_on(self, earlier: Trajectory) -> RunStopReason | None:
        """Take up a run where its record ends; finish an unfinished step from what is known."""
        steps = self.record.steps
        if not steps:
            return None
        last = len(steps) - 1
        self.agent = self._named(speaker(earlier, finished=self._redone is None))
        if steps[last].shown is not None:
            said = self.record.messages[steps[last].n_prompt_messages :]
            self._view.narrow([*(steps[last].shown or ()), *said])
        if self._redone is None:
            return None
        return await self._judge(last, steps[last].completion, self._offer(self.agent))

    async def _limit(self) -> RunStopReason | None:
        reached = self._budget.reached()
        if reached is None:
            return None
        stop, name, value = reached
        await self._emit(LimitEvent(name, value, time=self._telling.now()))
        if stop == "step_limit" and self.start.agent.on_limit == "answer":
            await self._last_word()
        return stop

    async def _last_word(self) -> None:
        """Ask once more, without tools, for an answer from what is known."""
        index = len(self.record.steps)
        self._view.say(Message.user(LAST_WORD))
        await self._emit(FeedbackEvent(index - 1, LAST_WORD, time=self._telling.now()))
        offer = Offer()
        started = self._telling.now()
        await self._emit(StepStart(index, self.agent.name, time=started))
        system = await self._asking.instructions(self.agent, offer)
        whole = self._view.conversation(system, ())
        asked = await self._asking.ask(index, self.agent, offer, whole)
        message = with_own_ids(asked.completion.message, self._ids)
        step = Step(
            agent=self.agent.name,
            n_prompt_messages=len(self.record.messages),
            completion=replace(asked.completion, message=message),
            system=system,
            started=started,
            ended=self._telling.now(),
            shown=None if self._view.is_whole else _body(asked.conversation),
        )
        self._keep(step)
        await self.execution.refuse(index, message, "the run is at its limit of steps")
        self.output = self.output_text = message.text
        await self._end_step(index, None)

    async def _step(self) -> RunStopReason | None:
        index = len(self.record.steps)
        offer = await self._chosen_offer(self.agent)
        system = await self._asking.instructions(self.agent, offer)
        started = self._telling.now()
        await self._emit(StepStart(index, self.agent.name, time=started))
        shorter = await self._view.compact(self.agent.compaction)
        if shorter is not None:
            await self._tell_shorter(index, shorter)
        whole, asked = await self._asked(index, offer, system)
        conversation, completion = asked.conversation, asked.completion
        message = with_own_ids(completion.message, self._ids)
        if message is not completion.message:
            completion = replace(completion, message=message)
        step = Step(
            agent=self.agent.name,
            n_prompt_messages=len(self.record.messages),
            completion=completion,
            system=_system_text(conversation),
            started=started,
            ended=self._telling.now(),
            tools=tuple(offer.tools),
            shown=None if conversation is whole and self._view.is_whole else _body(conversation),
        )
        self._keep(step)
        if asked.again is not None:
            await self.execution.refuse(index, message, "the answer was sent back")
            stop = await self._ask_again(index, asked.again.feedback, "was sent back by a hook")
            return await self._end_step(index, stop)
        return await self._judge(index, completion, offer)

    async def _asked(self, index: int, offer: Offer, system: str) -> tuple[Conversation, Asked]:
        """Ask the model; where its context is too small, show less and ask again."""
        n = 0
        while True:
            whole = self._view.conversation(system, offer.specs)
            try:
                return whole, await self._asking.ask(index, self.agent, offer, whole)
            except ContextLengthError:
                shorter = await self._view.shorten(self.agent.compaction, n)
                if shorter is None or n == _MAX_SHORTENINGS:
                    raise
            n += 1
            await self._tell_shorter(index, shorter)

    async def _tell_shorter(self, index: int, shorter: Compacted) -> None:
        event = CompactionEvent(index, shorter.method, shorter.n_messages)
        await self._emit(replace(event, time=self._telling.now()))

    def _keep(self, step: Step) -> None:
        """Take a finished model call into the record, and its reply into the conversation."""
        if self.start.journal is not None:
            last = self.record.steps[-1] if self.record.steps else None
            self.start.journal.append("step", step_to_row(step, last))
        self.record.steps.append(step)
        usage = step.completion.usage
        self.record.usage += usage if usage.n_requests else replace(usage, n_requests=1)
        if is_said(step.completion.message):
            self._view.say(step.completion.message)

    async def _judge(
        self, index: int, completion: Completion, offer: Offer
    ) -> RunStopReason | None:
        """What follows from a reply."""
        message, why = completion.message, completion.stop_reason
        if why in ("refusal", "content_filter", "error", "cancelled"):
            if why != "refusal":
                self.reason = f"the reply ended with {why} and is not whole"
            await self.execution.refuse(index, message, f"the reply ended with {why}")
            stop = "error" if why in ("error", "cancelled") else "refused"
            return await self._end_step(index, stop)
        if n_calls(message) and why == "length":
            reason = cut_reason(completion.usage.output_tokens)
            await self.execution.refuse(index, message, reason)
            return await self._end_step(index, await self._count_bad("token_limit"))
        if n_calls(message):
            results = await self.execution.answer(
                OpenCalls(index, message, offer, self._about_calls(index), self.agent.hooks)
            )
            return await self._after_calls(index, completion, results)
        if why == "length":
            n_tokens = completion.usage.output_tokens
            await self._emit(LimitEvent("output_tokens", n_tokens, time=self._telling.now()))
            return await self._end_step(index, "token_limit")
        return await self._end_step(index, await self._answered(index, completion, offer))

    async def _answered(
        self, index: int, completion: Completion, offer: Offer
    ) -> RunStopReason | None:
        """What follows from a reply without calls."""
        text = completion.message.text
        if not text.strip():
            return await self._ask_again(index, EMPTY_REPLY, "was empty")
        if not completion.format and _has_written_call(text, offer):
            why = "wrote a call as text; name the model's format, as in MODEL?format=hermes"
            return await self._ask_again(index, CALL_AS_TEXT, why)
        if offer.output is None:
            return await self._accept(index, text, offer)
        value = offer.output.read(text)
        if isinstance(value, Unfit):
            feedback = offer.output.feedback(value)
            return await self._ask_again(index, feedback, f"was no answer: {value.reason}")
        return await self._accept(index, value, offer)

    async def _accept(self, index: int, value: Any, offer: Offer) -> RunStopReason | None:
        """Check an answer, and end with it."""
        guardrails = [g for g in self.agent.guardrails if g.on == "output"]
        if guardrails:
            value = await checked(guardrails, self._about(), value)
            if isinstance(value, Again):
                return await self._ask_again(index, value.feedback, "was sent back by a guardrail")
        if self.agent.insert_results and isinstance(value, str):
            value = await self._with_results(index, value)
        self.output = value
        self.output_text = value if isinstance(value, str) else offer.text(value)
        return "answer"

    async def _with_results(self, index: int, text: str) -> str:
        """An answer with its placeholders replaced by what tools returned."""
        whole, found, unknown = insert_results(text, self._observing.texts)
        for id in (*found, *unknown):
            await self._emit(InsertionEvent(index, id, id in found, time=self._telling.now()))
        return whole

    async def _end_step(self, index: int, stop: RunStopReason | None) -> RunStopReason | None:
        completion = self.record.steps[index].completion
        now = self._telling.now()
        self.record.steps[index] = replace(self.record.steps[index], ended=now)
        if self.start.journal is not None and self.start.state:
            self.start.journal.append("state", json_state(self.start.state))
        await self._emit(StepEnd(index, completion.stop_reason, completion.usage, time=now))
        return stop

    async def _count_bad(self, stop: RunStopReason) -> RunStopReason | None:
        """One more reply that is of no use; too many in a row end the run."""
        self._n_bad += 1
        limit = self.start.agent.max_mends
        if self._n_bad <= limit:
            return None
        await self._emit(LimitEvent("max_mends", limit, time=self._telling.now()))
        return stop

    async def _ask_again(self, index: int, text: str, why: str) -> RunStopReason | None:
        stop = await self._count_bad("error")
        if stop is not None:
            self.reason = f"the model was asked {self._n_bad} times and its last reply {why}"
        else:
            self._view.say(Message.user(text))
            await self._emit(FeedbackEvent(index, text, time=self._telling.now()))
        return stop

    # Calls

    def _offer(self, agent: "Agent") -> Offer:
        offer = self._offers.get(id(agent))
        if offer is None:
            offer = self._offers[id(agent)] = Offer.of(agent)
            if agent.observations is not None:
                reader = self._observing.tool(agent.observations)
                offer.tools[reader.name] = reader
            if agent.memory is not None:
                offer.tools |= {t.name: t for t in agent.memory.tools_for(self.record.id)}
            if offer.selection is not None:
                before = [step for step in self.record.steps if step.agent == agent.name]
                if before:
                    offer.selection.restore(before[-1].tools, before[-1].results)
            self._keep_offer(agent, offer)
        return offer

    def _keep_offer(self, agent: "Agent", offer: Offer) -> None:
        """Take what is on offer into the record, as far as it is new there."""
        fresh = [spec for spec in offer.specs if self.record.specs.get(spec.name) is not spec]
        if not fresh and agent.name in self.record.agents:
            return
        self.record.specs.update({spec.name: spec for spec in fresh})
        row = self.record.agents[agent.name] = agent_row(
            agent, self._asking.model(agent).spec, offer
        )
        if self.start.journal is not None:
            specs = [spec.to_openai() for spec in fresh]
            self.start.journal.append("agent", {"agent": row, "tools": list(specs)})

    async def _chosen_offer(self, agent: "Agent") -> Offer:
        """An agent's offer, with the tools that fit the question where it has many."""
        offer = self._offer(agent)
        self._observing.how = agent.observations
        self._observing.shows_ids = agent.insert_results
        self._observing.query = self.start.question
        if offer.selection is not None:
            await offer.selection.begin(self.start.question, self._choose)
            self._keep_offer(agent, offer)
        return offer

    async def _aside(self, role: str, told: str, model: "Model | str | None", text: str) -> str:
        """Have a model do something beside the conversation; its run is a part of this one.

        Raises:
            ModelError: It gives no answer.
        """
        agent = replace(
            self.agent,
            name=role,
            instructions=told,
            model=self.agent.model if model is None else model,
            tools=(),
            handoffs=(),
            final_tools=(),
            output_type=str,
            hooks=(),
            guardrails=(),
            compaction=None,
            select=None,
            observations=None,
            insert_results=False,
            memory=None,
        )
        run = agent.run(text, metadata={"role": role})
        result = await run.under(f"{role}:{len(self.record.children)}")
        if result.stop_reason != "answer":
            raise ModelError(result.trajectory.error or f"the {role}: {result.stop_reason}")
        return result.text

    async def _summarise(self, text: str, query: str) -> str:
        how = self.agent.observations
        model = None if how is None else how.summariser
        clipped = head_tail(text, _SUMMARISED_TOKENS)
        return await self._aside(
            "summariser", SUMMARISER, model, f"Question: {query}\n\nResult:\n{clipped}"
        )

    async def _choose(self, text: str) -> str:
        model = None if self.agent.select is None else self.agent.select.refine
        return await self._aside("selector", SELECTOR, model, text)

    def _about_calls(self, index: int) -> RunContext[Any]:
        self._context.agent, self._context.step = self.agent.name, index
        return self._context

    def approver(self) -> ApproveFunction | None:
        """Who decides about calls that need a person, if anyone is there."""
        if self.start.approve is None and self.parent is not None:
            return self.parent.approver()
        return self.start.approve

    async def _after_calls(
        self, index: int, completion: Completion, results: list[ToolResult] | None
    ) -> RunStopReason | None:
        """What follows from the answers."""
        if results is None:
            return "pending"
        if completion.message.tool_calls:
            self._n_bad = 0
        good = [result for result in results if not result.is_error]
        offer = self._offer(self.agent)
        if offer.output is not None and (given := _named(good, (FINAL_TOOL,))) is not None:
            return await self._end_step(index, await self._accept(index, given.value, offer))
        final = _named(good, self.agent.final_tools)
        if final is not None:
            self.output = final.value if final.value is not None else final.text
            self.output_text = final.text
            return await self._end_step(index, "stopped_by_tool")
        taking = next((r for r in good if self.execution.target(r) is not None), None)
        if taking is not None:
            return await self._end_step(index, await self._hand_over(index, taking))
        return await self._end_step(index, await self._check_repeats(index, completion, results))

    async def _check_repeats(
        self, index: int, completion: Completion, results: list[ToolResult]
    ) -> RunStopReason | None:
        """Tell a model that goes round in a circle; end its run where it does not listen."""
        limit = self.start.agent.max_repeats
        if limit is None:
            return None
        texts = {result.call_id: result.text for result in results}
        for call in completion.message.tool_calls:
            n = self._repeats.count(call, texts[call.id])
            if n >= limit:
                self.output = self.output_text = ""
                await self._emit(LimitEvent("max_repeats", limit, time=self._telling.now()))
                return "stuck"
            if n == max(2, limit - 2):
                note = repeated_note(call, n)
                self._view.say(Message.user(note))
                await self._emit(FeedbackEvent(index, note, time=self._telling.now()))
        return None

    # Handoffs

    async def _hand_over(self, index: int, result: ToolResult) -> RunStopReason | None:
        target = self.execution.target(result)
        assert target is not None
        limit = self.start.agent.max_handoffs
        if self._n_handoffs >= limit:
            await self._emit(LimitEvent("max_handoffs", limit, time=self._telling.now()))
            return "handoff_limit"
        self._n_handoffs += 1
        for hooks in self.agent.hooks:
            if hooks.on_handoff is not None:
                stop = await settled(hooks.on_handoff(self._about(), self.agent.name, target.name))
                if stop is not None:
                    raise Stopped(stop.reason)
        now = self._telling.now()
        await self._emit(HandoffEvent(index, self.agent.name, target.name, time=now))
        shorten = self._offer(self.agent).filters.get(result.name)
        self.agent = target
        if shorten is not None:
            self._view.narrow(shorten(tuple(self._view.messages)))
        return None

    def _named(self, name: str) -> "Agent":
        """The agent of that name, from the first one and whom it may hand over to."""
        waiting, seen = [self.start.agent], dict[str, "Agent"]()
        while waiting:
            agent = waiting.pop()
            if agent.name not in seen:
                seen[agent.name] = agent
                waiting += [handoff.target() for handoff in agent.own_handoffs]
        if name not in seen:
            raise UsageError(
                f"the run was with agent {name!r}; resume it with an agent that is, or hands over "
                f"to, it. Known here: {', '.join(seen)}"
            )
        return seen[name]


def _new_record(start: Start) -> Record:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return Record(start.run_id or uuid.uuid4().hex, now, metadata=start.metadata)


def _named(results: list[ToolResult], names: "tuple[str, ...] | Any") -> ToolResult | None:
    return next((result for result in results if result.name in names), None)


def _system_text(conversation: Conversation) -> str:
    messages = conversation.messages
    return messages[0].text if messages and messages[0].role == "system" else ""


def _body(conversation: Conversation) -> tuple[Message, ...]:
    return conversation.messages[1:] if _system_text(conversation) else conversation.messages


def _has_written_call(text: str, offer: Offer) -> bool:
    """Whether a text holds a family's markup of a call, followed by the name of a tool on offer."""
    found = _CALL_MARKUP.search(text)
    return found is not None and any(name in text[found.end() :] for name in offer.tools)


if TYPE_CHECKING:
    _maker: CourseMaker = Loop
