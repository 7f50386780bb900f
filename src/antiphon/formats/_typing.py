"""What type a text is meant as, where the text does not say it and the tool's schema does.

A string stays exactly the string that was written.  A text that does not fit its schema becomes a
string, so that the call is kept and the check of the arguments can say what is wrong.  (An object
or array that can be nothing else is read as it arrives, before this is asked; see `_tagged.py`.)
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from antiphon.formats._cursor import Malformed
from antiphon.formats._values import JSON, Dialect, convert
from antiphon.messages import JsonValue, ToolSpec, dump_json

Note = Callable[[str], None]
ALL = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
_MAX_REFERENCES = 8
_MORE_THAN_TYPE = frozenset({"const", "enum", "anyOf", "oneOf", "allOf", "nullable"})
_ONE_KIND = {kind: frozenset({kind}) for kind in ALL}
_NO_KIND: frozenset[str] = frozenset()


def parameter(spec: ToolSpec | None, key: str) -> Any:
    """The schema of one parameter; ``None`` where it is not known."""
    if spec is None:
        return None
    properties = _mapping(resolved(spec.parameters, spec.parameters).get("properties"))
    return properties.get(key)


def kinds(schema: Any, root: Mapping[str, Any]) -> frozenset[str]:
    """The JSON types that a schema allows; empty where it says nothing."""
    fields = resolved(schema, root)
    if _MORE_THAN_TYPE.isdisjoint(fields) and isinstance(named := fields.get("type"), str):
        return _ONE_KIND.get(named, _NO_KIND)  # nearly always
    found: set[str] = set()
    if "const" in fields:
        found.add(kind_of(fields["const"]))
    elif "enum" in fields:
        found |= {kind_of(value) for value in fields["enum"]}
    else:
        named = fields.get("type")
        if isinstance(named, list):
            found |= set(cast("list[str]", named))
        elif named:
            found.add(str(named))
        for key in ("anyOf", "oneOf", "allOf"):
            for option in cast("list[Any]", fields.get(key) or ()):
                found |= kinds(option, root)
        if not found and "properties" in fields:
            found.add("object")
        if not found and "items" in fields:
            found.add("array")
    if found and fields.get("nullable") is True:
        found.add("null")
    return frozenset(found & ALL)


def kind_of(value: Any) -> str:
    """The JSON type of a value.

    >>> kind_of(True), kind_of(1), kind_of(1.0), kind_of(None)
    ('boolean', 'integer', 'number', 'null')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
        case _:
            return "array"


def json_of(
    text: str,
    allowed: frozenset[str],
    note: Note,
    *,
    strip: bool = True,
    dialect: Dialect = JSON,
) -> str:
    """A text as JSON text of one of the allowed types.

    Args:
        text: What was written, without the family's own white space.
        allowed: What the schema allows; empty where it is not known.
        note: Takes the name of each slip.
        strip: Whether white space around values that are no strings means nothing.
        dialect: What values look like that are no strings.

    >>> json_of("0042", frozenset({"string"}), print), json_of("42", frozenset({"integer"}), print)
    ('"0042"', '42')
    """
    as_string = dump_json(text)
    others = allowed - {"string"}
    if allowed and not others:
        return as_string
    slips: list[str] = []
    try:
        found = _strict(text) or convert(
            text.strip() if strip else text, slips.append, dialect=dialect
        )
        value: JsonValue = json.loads(found)
    except (Malformed, ValueError, RecursionError):
        return as_string
    kind = kind_of(value)
    if kind == "string":
        # A quoted string where a string is meant holds its quotes; elsewhere it is a slip.
        return as_string if not allowed or "string" in allowed else found
    if allowed and not fits(kind, value, others):
        return as_string
    if "string" in allowed and slips:
        return as_string
    for slip in slips:
        note(slip)
    return found


def _strict(text: str) -> str:
    """The text if it is plain JSON, else ``""``."""
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return ""
    return text.strip()


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def fits(kind: str, value: Any, allowed: frozenset[str]) -> bool:
    """Whether a value of some type is of an allowed one."""
    if kind in allowed:
        return True
    if kind == "integer":
        return "number" in allowed
    return kind == "number" and "integer" in allowed and float(value).is_integer()


def value_of(text: str, spec: ToolSpec | None, key: str) -> JsonValue:
    """A text as the value that a parameter's schema asks for."""
    root = spec.parameters if spec else {}
    allowed = kinds(parameter(spec, key), root)
    return json.loads(json_of(text, allowed, lambda slip: None))


def resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema, or what its reference points to."""
    fields = _mapping(schema)
    if "$ref" not in fields:
        return fields
    for _ in range(_MAX_REFERENCES):
        reference = fields.get("$ref")
        if not isinstance(reference, str):
            break
        node: Any = root
        for key in reference.removeprefix("#").strip("/").split("/"):
            node = _mapping(node).get(key.replace("~1", "/").replace("~0", "~")) if key else node
        fields = _mapping(node)
    return fields


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, (dict, Mapping)):  # the first is quick to tell
        return cast("Mapping[str, Any]", value)
    return {}


def fits_tool(spec: ToolSpec, arguments: Mapping[str, JsonValue]) -> bool:
    """Whether arguments could be a tool's: it has what they name, of those types, and they have
    what it requires."""
    if set(spec.parameters.get("required") or ()) - set(arguments):
        return False
    for key, value in arguments.items():
        schema = parameter(spec, key)
        if schema is None:
            if not spec.parameters.get("additionalProperties"):
                return False
            continue
        allowed = kinds(schema, spec.parameters)
        if allowed and not fits(kind_of(value), value, allowed):
            return False
    return True
