"""A tool as one line of text: a signature with types, then what it is for.

    get_weather(city: string, unit?: "celsius" | "fahrenheit"): Current weather in a city. city:
    City name, e.g. "Lima".

A JSON Schema takes four times as many tokens, which a small model on a CPU has to read before its
first answer.  Types are written as TypeScript writes them; what they cannot say (patterns, bounds)
is left out of the text and stays in the schema, which checks arguments and constrains decoding.
"""

from collections.abc import Mapping
from typing import Any, cast

from antiphon.messages import ToolSpec, dump_json

_NAMES = {
    "boolean": "boolean",
    "integer": "integer",
    "null": "null",
    "number": "number",
    "string": "string",
}


def signature(spec: ToolSpec) -> str:
    """One tool in one line.

    Args:
        spec: The tool.

    >>> signature(ToolSpec("ping", "Answer at once.", {"type": "object", "properties": {"n":
    {"type": "integer"}}})) 'ping(n?: integer): Answer at once.'
    """
    properties = cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
    required = set(cast("list[str]", spec.parameters.get("required") or ()))
    root = spec.parameters
    parameters = ", ".join(
        f"{name}{'' if name in required else '?'}: {type_text(schema, root)}"
        for name, schema in properties.items()
    )
    docs = [
        f"{name}: {_one_line(str(schema['description']))}"
        for name, schema in cast("Mapping[str, Mapping[str, Any]]", properties).items()
        if hasattr(schema, "get") and schema.get("description")
    ]
    return f"{spec.name}({parameters}): " + " ".join([_one_line(spec.description), *docs]).strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


def type_text(schema: Any, root: Mapping[str, Any] | None = None, depth: int = 0) -> str:
    """A JSON Schema as a TypeScript type.

    Args:
        schema: The schema of one value.
        root: The schema that ``$ref`` points into.
        depth: How deep in nested references this is; past 4 the type is ``any``.

    >>> type_text({"type": "array", "items": {"type": "number"}})
    'number[]'
    >>> type_text({"anyOf": [{"type": "string"}, {"type": "null"}]})
    'string | null'
    """
    if not isinstance(schema, Mapping) or depth > 4:
        return "any"
    fields = cast("Mapping[str, Any]", schema)
    if "$ref" in fields:
        return type_text(_resolve(fields["$ref"], root or {}), root, depth + 1)
    if "const" in fields:
        return dump_json(fields["const"])
    if "enum" in fields:
        return " | ".join(dump_json(value) for value in fields["enum"])
    for key in ("anyOf", "oneOf"):
        if key in fields:
            return " | ".join(dict.fromkeys(type_text(s, root, depth) for s in fields[key]))
    kind: Any = fields.get("type")
    if isinstance(kind, list):
        kinds = cast("list[str]", kind)
        return " | ".join(type_text({**fields, "type": one}, root, depth) for one in kinds)
    if kind == "array":
        item = type_text(fields.get("items"), root, depth + 1)
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object":
        return _object_text(fields, root, depth)
    return _NAMES.get(str(kind), "any")


def _object_text(schema: Mapping[str, Any], root: Mapping[str, Any] | None, depth: int) -> str:
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    if not properties:
        return "object"
    required = set(cast("list[str]", schema.get("required") or ()))
    fields = ", ".join(
        f"{name}{'' if name in required else '?'}: {type_text(value, root, depth + 1)}"
        for name, value in properties.items()
    )
    return "{" + fields + "}"


def _resolve(reference: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for key in reference.removeprefix("#/").split("/"):
        if not isinstance(node, Mapping) or key not in node:
            return {}
        node = cast("Mapping[str, Any]", node)[key.replace("~1", "/").replace("~0", "~")]
    return node
