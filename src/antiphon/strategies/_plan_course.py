"""How a run of `PlanAndExecute` goes: plan, look, execute, and join or plan anew.

How it comes to a plan is in `_planning.py`, how a plan is carried out in `_executing.py`; both work
on how the plan stands (`_progress.py`).
"""

from typing import TYPE_CHECKING

from antiphon.agent import RunResult
from antiphon.agent._cost import Reached
from antiphon.agent._insertion import insert_results
from antiphon.agent._start import Start
from antiphon.agent._telling import Shown
from antiphon.events import Event, InsertionEvent, LimitEvent, RetryEvent, RunStopReason, TextEvent
from antiphon.strategies._course import StrategyCourse, answered, no_answer_reason
from antiphon.strategies._executing import Executing
from antiphon.strategies._planning import Planning
from antiphon.strategies._progress import Progress
from antiphon.strategies._prompts import joiner_request, text_of_value
from antiphon.strategies._roles import asks_to_replan, joiner_of

if TYPE_CHECKING:
    from antiphon.strategies._plan_and_execute import PlanAndExecute


class PlanCourse(StrategyCourse):
    """The state of one run of `PlanAndExecute`."""

    def __init__(self, how: "PlanAndExecute", start: Start, shown: Shown) -> None:
        """Set up; nothing begins."""
        super().__init__(start, shown, strategy=how)
        self.how = how
        self.progress = Progress(how)
        self.executing = Executing(self, self.progress)
        self.planning = Planning(self, self.progress, self.executing)
        if how.on_limit == "answer":
            self.budget.n_kept = 1
        if start.earlier is not None:
            self.progress.take_up(start.earlier)

    async def pursue(self) -> RunStopReason:
        """Plan, execute, and join or plan anew, until there is an answer or no way to one."""
        progress, how = self.progress, self.how
        if progress.plan is None and not await self.planning.make_plan(""):
            return "refused"
        while True:
            await self.executing.execute()
            if progress.refused:
                return "refused"
            if self.executing.waiting:
                self.pending = tuple(self.executing.waiting)
                return "pending"
            reason = progress.why_anew()
            more = not reason
            if more:
                result = await self._join(may_replan=progress.n_replans < how.max_replans)
                if not asks_to_replan(result):
                    return await self._ended_with(result)
                reason = str(result.value)
            if not self._may_plan_anew():
                return await self._give_up(reason)
            if not await self.planning.make_plan(reason, anew=True, more=more):
                return "refused"

    def _may_plan_anew(self) -> bool:
        """Whether there may be another plan, which is counted."""
        progress, how = self.progress, self.how
        assert progress.plan is not None
        if how.replan == "each_task":
            if progress.n_plans > how.max_tasks:
                return False
            if not progress.plan.failures():
                return True
        if progress.n_replans >= how.max_replans:
            return False
        progress.n_replans += 1
        return True

    async def _give_up(self, reason: str) -> RunStopReason:
        limit = self.how.max_replans
        await self.emit(LimitEvent("max_replans", limit))
        self.reason = f"no answer after {limit} replans: {reason}"
        return "failed"

    async def settle(self, reached: Reached) -> RunStopReason:
        """With the last call that the budget has, answer from what was found."""
        if self.how.on_limit == "answer" and reached.stop == "step_limit":
            self.budget.n_kept = 0
            if self.progress.plan is not None and self.budget.reached() is None:
                result = await self._join(may_replan=False)
                if answered(result):
                    self.accept(result)
        return reached.stop

    # Answering

    async def _join(self, *, may_replan: bool) -> RunResult:
        """Have the joiner answer, or say what is missing."""
        assert self.progress.plan is not None
        tasks = self.progress.plan.tasks
        return await self.ask(
            joiner_of(self.how, may_replan=may_replan),
            await joiner_request(self.goal, tasks, self.how.result_tokens),
            role="joiner",
            key=f"joiner:{self.progress.n_plans}",
            history=self.before,
            shows=self._say,
        )

    async def _say(self, event: Event) -> None:
        """Tell what the joiner writes, which is the answer."""
        if isinstance(event, TextEvent | RetryEvent):
            await self.emit(event)

    async def _ended_with(self, result: RunResult) -> RunStopReason:
        if not answered(result):
            self.reason = f"the joiner gave no answer: {no_answer_reason(result)}"
            self.error = result.error
            return "error" if result.stop_reason == "error" else result.stop_reason
        self.accept(result)
        if self.how.agent.insert_results and isinstance(self.output, str):
            await self._insert_results(self.output)
        return "answer"

    async def _insert_results(self, text: str) -> None:
        """Put results of tasks into the answer where it names them by their ids."""
        assert self.progress.plan is not None
        tasks = self.progress.plan.tasks
        done = {t.id: text_of_value(t.result) for t in tasks if t.status == "completed"}
        self.output, found, unknown = insert_results(text, done)
        self.output_text = self.output
        for id in (*found, *unknown):
            await self.emit(InsertionEvent(0, id, id in found))
