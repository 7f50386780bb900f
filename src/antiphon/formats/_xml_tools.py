"""Tools as XML, the way Qwen3-Coder and MiMo are shown them: every key in the order it came."""

from collections.abc import Mapping
from typing import Any, cast

from antiphon.formats._typing import kind_of
from antiphon.messages import ToolSpec, dump_json

OBJECTS = frozenset({"object"})
NESTED = frozenset({"object", "array"})


def tool_text(spec: ToolSpec, json: frozenset[str] = OBJECTS) -> str:
    """One tool.

    Args:
        spec: The tool.
        json: The JSON types that are written as JSON; others are, as Python prints them.
    """
    tool = cast("Mapping[str, Any]", spec.to_openai()["function"])
    text = f"\n<function>\n<name>{tool['name']}</name>"
    if "description" in tool:
        text += f"\n<description>{_text(tool['description']).strip()}</description>"
    text += "\n<parameters>"
    parameters = tool.get("parameters")
    if isinstance(parameters, Mapping):
        fields = cast("Mapping[str, Any]", parameters)
        for name, schema in cast("Mapping[str, Any]", fields.get("properties") or {}).items():
            text += _parameter_text(name, schema, json)
        text += _extra(fields, ("type", "properties"), json)
    text += "\n</parameters>"
    return (
        text + _extra(tool, ("type", "name", "description", "parameters"), json) + "\n</function>"
    )


def _parameter_text(name: str, schema: Any, json: frozenset[str]) -> str:
    text = f"\n<parameter>\n<name>{name}</name>"
    fields: Mapping[str, Any] = (
        cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    )
    if "type" in fields:
        text += f"\n<type>{_text(fields['type'])}</type>"
    if "description" in fields:
        text += f"\n<description>{_text(fields['description']).strip()}</description>"
    return text + _extra(fields, ("name", "type", "description"), json) + "\n</parameter>"


def _extra(fields: Mapping[str, Any], handled: tuple[str, ...], json: frozenset[str]) -> str:
    return "".join(
        f"\n<{key}>{dump_json(value) if kind_of(value) in json else _text(value)}</{key}>"
        for key, value in fields.items()
        if key not in handled
    )


def _text(value: Any) -> str:
    """A value as Jinja prints it."""
    return str(value)
