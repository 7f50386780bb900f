"""Tools as Kimi K2.5 is shown them: TypeScript, one type a tool.

    // Weather in a city.
    type get_weather = (_: {
      // City name
      city: string,
      days?: number
    }) => any;

Required properties come first, each group by name.  A schema that the family's own encoder cannot
say (a reference that points nowhere, a schema without a type) makes it show all tools as compact
JSON with sorted keys instead, and so it does here.
Source: ``tool_declaration_ts.py`` of moonshotai/Kimi-K2.5, as tinker-cookbook carries it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from antiphon.messages import ToolSpec

_UNION = {
    "string": "string",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "null": "null",
    "object": "{}",
    "array": "Array<any>",
}
_LIMITS = {
    "string": ("maxLength", "minLength", "pattern"),
    "number": ("maximum", "minimum"),
    "integer": ("maximum", "minimum"),
    "array": ("minItems", "maxItems"),
}
_CHECKS: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "number": lambda v: isinstance(v, int | float),
    "integer": lambda v: isinstance(v, int),
    "boolean": lambda v: isinstance(v, bool),
}


class _Unsayable(Exception):
    """A schema that the encoder refuses."""


@dataclass(slots=True)
class _Names:
    """Definitions met so far, and whether the root refers to itself."""

    definitions: dict[str, Any] = field(default_factory=dict[str, Any])
    refers_to_root: bool = False


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """The listing of all tools."""
    specs = _sorted([tool.to_openai() for tool in tools])
    try:
        types = "\n".join(_function(spec["function"]) for spec in specs)
    except _Unsayable:
        return json.dumps(specs, ensure_ascii=False, separators=(",", ":"))
    return f"# Tools\n\n## functions\nnamespace functions {{\n{types}\n}}\n"


def _sorted(value: Any) -> Any:
    """JSON with the keys of every object sorted."""
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value)
        return {key: _sorted(items[key]) for key in sorted(items)}
    if isinstance(value, list):
        return [_sorted(item) for item in cast("list[Any]", value)]
    return value


def _function(function: Mapping[str, Any]) -> str:
    names = _Names()
    parameters: Mapping[str, Any] = function.get("parameters") or {}
    shape = _object(parameters, names, "")
    parts: list[str] = []
    if names.refers_to_root:
        fields = ",\n".join(
            _property(key, value, key not in parameters.get("required", ()), names, "  ")
            for key, value in parameters.get("properties", {}).items()
        )
        parts.append("interface parameters {" + (f"\n{fields}\n" if fields else "") + "}")
        shape = "parameters"
    for name, schema in list(names.definitions.items()):
        text = f"interface {name} {_type(schema, names, '')}"
        description = schema.get("description", "")
        parts.append(f"{_comment(description)}\n{text}" if description else text)
    description = function.get("description")
    if description:
        parts.append(_comment(description))
    parts.append(f"type {function['name']} = (_: {shape}) => any;")
    return "\n".join(parts)


def _comment(text: str, indent: str = "") -> str:
    return "\n".join(f"{indent}// {line}" if line else "" for line in text.split("\n"))


def _type(schema: Any, names: _Names, indent: str) -> str:
    """A schema as a TypeScript type."""
    if isinstance(schema, bool):
        return "any" if schema else "null"
    if "$ref" in schema:
        return _reference(schema["$ref"], names)
    if "anyOf" in schema:
        return " | ".join(_type(option, names, indent) for option in schema["anyOf"])
    if "enum" in schema:
        return _enum(schema)
    kind = schema.get("type")
    if isinstance(kind, list):
        return _union(cast("list[str]", kind))
    if kind == "object":
        return _object(schema, names, indent)
    if kind == "array":
        return _array(schema, names, indent)
    if kind is None:
        if schema:
            raise _Unsayable
        return "any"
    return "number" if kind == "integer" else str(kind)


def _reference(ref: str, names: _Names) -> str:
    if ref == "#":
        names.refers_to_root = True
        return "parameters"
    name = ref.rsplit("/", 1)[-1]
    if not ref.startswith("#/$defs/") or name not in names.definitions:
        raise _Unsayable
    return name


def _enum(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    values: list[Any] = schema["enum"]
    if isinstance(kind, list):
        kinds = [k for k in cast("list[str]", kind) if k != "null"]
        if len(kinds) != 1:
            raise _Unsayable
        kind = kinds[0]
    fits = _CHECKS.get(kind) if isinstance(kind, str) else None
    if fits is not None and not all(value is None or fits(value) for value in values):
        raise _Unsayable
    return " | ".join(f'"{v}"' if isinstance(v, str) else str(v) for v in values)


def _union(kinds: Sequence[str]) -> str:
    if any(kind not in _UNION for kind in kinds):
        raise _Unsayable
    return " | ".join(_UNION[kind] for kind in kinds)


def _array(schema: Mapping[str, Any], names: _Names, indent: str) -> str:
    item = schema.get("items")
    if not item:
        return "Array<any>"
    doc = _doc(item, indent + "  ")
    if not doc:
        return f"Array<{_type(item, names, indent)}>"
    inner = _type(item, names, indent + "  ")
    return f"Array<\n{doc}{indent}  {inner}\n{indent}>"


def _object(schema: Mapping[str, Any], names: _Names, indent: str) -> str:
    names.definitions |= schema.get("$defs") or {}
    properties: Mapping[str, Any] = schema.get("properties", {})
    required = [key for key in sorted(properties) if key in schema.get("required", ())]
    optional = [key for key in sorted(properties) if key not in required]
    fields = [
        _property(key, properties[key], key in optional, names, indent + "  ")
        for key in (*required, *optional)
    ]
    others = schema.get("additionalProperties")
    if others is not None:
        kind = {True: "any", False: "never"}.get(others) if isinstance(others, bool) else None
        kind = kind or _type(others, names, indent + "  ")
        fields.append(f"{indent}  [k: string]: {kind}")
    return "{\n" + ",\n".join(fields) + f"\n{indent}}}" if fields else "{}"


def _property(key: str, schema: Any, optional: bool, names: _Names, indent: str) -> str:
    doc = _doc(schema, indent)
    fields: Mapping[str, Any] = {}
    if isinstance(schema, Mapping):
        fields = cast("Mapping[str, Any]", schema)
    default: Any = fields.get("default")
    if default is not None:
        plain = isinstance(default, int | float)
        shown = repr(default) if plain else json.dumps(default, ensure_ascii=False)
        doc += f"{indent}// Default: {shown}\n"
    return f"{doc}{indent}{key}{'?' if optional else ''}: {_type(schema, names, indent)}"


def _doc(schema: Any, indent: str) -> str:
    """The comment above a type: its description and its limits."""
    if not isinstance(schema, Mapping):
        return ""
    fields = cast("Mapping[str, Any]", schema)
    lines = [_comment(fields["description"], indent)] if fields.get("description") else []
    typed = not any(key in fields for key in ("$ref", "anyOf", "enum"))
    kind = fields.get("type")
    limits = _LIMITS.get(kind, ()) if typed and isinstance(kind, str) else ()
    shown = ", ".join(f"{key}: {fields[key]}" for key in sorted(limits) if key in fields)
    if shown:
        lines.append(f"{indent}// {shown}")
    return "".join(line + "\n" for line in lines)
