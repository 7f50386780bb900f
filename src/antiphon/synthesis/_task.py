"""A task: what is asked, with which tools, and, where a rule wrote it, what is right.

A task is a row of JSON, so that it can lie in a file and go to another process.  Its `script` says
for each user message which calls are right and what is then said; an argument that an earlier
result decides is a `Link`, since it is known only when the tool has answered.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Self, cast

from antiphon.errors import DataError, clip
from antiphon.messages import JsonObject, JsonValue, ToolSpec


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool on offer in one task."""

    name: str
    """What the model calls it."""
    source: str
    """``python``: executed; ``rule``: answered from a catalog; ``model``: answered by a model."""
    spec: JsonObject
    """Its spec, in OpenAI's spelling."""
    entry: str = ""
    """Its id in the catalog, where it is in one."""
    names: dict[str, str] = field(default_factory=dict[str, str])
    """Parameter key of the catalog -> the name in the spec."""

    @property
    def tool_spec(self) -> ToolSpec:
        """Its spec."""
        return ToolSpec.from_openai(self.spec)


@dataclass(frozen=True, slots=True)
class Fault:
    """A tool that does not work for a while."""

    tool: str
    """Its name."""
    text: str
    """What it says."""
    times: int = 1
    """How many calls fail."""


@dataclass(frozen=True, slots=True)
class Link:
    """A value that an earlier result of the same turn decides."""

    step: int
    """Which step of the turn."""
    call: int
    """Which call of that step."""
    field: str
    """Which field of its result."""


@dataclass(frozen=True, slots=True)
class ScriptCall:
    """A call that is right."""

    name: str
    """The tool."""
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    """What it is called with; a value may be ``{"link": {...}}``, a `Link`."""


@dataclass(frozen=True, slots=True)
class Saying:
    """A sentence about a result."""

    templates: list[str]
    """Ways to say it, best first: the first is taken whose placeholders are all known."""
    said: dict[str, str] = field(default_factory=dict[str, str])
    """Values by placeholder."""
    step: int = -1
    """The step whose result it is about; -1 for none."""
    call: int = 0
    """The call of that step."""


@dataclass(frozen=True, slots=True)
class ScriptTurn:
    """What is right after one user message."""

    steps: list[list[ScriptCall]] = field(default_factory=list[list[ScriptCall]])
    """The calls of each step."""
    sayings: list[Saying] = field(default_factory=list[Saying])
    """What is then said."""
    tries: int = 1
    """How often a step that failed is tried."""


@dataclass(frozen=True, slots=True)
class Task:
    """One task."""

    id: str
    """Its name, the same for the same seed."""
    kind: str
    """What kind it is."""
    turns: list[str]
    """What the user says: everything, or only the first message where a model plays the user."""
    tools: list[Offered]
    """What is on offer."""
    group: int = 0
    """Tasks of one group have the same tools and instructions."""
    instructions: str = ""
    """The system message."""
    script: list[ScriptTurn] = field(default_factory=list[ScriptTurn])
    """What is right, turn by turn; empty where nobody knows."""
    faults: list[Fault] = field(default_factory=list[Fault])
    """Tools that do not work for a while."""
    goal: str = ""
    """What the simulated user wants."""
    persona: str = ""
    """Who the user is."""
    scenario: str = ""
    """What it is about."""
    toolset: int = 0
    """Which set of the config the tools are from."""
    seed: int = 0
    """Decides what simulated tools answer."""
    writer: str = "rules"
    """Who wrote it."""
    targets: list[str] = field(default_factory=list[str])
    """Tools that the writer expects to be called; empty where it does not say."""
    thoughts: bool = False
    """Whether a rule-based teacher thinks aloud."""

    def to_row(self) -> JsonObject:
        """The task as JSON; specs and arguments in it are those of the task."""
        return {item.name: _plain(getattr(self, item.name)) for item in fields(self)}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a task.

        Raises:
            DataError: The row is no task.
        """
        known = {item.name for item in fields(cls)}
        try:
            given: dict[str, Any] = {k: v for k, v in row.items() if k in known}
            given["tools"] = [Offered(**one) for one in given["tools"]]
            given["faults"] = [Fault(**one) for one in given.get("faults", ())]
            given["script"] = [_turn(one) for one in given.get("script", ())]
            return cls(**given)
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"the row is no task: {clip(row)}; write tasks with synth") from error


def _plain(value: Any) -> Any:
    """A value without dataclasses.  `dataclasses.asdict` copies every spec, which costs more than
    the run of a short task."""
    if is_dataclass(value):
        return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
    return [_plain(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def _turn(row: Mapping[str, Any]) -> ScriptTurn:
    return ScriptTurn(
        [[ScriptCall(**call) for call in step] for step in row["steps"]],
        [Saying(**one) for one in row["sayings"]],
        row.get("tries", 1),
    )


def link_value(link: Link) -> JsonObject:
    """A link as a value among arguments."""
    return {"link": {"step": link.step, "call": link.call, "field": link.field}}


def moved(arguments: Mapping[str, Any], n_steps: int) -> dict[str, Any]:
    """Arguments whose links count steps that come before, too."""
    links = {name: _link(value) for name, value in arguments.items()}
    return {
        name: value if link is None else link_value(replace(link, step=link.step + n_steps))
        for (name, value), link in zip(arguments.items(), links.values(), strict=True)
    }


def resolved(
    arguments: Mapping[str, Any], results: Sequence[Sequence[JsonValue]]
) -> "JsonObject | None":
    """Arguments with links replaced by what the results say; ``None`` where one says nothing.

    Args:
        arguments: As in a `ScriptCall`.
        results: The values of the calls of each step so far.
    """
    values: JsonObject = {}
    for name, value in arguments.items():
        link = _link(value)
        if link is None:
            values[name] = value
            continue
        result = results[link.step][link.call] if link.step < len(results) else None
        if not isinstance(result, dict) or link.field not in result:
            return None
        values[name] = result[link.field]
    return values


def _link(value: Any) -> Link | None:
    if isinstance(value, dict) and set(cast("dict[str, Any]", value)) == {"link"}:
        return Link(**cast("dict[str, Any]", value["link"]))
    return None


def result_value(text: str) -> JsonValue:
    """A result as a value: its JSON, or the text itself."""
    try:
        return cast("JsonValue", json.loads(text))
    except ValueError:
        return text
