"""The loop that runs every agent: ask the model, execute its calls together, until it answers.

There is no second loop: a run that is awaited, iterated, resumed or called as a tool goes through
this one and makes the same events in the same order.  What a model or a tool did wrong becomes a
message to the model; only a model that gives no completion, and a program's own mistakes, end a run
from outside.

The history is never walked again: a step appends, and its cost does not depend on those before it.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from antiphon.agent._aside import Aside
from antiphon.agent._asking import Asked, Asking
from antiphon.agent._calls import (
    CANCELLED,
    Ids,
    Repeats,
    call_ids,
    cut_reason,
    has_written_call,
    n_calls,
    repeated_note,
    with_own_ids,
)
from antiphon.agent._cost import Budget, Reached
from antiphon.agent._course import Course, CourseMaker
from antiphon.agent._execution import Execution, OpenCalls
from antiphon.agent._hooks import Again, Stopped, checked, settled
from antiphon.agent._insertion import insert_results
from antiphon.agent._nested import held
from antiphon.agent._observing import Observing
from antiphon.agent._offer import Offer, agent_row
from antiphon.agent._output import FINAL_TOOL, Unfit
from antiphon.agent._record import is_said, open_step
from antiphon.agent._resume import speaker, told_again
from antiphon.agent._runnable import Runnable
from antiphon.agent._start import Start
from antiphon.agent._telling import Shown
from antiphon.agent._view import View
from antiphon.errors import ContextLengthError, UsageError
from antiphon.events import (
    ApprovalEvent,
    AttemptEvent,
    CompactionEvent,
    Event,
    FeedbackEvent,
    HandoffEvent,
    InsertionEvent,
    LimitEvent,
    PlanEvent,
    ReflectionEvent,
    ReplanEvent,
    RetryEvent,
    RunStart,
    RunStopReason,
    Step,
    StepEnd,
    StepStart,
    TaskEvent,
    TextEvent,
    ThinkingEvent,
    Trajectory,
    step_to_row,
)
from antiphon.memory import Compacted
from antiphon.messages import (
    Completion,
    Conversation,
    Message,
    ToolResult,
)
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


class Loop(Course):
    """The state of one run of an agent on its way."""

    def __init__(self, start: Start, shown: Shown) -> None:
        """Set up; nothing begins.

        Args:
            start: What the run begins with.
            shown: Awaited after each event, until whoever looks wants the next one.
        """
        agent, earlier = start.agent, start.earlier
        self._redone = None if earlier is None else open_step(earlier)
        super().__init__(
            start,
            shown,
            name=agent.name,
            timeout=agent.timeout,
            budget=Budget(None, agent.max_tokens, agent.max_cost, agent.prices),
            told=told_again(earlier, self._redone),
        )
        self._view = View(self.record)
        known = (result for step in self.record.steps for result in step.results)
        self._aside = Aside(self)
        self._observing = Observing(known, self._aside.summarise)
        self.execution = Execution(
            start, self.record, self.telling, self.approver, self._view.say, self._observing
        )
        self._context: RunContext[Any] = RunContext(deps=start.deps, state=start.state)
        self._offers: dict[int, Offer] = {}
        self._asking = Asking(start, self.record, self.telling, self._about, self.open_model)
        self._n_before = len(self.record.steps)
        self._ids = Ids()
        self._n_handoffs = sum(isinstance(e, HandoffEvent) for e in self.record.events)
        self._n_bad = 0
        self._repeats = Repeats()
        self._successor: tuple[Runnable, ToolResult] | None = None

    # The life of a run

    def broken_off(self, why: str = "") -> None:
        """Answer the calls that are open."""
        self.execution.close(why or CANCELLED)

    def conclude(self) -> None:
        """Without an answer, what was said last stands for it."""
        if self.stop_reason not in ("answer", "stopped_by_tool") and not self.output_text:
            self.output = self.output_text = self.last_text()

    async def tell_end(self) -> None:
        """Let the memory learn, and tell the hooks."""
        if self.start.agent.memory is not None:
            self.start.agent.memory.learn(self.trajectory())
        for hooks in self.agent.hooks:
            if hooks.on_end is not None:
                await settled(hooks.on_end(self._about(), self.trajectory()))

    @property
    def n_given(self) -> int:
        """How many messages of the conversation the run was given."""
        return super().n_given - self._asking.n_led

    def last_text(self) -> str:
        """The last text that a model wrote."""
        for step in reversed(self.record.steps):
            if step.completion.message.text:
                return step.completion.message.text
        return ""

    def _about(self) -> RunContext[Any]:
        """The run's context, for functions that are no tools."""
        self._context.agent, self._context.step = self.agent.name, len(self.record.steps)
        return self._context

    # Steps

    async def go(self) -> RunStopReason:
        """Step after step, until it is over."""
        if self.start.earlier is None:
            self.record.messages.extend(self.start.messages)
            if self.agent.memory is not None:
                self.agent.memory.put_before(self.record.messages, self.start.question)
            self.keep_start()
            spec = self.open_model(self.agent.model).spec
            await self.telling.emit(
                RunStart(self.agent.name, spec, self.start.question, time=self.now())
            )
            self._ids = Ids(call_ids(self.record.messages))
            stop = None
        else:
            self._ids = Ids(call_ids(self.record.messages))
            self._repeats = Repeats(self.record.messages)
            stop = await self._go_on(self.start.earlier)
        while stop is None:
            if self._successor is not None:
                return await self._give_over(*self._successor)
            stop = await self._limit() or await self._step()
        return stop

    async def _go_on(self, earlier: Trajectory) -> RunStopReason | None:
        """Take up a run where its record ends; finish an unfinished step from what is known."""
        steps = self.record.steps
        if not steps:
            return None
        last = len(steps) - 1
        self._turn_to(last, speaker(earlier, finished=self._redone is None))
        if steps[last].shown is not None:
            said = self.record.messages[steps[last].n_prompt_messages :]
            self._view.narrow([*(steps[last].shown or ()), *said])
        if self._redone is None:
            return None
        return await self._judge(last, steps[last].completion, self._offer(self.agent))

    def _turn_to(self, last: int, name: str) -> None:
        """Have whoever is named go on after a step."""
        who = self._named(name)
        if who.root is who:
            self.agent = who.root
            return
        step = self.record.steps[last]
        self._turn_to(last, step.agent)
        to = {tool: target.name for tool, target in self._offer(self.agent).handoffs.items()}
        given = next(r for r in step.results if to.get(r.name) == name and not r.is_error)
        self._successor = who, given

    async def _limit(self) -> RunStopReason | None:
        agent = self.start.agent
        reached = self.budget.reached()
        own = len(self.record.steps) - self._n_before >= agent.max_steps
        may_answer = own and reached is None and agent.on_limit == "answer"
        if own:
            reached = Reached("step_limit", "max_steps", agent.max_steps)
        if reached is None:
            return None
        await self.telling.emit(LimitEvent(reached.limit, reached.value, time=self.now()))
        if may_answer:
            await self._last_word()
        return reached.stop

    async def _last_word(self) -> None:
        """Ask once more, without tools, for an answer from what is known."""
        index = len(self.record.steps)
        self._view.say(Message.user(LAST_WORD))
        await self.telling.emit(FeedbackEvent(index - 1, LAST_WORD, time=self.now()))
        offer = Offer()
        started = self.now()
        await self.telling.emit(StepStart(index, self.agent.name, time=started))
        system = await self._asking.instructions(self.agent, offer)
        whole = self._view.conversation(system, ())
        self.budget.begin_step()
        asked = await self._asking.ask(index, self.agent, offer, whole)
        message = with_own_ids(asked.completion.message, self._ids)
        step = Step(
            agent=self.agent.name,
            n_prompt_messages=len(self.record.messages),
            completion=replace(asked.completion, message=message),
            system=system,
            started=started,
            ended=self.now(),
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
        started = self.now()
        await self.telling.emit(StepStart(index, self.agent.name, time=started))
        shorter = await self._view.compact(self.agent.compaction)
        if shorter is not None:
            await self._tell_shorter(index, shorter)
        self.budget.begin_step()
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
            ended=self.now(),
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
        await self.telling.emit(replace(event, time=self.now()))

    def _keep(self, step: Step) -> None:
        """Take a finished model call into the record, and its reply into the conversation."""
        self.budget.end_step(step.completion)
        if self.start.journal is not None:
            last = self.record.steps[-1] if self.record.steps else None
            self.start.keep("step", step_to_row(step, last))
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
            await self.telling.emit(LimitEvent("output_tokens", n_tokens, time=self.now()))
            return await self._end_step(index, "token_limit")
        return await self._end_step(index, await self._answered(index, completion, offer))

    async def _answered(
        self, index: int, completion: Completion, offer: Offer
    ) -> RunStopReason | None:
        """What follows from a reply without calls."""
        text = completion.message.text
        if not text.strip():
            return await self._ask_again(index, EMPTY_REPLY, "was empty")
        if not completion.format and has_written_call(text, offer.tools):
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
            await self.telling.emit(InsertionEvent(index, id, id in found, time=self.now()))
        return whole

    async def _end_step(self, index: int, stop: RunStopReason | None) -> RunStopReason | None:
        completion = self.record.steps[index].completion
        now = self.now()
        self.record.steps[index] = replace(self.record.steps[index], ended=now)
        self.keep_state()
        await self.telling.emit(StepEnd(index, completion.stop_reason, completion.usage, time=now))
        return stop

    async def _count_bad(self, stop: RunStopReason) -> RunStopReason | None:
        """One more reply that is of no use; too many in a row end the run."""
        self._n_bad += 1
        limit = self.start.agent.max_mends
        if self._n_bad <= limit:
            return None
        await self.telling.emit(LimitEvent("max_mends", limit, time=self.now()))
        return stop

    async def _ask_again(self, index: int, text: str, why: str) -> RunStopReason | None:
        stop = await self._count_bad("error")
        if stop is not None:
            self.reason = f"the model was asked {self._n_bad} times and its last reply {why}"
        else:
            self._view.say(Message.user(text))
            await self.telling.emit(FeedbackEvent(index, text, time=self.now()))
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
            agent, self.open_model(agent.model).spec, offer
        )
        if self.start.journal is not None:
            specs = [spec.to_openai() for spec in fresh]
            self.start.keep("agent", {"agent": row, "tools": list(specs)})

    async def _chosen_offer(self, agent: "Agent") -> Offer:
        """An agent's offer, with the tools that fit the question where it has many."""
        offer = self._offer(agent)
        self._observing.how = agent.observations
        self._observing.shows_ids = agent.insert_results
        self._observing.query = self.start.question
        if offer.selection is not None:
            await offer.selection.begin(self.start.question, self._aside.choose)
            self._keep_offer(agent, offer)
        return offer

    def _about_calls(self, index: int) -> RunContext[Any]:
        self._context.agent, self._context.step = self.agent.name, index
        return self._context

    async def _after_calls(
        self, index: int, completion: Completion, results: list[ToolResult] | None
    ) -> RunStopReason | None:
        """What follows from the answers."""
        if results is None:
            self.pending = self.execution.pending
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
                await self.telling.emit(LimitEvent("max_repeats", limit, time=self.now()))
                return "stuck"
            if n == max(2, limit - 2):
                note = repeated_note(call, n)
                self._view.say(Message.user(note))
                await self.telling.emit(FeedbackEvent(index, note, time=self.now()))
        return None

    # Handoffs

    async def _hand_over(self, index: int, result: ToolResult) -> RunStopReason | None:
        target = self.execution.target(result)
        assert target is not None
        limit = self.start.agent.max_handoffs
        if self._n_handoffs >= limit:
            await self.telling.emit(LimitEvent("max_handoffs", limit, time=self.now()))
            return "handoff_limit"
        self._n_handoffs += 1
        for hooks in self.agent.hooks:
            if hooks.on_handoff is not None:
                stop = await settled(hooks.on_handoff(self._about(), self.agent.name, target.name))
                if stop is not None:
                    raise Stopped(stop.reason)
        await self.telling.emit(HandoffEvent(index, self.agent.name, target.name, time=self.now()))
        shorten = self._offer(self.agent).filters.get(result.name)
        if shorten is not None:
            self._view.narrow(shorten(tuple(self._view.messages)))
        if target.root is target:
            self.agent = target.root
        else:
            self._successor = target, result
        return None

    async def _give_over(self, who: Runnable, handed: ToolResult) -> RunStopReason:
        """Have a strategy take over: it is asked the question, and its end is the run's."""
        key, index = handed.call_id, len(self.record.steps)
        earlier = self.earlier_part(key)
        if earlier is not None and not self.goes_on(key):
            self.output = earlier.output
            return self._taken_over(earlier)
        await self._asking.discard(index)
        said = self._view.messages
        asked = max((n for n, m in enumerate(said) if m.role == "user"), default=0)
        run = self.part(who, said[asked], key=key, history=said[:asked])
        result = await self.follow(run, self._show_part)
        self.pending = tuple(held(key, call) for call in result.pending)
        for call in self.pending:
            await self.telling.emit(ApprovalEvent(index - 1, call, time=self.now()))
        self.agent, self.error, self.output = result.agent, result.error, result.value
        return self._taken_over(result.trajectory)

    async def _show_part(self, event: Event) -> None:
        """Tell what a strategy does that took over; what it says is the next step's."""
        now, index = self.now(), len(self.record.steps)
        match event:
            case TextEvent() | ThinkingEvent() | RetryEvent():
                await self.telling.emit(replace(event, step=index, time=now))
            case PlanEvent() | TaskEvent() | ReplanEvent() | AttemptEvent() | ReflectionEvent():
                await self.telling.emit(replace(event, time=now))
            case _:
                pass

    def _taken_over(self, record: Trajectory) -> RunStopReason:
        """End as the strategy did that took over."""
        self.output_text, self.reason = record.output, record.error
        if record.output and record.stop_reason != "pending":
            self._view.say(Message.assistant(record.output))
        return record.stop_reason

    def _named(self, name: str) -> Runnable:
        """Who has that name: the first agent, or one of those that may take over."""
        waiting: list[Runnable] = [self.start.agent]
        seen: dict[str, Runnable] = {}
        while waiting:
            who = waiting.pop()
            if who.name not in seen:
                seen[who.name] = who
                if who.root is who:
                    waiting += [handoff.target() for handoff in who.root.own_handoffs]
        if name not in seen:
            raise UsageError(
                f"the run was with agent {name!r}; resume it with an agent that is, or hands over "
                f"to, it. Known here: {', '.join(seen)}"
            )
        return seen[name]


def _named(results: list[ToolResult], names: "tuple[str, ...] | Any") -> ToolResult | None:
    return next((result for result in results if result.name in names), None)


def _system_text(conversation: Conversation) -> str:
    messages = conversation.messages
    return messages[0].text if messages and messages[0].role == "system" else ""


def _body(conversation: Conversation) -> tuple[Message, ...]:
    return conversation.messages[1:] if _system_text(conversation) else conversation.messages


if TYPE_CHECKING:
    _maker: CourseMaker = Loop
