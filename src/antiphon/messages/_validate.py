"""Whether a JSON value is what a JSON Schema says: for tools that others describe.

Covers JSON Schema 2020-12 but for remote references, ``unevaluated*`` and dynamic anchors;
``format`` is not asserted, as the specification has it by default.  Schemas are not trusted: depth
and work are bounded, references are local only.
"""

import json
import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from antiphon.messages._json_schema import MAX_DEPTH, Schema, as_schema, resolve

MAX_CHECKS = 20_000
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool),
    "integer": lambda v: (
        (isinstance(v, int) and not isinstance(v, bool))
        or (isinstance(v, float) and v.is_integer())
    ),
}


@dataclass(frozen=True, slots=True)
class Problem:
    """One place where a value is not what its schema says."""

    path: tuple[str | int, ...]
    """Where in the value."""
    message: str
    """What is wrong there, to be read after the place: ``should be integer``."""
    value: Any = None
    """What stands there."""
    schema: Schema = field(default_factory=dict[str, Any])
    """What the schema says of that place."""
    kind: str = ""
    """The keyword that is not satisfied."""


def find_problems(schema: Schema, value: Any) -> list[Problem]:
    """Every place where a value is not what a schema says.

    Args:
        schema: A JSON Schema, its references local.
        value: A JSON value.

    >>> [p.message for p in find_problems({"type": "integer"}, "5")]
    ['should be integer']
    """
    return list(_Checker(schema).check(schema, value, (), 0))


def is_valid(schema: Schema, value: Any) -> bool:
    """Whether a value is what a schema says."""
    return next(_Checker(schema).check(schema, value, (), 0), None) is None


Path = tuple[str | int, ...]


class _Checker:
    def __init__(self, root: Schema) -> None:
        self.root = root
        self.n_checks = 0

    def check(self, node: Any, value: Any, path: Path, depth: int) -> Iterator[Problem]:
        self.n_checks += 1
        if depth > 4 * MAX_DEPTH or self.n_checks > MAX_CHECKS:
            yield Problem(path, "is nested too deep to be checked", value, kind="depth")
            return
        if node is False:
            yield Problem(path, "is not allowed", value, kind="false")
        schema = as_schema(node)
        if not schema:
            return
        if "$ref" in schema:
            yield from self.check(resolve(schema, self.root), value, path, depth + 1)
        problem = _own(schema, value, path)
        if problem is not None:
            yield problem
            return
        yield from self._combined(schema, value, path, depth)
        if isinstance(value, dict):
            yield from self._object(schema, cast("dict[str, Any]", value), path, depth)
        elif isinstance(value, list):
            yield from self._array(schema, cast("list[Any]", value), path, depth)

    def _valid(self, node: Any, value: Any, depth: int) -> bool:
        return next(self.check(node, value, (), depth + 1), None) is None

    def _combined(self, schema: Schema, value: Any, path: Path, depth: int) -> Iterator[Problem]:
        for part in schema.get("allOf", ()):
            yield from self.check(part, value, path, depth + 1)
        if "anyOf" in schema and not any(self._valid(s, value, depth) for s in schema["anyOf"]):
            yield Problem(path, "fits none of its alternatives", value, schema, "anyOf")
        if "oneOf" in schema:
            n_fits = sum(self._valid(s, value, depth) for s in schema["oneOf"])
            if n_fits != 1:
                what = "none" if n_fits == 0 else "more than one"
                yield Problem(path, f"fits {what} of its alternatives", value, schema, "oneOf")
        if "not" in schema and self._valid(schema["not"], value, depth):
            yield Problem(path, "is excluded", value, schema, "not")
        if "if" in schema:
            branch = "then" if self._valid(schema["if"], value, depth) else "else"
            if branch in schema:
                yield from self.check(schema[branch], value, path, depth + 1)

    def _object(
        self, schema: Schema, value: dict[str, Any], path: Path, depth: int
    ) -> Iterator[Problem]:
        properties = as_schema(schema.get("properties"))
        patterns = as_schema(schema.get("patternProperties"))
        for name in schema.get("required", ()):
            if name not in value:
                yield Problem((*path, name), "is missing", None, schema, "required")
        for name, needed in as_schema(schema.get("dependentRequired")).items():
            if name in value:
                for other in needed:
                    if other not in value:
                        yield Problem(
                            (*path, other), f"is missing beside {name!r}", kind="required"
                        )
        for name, part in as_schema(schema.get("dependentSchemas")).items():
            if name in value:
                yield from self.check(part, value, path, depth + 1)
        if len(value) < schema.get("minProperties", 0):
            yield Problem(path, f"should have {schema['minProperties']} keys or more", value)
        if len(value) > schema.get("maxProperties", len(value)):
            yield Problem(path, f"should have {schema['maxProperties']} keys at most", value)
        for name, item in value.items():
            here = (*path, name)
            matching = [s for p, s in patterns.items() if _search(p, name)]
            if "propertyNames" in schema and not self._valid(schema["propertyNames"], name, depth):
                yield Problem(here, "is no allowed name", item, kind="propertyNames")
            if name in properties:
                yield from self.check(properties[name], item, here, depth + 1)
            for part in matching:
                yield from self.check(part, item, here, depth + 1)
            if name not in properties and not matching and "additionalProperties" in schema:
                extra = schema["additionalProperties"]
                if extra is False:
                    yield Problem(here, "is not a parameter", item, schema, "additionalProperties")
                else:
                    yield from self.check(extra, item, here, depth + 1)

    def _array(self, schema: Schema, value: list[Any], path: Path, depth: int) -> Iterator[Problem]:
        first: list[Any] = schema.get("prefixItems") or []
        for at, item in enumerate(value):
            if at < len(first):
                yield from self.check(first[at], item, (*path, at), depth + 1)
            elif "items" in schema:
                yield from self.check(schema["items"], item, (*path, at), depth + 1)
        if len(value) < schema.get("minItems", 0):
            yield Problem(path, f"should have {schema['minItems']} items or more", value)
        if len(value) > schema.get("maxItems", len(value)):
            yield Problem(path, f"should have {schema['maxItems']} items at most", value)
        if schema.get("uniqueItems") and len({_key(v) for v in value}) < len(value):
            yield Problem(path, "should have no item twice", value)
        if "contains" in schema:
            n_fits = sum(self._valid(schema["contains"], item, depth) for item in value)
            least, most = schema.get("minContains", 1), schema.get("maxContains", n_fits)
            if not least <= n_fits <= most:
                yield Problem(path, "does not contain what it should", value)


