"""How a run of `PlanAndExecute` goes: plan, look, execute, and join or plan anew.

The state is the plan and the tasks as they stand.  It can be worked out from the events of a
record, so that a run that paused or broke off goes on with the tasks that are not done.
"""

import asyncio
import contextlib
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from antiphon.agent import Again, Agent, Guardrail, RunResult
from antiphon.agent._calls import UNKNOWN_OUTCOME
from antiphon.agent._hooks import Stopped
from antiphon.agent._insertion import insert_results
from antiphon.agent._start import Start
from antiphon.errors import PlanError, RunError
from antiphon.events import (
    InsertionEvent,
    LimitEvent,
    PlanEvent,
    ReplanEvent,
    RetryEvent,
    RunStopReason,
    TaskEvent,
    TextEvent,
    Trajectory,
)
from antiphon.messages import JsonObject, JsonValue, ToolCall, ToolResult
from antiphon.strategies._course import StrategyCourse, answered, no_answer_reason
from antiphon.strategies._dialects import PlanReader, plan_reader
from antiphon.strategies._plan import Plan, Task, plan_of
from antiphon.strategies._plan_checks import (
    check_arguments,
    check_same,
    parameters_of,
    value_of,
)
from antiphon.strategies._prompts import (
    executor_request,
    joiner_request,
    planner_request,
    text_of_value,
)
from antiphon.strategies._references import ReferenceFailed, substitute
from antiphon.strategies._roles import asks_to_replan, joiner_of, planner_of
from antiphon.strategies._schedule import Lanes, Schedule
from antiphon.strategies._strategy import Runnable, Shown, root_of
from antiphon.strategies._tool_tasks import Waits, call_tool
from antiphon.strategies._written import Written
from antiphon.tools import RunContext, Tool

if TYPE_CHECKING:
    from antiphon.strategies._plan_and_execute import Opinion, PlanAndExecute

_MAX_REVIEWS = 10
"""How often a person may turn plans down before the run ends as refused."""


