"""Tasks that a model writes: from tools, a persona, a scenario and examples.

They can be made harder and joined.  What a model answers is checked here; an answer that is none
is asked for again, and then the task is dropped with the reason.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from antiphon.messages import JsonValue, dump_json
from antiphon.models import Model, ModelSettings
from antiphon.synthesis._ask import ask_text, find_object
from antiphon.synthesis._config import TasksConfig
from antiphon.synthesis._kinds import fault_text
from antiphon.synthesis._task import Fault, Offered, Task

_TRIES = 3

_WANTED: dict[str, str] = {
    "single": "It needs exactly one call of one tool, and says everything that the call needs.",
    "parallel": "It needs two or three calls that do not depend on each other.",
    "dependent": "It needs a call whose arguments only the result of another call gives.",
    "multi_turn": "It begins a conversation in which the person wants two or three things, one "
    "after the other; the message asks for the first of them, and the goal names all.",
    "missing": "It leaves out something that the tool needs and nobody could guess; the goal says "
    "what it is, so that the person can say it when asked.",
    "no_tool": "None of the tools can help with it, though it is close to what they do, or it can "
    "be answered without any.",
    "recovery": "It needs exactly one call of one tool.",
    "failing": "It needs exactly one call of one tool.",
}

_HARDER = (
    "add a condition that the assistant has to respect",
    "say one of the values indirectly, so that it has to be worked out from the message",
    "add a detail that has nothing to do with the request",
    "say it in the words of someone who does not know what the tools are called",
    "make it longer, as someone writes who explains why they ask",
)

_SYSTEM = """\
You write requests that people send to an assistant with tools. Answer with one JSON object only:
{"message": what the person writes, "goal": what they want in the end, with every value,
"tools": [names of the tools that are needed]}"""

_EVOLVE = """\
Here is a request: {task}
Make it harder in this way: {how}. The tools and the kind of request stay the same: {wanted}"""

_JOIN = """\
Here are two requests of one person: {first} and {second}
Join them into one message that asks for both, in natural words."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A task that could not be written."""

    reason: str
    """Why."""


@dataclass(frozen=True, slots=True)
class _Written:
    message: str
    goal: str
    tools: list[str]

    def text(self) -> str:
        return dump_json(
            {"message": self.message, "goal": self.goal, "tools": list[JsonValue](self.tools)}
        )


async def write_task(
    task: Task, config: TasksConfig, model: Model, settings: ModelSettings, draw: random.Random
) -> Task | Dropped:
    """Have a model write what a task lacks.

    Args:
        task: The task without a message.
        config: Personas, scenarios and examples.
        model: The writer.
        settings: How it is sampled.
        draw: Draws persona, scenario and examples.

    Raises:
        ModelError: The model cannot be asked.
    """
    persona, scenario = (_one(draw, texts) for texts in (config.personas, config.scenarios))
    examples = draw.sample(config.seeds, min(3, len(config.seeds)))
    prompt = _prompt(task, persona, scenario, examples)
    written = await _ask(model, prompt, task, settings)
    for _ in range(config.evolve):
        if isinstance(written, Dropped):
            return written
        how = draw.choice(_HARDER)
        more = _EVOLVE.format(task=written.text(), how=how, wanted=_WANTED[task.kind])
        written = await _ask(model, f"{_tools(task.tools)}\n\n{more}", task, settings)
    if isinstance(written, Dropped):
        return written
    if draw.random() < config.merge and task.kind in ("single", "parallel", "dependent"):
        return await _merged(task, written, prompt, model, settings, persona, scenario)
    return _finished(task, written, persona, scenario, draw)


def _one(draw: random.Random, texts: Sequence[str]) -> str:
    return draw.choice(texts) if texts else ""


def _prompt(task: Task, persona: str, scenario: str, examples: Sequence[str]) -> str:
    parts = [_tools(task.tools), f"Write one request. {_WANTED[task.kind]}"]
    if persona:
        parts.append(f"The person: {persona}")
    if scenario:
        parts.append(f"What it is about: {scenario}")
    if examples:
        parts.append("Requests of the style that is wanted:\n" + "\n".join(examples))
    return "\n\n".join(parts)


def _tools(offers: Sequence[Offered]) -> str:
    specs = [cast("dict[str, Any]", o.spec).get("function", o.spec) for o in offers]
    return "The tools:\n" + "\n".join(dump_json(cast("JsonValue", spec)) for spec in specs)


async def _ask(
    model: Model, prompt: str, task: Task, settings: ModelSettings
) -> _Written | Dropped:
    reason = ""
    for attempt in range(_TRIES):
        again = f"\n\nThe last answer was no use: {reason}." if reason else ""
        asked = replace(settings, seed=(settings.seed or 0) + attempt)
        text = await ask_text(model, _SYSTEM, prompt + again, asked)
        written = _read(text, task)
        if isinstance(written, _Written):
            return written
        reason = written
    return Dropped(f"the writer's answer was no use {_TRIES} times, the last time because {reason}")


def _read(text: str, task: Task) -> _Written | str:
    """What a writer's answer holds, or why it is no use."""
    found = find_object(text)
    if found is None:
        return "it holds no JSON object"
    message, goal, tools = (found.get(key) for key in ("message", "goal", "tools"))
    if not isinstance(message, str) or not message.strip():
        return "'message' is no text"
    named = [str(t) for t in cast("list[Any]", tools)] if isinstance(tools, list) else []
    known = {o.name for o in task.tools}
    strangers = [name for name in named if name not in known]
    if strangers:
        return f"'tools' names {strangers[0]!r}, which is not on offer"
    if task.kind in ("recovery", "failing") and len(named) != 1:
        return "'tools' must name exactly one tool"
    return _Written(message.strip(), str(goal or "").strip(), named)


async def _merged(
    task: Task,
    first: _Written,
    prompt: str,
    model: Model,
    settings: ModelSettings,
    persona: str,
    scenario: str,
) -> Task | Dropped:
    second = await _ask(model, f"{prompt}\n\nNot this one: {first.message}", task, settings)
    if isinstance(second, Dropped):
        return second
    joined = _JOIN.format(first=first.text(), second=second.text())
    both = await _ask(model, f"{_tools(task.tools)}\n\n{joined}", task, settings)
    if isinstance(both, Dropped):
        return both
    tools = list(dict.fromkeys([*first.tools, *second.tools]))
    whole = replace(both, goal=f"{first.goal} {second.goal}".strip(), tools=tools)
    return replace(
        task,
        kind="merged",
        turns=[whole.message],
        goal=whole.goal,
        targets=whole.tools,
        persona=persona,
        scenario=scenario,
    )


def _finished(
    task: Task, written: _Written, persona: str, scenario: str, draw: random.Random
) -> Task:
    faults: list[Fault] = []
    if task.kind in ("recovery", "failing"):
        times = 1 if task.kind == "recovery" else 1_000
        faults = [Fault(written.tools[0], fault_text(draw, again=times == 1), times)]
    return replace(
        task,
        turns=[written.message],
        goal=written.goal,
        targets=written.tools,
        persona=persona,
        scenario=scenario,
        faults=faults,
    )
