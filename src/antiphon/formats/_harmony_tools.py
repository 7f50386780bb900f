"""Tools as gpt-oss is shown them: a TypeScript namespace, with its template's own white space.

Source: ``gptoss.jinja`` as trl 1.16 ships it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from antiphon.messages import ToolSpec, dump_json

_SCALARS = {"number": "number", "integer": "number", "boolean": "boolean"}
_BREAK = "\n" + " " * 16  # between a nested property's name and its type
_DEEP = " " * 20  # before the default of an option


def namespace(tools: Sequence[ToolSpec]) -> str:
    """The listing of all tools."""
    types = "".join(_function(tool) for tool in tools)
    return f"## functions\n\nnamespace functions {{\n\n{types}}} // namespace functions"


def _function(tool: ToolSpec) -> str:
    parameters: Mapping[str, Any] = tool.to_openai()["function"].get("parameters") or {}
    properties: Mapping[str, Any] = parameters.get("properties") or {}
    head = f"// {tool.description}\ntype {tool.name} = "
    if not properties:
        return f"{head}() => any;\n\n"
    required = parameters.get("required") or ()
    fields = "".join(_property(key, value, key in required) for key, value in properties.items())
    return f"{head}(_: {{\n{fields}}}) => any;\n\n"


def _property(key: str, schema: Mapping[str, Any], required: bool) -> str:
    text = f"// {schema['description']}\n" if schema.get("description") else ""
    text += f"{key}{'' if required else '?'}: {_type(schema)}"
    if "default" in schema:
        default = schema["default"]
        if schema.get("enum"):
            text += f", // default: {default}"
        elif schema.get("oneOf"):
            text += f"// default: {default}"
        else:
            text += f", // default: {dump_json(default)}"
    return text + ",\n"


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if kind == "array":
        return _array(schema) + (" | null" if schema.get("nullable") else "")
    if isinstance(kind, list) and kind:
        return " | ".join(cast("list[str]", kind))
    if schema.get("oneOf"):
        return _one_of(schema["oneOf"])
    if kind == "string":
        if schema.get("enum"):
            return '"' + '" | "'.join(str(value) for value in schema["enum"]) + '"'
        return "string | null" if schema.get("nullable") else "string"
    if kind == "object":
        return _object(schema)
    return _SCALARS.get(kind, "any") if isinstance(kind, str) else "any"


def _array(schema: Mapping[str, Any]) -> str:
    items: Mapping[str, Any] = schema.get("items") or {}
    kind = items.get("type")
    if not items:
        return "any[]"
    if kind == "string":
        return "string[]"
    inner = _SCALARS.get(kind, "") if isinstance(kind, str) else ""
    inner = inner or _type(items)
    return "any[]" if inner == "object | object" or len(inner) > 50 else f"{inner}[]"


def _object(schema: Mapping[str, Any]) -> str:
    properties: Mapping[str, Any] = schema.get("properties") or {}
    if not properties:
        return "object"
    required = schema.get("required") or ()
    fields = [
        f"{key}{'' if key in required else '?'}: {_BREAK}{_type(value)}"
        for key, value in properties.items()
    ]
    return "{\n" + ", ".join(fields) + "}"


def _one_of(options: Sequence[Mapping[str, Any]]) -> str:
    texts: list[str] = []
    for option in options:
        text = _type(option)
        if option.get("description"):
            text += f"// {option['description']}"
        if "default" in option:
            text += f"{_DEEP}// default: {dump_json(option['default'])}"
        texts.append(text)
    return " | \n".join(texts)
