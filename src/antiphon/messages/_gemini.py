"""A tool's schema as Gemini's ``parameters``: the OpenAPI 3.0 subset with upper-case types.

References are written in place, null becomes ``nullable``, a map a list of key-value pairs, and any
JSON value its text.

Source, read in November 2026: Google's Python SDK ``google-genai`` 3.6, ``types.Schema``.
"""

import json
from collections.abc import Sequence
from typing import Any

from antiphon.messages._json_schema import (
    ANNOTATIONS,
    MAX_DEPTH,
    Schema,
    as_schema,
    bare,
    check_depth,
    described,
    distinct,
    json_kind,
    merged,
    noted,
    resolve,
    target_name,
)

_GEMINI_CONSTRAINTS = frozenset(
    {"minimum", "maximum", "minItems", "maxItems", "minLength", "maxLength", "pattern"}
)


def gemini(schema: Schema, name: str) -> Schema:
    """A schema as Gemini's ``parameters``: the OpenAPI 3.0 subset with upper-case types.

    References are written in place; one that contains itself is cut after three levels.

    Raises:
        RenderError: It is nested too deep to be walked.
    """
    check_depth(schema, name)
    return _gemini(schema, schema, ())


def _gemini(node: Any, root: Schema, inside: tuple[str, ...]) -> Schema:
    schema = as_schema(node)
    if "$ref" in schema:
        target = target_name(schema)
        if inside.count(target) >= 3 or len(inside) > MAX_DEPTH:
            return noted({"type": "STRING"}, schema, f"A further {target}, as JSON text.")
        made = _gemini(resolve(schema, root), root, (*inside, target))
        return described(made, schema)
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return _gemini(merged(schema, name_of(schema)), root, inside)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _gemini_union(schema[key], schema, root, inside)
    if isinstance(schema.get("type"), list):
        kinds: list[str] = schema["type"]
        return _gemini_union([{**bare(schema), "type": k} for k in kinds], schema, root, inside)
    if "enum" in schema or "const" in schema:
        return _gemini_values(schema)
    kind = schema.get("type")
    if kind == "object":
        return _gemini_object(schema, root, inside)
    if kind == "array":
        first: list[Any] = schema.get("prefixItems") or []
        items = distinct([_gemini(s, root, inside) for s in first]) or [
            _gemini(schema.get("items") or {}, root, inside)
        ]
        out: Schema = {"type": "ARRAY", "items": items[0] if len(items) == 1 else {"anyOf": items}}
        if first:
            out |= {"minItems": len(first), "maxItems": len(first)}
        return _gemini_narrowed(out, schema)
    if kind is None:
        return noted({"type": "STRING"}, schema, "Any value, as JSON text.")
    return _gemini_narrowed({"type": str(kind).upper()}, schema)


def name_of(schema: Schema) -> str:
    """What to call a schema in an error: its title, where it has one."""
    return str(schema.get("title") or "a parameter")


def _gemini_union(
    members: Sequence[Any], schema: Schema, root: Schema, inside: tuple[str, ...]
) -> Schema:
    real = [m for m in members if as_schema(m).get("type") != "null"]
    made = [_gemini(m, root, inside) for m in real]
    out: Schema = made[0] if len(made) == 1 else {"anyOf": made}
    if len(real) < len(members):
        out = {**out, "nullable": True}
    return described(out, schema)


def _gemini_values(schema: Schema) -> Schema:
    values: list[Any] = schema["enum"] if "enum" in schema else [schema["const"]]
    real = [v for v in values if v is not None]
    out: Schema
    if all(isinstance(v, str) for v in real):
        out = {"type": "STRING", "enum": real}
        note = ""
    else:
        kinds = {json_kind(v) for v in real}
        out = {"type": kinds.pop().upper() if len(kinds) == 1 else "STRING"}
        note = f"One of {', '.join(json.dumps(v, ensure_ascii=False) for v in real)}."
    if len(real) < len(values):
        out["nullable"] = True
    return noted(out, schema, note)


def _gemini_object(schema: Schema, root: Schema, inside: tuple[str, ...]) -> Schema:
    properties: dict[str, Any] = schema.get("properties") or {}
    extra: Any = schema.get("additionalProperties")
    if not properties and inside == () and schema is root:
        return {"type": "OBJECT", "properties": {}}
    if not properties:
        value = _gemini(extra if isinstance(extra, dict) else {}, root, inside)
        pair: Schema = {
            "type": "OBJECT",
            "properties": {"key": {"type": "STRING"}, "value": value},
            "required": ["key", "value"],
        }
        return noted({"type": "ARRAY", "items": pair}, schema, "An object, as a list of its pairs.")
    out: Schema = {
        "type": "OBJECT",
        "properties": {name: _gemini(child, root, inside) for name, child in properties.items()},
        "propertyOrdering": list(properties),
    }
    if schema.get("required"):
        out["required"] = list(schema["required"])
    return described(out, schema)


def _gemini_narrowed(out: Schema, schema: Schema) -> Schema:
    notes: list[str] = []
    for key, value in schema.items():
        if key in ANNOTATIONS or key in ("type", "items", "prefixItems"):
            continue
        if key in _GEMINI_CONSTRAINTS or (key == "format" and value == "date-time"):
            out[key] = value
        else:
            notes.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")
    return noted(out, schema, f"({', '.join(notes)})" if notes else "")
