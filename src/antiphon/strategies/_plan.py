"""Plan and Task: what is to be done, in which order, and how far it is.

Both are plain values.  A plan may come from a model, a person or a program; `Plan.check` says what
is wrong with it before anything runs.  Nothing here executes: see `_schedule.py`.
"""

import difflib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast, get_args

from antiphon.errors import DataError, PlanError, clip
from antiphon.events import PlanEvent, TaskEvent, Trajectory, dump_row
from antiphon.messages import JsonObject, JsonValue
from antiphon.strategies._mermaid import mermaid
from antiphon.strategies._references import references_in
from antiphon.tools import RunContext, Tool

TaskStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]
"""``pending`` until it starts or where it waits for a person; ``skipped`` where what it needs
failed."""

_ID = "letters, digits, '_' and '-'"


@dataclass(frozen=True, slots=True)
class Task:
    """A part of a plan: a call of a tool, or something in words for an agent."""

    id: str
    """What other tasks refer to it by: letters, digits, ``_`` and ``-``."""
    tool: str = ""
    """The tool that is called."""
    arguments: JsonObject = field(default_factory=dict[str, JsonValue])
    """What it is called with; references stand for results of other tasks."""
    prompt: str = ""
    """What an agent is asked to do, where no tool is called; with references, too."""
    agent: str = ""
    """Which agent is asked; the plan's own where empty."""
    depends_on: tuple[str, ...] = ()
    """Tasks that must be done before, besides those that are referred to."""
    title: str = ""
    """What it is for, as people read it."""
    timeout: float | None = None
    """Seconds until it fails."""
    status: TaskStatus = "pending"
    """How far it is."""
    result: JsonValue = None
    """What came of it."""
    reason: str = ""
    """Why it failed or was skipped."""
    attempt: int = 1
    """Which attempt at a task of this id, counted from 1."""
    started: float | None = None
    """Seconds since the run began."""
    ended: float | None = None
    """Seconds since the run began."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Every task that must be done before: those given and those referred to."""
        referred = (r.id for r in references_in([self.arguments, self.prompt]) if r.id)
        return tuple(dict.fromkeys((*self.depends_on, *referred)))

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in ("completed", "failed", "skipped")

    @property
    def what(self) -> str:
        """The task in a few words."""
        return self.title or self.tool or self.prompt or self.agent

    def same_work(self, other: "Task") -> bool:
        """Whether two tasks ask for the same, however far they are."""
        return (self.tool, self.arguments, self.prompt, self.agent) == (
            other.tool,
            other.arguments,
            other.prompt,
            other.agent,
        )

    def anew(self, attempt: int = 1) -> "Task":
        """The task as it was before it began."""
        return replace(
            self,
            status="pending",
            result=None,
            reason="",
            attempt=attempt,
            started=None,
            ended=None,
        )

    def to_row(self) -> JsonObject:
        """The task as one JSON object, without what is not set."""
        row: JsonObject = {"id": self.id}
        for name in _TEXTS[1:]:
            if getattr(self, name):
                row[name] = getattr(self, name)
        if self.arguments or self.tool:
            row["arguments"] = self.arguments
        if self.depends_on:
            row["depends_on"] = list(self.depends_on)
        for name in ("timeout", "started", "ended"):
            if getattr(self, name) is not None:
                row[name] = getattr(self, name)
        if self.status != "pending":
            row["status"] = self.status
        if self.status == "completed":
            row["result"] = self.result
        if self.attempt != 1:
            row["attempt"] = self.attempt
        return row

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Task":
        """Read a task, in the names of this class or in those that models and papers use.

        Raises:
            DataError: A field is missing or has the wrong type.
        """
        return _task_from_row(row)


_TEXTS = ("id", "tool", "prompt", "agent", "title", "reason")
_OTHER_NAMES = {
    "args": "arguments",
    "parameters": "arguments",
    "deps": "depends_on",
    "dependencies": "depends_on",
    "task": "prompt",
    "name": "tool",
}


