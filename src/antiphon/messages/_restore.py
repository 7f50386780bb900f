"""Arguments as the canonical schema has them, from a model that was shown a rendering of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from antiphon.messages._json_schema import (
    MAX_DEPTH,
    Schema,
    accepts_null,
    as_schema,
    resolve,
)


def restore(schema: Schema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments as the canonical schema has them, from any rendering of it.

    Null for an optional property that cannot be null is left out, and a list of key-value pairs
    becomes the object it stands for.  Arguments that are canonical already come back as they are.
    """
    made: Any = _restore(schema, dict(arguments), schema, 0)
    return cast("dict[str, Any]", made)


def _restore(node: Any, value: Any, root: Schema, depth: int) -> Any:
    if not isinstance(node, dict) or depth > MAX_DEPTH:
        return value
    schema = cast("Schema", node)
    if "$ref" in schema:
        return _restore(resolve(schema, root), value, root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            variant = _fitting(schema[key], value, root)
            return value if variant is None else _restore(variant, value, root, depth + 1)
    if schema.get("type") == "array" and isinstance(value, list):
        return _restore_items(schema, cast("list[Any]", value), root, depth)
    if schema.get("type") != "object":
        return value
    properties: dict[str, Any] = schema.get("properties") or {}
    extra: Any = schema.get("additionalProperties")
    if not properties and (is_pairs(value) or value == []):
        return {p["key"]: _restore(extra, p["value"], root, depth + 1) for p in value}
    if not isinstance(value, dict):
        return value
    required: Sequence[str] = schema.get("required") or ()
    return {
        name: _restore(properties.get(name, extra), item, root, depth + 1)
        for name, item in cast("dict[str, Any]", value).items()
        if item is not None
        or name in required
        or name not in properties
        or accepts_null(properties[name], root)
    }


def _restore_items(schema: Schema, value: list[Any], root: Schema, depth: int) -> list[Any]:
    first: list[Any] = schema.get("prefixItems") or []
    items: Any = schema.get("items")
    return [
        _restore(first[at] if at < len(first) else items, item, root, depth + 1)
        for at, item in enumerate(value)
    ]


def _fitting(variants: Sequence[Any], value: Any, root: Schema) -> Schema | None:
    """The variant that a value was meant for, by its kind and by the properties it has."""
    full = [as_schema(v) for v in variants]
    full = [resolve(v, root) if "$ref" in v else v for v in full]
    maps = [v for v in full if _is_map(v)]
    lists = any(v.get("type") == "array" for v in full)
    if maps and (is_pairs(value) or (value == [] and not lists)):
        return maps[0]
    wanted = "array" if isinstance(value, list) else "object" if isinstance(value, dict) else ""
    kinds = [v for v in full if v.get("type") == wanted]
    if len(kinds) > 1 and isinstance(value, dict):
        return max(kinds, key=_overlap(cast("dict[str, Any]", value)))
    return kinds[0] if kinds else None


def _overlap(value: dict[str, Any]) -> Callable[[Schema], int]:
    def score(variant: Schema) -> int:
        properties: dict[str, Any] = variant.get("properties") or {}
        constants = [(as_schema(child).get("const"), name) for name, child in properties.items()]
        right = sum(2 if c == value.get(n) else -2 for c, n in constants if c is not None)
        return right + len(properties.keys() & value.keys()) - len(value.keys() - properties.keys())

    return score


def _is_map(schema: Schema) -> bool:
    return schema.get("type") == "object" and not schema.get("properties")


def is_pairs(value: Any) -> bool:
    """Whether a value is an object as a list of its key-value pairs."""
    return (
        isinstance(value, list)
        and bool(cast("list[Any]", value))
        and all(
            isinstance(p, dict)
            and cast("dict[str, Any]", p).keys() == {"key", "value"}
            and isinstance(p["key"], str)
            for p in cast("list[Any]", value)
        )
    )
