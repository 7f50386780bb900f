"""JSON Schema as a tree: how to walk it, and what its parts mean.

Shared by the renderings of a tool's schema (`_strict.py`, `_gemini.py`) and by the way back
(`_restore.py`).  Schemas may come from anywhere: nothing here trusts their depth or their types.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from antiphon.errors import RenderError

Schema = dict[str, Any]

MAX_DEPTH = 64
_MAPS = ("properties", "$defs", "definitions", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONES = ("items", "additionalProperties", "not", "contains", "if", "then", "else")
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "$schema", "$id", "$comment"}
)


class Refused(Exception):
    """An API's schema language has no words for this tool; the message says for what."""


def as_schema(value: Any) -> Schema:
    """The value where it is a schema object, else the schema of anything."""
    return cast("Schema", value) if isinstance(value, dict) else {}


def check_depth(schema: object, name: str) -> None:
    """Refuse a schema that nests so deep that walking it could exhaust the stack.

    Args:
        schema: Any schema, of any origin.
        name: The tool's name, for the error.

    Raises:
        RenderError: It is deeper than 64 levels.
    """
    level: list[Any] = [schema]
    for _ in range(MAX_DEPTH + 1):
        level = [child for node in level for child in children(node)]
        if not level:
            return
    raise RenderError(
        f"the schema of tool {name!r} is nested more than {MAX_DEPTH} levels deep; flatten it",
        format="json schema",
    )


def children(node: Any) -> list[Any]:
    if not isinstance(node, Mapping):
        return []
    schema = cast("Mapping[str, Any]", node)
    out: list[Any] = []
    for key in _MAPS:
        value: Any = schema.get(key)
        if isinstance(value, Mapping):
            out.extend(cast("Mapping[str, Any]", value).values())
    for key in _LISTS:
        value = schema.get(key)
        if isinstance(value, list):
            out.extend(cast("list[Any]", value))
    out.extend(schema[key] for key in _ONES if key in schema)
    return out


def merged(schema: Schema, here: str) -> Schema:
    parts: list[Any] = schema["allOf"]
    if len(parts) != 1 or not isinstance(parts[0], dict):
        raise Refused(f"{here} is several schemas at once (allOf)")
    return {**cast("Schema", parts[0]), **{k: v for k, v in schema.items() if k != "allOf"}}


def bare(schema: Schema) -> Schema:
    return {k: v for k, v in schema.items() if k not in ANNOTATIONS}


def distinct(schemas: Sequence[Schema]) -> list[Schema]:
    out: list[Schema] = []
    for schema in schemas:
        if schema not in out:
            out.append(schema)
    return out


def described(out: Schema, schema: Schema) -> Schema:
    return noted(out, schema, "")


def noted(out: Schema, schema: Schema, note: str) -> Schema:
    """With the original description, and behind it what the API's schema cannot say."""
    texts = [schema.get("description") or out.get("description") or ""]
    if "default" in schema:
        texts.append(f"Default: {json.dumps(schema['default'], ensure_ascii=False)}.")
    text = " ".join(t for t in (*texts, note) if t)
    return {**out, "description": text} if text else out


def json_kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    return "string"


def target_name(schema: Mapping[str, Any]) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def resolve(schema: Mapping[str, Any], root: Schema) -> Schema:
    """What a local ``$ref`` stands for; a reference that leads nowhere stands for anything."""
    reference = schema.get("$ref")
    if reference == "#":
        return root
    here: Any = root
    for part in str(reference).removeprefix("#/").split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        here = cast("Schema", here).get(part, {}) if isinstance(here, dict) else {}
    return cast("Schema", here) if isinstance(here, dict) else {}


def is_recursive(name: str, root: Schema) -> bool:
    definitions: dict[str, Any] = root.get("$defs") or root.get("definitions") or {}
    seen: set[str] = set()
    waiting: list[Any] = [definitions.get(name, root if name == "#" else {})]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict) and "$ref" in node:
            target = target_name(cast("Schema", node))
            if target == name:
                return True
            if target not in seen:
                seen.add(target)
                waiting.append(definitions.get(target, {}))
        waiting.extend(children(node))
    return False


def accepts_null(schema: Any, root: Schema, depth: int = 0) -> bool:
    """Whether null is a value of a schema."""
    if not isinstance(schema, dict) or depth > MAX_DEPTH:
        return schema is not False
    node = cast("Schema", schema)
    if "$ref" in node:
        return accepts_null(resolve(node, root), root, depth + 1)
    for key in ("anyOf", "oneOf"):
        if key in node:
            return any(accepts_null(s, root, depth + 1) for s in node[key])
    if "enum" in node:
        return None in node["enum"]
    if "const" in node:
        return node["const"] is None
    kind: Any = node.get("type")
    return kind is None or kind == "null" or (isinstance(kind, list) and "null" in kind)