def _own(schema: Schema, value: Any, path: Path) -> Problem | None:
    """What a schema says of a value by itself, without looking inside."""
    kinds: Any = schema.get("type")
    if kinds is not None:
        names = cast("list[str]", kinds) if isinstance(kinds, list) else [str(kinds)]
        if not any(_TYPES[k](value) for k in names if k in _TYPES):
            return Problem(path, f"should be {' or '.join(names)}", value, schema, "type")
    if "enum" in schema and _key(value) not in {_key(v) for v in schema["enum"]}:
        options = " | ".join(json.dumps(v, ensure_ascii=False) for v in schema["enum"][:12])
        return Problem(path, f"should be {options}", value, schema, "enum")
    if "const" in schema and _key(value) != _key(schema["const"]):
        wanted = json.dumps(schema["const"], ensure_ascii=False)
        return Problem(path, f"should be {wanted}", value, schema, "const")
    if isinstance(value, str):
        return _own_text(schema, value, path)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _own_number(schema, value, path)
    return None


def _own_text(schema: Schema, value: str, path: Path) -> Problem | None:
    if len(value) < schema.get("minLength", 0):
        return Problem(path, f"should have {schema['minLength']} characters or more", value)
    if len(value) > schema.get("maxLength", len(value)):
        return Problem(path, f"should have {schema['maxLength']} characters at most", value)
    if "pattern" in schema and not _search(schema["pattern"], value):
        return Problem(path, f"should match {schema['pattern']!r}", value)
    return None


def _own_number(schema: Schema, value: float, path: Path) -> Problem | None:
    for key, (words, fine) in _LIMITS.items():
        limit: Any = schema.get(key)
        if isinstance(limit, int | float) and not fine(value, limit):
            return Problem(path, f"should be {limit:g} {words}", value)
    return None


def _is_multiple(value: float, step: float) -> bool:
    quotient = value / step if step else 0.5
    return abs(quotient - round(quotient)) < 1e-9


def _search(pattern: Any, text: str) -> bool:
    """Whether a pattern is in a text; one that Python cannot read refuses nothing."""
    try:
        return re.search(str(pattern), text[:10_000]) is not None
    except re.error:
        return True


def _key(value: Any) -> str:
    """Equal for values that JSON Schema holds equal: ``1`` and ``1.0``, not ``1`` and ``true``."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, dict):
        items = sorted((k, _key(v)) for k, v in cast("dict[str, Any]", value).items())
        return f"{{{items}}}"
    if isinstance(value, list):
        return f"[{[_key(v) for v in cast('list[Any]', value)]}]"
    return json.dumps(value)


_LIMITS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "minimum": ("or more", operator.ge),
    "maximum": ("at most", operator.le),
    "exclusiveMinimum": ("excluded, or more", operator.gt),
    "exclusiveMaximum": ("excluded, at most", operator.lt),
    "multipleOf": ("or a multiple of it", _is_multiple),
}
