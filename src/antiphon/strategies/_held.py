"""What a planner may write, where its model can be held to it: plans that can be carried out.

A weak model that writes what it likes writes no plan.  Under a grammar of ours it names tools that
there are, gives each task an id of its own, and refers only to tasks that come first; what is left
to the checks is whether values fit together.  Where little room is left for the answer, few tasks
and short texts are held, so that the plan does not break off.  A server that takes a JSON Schema
but no grammar is given the outline of a plan.

Text dialects are held by a regular expression, JSON by a schema of which each item has its own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any, cast

from antiphon.messages import JsonObject, JsonValue, ToolSpec, dump_json
from antiphon.models import ModelSettings
from antiphon.strategies._dialects import Dialect

_MAX_ALTERNATIVES = 400  # tasks times tools; beyond it all tasks share one schema
_TASK_TOKENS = 60  # a short task
_FRAME_TOKENS = 25  # of these, what stands around its text
_MUCH = 1000  # tokens of an answer that need not be short
_MAX_CHARS = 200  # of a text in a short answer

_PATH = r"(?:\.[A-Za-z0-9_]{1,40}|\[[0-9]{1,3}\]){0,4}"


@dataclass(frozen=True, slots=True)
class Room:
    """What plans may be made of."""

    tools: Sequence[ToolSpec]
    """The tools that tasks may call."""
    agents: Sequence[str] = ()
    """Agents that tasks in words may be given to."""
    known: Sequence[str] = ()
    """Ids of tasks that there were before, in order."""
    done: Sequence[str] = ()
    """Of these, the ones that are completed and may be referred to."""
    min_tasks: int = 0
    """0 or 1: whether a plan may have none."""
    max_tasks: int = 20
    """The most tasks of one plan."""
    tokens: int | None = None
    """How long the answer may be under a grammar; ``None`` where there is none."""

    @property
    def n_tasks(self) -> int:
        """How many tasks there is room for."""
        fitting = self.max_tasks if self.tokens is None else self.tokens // _TASK_TOKENS
        return max(1, min(self.max_tasks, fitting))

    def n_chars(self, n_texts: int) -> int | None:
        """How long each of some texts of a task may be; ``None`` for any length."""
        if self.tokens is None or self.tokens >= _MUCH:
            return None
        each = (self.tokens // self.n_tasks - _FRAME_TOKENS) * 3 // max(1, n_texts)
        return min(max(each, 16), _MAX_CHARS)

    def ids(self, *, numbers: str | None = None) -> list[str]:
        """What the tasks are to be called: ids that failed first, then new ones.

        Args:
            numbers: What stands before the number of an id that has to be one.
        """
        again = [id for id in self.known if id not in self.done]
        if numbers is not None:
            again = [id for id in again if re.fullmatch(numbers + r"\d+", id)]
        made = _letters() if numbers is None else (f"{numbers}{n}" for n in count(1))
        taken = set(self.known)
        new = (id for id in made if id not in taken)
        return [*again, *islice(new, self.n_tasks)][: self.n_tasks]


def held(settings: ModelSettings, dialect: Dialect, room: Room) -> ModelSettings:
    """Settings under which a planner writes plans that can be carried out.

    Args:
        settings: How it is asked otherwise.
        dialect: How it writes plans.
        room: What they may be made of.
    """
    if settings.constrain is False:
        return settings
    if dialect == "json":
        return replace(settings, response_schema=_plan_schema(room))
    if room.tokens is None or not room.tools:
        return settings
    pattern = _rewoo_pattern(room) if dialect == "rewoo" else _compiler_pattern(room)
    return replace(settings, response_pattern=pattern)


def _letters() -> Iterator[str]:
    """a, b, ..., z, t1, t2, ..."""
    yield from map(chr, range(ord("a"), ord("z") + 1))
    yield from (f"t{n}" for n in count(1))


# JSON


def _plan_schema(room: Room) -> JsonObject:
    definitions: JsonObject = {}
    n_kinds = len(room.tools) + 1
    tasks: JsonObject = {"type": "array", "minItems": room.min_tasks, "maxItems": room.n_tasks}
    if room.tokens is not None and room.n_tasks * n_kinds <= _MAX_ALTERNATIVES:
        ids = room.ids()
        tasks["prefixItems"] = [
            _task_schema(room, definitions, id, [*room.done, *ids[:n]]) for n, id in enumerate(ids)
        ]
        tasks["items"] = False
    else:
        tasks["items"] = _task_schema(room, definitions, None, None)
    schema = _object({"tasks": tasks}, {})
    if definitions:
        schema["$defs"] = definitions
    return schema


def _task_schema(
    room: Room, definitions: JsonObject, id: str | None, before: Sequence[str] | None
) -> JsonObject:
    """A task of the plan; with the ids that it may refer to, where they are known."""
    own: JsonObject = {"type": "string"} if id is None else {"const": id}
    more: JsonObject = {}
    if before is None:
        more["depends_on"] = {"type": "array", "items": {"type": "string"}}
    elif before:
        earlier: JsonObject = {"enum": list[JsonValue](before)}
        more["depends_on"] = {"type": "array", "items": earlier, "maxItems": len(before)}
    if room.n_chars(1) is None:
        more["title"] = {"type": "string"}
    kinds: list[JsonValue] = [
        _object(
            {
                "id": own,
                "tool": {"const": spec.name},
                "arguments": _arguments(spec, room, definitions, before),
            },
            more,
        )
        for spec in room.tools
    ]
    words: JsonObject = {"id": own, "prompt": _text_schema(room.n_chars(1), before)}
    agent: JsonObject = {"agent": {"enum": list[JsonValue](room.agents)}} if room.agents else {}
    return {"anyOf": [*kinds, _object(words, agent | more)]}


def _object(required: JsonObject, optional: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": required | optional,
        "required": list[JsonValue](required),
        "additionalProperties": False,
    }


def _arguments(
    spec: ToolSpec, room: Room, definitions: JsonObject, before: Sequence[str] | None
) -> JsonObject:
    """A tool's arguments, each of which may be a reference instead."""
    n_texts = sum(map(_is_text, _parameters(spec)[0].values()))
    place = f"{spec.name}.{len(before or ())}."
    own = _Argued(place, room.n_chars(n_texts), before).schema(spec.parameters)
    definitions |= {
        f"{place}{name}": schema
        for name, schema in cast("JsonObject", own.pop("$defs", {})).items()
    }
    properties = cast("Mapping[str, JsonValue]", own.get("properties") or {})
    own["properties"] = {name: _or_whole(item, before) for name, item in properties.items()}
    return {"type": "object", "additionalProperties": False} | own