class PlanCourse(StrategyCourse):
    """The state of one run of `PlanAndExecute`."""

    def __init__(self, how: "PlanAndExecute", start: Start, shown: Shown) -> None:
        """Set up; nothing begins."""
        super().__init__(start, shown, name=how.name, timeout=how.timeout)
        self.how = how
        self.tools: dict[str, Tool[..., Any]] = {item.name: item for item in how.agent.own_tools}
        self.others: dict[str, Runnable] = {how.agent.name: how.agent}
        self.others |= {one.name: one for one in how.agents}
        self.plan: Plan | None = None
        self.n_replans = 0
        self.n_plans = 0
        self._known: dict[str, Task] = {}
        self._lanes = Lanes(self.tools)
        self._waiting: list[ToolCall] = []
        self._edited: Plan | None = None
        self._objection = ""
        self._refused = False
        self._schedule: Schedule | None = None
        if start.earlier is not None:
            self._take_up(start.earlier)

    # The whole

    async def go(self) -> RunStopReason:
        """Plan, execute, and join or plan anew, until there is an answer or no way to one."""
        try:
            return await self._go()
        except Stopped as stopped:
            self.output = self.output_text = stopped.reason
            return "refused"

    async def _go(self) -> RunStopReason:
        if self.plan is None and not await self._make_plan(""):
            return "refused"
        while True:
            assert self.plan is not None
            await self._execute()
            if self._refused:
                return "refused"
            if self._waiting:
                self.pending = tuple(self._waiting)
                return "pending"
            reason = self._why_anew()
            if not reason:
                result = await self._join()
                if result.stop_reason == "pending":
                    self.pending = result.pending
                    return "pending"
                if not asks_to_replan(result):
                    return await self._ended_with(result)
                reason = str(result.value)
            if self.how.replan == "each_task" and self.n_plans > self.how.max_tasks:
                return await self._give_up(reason)
            if self.how.replan != "each_task" or self.plan.failures():
                if self.n_replans >= self.how.max_replans:
                    return await self._give_up(reason)
                self.n_replans += 1
            if not await self._make_plan(reason, anew=True):
                return "refused"

    def _why_anew(self) -> str:
        """Why another plan is needed before there can be an answer; empty where none is."""
        assert self.plan is not None
        failed = self.plan.failures()
        if failed:
            return "; ".join(f"task {task.id} failed: {task.reason}" for task in failed)
        if self._objection:
            return self._objection
        if self.how.replan == "each_task" and any(t.status == "pending" for t in self.plan.tasks):
            return "a task is done; plan what is left of the work in the light of its result"
        return ""

    async def _give_up(self, reason: str) -> RunStopReason:
        limit = self.how.max_replans
        await self.emit(LimitEvent("max_replans", limit))
        self.reason = f"no answer after {limit} replans: {reason}"
        return "failed"

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
        assert self.plan is not None
        done = {t.id: text_of_value(t.result) for t in self.plan if t.status == "completed"}
        self.output, found, unknown = insert_results(text, done)
        self.output_text = self.output
        for id in (*found, *unknown):
            await self.emit(InsertionEvent(0, id, id in found))

    # Planning

    async def _make_plan(self, reason: str, *, anew: bool = False) -> bool:
        """Have a valid plan that nobody objects to; whether there is one.

        Raises:
            PlanError: The planner wrote none.
        """
        if anew:
            await self.emit(ReplanEvent(reason, self.n_plans))
        for _ in range(_MAX_REVIEWS):
            self._objection = ""
            if self.how.streaming and self.how.review is None:
                await self._plan_while_executing(reason)
                return not self._refused
            await self._ask_planner(reason)
            opinion = await self._reviewed()
            if isinstance(opinion, bool):
                return opinion
            reason = f"a person turned the plan down: {opinion}"
        return False

    async def _reviewed(self) -> bool | str:
        """What a person says of the plan: whether it runs, or why not."""
        assert self.plan is not None
        if self.how.review is None:
            return True
        opinion = await _settled(self.how.review(self.plan))
        return await self._take_opinion(opinion)

    async def _take_opinion(self, opinion: "Opinion") -> bool | str:
        assert self.plan is not None
        if isinstance(opinion, Plan):
            await self._take_plan(self._merged(opinion.tasks), state="edited")
            return True
        if opinion is True:
            return True
        reason = opinion if isinstance(opinion, str) else ""
        await self.emit(PlanEvent("refused", self.plan.to_row(), reason))
        return reason or False

    async def _take_plan(self, plan: Plan, *, state: str = "proposed") -> None:
        self.plan = plan
        self._known |= {task.id: task for task in plan.tasks}
        event = PlanEvent("edited" if state == "edited" else "proposed", plan.to_row())
        await self.emit(event)

    def _merged(self, tasks: Sequence[Task]) -> Plan:
        """A plan of what is done and of new tasks.

        Raises:
            PlanError: A task that is done is to be done otherwise, or the plan cannot be run.
        """
        kept = [task for task in self._known.values() if task.status == "completed"]
        done = {task.id: task for task in kept}
        new: list[Task] = []
        for task in tasks:
            if task.id in done:
                check_same(done[task.id], task)
                continue
            new.append(self.prepared(task))
        if len(new) > self.how.max_tasks:
            raise PlanError(
                f"the plan has {len(new)} tasks; at most {self.how.max_tasks} are allowed"
            )
        goal = self.goal if self.plan is None else self.plan.goal
        plan = Plan(goal, (*kept, *new), self.n_plans)
        plan.check(tools=self.tools, agents=self.others)
        for task in new:
            check_arguments(task, self.tools)
        return plan

    def prepared(self, task: Task) -> Task:
        """A task as it begins; of an id that failed before, the next attempt."""
        before = self._known.get(task.id)
        begun = before is not None and before.status in ("failed", "completed", "in_progress")
        return task.anew(before.attempt + 1 if before is not None and begun else 1)

    def reader(self) -> PlanReader:
        return plan_reader(
            self.how.dialect, {name: parameters_of(item) for name, item in self.tools.items()}
        )

    def _planner(self, *guardrails: Guardrail) -> Agent:
        return planner_of(self.how, self._offered(), *guardrails)

    def _offered(self) -> list[Tool[..., Any]]:
        """The tools that a planner is told of: all, or those that fit the goal where it is many."""
        select = self.how.agent.select
        if select is None or len(self.tools) <= select.threshold:
            return list(self.tools.values())
        index = select.index or self.how.agent.tool_index
        names = [*select.always, *index.search(self.goal, 2 * select.k)]
        return [self.tools[name] for name in dict.fromkeys(names) if name in self.tools]

    async def _request(self, reason: str) -> str:
        plan = self.plan
        if plan is not None:
            gone = [t for t in self._known.values() if t.id not in plan and t.status != "pending"]
            plan = replace(plan, tasks=(*gone, *plan.tasks))
        return await planner_request(self.goal, plan, reason, self.how.result_tokens)

    async def _ask_planner(self, reason: str) -> None:
        """Have the planner write a plan, and mend it where it is none.

        Raises:
            PlanError: It is none after the last mend.
        """
        found: list[Plan] = []
        wrong: list[str] = []

        async def check(_context: RunContext[Any], text: str) -> Again | None:
            reader = self.reader()
            try:
                plan = self._merged([*reader.feed(text), *reader.finish()])
            except PlanError as error:
                wrong.append(str(error))
                await self.emit(PlanEvent("rejected", reason=str(error)))
                return Again(f"This is no plan that can be carried out: {error}. Write it again.")
            found.append(plan)
            return None

        planner = self._planner(Guardrail(check=check, on="output"))
        request = await self._request(reason)
        result = await self.ask(
            planner, request, role="planner", key=f"planner:{self.n_plans}", history=self.before
        )
        self.n_plans += 1
        if result.stop_reason == "refused":
            raise Stopped(result.text)
        if not found or not answered(result):
            if wrong:
                raise PlanError(wrong[-1])
            if result.error is not None:
                raise result.error
            raise PlanError(f"the planner wrote no plan: {no_answer_reason(result)}")
        await self._take_plan(found[-1])

    async def _plan_while_executing(self, reason: str) -> None:
        """Start tasks while the planner writes them.

        A plan that cannot go on as it was written keeps what ran and is written anew, as often as
        plans may be mended.

        Raises:
            PlanError: It is none after the last mend.
        """
        for n_left in reversed(range(self.how.max_plan_repairs + 1)):
            problem = await self._plan_and_execute_once(reason)
            if not problem:
                return
            await self.emit(PlanEvent("rejected", reason=problem))
            if not n_left:
                raise PlanError(problem)
            reason = f"{reason}\nThe last plan cannot be carried out: {problem}".strip()

    async def _plan_and_execute_once(self, reason: str) -> str:
        """Read a plan and run it as it comes; what is wrong with it."""
        written = Written(self)
        run = self._planner().run(
            await self._request(reason),
            history=self.before,
            deps=self.start.deps,
            state=self.start.state,
            metadata={"role": "planner"},
        )
        run.under(f"planner:{self.n_plans}")
        self.n_plans += 1
        async with self._new_schedule() as schedule:
            with contextlib.suppress(RunError):  # the result says it, too
                async for event in run:
                    if isinstance(event, RetryEvent):
                        written.begin_again()
                    elif isinstance(event, TextEvent):
                        written.feed(event.text, schedule)
            result = await run
            problem = written.finish(schedule) if answered(result) else ""
            if not answered(result):
                problem = f"the planner's answer broke off: {no_answer_reason(result)}"
            if not problem:
                await self._take_plan(
                    Plan(self.goal, tuple(schedule.tasks.values()), self.n_plans - 1)
                )
            else:
                schedule.drain()
        self._keep(schedule)
        if problem and not schedule.tasks and result.error is not None:
            raise result.error
        return problem

    # Execution

    def _new_schedule(self) -> Schedule:
        self._schedule = Schedule(
            self._perform,
            max_parallel=self.how.max_parallel,
            lane_of=self._lanes.of,
            on_failure=self.how.on_failure,
            on_skip=self._skipped,
        )
        for task in self._known.values():
            if task.status == "completed":
                self._schedule.add(task)
        return self._schedule

    async def _execute(self) -> None:
        """Run what is not done of the plan."""
        assert self.plan is not None
        self._waiting = []
        while True:
            if all(task.is_over for task in self.plan.tasks):
                return
            async with self._new_schedule() as schedule:
                for task in self._due():
                    schedule.add(task)
            self._keep(schedule)
            if self._edited is None:
                return
            plan, self._edited = self._edited, None
            await self._take_plan(self._merged(plan.tasks), state="edited")

    def _due(self) -> list[Task]:
        """The tasks to run now: all of the plan, or, with a plan after each task, the next one."""
        assert self.plan is not None
        tasks = [task for task in self.plan.tasks if task.status != "completed"]
        if self.how.replan != "each_task":
            return tasks
        done = {task.id for task in self.plan.tasks if task.status == "completed"}
        return [task for task in tasks if set(task.needs) <= done][:1]

    def _keep(self, schedule: Schedule) -> None:
        """Take over how the tasks of a schedule stand."""
        self._known |= schedule.tasks
        if self.plan is None:
            self.plan = Plan(self.goal, tuple(schedule.tasks.values()))
        self.plan = self.plan.with_tasks(schedule.tasks.values())

    def _skipped(self, task: Task) -> None:
        event = TaskEvent(task.id, task.status, reason=task.reason, attempt=task.attempt)
        self.telling.note(replace(event, time=self.now()))

    async def _perform(self, task: Task) -> Task:
        """Do a task."""
        started = self.now()
        task = replace(task, started=started)
        assert self._schedule is not None
        needed = {id: self._schedule.tasks[id].result for id in task.needs}
        key = f"task:{task.id}:{task.attempt}"
        try:
            arguments = cast("JsonObject", substitute(task.arguments, needed))
            prompt = str(substitute(task.prompt, needed))
        except ReferenceFailed as failed:
            result = ToolResult(key, task.tool, str(failed), is_error=True)
            await self._begun(task, None)
            return await self._over(task, result)
        if task.tool:
            call = ToolCall(task.tool, arguments, key)
            await self._begun(task, call)
            made = await call_tool(
                self,
                self.how.agent,
                self.tools[task.tool],
                call,
                timeout=self._timeout_of(task),
                max_attempts=self.how.max_attempts,
            )
        else:
            await self._begun(task, None)
            made = await self._in_words(task, prompt, key)
        if isinstance(made, Waits):
            self._waiting.append(made.call)
            await self.emit(TaskEvent(task.id, "pending", made.call, attempt=task.attempt))
            return replace(task, status="pending", started=None)
        return await self._over(task, made)

    async def _begun(self, task: Task, call: ToolCall | None) -> None:
        event = TaskEvent(task.id, "in_progress", call, attempt=task.attempt)
        await self.emit(event)

    async def _over(self, task: Task, result: ToolResult) -> Task:
        """A task after its result."""
        value = value_of(result)
        result = replace(result, value=value)
        done = replace(
            task,
            status="failed" if result.is_error else "completed",
            result=None if result.is_error else value,
            reason=result.text if result.is_error else "",
            ended=self.now(),
        )
        await self.emit(
            TaskEvent(task.id, done.status, None, result, done.reason, attempt=task.attempt)
        )
        if self.how.watch is not None and self._schedule is not None:
            await self._show_progress(done)
        return done

    async def _show_progress(self, done: Task) -> None:
        """Show a person how the plan stands, who may change it."""
        assert self.how.watch is not None
        assert self._schedule is not None
        now = self._schedule.tasks | {done.id: done}
        plan = Plan(self.goal, tuple(now.values()), max(0, self.n_plans - 1))
        opinion = await _settled(self.how.watch(plan))
        if opinion is None or opinion is True:
            return
        self._known |= {done.id: done}
        if isinstance(opinion, Plan):
            self._edited = opinion
        else:
            reason = opinion if isinstance(opinion, str) else ""
            await self.emit(PlanEvent("refused", plan.to_row(), reason))
            self._objection = f"a person stopped the plan: {reason}" if reason else ""
            self._refused = not reason
        self._schedule.drain()

    def _timeout_of(self, task: Task) -> float | None:
        return self.how.task_timeout if task.timeout is None else task.timeout

    async def _in_words(self, task: Task, prompt: str, key: str) -> ToolResult | Waits:
        """Have an agent do a task."""
        assert self._schedule is not None
        who = self.others[task.agent or self.how.agent.name]
        needed = [self._schedule.tasks[id] for id in task.needs]
        request = await executor_request(self.goal, task, prompt, needed, self.how.result_tokens)
        timeout = self._timeout_of(task)
        deadline = asyncio.timeout(timeout)
        try:
            async with deadline:
                result = await self._asked_again(who, key) or await self.ask(
                    who, request, role="executor", key=key
                )
        except TimeoutError:
            if not deadline.expired():
                raise
            text = f"timeout: {who.name} gave no answer within {timeout:g} s"
            return ToolResult(key, who.name, text, is_error=True)
        if result.stop_reason == "pending":
            waiting = [replace(call, id=f"{key}/{call.id}") for call in result.pending]
            self._waiting.extend(waiting[1:])
            return Waits(waiting[0])
        if not answered(result):
            reason = f"{who.name} gave no answer: {no_answer_reason(result)}"
            return ToolResult(key, who.name, reason, is_error=True)
        return ToolResult(key, who.name, result.text, value=result.value)

    async def _asked_again(self, who: Runnable, key: str) -> RunResult | None:
        """The answer of an agent that was broken off or waited for a person, going on."""
        earlier = next((c for c in self.record.children if c.call_id == key), None)
        if earlier is None or earlier.stop_reason not in ("pending", "cancelled"):
            return None
        own = f"{key}/"
        decisions = {
            id.removeprefix(own): d for id, d in self.start.decisions.items() if id.startswith(own)
        }
        run = who.resume(earlier, decisions, deps=self.start.deps, approve=self.approver())
        return await run.under(key)

    # Answering

    async def _join(self) -> RunResult:
        """Have the joiner answer, or say what is missing."""
        assert self.plan is not None
        may_replan = self.n_replans < self.how.max_replans
        joiner = joiner_of(self.how, may_replan=may_replan)
        request = await joiner_request(self.goal, self.plan.tasks, self.how.result_tokens)
        run = joiner.run(
            request,
            history=self.before,
            deps=self.start.deps,
            state=self.start.state,
            metadata={"role": "joiner"},
        )
        run.under(f"joiner:{self.n_plans}")
        with contextlib.suppress(RunError):  # the result says it, too
            async for event in run:
                if isinstance(event, TextEvent | RetryEvent):
                    await self.emit(event)
        return await run

    # Going on from a record

    def _take_up(self, earlier: Trajectory) -> None:
        """Work out how things stand from the events of a record."""
        for event in earlier.events:
            match event:
                case PlanEvent(state="proposed" | "edited", plan=row):
                    self._known |= {task.id: task for task in Plan.from_row(row).tasks}
                case ReplanEvent():
                    self.n_replans += 1
                case TaskEvent():
                    self._note(event)
                case _:
                    pass
        self.n_plans = sum(c.call_id.startswith("planner:") for c in earlier.children)
        self.plan = plan_of(earlier)
        for task in list(self._known.values()):
            if task.status == "in_progress":
                self._known[task.id] = self._broken_off(task)
        if self.plan is not None:
            self.plan = self.plan.with_tasks(
                task for task in self._known.values() if task.id in self.plan
            )

    def _note(self, event: TaskEvent) -> None:
        known = self._known.get(event.task)
        if known is None and event.call is not None:  # of a plan that was still being written
            known = Task(event.task, event.call.name, event.call.arguments)
        if known is not None:
            self._known[event.task] = replace(
                known,
                status=event.status,
                attempt=event.attempt,
                reason=event.reason,
                result=cast("JsonValue", event.result.value) if event.result is not None else None,
            )

    def _broken_off(self, task: Task) -> Task:
        """A task that was under way: begun again where that does no harm."""
        used = [self.tools[task.tool]] if task.tool in self.tools else []
        if not task.tool:
            used = list(root_of(self.others[task.agent or self.how.agent.name]).own_tools)
        if all(item.idempotent for item in used):
            return replace(task, status="pending", started=None)
        return replace(task, status="failed", reason=UNKNOWN_OUTCOME)


async def _settled(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
