"""The tools of one conversation: real, answered by rule, or answered by a model; and out of order.

A tool that is not executed says so in the record: see `simulated`.  Equal calls of one conversation
get equal answers, whoever answers.
"""

import importlib
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from antiphon.errors import ToolError, UsageError
from antiphon.messages import JsonObject, JsonValue, dump_json
from antiphon.models import Model, ModelSettings
from antiphon.synthesis._ask import ask_text, find_object
from antiphon.synthesis._catalog import Catalog
from antiphon.synthesis._draw import Drawer
from antiphon.synthesis._task import Fault, Offered, Task
from antiphon.tools import Tool, load_tools

_SIMULATOR = """\
You are the tool {name}. Answer a call as the real tool would: one JSON object, no other words.
Its description: {spec}
Stay consistent with the calls that were answered before. If the arguments make no sense, answer
{{"error": "why"}}."""


def world_tools(name: str, seed: int) -> list[Tool[..., Any]]:
    """Fresh tools of a world: what its function gives for a seed.

    Args:
        name: ``MODULE:FUNCTION``; the function takes a seed and gives tools or plain functions.
        seed: Decides the world's first state.

    Raises:
        UsageError: There is no such function, or it gives no tools.
    """
    module, _, function = name.rpartition(":")
    try:
        make: Any = getattr(importlib.import_module(module), function)
        made = make(seed)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise UsageError(f"world {name!r} gives no tools: {error}") from error
    return [one if isinstance(one, Tool) else Tool(one) for one in made]


def real_tools(names: tuple[str, ...], world: str, seed: int) -> dict[str, Tool[..., Any]]:
    """The real tools of a set, by name."""
    found = [one for name in names for one in load_tools(name)]
    if world:
        found += world_tools(world, seed)
    return {one.name: one for one in found}


def simulated(task: Task, simulator: str) -> JsonObject:
    """Which tools of a task are not executed, and who answers for them."""
    by = {"rule": "rule", "model": f"model {simulator}"}
    marks: JsonObject = {o.name: by[o.source] for o in task.tools if o.source in by}
    for fault in task.faults:
        marks[fault.tool] = f"{marks.get(fault.tool, 'real')}, out of order {fault.times} times"
    return marks


def tools_for(
    task: Task,
    real: Mapping[str, Tool[..., Any]],
    catalog: Catalog,
    simulator: Model | None,
    settings: ModelSettings,
) -> list[Tool[..., Any]]:
    """The tools that a task offers.

    Args:
        task: The task.
        real: Real tools, by name.
        catalog: What is answered by rule.
        simulator: Who answers for tools of which only the spec is known.
        settings: How the simulator is sampled.

    Raises:
        UsageError: A real tool is gone.
    """
    faults = {fault.tool: fault for fault in task.faults}
    tools: list[Tool[..., Any]] = []
    for offered in task.tools:
        made = _tool(offered, task, real, catalog, simulator, settings)
        fault = faults.get(offered.name)
        tools.append(made if fault is None else _faulty(made, fault))
    return tools


def _tool(
    offered: Offered,
    task: Task,
    real: Mapping[str, Tool[..., Any]],
    catalog: Catalog,
    simulator: Model | None,
    settings: ModelSettings,
) -> Tool[..., Any]:
    if offered.source == "python":
        if offered.name not in real:
            raise UsageError(
                f"task {task.id!r} offers the tool {offered.name!r}, which the config no longer "
                "names; make the tasks again in another folder"
            )
        return real[offered.name]
    if offered.source == "rule":
        return _by_rule(offered, task, catalog)
    assert simulator is not None
    return _by_model(offered, simulator, settings)


def _by_rule(offered: Offered, task: Task, catalog: Catalog) -> Tool[..., Any]:
    def answer(arguments: JsonObject) -> JsonValue:
        key = f"{task.seed}/{offered.name}/{dump_json(_sorted(arguments))}"
        return Drawer(catalog, random.Random(key)).result(offered, arguments)

    return Tool.from_spec(offered.tool_spec, answer, threaded=False, idempotent=True)


def _sorted(arguments: JsonObject) -> JsonObject:
    return dict(sorted(arguments.items()))


def _by_model(offered: Offered, simulator: Model, settings: ModelSettings) -> Tool[..., Any]:
    spec = offered.tool_spec
    system = _SIMULATOR.format(name=spec.name, spec=dump_json(cast("JsonValue", spec.to_openai())))
    known: dict[str, JsonObject] = {}

    async def answer(arguments: JsonObject) -> JsonValue:
        key = dump_json(_sorted(arguments))
        if key not in known:
            before = "\n".join(f"{call} -> {dump_json(result)}" for call, result in known.items())
            prompt = f"Answered before:\n{before or 'nothing'}\n\nArguments: {key}"
            text = await ask_text(simulator, system, prompt, settings)
            found = find_object(text)
            known[key] = cast(
                "JsonObject", found if found is not None else {"result": text.strip()}
            )
        if set(known[key]) == {"error"}:
            raise ToolError(str(known[key]["error"]))
        return known[key]

    return Tool.from_spec(spec, answer)


def _faulty(one: Tool[..., Any], fault: Fault) -> Tool[..., Any]:
    """A tool whose first calls fail."""
    n_calls = 0

    async def answer(arguments: JsonObject) -> Any:
        nonlocal n_calls
        n_calls += 1
        if n_calls <= fault.times:
            raise ToolError(fault.text)
        result = await one.call(arguments)
        if result.is_error:
            raise ToolError(result.text)
        return result.value

    return Tool.from_spec(replace(one.spec, original=None), answer)
