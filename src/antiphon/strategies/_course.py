"""How a run of a strategy goes: its parts are runs of agents, its record is theirs together.

A strategy asks no model itself: planner, executor, judge and all others are agents, each with a
run of its own in the one loop, which becomes a child of the strategy's run under a key such as
``planner:0`` or ``task:a:1`` and has its role as ``metadata["role"]``.  What this module adds to
what all runs share is what a strategy does when a part waits for a person or has used up what all
of them may use.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import cast

from antiphon.agent import Agent, Input, Runnable, RunResult
from antiphon.agent._cost import Reached
from antiphon.agent._course import Course
from antiphon.agent._nested import held
from antiphon.agent._start import Start
from antiphon.events import (
    Event,
    LimitEvent,
    RunStart,
    RunStopReason,
)
from antiphon.messages import Message, ToolCall
from antiphon.models import Model
from antiphon.strategies._strategy import Strategy


class Waiting(Exception):
    """A part waits for a person, and nothing goes on without it."""

    def __init__(self, calls: tuple[ToolCall, ...]) -> None:
        """Calls that wait, as the strategy's run knows them."""
        super().__init__(calls)
        self.calls = calls


class Spent(Exception):
    """What the parts may use together is used up."""

    def __init__(self, reached: Reached) -> None:
        """The limit that is reached."""
        super().__init__(reached)
        self.reached = reached


class StrategyCourse(Course):
    """The state of one run of a strategy on its way."""

    def __init__(
        self, start: Start, shown: Callable[[], Awaitable[None]], *, strategy: Strategy
    ) -> None:
        """Set up; nothing begins.

        Args:
            start: What the run begins with, or goes on from.
            shown: Awaited after each event, until whoever looks wants the next one.
            strategy: Whose run it is.
        """
        super().__init__(
            start,
            shown,
            name=strategy.name,
            timeout=strategy.timeout,
            budget=strategy.budget(),
            clock=_loop_time,
        )

    async def go(self) -> RunStopReason:
        """Begin, and do what the strategy does, until it ends, waits, or has used up its budget."""
        if self.start.earlier is None:
            await self._begin()
        try:
            return await self._within_budget()
        except Waiting as waiting:
            self.pending = waiting.calls
            return "pending"

    async def _within_budget(self) -> RunStopReason:
        try:
            return await self.pursue()
        except Spent as spent:
            reached = spent.reached
        await self.emit(LimitEvent(reached.limit, reached.value))
        try:
            return await self.settle(reached)
        except Spent:  # the last call gave nothing either
            return reached.stop

    @abstractmethod
    async def pursue(self) -> RunStopReason:
        """What the strategy does, from the beginning or from where the record ends.

        Raises:
            ModelError: A model gives no completion.
            PlanError: There is no plan.
            Stopped: A hook or a check ended it.
            Waiting: A part waits for a person.
            Spent: The budget is used up.
        """

    async def settle(self, reached: Reached) -> RunStopReason:
        """End with what there is, where the budget is used up.

        Args:
            reached: The limit.
        """
        return reached.stop

    async def _begin(self) -> None:
        model = self.agent.model
        spec = model if isinstance(model, str) else model.spec
        row = {"name": self.name, "strategy": type(self).__name__, "model": spec}
        self.record.agents[self.name] = {**row}
        self.record.messages.extend(self.start.messages)
        self.keep_start()
        if self.start.journal is not None:
            self.start.keep("agent", {"agent": {**row}, "tools": []})
        await self.emit(RunStart(self.name, spec, self.start.question))

    def conclude(self) -> None:
        """Say the answer, which no model call of its own has said."""
        if self.output_text:
            self.record.messages.append(Message.assistant(self.output_text))
        self.keep_state()

    # What strategies use

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
        self,
        who: Runnable,
        input: Input,
        *,
        role: str,
        key: str,
        history: Sequence[Message] = (),
        shows: Callable[[Event], Awaitable[None]] | None = None,
    ) -> RunResult:
        """Have an agent, or another strategy, do a part that nothing goes on without.

        Args:
            who: Who does it.
            input: What it is asked.
            role: What it is in this strategy.
            key: What the part's record is known by.
            history: What was said before.
            shows: Given its events, as they happen.

        Raises:
            Waiting: The part waits for a person.
            Spent: The budget is used up, and the part has no answer.
        """
        self.mind_budget()
        run = self.part(who, input, role=role, key=key, history=history)
        result = self.not_waiting(key, await (run if shows is None else self.follow(run, shows)))
        if not answered(result):
            self.mind_budget()
        return result

    def mind_budget(self) -> None:
        """Go on only where the budget is not used up.

        Raises:
            Spent: It is.
        """
        reached = self.budget.reached()
        if reached is not None:
            raise Spent(reached)

    def not_waiting(self, key: str, result: RunResult) -> RunResult:
        """A part's result, where it does not wait for a person.

        Args:
            key: What the part's record is known by.
            result: How it ended.

        Raises:
            Waiting: It waits.
        """
        if result.stop_reason == "pending":
            raise Waiting(tuple(held(key, call) for call in result.pending))
        return result

    def accept(self, result: RunResult) -> None:
        """Take over a part's answer as the run's."""
        self.output, self.output_text = result.value, result.text
        self.agent = result.agent

    def model_of(self, given: "Model | str | None") -> "Model | str":
        """The model of a role: the one given, or the agent's own."""
        return self.start.agent.model if given is None else given


def _loop_time() -> float:
    """What the event loop's clock says, which a virtual one answers at will."""
    return asyncio.get_running_loop().time()


def text_of(agent: Agent) -> str:
    """An agent's instructions, where they are text, for other roles that should know them."""
    return agent.instructions if isinstance(agent.instructions, str) else ""


def no_answer_reason(result: RunResult) -> str:
    """Why a part gave no answer."""
    return result.trajectory.error or result.stop_reason.replace("_", " ")


def answered(result: RunResult) -> bool:
    """Whether a part gave an answer."""
    return cast("str", result.stop_reason) in ("answer", "stopped_by_tool")