def _or_whole(schema: JsonValue, before: Sequence[str] | None) -> JsonValue:
    """A value, or a reference in its place."""
    if isinstance(schema, dict) and schema.get("type") == "string" and "pattern" in schema:
        return schema  # text, which may be one, too
    if before is None:
        return {"anyOf": [schema, {"type": "string"}]}
    if not before:
        return schema
    return {"anyOf": [schema, {"type": "string", "pattern": f"^{_reference(before)}$"}]}


@dataclass(frozen=True, slots=True)
class _Argued:
    """A tool's schema as that of one task's arguments, beside those of others."""

    place: str
    """What its definitions are led by."""
    n_chars: int | None
    """How long texts may be."""
    before: Sequence[str] | None
    """What texts may refer to."""

    def schema(self, given: JsonObject) -> JsonObject:
        """A schema, and all inside it."""
        if _is_text(given):
            return _text_schema(self.n_chars, self.before)
        made: JsonObject = {}
        for key, value in given.items():
            if key in ("properties", "$defs") and isinstance(value, dict):
                made[key] = {name: self.value(item) for name, item in value.items()}
            elif key == "$ref" and isinstance(value, str):
                made[key] = value.replace("#/$defs/", f"#/$defs/{self.place}", 1)
            elif key in ("enum", "const", "default", "examples", "required"):
                made[key] = value
            else:
                made[key] = self.value(value)
        return made

    def value(self, given: JsonValue) -> JsonValue:
        """Schemas in lists and by themselves; all else is as it was."""
        if isinstance(given, list):
            return [self.value(item) for item in given]
        return self.schema(given) if isinstance(given, dict) else given


def _is_text(schema: JsonValue) -> bool:
    """Whether a schema allows any text."""
    told = {"description", "title", "default", "examples", "type"}
    return isinstance(schema, dict) and schema.get("type") == "string" and schema.keys() <= told


def _text_schema(n_chars: int | None, before: Sequence[str] | None) -> JsonObject:
    """Text in which a dollar sign is one or begins a reference to what comes first."""
    if before is None:
        return {"type": "string"}
    piece = "|".join(["[^$]", r"\$\$", r"\$[^${]", *([_reference(before)] if before else [])])
    return {"type": "string", "pattern": f"^(?:{piece}){_times(n_chars)}$"}


def _reference(before: Sequence[str]) -> str:
    return rf"\$\{{(?:{_one_of(before)}){_PATH}\}}"


def _one_of(texts: Sequence[str]) -> str:
    return "|".join(map(re.escape, texts))


def _times(n_chars: int | None) -> str:
    return "{1,}" if n_chars is None else f"{{1,{n_chars}}}"


# Text


def _rewoo_pattern(room: Room) -> str:
    """Lines ``Plan: why`` and ``#E1 = tool[input]``."""
    lines: list[str] = []
    for id, before in _numbered(room, "E"):
        reference = f"#(?:{before})" if before else ""
        calls = "|".join(_rewoo_call(spec, room, reference) for spec in room.tools)
        lines.append(rf"Plan: [^\n#]{{1,100}}\n#{id} = (?:{calls})")
    return _in_order(lines, r"\n")


