"""A tool's schema in the strict mode of OpenAI or Anthropic, where decoding is held to it.

What a strict mode cannot say moves into the description, a map becomes a list of key-value pairs,
and an optional parameter of OpenAI's becomes required and nullable.  What cannot be said at all
(any JSON value) is refused with a reason, and the tool goes out plain.

Sources, read in November 2026: OpenAI, "Structured Outputs: supported schemas"; Anthropic's Python
SDK 2.14, ``lib/_parse/_transform.py``.  Endpoints change; what they take is data at the top.
"""

import json
from dataclasses import dataclass, field
from typing import Any, cast

from antiphon.messages._json_schema import (
    ANNOTATIONS,
    Refused,
    Schema,
    accepts_null,
    bare,
    check_depth,
    described,
    distinct,
    is_recursive,
    json_kind,
    merged,
    noted,
    resolve,
    target_name,
)


@dataclass(frozen=True, slots=True)
class _Strict:
    """What one API's strict mode takes."""

    format: str
    """Its name, for errors."""
    all_required: bool
    """Whether every property must be required, optional ones being nullable."""
    constraints: frozenset[str]
    """Keywords that narrow a value and are taken as they are."""
    formats: frozenset[str]
    """Values of ``format`` that are taken."""
    recursion: bool
    """Whether a schema may refer to itself."""
    max_depth: int
    """How deep objects may nest."""
    max_properties: int
    """How many properties there may be in all."""
    max_enum: int
    """How many enum values there may be in all."""


_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
OPENAI = _Strict(
    format="openai",
    all_required=True,
    constraints=frozenset(
        {
            "pattern",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
            "minItems",
            "maxItems",
        }
    ),
    formats=_FORMATS,
    recursion=True,
    max_depth=10,
    max_properties=5000,
    max_enum=1000,
)
ANTHROPIC = _Strict(
    format="anthropic",
    all_required=False,
    constraints=frozenset(),
    formats=_FORMATS | {"uri"},
    recursion=False,
    max_depth=64,
    max_properties=5000,
    max_enum=1000,
)


def strict_schema(schema: Schema, rules: _Strict, name: str) -> tuple[Schema | None, str]:
    """A schema in an API's strict language, or why it has none.

    Raises:
        RenderError: It is nested too deep to be walked.
    """
    check_depth(schema, name)
    if schema.get("type") != "object":
        return None, "its arguments are not one object"
    try:
        return _StrictWriter(schema, rules).write(), ""
    except Refused as refused:
        return None, str(refused)