def _task_from_row(row: Mapping[str, Any]) -> Task:
    given = {_OTHER_NAMES.get(key, key): value for key, value in row.items() if value is not None}
    texts: dict[str, Any] = {}
    for name in _TEXTS:
        value = given.get(name, "")
        if isinstance(value, int) and not isinstance(value, bool) and name == "id":
            value = str(value)
        if not isinstance(value, str):
            raise DataError(f"{name!r} of a task must be text, got {clip(value)}")
        texts[name] = value
    if not texts["id"]:
        raise DataError(f"a task needs an 'id', got {clip(dict(row))}")
    arguments = given.get("arguments", {})
    if not isinstance(arguments, Mapping):
        raise DataError(f"'arguments' of task {texts['id']!r} must be an object")
    needs = given.get("depends_on", [])
    needs = [needs] if isinstance(needs, str | int) else needs
    if not isinstance(needs, list | tuple):
        raise DataError(f"'depends_on' of task {texts['id']!r} must be a list of ids")
    status = given.get("status", "pending")
    if status not in get_args(TaskStatus):
        raise DataError(f"unknown status {clip(status)}; known: {', '.join(get_args(TaskStatus))}")
    numbers: dict[str, Any] = {}
    for name in ("timeout", "started", "ended"):
        value = given.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise DataError(f"{name!r} of task {texts['id']!r} must be a number, got {clip(value)}")
        numbers[name] = value
    return Task(
        **texts,
        arguments=dict(cast("Mapping[str, JsonValue]", arguments)),
        depends_on=tuple(str(id) for id in cast("Sequence[Any]", needs)),
        status=cast("TaskStatus", status),
        result=given.get("result"),
        attempt=int(given.get("attempt", 1)),
        **numbers,
    )