def _rewoo_call(spec: ToolSpec, room: Room, reference: str) -> str:
    properties, _ = _parameters(spec)
    if len(properties) != 1:
        inside = _by_name(spec, room, reference)
    else:
        (schema,) = properties.values()
        text = _text(r"[^\n#]|#[^E\n]", reference, r"[^\w\n#]", room.n_chars(1))
        inside = text if _is_text(schema) else _value(schema, reference, None) or text
    return rf"{re.escape(spec.name)}\[(?:{inside})\]"


def _compiler_pattern(room: Room) -> str:
    """Lines ``1. tool(arguments)``, ``join()`` last."""
    lines: list[str] = []
    for id, before in _numbered(room, ""):
        reference = rf"\$(?:{before})" if before else ""
        calls = "|".join(
            rf"{re.escape(spec.name)}\({_by_name(spec, room, reference)}\)" for spec in room.tools
        )
        lines.append(rf"{id}\. (?:{calls})\n")
    least = "" if room.min_tasks else "?"
    return rf"(?:{_in_order(lines, '')}){least}[0-9]{{1,3}}\. join\(\)"


def _numbered(room: Room, letter: str) -> Iterator[tuple[str, str]]:
    """The tasks' ids, each with the ids that it may refer to, as alternatives of a pattern."""
    ids = room.ids(numbers=letter)
    done = [id for id in room.done if re.fullmatch(letter + r"[0-9]+", id)]
    for n, id in enumerate(ids):
        yield id, "|".join([*done, *ids[:n]])


def _in_order(lines: Sequence[str], between: str) -> str:
    """The first line, and each of the others where all before it stand."""
    made = ""
    for line in reversed(lines):
        made = line + (f"(?:{between}{made})?" if made else "")
    return made


def _by_name(spec: ToolSpec, room: Room, reference: str) -> str:
    """Arguments as Python writes them: a single one by itself, several by name."""
    properties, required = _parameters(spec)
    n_texts = sum(_is_text(schema) for schema in properties.values())
    values = {
        name: _value(schema, reference, room.n_chars(n_texts)) or _ANY_VALUE
        for name, schema in properties.items()
    }
    pairs = {name: f"{re.escape(name)}=(?:{value})" for name, value in values.items()}
    needed = [pairs[name] for name in properties if name in required]
    others = [pairs[name] for name in properties if name not in required]
    if len(values) == 1:
        (value,) = values.values()
        return f"(?:{value})" if needed else f"(?:{value})?"
    if needed:
        return ", ".join(needed) + _perhaps(others)
    chains = (pair + _perhaps(others[n:]) for n, pair in enumerate(others, start=1))
    return f"(?:{'|'.join(chains)})?" if others else ""


def _perhaps(pairs: Sequence[str]) -> str:
    return "".join(f"(?:, {pair})?" for pair in pairs)


_INTEGER = "-?(?:0|[1-9][0-9]{0,14})"
_LIST, _MAPPING = r"\[[^\n\[\]<>]{0,200}\]", r"\{[^\n{}<>]{0,200}\}"
_ANY_VALUE = rf'{_LIST}|{_MAPPING}|{_INTEGER}|true|false|null|"(?:[^"\\\n$#]|\\["\\nt])*"'


def _value(schema: JsonValue, reference: str, n_chars: int | None) -> str | None:
    """A value as it stands in a call; ``None`` where the schema does not say of what kind."""
    fields: JsonObject = schema if isinstance(schema, dict) else {}
    options = cast("Any", [fields["const"]] if "const" in fields else fields.get("enum"))
    kind = fields.get("type")
    if options is not None:
        made = "|".join(re.escape(dump_json(option)) for option in options)
    elif kind == "string":
        text = _text(r'[^"\\\n$#]|\\["\\nt]', reference, r'[^\w"\\\n$#.,]', n_chars)
        made = f'"(?:{text})"'
    elif kind in ("integer", "number"):
        made = _INTEGER + (r"(?:\.[0-9]{1,10})?" if kind == "number" else "")
    elif kind == "boolean":
        made = "true|false"
    elif kind in ("array", "object"):
        made = _LIST if kind == "array" else _MAPPING
    else:
        return None
    return f"{made}|{reference}" if reference else made


def _text(piece: str, reference: str, behind: str, n_chars: int | None) -> str:
    """Text of pieces and references; `behind` says what may follow a reference in it."""
    if not reference:
        return f"(?:{piece}){_times(n_chars)}"
    return f"{reference}|(?:{piece}|{reference}{behind}){_times(n_chars)}(?:{reference})?"


def _parameters(spec: ToolSpec) -> tuple[Mapping[str, JsonValue], Sequence[str]]:
    properties: Any = spec.parameters.get("properties") or {}
    required: Any = spec.parameters.get("required") or []
    return properties, required
