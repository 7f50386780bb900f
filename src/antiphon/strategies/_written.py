"""A plan while it is written: tasks go to the schedule as soon as their text is whole."""

from collections.abc import Sequence

from antiphon.errors import PlanError
from antiphon.strategies._plan import Plan, Task, check_task
from antiphon.strategies._plan_checks import check_arguments, check_same
from antiphon.strategies._progress import Progress
from antiphon.strategies._schedule import Schedule


class Written:
    """What was read of a plan so far."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._reader = progress.reader()
        self._problem = ""
        self._n_new = 0
        self._ids: set[str] = set()

    def begin_again(self) -> None:
        """The text so far no longer holds; tasks that were started from it go on."""
        self._reader = self._progress.reader()
        self._problem = ""
        self._ids = set()

    def feed(self, text: str, schedule: Schedule) -> None:
        """Take more text."""
        if not self._problem:
            try:
                self._add(self._reader.feed(text), schedule)
            except PlanError as error:
                self._problem = str(error)

    def finish(self, schedule: Schedule) -> str:
        """The text is over; what is wrong with the plan."""
        if not self._problem:
            try:
                self._add(self._reader.finish(), schedule)
                plan = Plan("", tuple(schedule.tasks.values()))
                plan.check(tools=self._progress.tools, agents=self._progress.others)
            except PlanError as error:
                self._problem = str(error)
        return self._problem

    def _add(self, tasks: Sequence[Task], schedule: Schedule) -> None:
        for task in tasks:
            if task.id in self._ids:
                raise PlanError(f"duplicate id: two tasks are called {task.id!r}; rename one")
            self._ids.add(task.id)
            known = schedule.tasks.get(task.id)
            if known is not None:
                if known.status == "completed":
                    check_same(known, task)
                elif not known.same_work(task):
                    raise PlanError(f"duplicate id: two tasks are called {task.id!r}; rename one")
                continue
            self._n_new += 1
            if self._n_new > self._progress.how.max_tasks:
                raise PlanError(f"the plan has more than {self._progress.how.max_tasks} tasks")
            made = self._progress.prepared(task)
            check_task(
                made, set(made.needs), [], tools=self._progress.tools, agents=self._progress.others
            )
            check_arguments(made, self._progress.tools)
            schedule.add(made)
