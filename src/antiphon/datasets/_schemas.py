"""Tool specs that are not quite JSON Schema, as JSON Schema.

Data sets write Python's words for types, flat maps of parameters, and lists of schemas inside
prose.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from antiphon.datasets._literal import parse_literal, without_added_nulls
from antiphon.errors import DataError
from antiphon.messages import ToolSpec

_TYPES = {
    "dict": "object",
    "float": "number",
    "double": "number",
    "long": "integer",
    "int": "integer",
    "str": "string",
    "bool": "boolean",
    "list": "array",
    "tuple": "array",
    "set": "array",
    "any": "",
}
PYTHON_WORDS = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
}
"""JSON Schema's words for types in Python's."""
_GENERIC = re.compile(r"(\w+)\[(.*)\]$")


def typed(schema: Any) -> Any:
    """A schema with JSON Schema's words for types; ``any`` leaves the type open."""
    if isinstance(schema, list):
        return [typed(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    made: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", schema).items():
        if key == "type" and isinstance(value, str):
            word = _TYPES.get(value.lower(), value)
            if word:
                made[key] = word
        else:
            made[key] = typed(value)
    return made


def spec_from(function: Mapping[str, Any]) -> ToolSpec:
    """A function with almost a schema as a spec; nulls and unknown words for types are mended."""
    inner: Any = function.get("function", function)
    mended = typed(without_added_nulls(dict(cast("Mapping[str, Any]", inner))))
    if not mended.get("required", True):
        del mended["required"]
    return ToolSpec.from_openai({"type": "function", "function": mended})


def spec_from_flat(function: Mapping[str, Any]) -> ToolSpec:
    """A function whose parameters are a flat map in Python's words (xLAM)."""
    given: Any = function.get("parameters") or {}
    if given.get("type") == "object" and isinstance(given.get("properties"), Mapping):
        return spec_from(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in cast("Mapping[str, Any]", given).items():
        words = str(parameter.get("type", "")).split(",")
        properties[name] = _python_type(words[0].strip())
        if parameter.get("description"):
            properties[name]["description"] = parameter["description"]
        if parameter.get("default") not in (None, ""):
            properties[name]["default"] = parameter["default"]
        if not any("optional" in word for word in words[1:]) and "default" not in parameter:
            required.append(name)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return ToolSpec.from_openai(
        {
            "type": "function",
            "function": {
                "name": function.get("name"),
                "description": function.get("description", ""),
                "parameters": schema,
            },
        }
    )


def _python_type(word: str) -> dict[str, Any]:
    """``List[int]`` as a schema.

    >>> _python_type("List[int]")
    {'type': 'array', 'items': {'type': 'integer'}}
    """
    match = _GENERIC.match(word)
    if match is None:
        name = _TYPES.get(word.lower(), word.lower())
        return {"type": name} if name in {*_TYPES.values(), "string", "null"} - {""} else {}
    outer, inner = match[1].lower(), match[2]
    if outer == "optional":
        return _python_type(inner)
    if outer in ("list", "set", "tuple", "sequence"):
        items = _python_type(inner.split(",")[0].strip())
        return {"type": "array", "items": items} if items else {"type": "array"}
    return {"type": "object"} if outer in ("dict", "mapping") else {}


def objects_in(text: str) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """The JSON objects in a text, also inside lists, with the place of each."""
    decoder = json.JSONDecoder()
    place = text.find("{")
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            place = text.find("{", place + 1)
            continue
        yield place, end, cast("dict[str, Any]", value)
        place = text.find("{", end)


def list_after(text: str, mark: str) -> list[Any]:
    """The JSON or Python list that follows a mark in a text.

    Raises:
        DataError: There is none.
    """
    place = text.find("[", text.find(mark))
    if text.find(mark) < 0 or place < 0:
        raise DataError(f"no list of tools behind {mark!r} in the system text")
    try:
        value, _ = json.JSONDecoder().raw_decode(text, place)
    except json.JSONDecodeError:
        value = parse_literal(text[place : text.rindex("]") + 1], "the list of tools")
    return cast("list[Any]", value)
