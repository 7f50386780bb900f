"""Starts each task as soon as what it needs is done; the end of one is what starts others.

There is no polling and there are no levels.  Tasks may be added while others run, as a planner
writes them.  Those that are ready start in the plan's order while fewer than `max_parallel` run and
the tool they call has room.  The time taken is that of the longest chain of needs, and the work of
scheduling n tasks with m needs grows as n log n + m.  This module calls no tool and knows no model.
"""

import asyncio
import heapq
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from antiphon.strategies._plan import Task
from antiphon.tools import Tool

Perform: TypeAlias = Callable[[Task], Awaitable[Task]]
"""Does a task: gives it back completed, failed, or pending where it waits for a person."""

OnFailure = Literal["continue", "now"]
"""Whether what does not need a failed task goes on, or is stopped at once."""


@dataclass(slots=True)
class Lane:
    """A queue of tasks of which only some may run at once."""

    limit: int
    """How many."""
    n_running: int = 0
    """How many do."""
    waiting: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    """Those that are ready and wait, by their place in the plan."""


class Lanes:
    """The queues of tools: serial ones share one, others have one where they allow so many calls.

    Args:
        tools: By name.
    """

    def __init__(self, tools: Mapping[str, Tool[..., Any]]) -> None:
        self._tools = tools
        self._lanes: dict[str, Lane] = {}

    def of(self, task: Task) -> Lane | None:
        """The queue that a task stands in."""
        known = self._tools.get(task.tool)
        if known is None:
            return None
        if known.serial:
            return self._lanes.setdefault("", Lane(1))
        if known.max_concurrent is not None:
            return self._lanes.setdefault(known.name, Lane(known.max_concurrent))
        return None


LaneOf: TypeAlias = Callable[[Task], "Lane | None"]
"""The queue that a task stands in; none where nothing but `max_parallel` holds it back."""


def no_lane(_task: Task) -> None:
    """Tasks that hold nothing back."""


class Schedule:
    """Tasks on their way.  Enter it, add tasks, leave it: leaving waits until nothing runs."""

    def __init__(
        self,
        perform: Perform,
        *,
        max_parallel: int | None = None,
        lane_of: LaneOf = no_lane,
        on_failure: OnFailure = "continue",
        on_skip: Callable[[Task], None] = no_lane,
    ) -> None:
        """Set up.

        Args:
            perform: Does one task.
            max_parallel: How many may run at once; ``None`` for any number.
            lane_of: The queue that a task stands in.
            on_failure: What becomes of the rest when a task fails.
            on_skip: Told of each task that is skipped or stopped because of another's failure.
        """
        self.tasks: dict[str, Task] = {}
        """Every task as it stands, in the order added."""
        self._perform = perform
        self._max_parallel = max_parallel
        self._lane_of = lane_of
        self._on_failure = on_failure
        self._on_skip = on_skip
        self._place: dict[str, int] = {}
        self._lanes: dict[str, Lane] = {}
        self._n_missing: dict[str, int] = {}
        self._dependents: dict[str, list[str]] = {}
        self._ready: list[tuple[int, str]] = []
        self._running: dict[str, asyncio.Task[None]] = {}
        self._group = asyncio.TaskGroup()
        self._stopped_by = ""
        self._draining = False

    async def __aenter__(self) -> "Schedule":
        await self._group.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._group.__aexit__(*error)  # type: ignore[arg-type]  # what Python hands over

    def add(self, task: Task) -> None:
        """Add a task; it starts now if nothing holds it back.

        Args:
            task: The task. What it needs may be added later, and is waited for.
        """
        self.tasks[task.id] = task
        self._place.setdefault(task.id, len(self._place))
        if task.is_over:
            self._settle(task)
            self._pump()
            return
        failed = None
        n_missing = 0
        for id in task.needs:
            other = self.tasks.get(id)
            if other is not None and other.status == "completed":
                continue
            if other is not None and other.status in ("failed", "skipped"):
                failed = failed or other
            n_missing += 1
            self._dependents.setdefault(id, []).append(task.id)
        self._n_missing[task.id] = n_missing
        if self._stopped_by:
            self._skip(task.id, f"the plan was stopped: {self._stopped_by} failed")
        elif failed is not None:
            self._skip(task.id, failed.reason if failed.status == "skipped" else _because(failed))
        elif n_missing == 0:
            heapq.heappush(self._ready, (self._place[task.id], task.id))
        self._pump()

    def drain(self) -> None:
        """Let what runs end and start nothing more; the rest stays as it is."""
        self._draining = True

    def stop(self, by: str) -> None:
        """Stop what runs and skip what has not begun.

        Args:
            by: The task whose failure it is.
        """
        self._stopped_by = by
        for id, running in self._running.items():
            if id != by:
                running.cancel()
        for id, task in list(self.tasks.items()):
            if task.status == "pending" and id not in self._running:
                self._skip(id, f"the plan was stopped: {by} failed")

    # What follows from the end of a task

    def _pump(self) -> None:
        """Start what is ready, as far as there is room."""
        limit = self._max_parallel
        while self._ready and not self._draining:
            if limit is not None and len(self._running) >= limit:
                break
            place, id = heapq.heappop(self._ready)
            task = self.tasks[id]
            if task.status != "pending" or id in self._running:
                continue
            lane = self._lane_of(task)
            if lane is not None:
                if lane.n_running >= lane.limit:
                    heapq.heappush(lane.waiting, (place, id))
                    continue
                lane.n_running += 1
                self._lanes[id] = lane
            self._running[id] = self._group.create_task(self._do(task), name=f"task {id}")

    async def _do(self, task: Task) -> None:
        try:
            done = await self._perform(replace(task, status="in_progress"))
        except asyncio.CancelledError:
            if not self._stopped_by:
                raise
            reason = f"it was stopped because {self._stopped_by} failed"
            done = replace(task, status="failed", reason=reason)
            self._on_skip(done)
        self._over(done)

    def _over(self, task: Task) -> None:
        self.tasks[task.id] = task
        del self._running[task.id]
        lane = self._lanes.pop(task.id, None)
        if lane is not None:
            lane.n_running -= 1
            if lane.waiting:
                heapq.heappush(self._ready, heapq.heappop(lane.waiting))
        self._settle(task)
        if task.status == "failed" and self._on_failure == "now" and not self._stopped_by:
            self.stop(task.id)
        self._pump()

    def _settle(self, task: Task) -> None:
        """Let those that need a task go on, or skip them."""
        if task.status == "completed":
            for id in self._dependents.pop(task.id, ()):
                self._n_missing[id] -= 1
                if self._n_missing[id] == 0 and self.tasks[id].status == "pending":
                    heapq.heappush(self._ready, (self._place[id], id))
        elif task.status in ("failed", "skipped"):
            reason = task.reason if task.status == "skipped" else _because(task)
            for id in self._dependents.pop(task.id, ()):
                self._skip(id, reason)

    def _skip(self, id: str, reason: str) -> None:
        """Skip a task and, one after the other, all that need it."""
        waiting = [id]
        while waiting:
            task = self.tasks[waiting.pop()]
            if task.status != "pending" or task.id in self._running:
                continue
            skipped = self.tasks[task.id] = replace(task, status="skipped", reason=reason)
            self._on_skip(skipped)
            waiting.extend(reversed(self._dependents.pop(task.id, [])))


def _because(failed: Task) -> str:
    return f"dependency {failed.id} failed"
