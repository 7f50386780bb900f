"""How a plan stands: the plan of now, every task that ever was in one, and what a person said.

It can be worked out from the events of a record, so that a run that paused or broke off goes on
with the tasks that are not done.  Nothing here waits.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from antiphon.agent import Runnable
from antiphon.agent._calls import UNKNOWN_OUTCOME
from antiphon.errors import PlanError
from antiphon.events import PlanEvent, ReplanEvent, TaskEvent, Trajectory
from antiphon.messages import JsonValue
from antiphon.strategies._dialects import PlanReader, plan_reader
from antiphon.strategies._plan import Plan, Task, plan_of
from antiphon.strategies._plan_checks import check_arguments, check_same, parameters_of
from antiphon.tools import Tool

if TYPE_CHECKING:
    from antiphon.strategies._plan_and_execute import PlanAndExecute


class Progress:
    """The plan and its tasks as they stand."""

    def __init__(self, how: "PlanAndExecute") -> None:
        """Nothing is planned.

        Args:
            how: The strategy.
        """
        self.how = how
        self.tools: dict[str, Tool[..., Any]] = {item.name: item for item in how.agent.own_tools}
        """What tasks may call, by name."""
        self.others: dict[str, Runnable] = {how.agent.name: how.agent}
        """Whom tasks in words may be given to, by name."""
        self.others |= {one.name: one for one in how.agents}
        self.plan: Plan | None = None
        """The plan of now."""
        self.known: dict[str, Task] = {}
        """Every task of any plan, as it stands."""
        self.n_plans = 0
        """How often the planner was asked."""
        self.n_replans = 0
        """How often of these it was asked anew."""
        self.objection = ""
        """Why a person stopped the plan."""
        self.refused = False
        """Whether a person ended it."""

    def take_up(self, earlier: Trajectory) -> None:
        """Work out how things stand from the events of a record."""
        for event in earlier.events:
            match event:
                case PlanEvent(state="proposed" | "edited", plan=row):
                    self.known |= {task.id: task for task in Plan.from_row(row).tasks}
                case ReplanEvent():
                    self.n_replans += 1
                case TaskEvent():
                    self._note(event)
                case _:
                    pass
        asked = [c for c in earlier.children if c.call_id.startswith("planner:")]
        self.n_plans = sum(child.stop_reason != "pending" for child in asked)
        self.plan = plan_of(earlier)
        for task in list(self.known.values()):
            if task.status == "in_progress":
                self.known[task.id] = self._broken_off(task)
        if self.plan is not None:
            self.plan = self.plan.with_tasks(
                task for task in self.known.values() if task.id in self.plan
            )

    def _note(self, event: TaskEvent) -> None:
        known = self.known.get(event.task)
        if known is None and event.call is not None:  # of a plan that was still being written
            known = Task(event.task, event.call.name, event.call.arguments)
        if known is not None:
            self.known[event.task] = replace(
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
            used = list(self.executor(task).root.own_tools)
        if all(item.idempotent for item in used):
            return replace(task, status="pending", started=None)
        return replace(task, status="failed", reason=UNKNOWN_OUTCOME)

    def executor(self, task: Task) -> Runnable:
        """Who does a task in words."""
        return self.others[task.agent or self.how.agent.name]

    # Plans

    def reader(self) -> PlanReader:
        """What reads a plan as it is written."""
        return plan_reader(
            self.how.dialect, {name: parameters_of(item) for name, item in self.tools.items()}
        )

    def merged(self, goal: str, tasks: Sequence[Task]) -> Plan:
        """A plan of what is done and of new tasks.

        Args:
            goal: What it is for, where there is no plan yet.
            tasks: Of the new plan.

        Raises:
            PlanError: A task that is done is to be done otherwise, or the plan cannot be run.
        """
        kept = [task for task in self.known.values() if task.status == "completed"]
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
        plan = Plan(goal if self.plan is None else self.plan.goal, (*kept, *new), self.n_plans)
        plan.check(tools=self.tools, agents=self.others)
        for task in new:
            check_arguments(task, self.tools)
        return plan

    def prepared(self, task: Task) -> Task:
        """A task as it begins; of an id that failed before, the next attempt."""
        before = self.known.get(task.id)
        begun = before is not None and before.status in ("failed", "completed", "in_progress")
        return task.anew(before.attempt + 1 if before is not None and begun else 1)

    def take(self, plan: Plan) -> None:
        """This is the plan now."""
        self.plan = plan
        self.known |= {task.id: task for task in plan.tasks}

    def keep(self, goal: str, tasks: Iterable[Task]) -> None:
        """Take over how tasks stand.

        Args:
            goal: What the plan is for, where there is none yet.
            tasks: As they stand.
        """
        stand = {task.id: task for task in tasks}
        self.known |= stand
        if self.plan is None:
            self.plan = Plan(goal, tuple(stand.values()))
        self.plan = self.plan.with_tasks(stand.values())

    def so_far(self) -> Plan | None:
        """The plan, led by tasks of earlier ones that are not in it."""
        if self.plan is None:
            return None
        plan = self.plan
        gone = [t for t in self.known.values() if t.id not in plan and t.status != "pending"]
        return replace(plan, tasks=(*gone, *plan.tasks))

    def done(self) -> list[str]:
        """Ids of completed tasks, in order."""
        return [task.id for task in self.known.values() if task.status == "completed"]

    def due(self) -> list[Task]:
        """The tasks to run now: all of the plan, or, with a plan after each task, the next one."""
        assert self.plan is not None
        tasks = [task for task in self.plan.tasks if task.status != "completed"]
        if self.how.replan != "each_task":
            return tasks
        done = {task.id for task in self.plan.tasks if task.status == "completed"}
        return [task for task in tasks if set(task.needs) <= done][:1]

    def why_anew(self) -> str:
        """Why another plan is needed before there can be an answer; empty where none is."""
        assert self.plan is not None
        failed = self.plan.failures()
        if failed:
            return "; ".join(f"task {task.id} failed: {task.reason}" for task in failed)
        if self.objection:
            return self.objection
        if self.how.replan == "each_task" and any(t.status == "pending" for t in self.plan.tasks):
            return "a task is done; plan what is left of the work in the light of its result"
        return ""
