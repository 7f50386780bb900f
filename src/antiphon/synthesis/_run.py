"""A task done for real: the agent runs, the user goes on, and everything is recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from antiphon.agent import Agent
from antiphon.errors import (
    ModelAuthError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    RateLimitError,
)
from antiphon.events import Trajectory
from antiphon.messages import JsonObject, JsonValue, Message, ToolCall
from antiphon.models import Model, ModelSettings
from antiphon.synthesis._ask import Meter, Metered, ask_text
from antiphon.synthesis._catalog import Catalog
from antiphon.synthesis._config import RULES, SynthConfig
from antiphon.synthesis._join import join_runs
from antiphon.synthesis._task import Task
from antiphon.synthesis._teacher import rule_teacher
from antiphon.synthesis._worlds import simulated, tools_for
from antiphon.tools import Tool

_TRANSIENT = (ModelConnectionError, ModelAuthError, ModelNotFoundError, RateLimitError)
"""What says nothing about the task: the stage can try again."""

_USER = """\
You play a person who talks to an assistant. You are: {persona}. What you want: {goal}.
Write only what this person says next, in one short message. When everything you wanted is settled,
or the assistant cannot help, write DONE."""
_DONE = "DONE"


@dataclass(frozen=True, slots=True)
class Stage:
    """What doing tasks needs, open."""

    config: SynthConfig
    """The synthesis."""
    catalogs: Sequence[Catalog]
    """By number of the toolset."""
    teacher: Model | None
    """Who acts; ``None`` is the rule-based teacher."""
    user: Model | None
    """Who plays the user, where a model does."""
    simulator: Model | None
    """Who answers for tools of which only the spec is known."""


async def run_task(task: Task, stage: Stage, real: Mapping[str, Tool[..., Any]]) -> Trajectory:
    """Do a task.

    Args:
        task: The task.
        stage: The models.
        real: The real tools of its set, fresh where they have a state.

    Returns:
        The record. A run that broke off is one, too: `Trajectory.stop_reason` says why.

    Raises:
        ModelError: A model could not be asked, for a reason that is not the task's.
    """
    meter = Meter()
    config = stage.config
    simulator = None if stage.simulator is None else Metered(stage.simulator, meter)
    tools = tools_for(task, real, stage.catalogs[task.toolset], simulator, _settings(config, task))
    agent = Agent(
        name="assistant",
        instructions=task.instructions,
        model=rule_teacher(task) if stage.teacher is None else Metered(stage.teacher, meter),
        tools=tools,
        settings=replace(_settings(config, task), temperature=config.models.temperature),
        max_steps=config.agent.max_steps,
    )
    runs = await _converse(agent, task, stage, meter)
    return _recorded(join_runs(runs), task, stage, meter)


def _settings(config: SynthConfig, task: Task) -> ModelSettings:
    return ModelSettings(
        temperature=config.models.writer_temperature,
        max_tokens=config.models.max_tokens,
        seed=task.seed,
    )


async def _converse(agent: Agent, task: Task, stage: Stage, meter: Meter) -> list[Trajectory]:
    runs: list[Trajectory] = []
    history: Sequence[Message] = ()
    said = task.turns[0]
    while True:
        approve = _agree if stage.config.agent.approve else None
        result = await agent.run(said, history=history, approve=approve)
        if isinstance(result.error, _TRANSIENT):
            raise cast("ModelError", result.error)
        runs.append(result.trajectory)
        history = result.messages
        if result.stop_reason != "answer":
            return runs
        said = await _next_turn(task, stage, meter, len(runs), history)
        if not said:
            return runs


def _agree(call: ToolCall) -> bool:
    return True


async def _next_turn(
    task: Task, stage: Stage, meter: Meter, n_turns: int, said: Sequence[Message]
) -> str:
    """What the user says next; empty where the conversation is over."""
    if n_turns < len(task.turns):
        return task.turns[n_turns]
    if stage.user is None or task.writer == RULES or not task.goal:
        return ""
    if task.kind not in ("multi_turn", "missing") or n_turns >= stage.config.tasks.max_turns:
        return ""
    system = _USER.format(persona=task.persona or "a customer", goal=task.goal)
    spoken = [
        f"{'You' if m.role == 'user' else 'Assistant'}: {m.text}"
        for m in said
        if m.role in ("user", "assistant") and m.text
    ]
    prompt = "\n".join([*spoken, "You:"])
    user = Metered(stage.user, meter)
    text = (await ask_text(user, system, prompt, _settings(stage.config, task))).strip()
    return "" if text.startswith(_DONE) or text.endswith(_DONE) else text.removeprefix("You: ")


def _recorded(run: Trajectory, task: Task, stage: Stage, meter: Meter) -> Trajectory:
    row = replace(task, tools=[]).to_row()
    beside: JsonObject = {k: v for k, v in row.items() if k not in ("tools", "id", "instructions")}
    # What a check needs to replay the calls is the source of each tool, not its spec once more.
    beside["sources"] = {
        o.name: {"source": o.source, "entry": o.entry, "names": dict[str, JsonValue](o.names)}
        for o in task.tools
    }
    metadata: JsonObject = {
        "source": "synthesis",
        "kind": task.kind,
        "group": task.group,
        "task": beside,
        "usage": meter.to_row(),
    }
    marks = simulated(task, stage.simulator.spec if stage.simulator else "")
    if marks:
        metadata["simulated"] = marks
    if stage.user is not None and len(run.steps) and task.writer != RULES:
        metadata["user"] = f"model {stage.user.spec}"
    return replace(run, id=task.id, metadata=run.metadata | metadata)
