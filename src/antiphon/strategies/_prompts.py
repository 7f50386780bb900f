"""What planners, executors and joiners are told, and how tasks are shown to them."""

from collections.abc import Iterable, Sequence
from typing import Any

from antiphon.memory import shorten
from antiphon.messages import JsonValue, ToolSpec, dump_json
from antiphon.strategies._dialects import Dialect
from antiphon.strategies._plan import Plan, Task

PLANNER = """\
You plan; others carry the plan out. Break the goal down into the fewest tasks that reach it. Tasks
that do not need each other run at the same time. Plan no task for the final answer: it is written
from the results."""

_FORMS: dict[Dialect, str] = {
    "json": """\
Answer with JSON alone:
{"tasks": [{"id": "a", "tool": "TOOL", "arguments": {...}, "title": "why"},
           {"id": "b", "prompt": "what to find out, in words", "depends_on": ["a"]}]}
A task calls a tool, or says in "prompt" what an agent should do. To use the result of task a write
${a} in arguments or a prompt; ${a.key} and ${a.list[0]} take a part of it; $$ is a dollar sign.
Answer {"tasks": []} where nothing needs to be done.""",
    "rewoo": """\
Answer with pairs of lines and nothing else:
Plan: why
#E1 = TOOL[input]
In an input write #E1 to use what the first line found.""",
    "llmcompiler": """\
Answer with numbered calls and nothing else, join() last:
1. TOOL("input")
2. TOOL("about $1")
3. join()
In arguments write $1 to use the result of call 1.""",
}

JOINER = """\
You answer from the results of a plan that was carried out. Use them and nothing else. Answer the
goal itself, briefly, without telling how the results were found."""

JOINER_MAY_REPLAN = """\
If the results do not answer the goal and further tasks could, call replan and say what is missing.
"""

JOINER_MAY_INSERT = """\
To show a whole result, write {{result:ID}} with its task's ID instead of writing it down again."""

EXECUTOR = "You carry out one task of a larger plan. Do this task only, and answer with its result."


def planner_instructions(
    dialect: Dialect, specs: Iterable[ToolSpec], agents: Sequence[tuple[str, str]], about: str
) -> str:
    """What a planner is told before the goal.

    Args:
        dialect: How it writes plans.
        specs: The tools that tasks may call.
        agents: Names and descriptions of agents that tasks may be given to.
        about: The agent's own instructions.
    """
    tools = "\n".join(f"- {signature(spec)}" for spec in specs)
    parts = [about, PLANNER, f"Tools:\n{tools}" if tools else "There are no tools."]
    if agents and dialect == "json":
        told = "\n".join(f"- {name}: {what}" for name, what in agents)
        parts.append(f'Agents that a task may name as "agent":\n{told}')
    parts.append(_FORMS[dialect])
    return "\n\n".join(part for part in parts if part)


def signature(spec: ToolSpec) -> str:
    """A tool in one line.

    >>> signature(ToolSpec("add", "Adds.", {"properties": {"a": {"type": "integer"}}}))
    'add(a?: integer): Adds.'
    """
    properties: Any = spec.parameters.get("properties") or {}
    required: Any = spec.parameters.get("required") or []
    parts: list[str] = []
    for name, schema in properties.items():
        mark = "" if name in required else "?"
        parts.append(f"{name}{mark}: {_kind(schema)}")
    about = " ".join(spec.description.split())
    return f"{spec.name}({', '.join(parts)}){': ' if about else ''}{about}"


def _kind(schema: JsonValue) -> str:
    if not isinstance(schema, dict):
        return "any"
    choices = schema.get("enum")
    if isinstance(choices, list):
        return "|".join(dump_json(value) for value in choices)
    kind = schema.get("type")
    return "|".join(map(str, kind)) if isinstance(kind, list) else str(kind or "any")


async def planner_request(goal: str, plan: Plan | None, reason: str, max_tokens: int) -> str:
    """What a planner is asked.

    Args:
        goal: What the plan is for.
        plan: What was done so far.
        reason: Why another plan is needed.
        max_tokens: The most that is shown of one result.
    """
    if plan is None:
        return f"Goal: {goal}" + (f"\n\n{reason}" if reason else "")
    done = await told_tasks(plan.tasks, max_tokens)
    return (
        f"Goal: {goal}\n\nSo far:\n{done}\n\nA new plan is needed: {reason}\n"
        "Plan only what is still to be done. Completed tasks stay as they are and are not done "
        "again; refer to their results by their ids. The ids of failed and skipped tasks may be "
        "used again."
    )


async def joiner_request(goal: str, tasks: Sequence[Task], max_tokens: int) -> str:
    """What a joiner is asked."""
    if not tasks:
        return f"Goal: {goal}\n\nNothing had to be done."
    return f"Goal: {goal}\n\nResults:\n{await told_tasks(tasks, max_tokens)}"


async def executor_request(
    goal: str, task: Task, prompt: str, needed: Sequence[Task], max_tokens: int
) -> str:
    """What an executor is asked: the goal, its own task, and what its task builds on."""
    parts = [EXECUTOR, f"Goal of the whole plan: {goal}", f"Your task: {prompt or task.title}"]
    if needed:
        parts.append(f"Results that it builds on:\n{await told_tasks(needed, max_tokens)}")
    return "\n\n".join(parts)


async def told_tasks(tasks: Iterable[Task], max_tokens: int) -> str:
    """Tasks with their states and what came of them."""
    return "\n".join([await _told(task, max_tokens) for task in tasks])


async def _told(task: Task, max_tokens: int) -> str:
    line = f"[{task.id}] {' '.join(task.what.split())}: {task.status.replace('_', ' ')}"
    if task.status == "completed":
        return f"{line}\n{await shorten(text_of_value(task.result), max_tokens)}"
    reason = await shorten(task.reason, max_tokens)
    return f"{line}: {reason}" if reason else line


def text_of_value(value: JsonValue) -> str:
    """A result as text: text as it is, all else as JSON."""
    return value if isinstance(value, str) else dump_json(value)
