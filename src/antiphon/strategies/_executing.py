"""Carrying a plan out: each task does its call, or is done by an agent, and a person may look on.

What starts when is the work of `_schedule.py`; how one call is made, of `_tool_tasks.py`.
"""

import asyncio
import inspect
from dataclasses import replace
from typing import cast

from antiphon.agent._nested import held
from antiphon.events import PlanEvent, TaskEvent
from antiphon.messages import JsonObject, ToolCall, ToolResult
from antiphon.strategies._course import StrategyCourse, answered, no_answer_reason
from antiphon.strategies._plan import Plan, Task
from antiphon.strategies._plan_checks import value_of
from antiphon.strategies._progress import Progress
from antiphon.strategies._prompts import executor_request
from antiphon.strategies._references import ReferenceFailed, substitute
from antiphon.strategies._schedule import Lanes, Schedule
from antiphon.strategies._tool_tasks import Waits, call_tool


class Executing:
    """How a run of `PlanAndExecute` carries its plans out."""

    def __init__(self, course: StrategyCourse, progress: Progress) -> None:
        """Set up.

        Args:
            course: The run it belongs to.
            progress: How the plan stands.
        """
        self.waiting: list[ToolCall] = []
        """Calls that wait for a person."""
        self._course = course
        self._progress = progress
        self._how = progress.how
        self._lanes = Lanes(progress.tools)
        self._edited: Plan | None = None
        self._schedule: Schedule | None = None

    def new_schedule(self) -> Schedule:
        """A schedule that knows what is done."""
        self._schedule = Schedule(
            self._perform,
            max_parallel=self._how.max_parallel,
            lane_of=self._lanes.of,
            on_failure=self._how.on_failure,
            on_skip=self._skipped,
        )
        for task in self._progress.known.values():
            if task.status == "completed":
                self._schedule.add(task)
        return self._schedule

    async def execute(self) -> None:
        """Run what is not done of the plan."""
        self.waiting = []
        while True:
            assert self._progress.plan is not None
            if all(task.is_over for task in self._progress.plan.tasks):
                return
            async with self.new_schedule() as schedule:
                for task in self._progress.due():
                    schedule.add(task)
            self._progress.keep(self._course.goal, schedule.tasks.values())
            if self._edited is None:
                return
            edited, self._edited = self._edited, None
            await self.take_edited(edited)

    async def take_edited(self, edited: Plan) -> None:
        """Go on with a plan as a person changed it.

        Raises:
            PlanError: It cannot be carried out.
        """
        plan = self._progress.merged(self._course.goal, edited.tasks)
        self._progress.take(plan)
        await self._course.emit(PlanEvent("edited", plan.to_row()))

    def _skipped(self, task: Task) -> None:
        event = TaskEvent(task.id, task.status, reason=task.reason, attempt=task.attempt)
        self._course.telling.note(replace(event, time=self._course.now()))

    # One task

    async def _perform(self, task: Task) -> Task:
        """Do a task."""
        task = replace(task, started=self._course.now())
        assert self._schedule is not None
        needed = {id: self._schedule.tasks[id].result for id in task.needs}
        key = f"task:{task.id}:{task.attempt}"
        try:
            arguments = cast("JsonObject", substitute(task.arguments, needed))
            prompt = str(substitute(task.prompt, needed))
        except ReferenceFailed as failed:
            await self._begun(task, None)
            return await self._over(task, ToolResult(key, task.tool, str(failed), is_error=True))
        if task.tool:
            call = ToolCall(task.tool, arguments, key)
            await self._begun(task, call)
            made = await call_tool(
                self._course,
                self._how.agent,
                self._progress.tools[task.tool],
                call,
                timeout=self._timeout_of(task),
                max_attempts=self._how.max_attempts,
            )
        else:
            await self._begun(task, None)
            made = await self._in_words(task, prompt, key)
        if isinstance(made, Waits):
            self.waiting.extend(made.calls)
            waits = TaskEvent(task.id, "pending", made.calls[0], attempt=task.attempt)
            await self._course.emit(waits)
            return replace(task, status="pending", started=None)
        return await self._over(task, made)

    async def _begun(self, task: Task, call: ToolCall | None) -> None:
        await self._course.emit(TaskEvent(task.id, "in_progress", call, attempt=task.attempt))

    async def _over(self, task: Task, result: ToolResult) -> Task:
        """A task after its result."""
        value = value_of(result)
        result = replace(result, value=value)
        done = replace(
            task,
            status="failed" if result.is_error else "completed",
            result=None if result.is_error else value,
            reason=result.text if result.is_error else "",
            ended=self._course.now(),
        )
        await self._course.emit(
            TaskEvent(task.id, done.status, None, result, done.reason, attempt=task.attempt)
        )
        if self._how.watch is not None:
            await self._show(done)
        return done

    async def _show(self, done: Task) -> None:
        """Show a person how the plan stands, who may change it."""
        progress = self._progress
        assert self._how.watch is not None
        assert self._schedule is not None
        now = self._schedule.tasks | {done.id: done}
        plan = Plan(self._course.goal, tuple(now.values()), max(0, progress.n_plans - 1))
        made = self._how.watch(plan)
        opinion = await made if inspect.isawaitable(made) else made
        if opinion is None or opinion is True:
            return
        progress.known |= {done.id: done}
        if isinstance(opinion, Plan):
            self._edited = opinion
        else:
            reason = opinion if isinstance(opinion, str) else ""
            await self._course.emit(PlanEvent("refused", plan.to_row(), reason))
            progress.objection = f"a person stopped the plan: {reason}" if reason else ""
            progress.refused = not reason
        self._schedule.drain()

    def _timeout_of(self, task: Task) -> float | None:
        return self._how.task_timeout if task.timeout is None else task.timeout

    async def _in_words(self, task: Task, prompt: str, key: str) -> ToolResult | Waits:
        """Have an agent do a task; one that was broken off or waited for a person goes on."""
        assert self._schedule is not None
        who = self._progress.executor(task)
        needed = [self._schedule.tasks[id] for id in task.needs]
        goal, most = self._course.goal, self._how.result_tokens
        request = await executor_request(goal, task, prompt, needed, most)
        timeout = self._timeout_of(task)
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                result = await self._course.part(who, request, role="executor", key=key)
        except TimeoutError:
            if not deadline.expired():
                raise
            text = f"timeout: {who.name} gave no answer within {timeout:g} s"
            return ToolResult(key, who.name, text, is_error=True)
        if result.stop_reason == "pending":
            return Waits(tuple(held(key, call) for call in result.pending))
        if not answered(result):
            reason = f"{who.name} gave no answer: {no_answer_reason(result)}"
            return ToolResult(key, who.name, reason, is_error=True)
        return ToolResult(key, who.name, result.text, value=result.value)