@dataclass(frozen=True, slots=True)
class Plan:
    """Tasks for a goal, and how far they are.

    >>> plan = Plan("compare", (Task("a", "search"), Task("b", "compare", {"to": "${a}"})))
    >>> plan["b"].needs
    ('a',)
    """

    goal: str
    """What the plan is for."""
    tasks: tuple[Task, ...] = ()
    """The tasks, in the order in which those that could start together do."""
    revision: int = 0
    """How often the plan was made anew."""

    def __getitem__(self, id: str) -> Task:
        for task in self.tasks:
            if task.id == id:
                return task
        raise KeyError(id)

    def __contains__(self, id: object) -> bool:
        return any(task.id == id for task in self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def with_tasks(self, changed: Iterable[Task]) -> "Plan":
        """The plan with tasks in place of those that have the same ids."""
        new = {task.id: task for task in changed}
        return replace(self, tasks=tuple(new.get(task.id, task) for task in self.tasks))

    def failures(self) -> list[Task]:
        """Tasks that failed."""
        return [task for task in self.tasks if task.status == "failed"]

    def check(
        self, *, tools: Collection[str] | None = None, agents: Collection[str] | None = None
    ) -> None:
        """Refuse what cannot be run.

        Args:
            tools: Names of tools that there are; any name will do without it.
            agents: Names of agents that there are; any name will do without it.

        Raises:
            PlanError: Two tasks have one id, a task needs one that is not there, or nothing to do,
                names an unknown tool or agent, or tasks wait for each other.
        """
        known = [task.id for task in self.tasks]
        seen: set[str] = set()
        for task in self.tasks:
            if task.id in seen:
                raise PlanError(f"duplicate id: two tasks are called {task.id!r}; rename one")
            seen.add(task.id)
        for task in self.tasks:
            check_task(task, seen, known, tools=tools, agents=agents)
        cycle = find_cycle(self.tasks)
        if cycle:
            raise PlanError(f"the plan has a cycle: {' -> '.join(cycle)}; break it")

    def to_row(self) -> JsonObject:
        """The plan as one JSON object."""
        return {
            "goal": self.goal,
            "revision": self.revision,
            "tasks": [task.to_row() for task in self.tasks],
        }

    def to_json(self, *, indent: int | None = None) -> str:
        """The plan as JSON text.

        Args:
            indent: Spaces a level, for people; one line without.
        """
        return dump_row(self.to_row(), indent=indent)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Plan":
        """Read a plan; ``steps`` is another name of ``tasks``.

        Raises:
            DataError: The row is no plan.
        """
        tasks = row.get("tasks", row.get("steps"))
        if not isinstance(tasks, list):
            raise DataError(f"a plan needs a list of 'tasks', got {clip(dict(row))}")
        for item in cast("list[Any]", tasks):
            if not isinstance(item, Mapping):
                raise DataError(f"a task must be an object, got {clip(item)}")
        return cls(
            str(row.get("goal", "")),
            tuple(Task.from_row(item) for item in cast("list[Mapping[str, Any]]", tasks)),
            int(row.get("revision", 0)),
        )

    @classmethod
    def of(cls, trajectory: Trajectory) -> "Plan | None":
        """The last plan of a run and how far it came; ``None`` where there was none.

        Args:
            trajectory: The record of a run of `PlanAndExecute`.
        """
        return plan_of(trajectory)

    async def run(
        self,
        tools: Sequence[Tool[..., Any]],
        *,
        max_parallel: int | None = 8,
        task_timeout: float | None = None,
        context: RunContext[Any] | None = None,
    ) -> "Plan":
        """Carry the plan out without any model: every task calls a tool.

        Args:
            tools: What tasks may call.
            max_parallel: How many may run at once; ``None`` for any number.
            task_timeout: Seconds until a task has failed.
            context: What tools that ask for a `RunContext` are given.

        Returns:
            The plan with its tasks as they ended; what failed says why.

        Raises:
            PlanError: The plan cannot be run, or a task is in words.
        """
        from antiphon.strategies._plan_run import run_plan

        return await run_plan(self, tools, max_parallel, task_timeout, context)

    def to_mermaid(self) -> str:
        """The plan as a Mermaid flowchart, coloured by status."""
        return mermaid([(t.id, t.what, t.status, t.needs) for t in self.tasks])


def check_task(
    task: Task,
    seen: Collection[str],
    known: Sequence[str],
    *,
    tools: Collection[str] | None = None,
    agents: Collection[str] | None = None,
) -> None:
    """Refuse a task that cannot be run.

    Args:
        task: The task.
        seen: Ids that it may need.
        known: The same, in order, for the message.
        tools: Names of tools that there are.
        agents: Names of agents that there are.

    Raises:
        PlanError: It cannot.
    """
    if not task.id or not all(c.isascii() and (c.isalnum() or c in "_-") for c in task.id):
        raise PlanError(f"a task cannot be called {clip(task.id)}; use {_ID}")
    for reference in references_in([task.arguments, task.prompt]):
        if not reference.id:
            raise PlanError(
                f"task {task.id!r} has a malformed reference {clip(reference.text)}; write "
                "${id}, ${id.key} or ${id[0]}, and $$ for a dollar sign"
            )
    for id in task.needs:
        if id not in seen:
            raise PlanError(f"task {task.id!r} needs unknown task {id!r}{_near(id, known)}")
    if not task.tool and not task.prompt and not task.title:
        raise PlanError(f"task {task.id!r} has nothing to do; give it a 'tool' or a 'prompt'")
    if task.tool and tools is not None and task.tool not in tools:
        raise PlanError(
            f"task {task.id!r} calls unknown tool {task.tool!r}{_near(task.tool, tools)}"
        )
    if task.agent and agents is not None and task.agent not in agents:
        raise PlanError(
            f"task {task.id!r} asks unknown agent {task.agent!r}{_near(task.agent, agents)}"
        )


def _near(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    some = ", ".join(list(known)[:20])
    return f"; known: {some or 'none'}" + (", ..." if len(known) > 20 else "")


def find_cycle(tasks: Sequence[Task]) -> list[str]:
    """A cycle among tasks, each followed by one that it needs, the first one named twice.

    It begins with the one of its tasks that stands first in the plan.  Empty where there is none.
    """
    needs = {task.id: task.needs for task in tasks}
    place = {task.id: at for at, task in enumerate(tasks)}
    done: set[str] = set()
    for first in needs:
        if first in done:
            continue
        path, on_path, following = [first], {first: 0}, [iter(needs[first])]
        while path:
            id = next(following[-1], None)
            if id is None:
                following.pop()
                left = path.pop()
                del on_path[left]
                done.add(left)
            elif id in on_path:
                cycle = path[on_path[id] :]
                at = min(range(len(cycle)), key=lambda n: place[cycle[n]])
                turned = cycle[at:] + cycle[:at]
                return [*turned, turned[0]]
            elif id in needs and id not in done:
                on_path[id] = len(path)
                path.append(id)
                following.append(iter(needs[id]))
    return []


def plan_of(trajectory: Trajectory) -> Plan | None:
    """The last plan of a run, its tasks as the events leave them; see `Plan.of`."""
    plan: Plan | None = None
    tasks: dict[str, Task] = {}
    for event in trajectory.events:
        match event:
            case PlanEvent(state="proposed" | "edited", plan=row):
                plan = Plan.from_row(row)
                tasks = {task.id: task for task in plan.tasks}
            case TaskEvent() if event.task in tasks:
                tasks[event.task] = task_after(tasks[event.task], event)
            case _:
                pass
    return None if plan is None else replace(plan, tasks=tuple(tasks.values()))


def task_after(task: Task, event: TaskEvent) -> Task:
    """A task after an event."""
    result = task.result
    if event.status == "completed" and event.result is not None:
        result = cast("JsonValue", event.result.value)
    return replace(
        task,
        status=event.status,
        result=result,
        reason=event.reason,
        attempt=event.attempt,
        started=event.time if event.status == "in_progress" else task.started,
        ended=event.time if event.status in ("completed", "failed", "skipped") else None,
    )
