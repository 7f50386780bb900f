"""What a plan's tasks ask of tools: whether arguments can be right; results as JSON."""

from collections.abc import Mapping
from typing import Any, cast

from antiphon.errors import PlanError
from antiphon.events import is_json
from antiphon.messages import JsonObject, JsonValue, ToolResult, find_problems
from antiphon.strategies._plan import Task
from antiphon.strategies._references import references_in, substitute
from antiphon.tools import Tool
from antiphon.tools._result import jsonable


def check_arguments(task: Task, tools: Mapping[str, Tool[..., Any]]) -> None:
    """Refuse arguments that the tool would, as far as they are known before results are.

    Args:
        task: The task; its tool is known.
        tools: By name.

    Raises:
        PlanError: They cannot be right.
    """
    if not task.tool:
        return
    known = tools[task.tool]
    if next(references_in(task.arguments), None) is None:
        problem = known.problem(cast("JsonObject", substitute(task.arguments, {})))
    else:
        problem = _partial_problem(known, task.arguments)
    if problem:
        raise PlanError(f"task {task.id!r}: {problem}")


def check_same(done: Task, task: Task) -> None:
    """Refuse a plan that has a task that is done do something else.

    Raises:
        PlanError: It does.
    """
    if not done.same_work(task):
        raise PlanError(
            f"task {task.id!r} is completed and cannot be done otherwise; give the new one "
            "another id"
        )


def _partial_problem(known: Tool[..., Any], arguments: JsonObject) -> str:
    """What is wrong with arguments of which some are known only later."""
    schema = known.spec.parameters
    properties: Any = schema.get("properties") or {}
    unknown = [name for name in arguments if name not in properties]
    if properties and schema.get("additionalProperties") is False and unknown:
        return f"{known.name} has no parameter {unknown[0]!r}; it has {', '.join(properties)}"
    required: Any = schema.get("required") or []
    missing = [name for name in required if name not in arguments]
    if missing:
        return f"{known.name} needs {missing[0]!r}, which is required"
    for name, value in arguments.items():
        if name not in properties or next(references_in(value), None) is not None:
            continue
        part: JsonObject = {**schema, "properties": {name: properties[name]}, "required": []}
        wrong = find_problems(part, {name: value})
        if wrong and not isinstance(wrong[0].value, str):  # text may be mended when it is called
            return f"{known.name}: {name!r} {wrong[0].message}"
    return ""


def parameters_of(known: Tool[..., Any]) -> list[str]:
    """A tool's parameters, in order."""
    properties: dict[str, Any] = cast("Any", known.spec.parameters.get("properties")) or {}
    return list(properties)


def value_of(result: ToolResult) -> JsonValue:
    """A result as JSON holds it."""
    if is_json(result.value):
        return cast("JsonValue", result.value)
    return cast("JsonValue", jsonable(result.value))