@dataclass(slots=True)
class _StrictWriter:
    """Rewrites one schema; counts what an API limits."""

    root: Schema
    rules: _Strict
    n_properties: int = 0
    n_enum: int = 0
    kept: dict[str, Schema] = field(default_factory=dict[str, Schema])

    def write(self) -> Schema:
        out = self._node(self.root, 0, "", ())
        if self.kept:
            out["$defs"] = self.kept
        if self.n_properties > self.rules.max_properties:
            raise Refused(f"it has more than {self.rules.max_properties} properties")
        if self.n_enum > self.rules.max_enum:
            raise Refused(f"it has more than {self.rules.max_enum} enum values")
        return out

    def _node(self, node: Any, depth: int, path: str, inside: tuple[str, ...]) -> Schema:
        here = path or "the arguments"
        if not isinstance(node, dict):
            raise Refused(f"{here} may be anything")
        schema = cast("Schema", node)
        if "$ref" in schema:
            return self._reference(schema, depth, path, inside)
        if "allOf" in schema:
            return self._node(merged(schema, here), depth, path, inside)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                made = [self._node(s, depth, path, inside) for s in schema[key]]
                return described({"anyOf": made}, schema)
        if "enum" in schema or "const" in schema:
            return self._values(schema)
        kind = schema.get("type")
        if isinstance(kind, list):
            kinds = cast("list[str]", kind)
            made = [self._node({**bare(schema), "type": k}, depth, path, inside) for k in kinds]
            return described({"anyOf": made}, schema)
        if kind == "object":
            return self._object(schema, depth, path, inside)
        if kind == "array":
            return self._array(schema, depth, path, inside)
        if kind is None:
            raise Refused(f"{here} may be anything")
        return self._narrowed({"type": kind}, schema)

    def _values(self, schema: Schema) -> Schema:
        values: list[Any] = schema["enum"] if "enum" in schema else [schema["const"]]
        self.n_enum += len(values)
        kinds = sorted({json_kind(v) for v in values})
        return described({"type": kinds[0] if len(kinds) == 1 else kinds, "enum": values}, schema)

    def _object(self, schema: Schema, depth: int, path: str, inside: tuple[str, ...]) -> Schema:
        if depth >= self.rules.max_depth:
            raise Refused(f"{path} is nested more than {self.rules.max_depth} objects deep")
        properties: dict[str, Any] = schema.get("properties") or {}
        extra: Any = schema.get("additionalProperties")
        if "patternProperties" in schema:
            raise Refused(f"{path or 'the arguments'} has properties by pattern")
        if not properties and depth > 0:
            return self._map(schema, extra, depth, path, inside)
        if isinstance(extra, dict):
            raise Refused(f"{path or 'the arguments'} has named properties and any others besides")
        self.n_properties += len(properties)
        required: list[str] = schema.get("required") or []
        made = {
            name: self._property(child, name in required, depth, _join(path, name), inside)
            for name, child in properties.items()
        }
        out: Schema = {"type": "object", "properties": made}
        shown = (
            list(properties)
            if self.rules.all_required
            else [p for p in properties if p in required]
        )
        if shown or self.rules.all_required:
            out["required"] = shown
        out["additionalProperties"] = False
        return described(out, schema)

    def _property(
        self, child: Any, required: bool, depth: int, path: str, inside: tuple[str, ...]
    ) -> Schema:
        made = self._node(child, depth + 1, path, inside)
        if required or not self.rules.all_required:
            return made
        return made if accepts_null(child, self.root) else _nullable(made)

    def _map(
        self, schema: Schema, extra: Any, depth: int, path: str, inside: tuple[str, ...]
    ) -> Schema:
        if not isinstance(extra, dict) or not extra:
            if extra is False:
                return described(
                    {
                        "type": "object",
                        "properties": {},
                        "required": [],
                        "additionalProperties": False,
                    },
                    schema,
                )
            raise Refused(f"{path} is an object with any keys and values")
        self.n_properties += 2
        value = self._node(extra, depth + 2, f"{path}[*]", inside)
        pair: Schema = {
            "type": "object",
            "properties": {"key": {"type": "string"}, "value": value},
            "required": ["key", "value"],
            "additionalProperties": False,
        }
        return noted({"type": "array", "items": pair}, schema, "An object, as a list of its pairs.")

    def _array(self, schema: Schema, depth: int, path: str, inside: tuple[str, ...]) -> Schema:
        first: list[Any] = schema.get("prefixItems") or []
        items: Any = schema.get("items")
        if first:
            made = distinct([self._node(s, depth, f"{path}[]", inside) for s in first])
            shown: Schema = made[0] if len(made) == 1 else {"anyOf": made}
            bounds: Schema = {"minItems": len(first), "maxItems": len(first)}
            return self._narrowed({"type": "array", "items": shown}, {**schema, **bounds})
        if not isinstance(items, dict) or not items:
            raise Refused(f"{path} is a list of anything")
        return self._narrowed(
            {"type": "array", "items": self._node(items, depth, f"{path}[]", inside)}, schema
        )

    def _narrowed(self, out: Schema, schema: Schema) -> Schema:
        notes: list[str] = []
        for key, value in schema.items():
            if key in ANNOTATIONS or key in ("type", "items", "prefixItems"):
                continue
            if key in self.rules.constraints or (key == "format" and value in self.rules.formats):
                out[key] = value
            elif not (key == "pattern" and out.get("format")):
                notes.append(f"{key}: {json.dumps(value, ensure_ascii=False)}")
        return noted(out, schema, f"({', '.join(notes)})" if notes else "")

    def _reference(self, schema: Schema, depth: int, path: str, inside: tuple[str, ...]) -> Schema:
        name = target_name(schema)
        target = resolve(schema, self.root)
        if not is_recursive(name, self.root):
            return described(self._node(target, depth, path, (*inside, name)), schema)
        if not self.rules.recursion:
            raise Refused(f"{path or name} contains itself")
        if name not in self.kept:
            self.kept[name] = {}
            self.kept[name] = self._node(target, 0, path, (*inside, name))
        reference: Schema = {"$ref": f"#/$defs/{name}"}
        return described({"anyOf": [reference]}, schema) if "description" in schema else reference


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _nullable(schema: Schema) -> Schema:
    text = schema.get("description")
    inner = {k: v for k, v in schema.items() if k != "description"}
    variants: list[Any] = inner["anyOf"] if list(inner) == ["anyOf"] else [inner]
    out: Schema = {"anyOf": [*variants, {"type": "null"}]}
    return {**out, "description": text} if text else out
