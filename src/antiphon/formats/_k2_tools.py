"""Tools as K2 Horizon is shown them: a heading each, and its schema as an indented list.

    ## get_weather
    The weather in a city.

    **Parameters**
    - `city` *(string, required)* - City name.
    - `days` *(array of integer)*
      - Default: `[1]`

A tool whose schema cannot be told this way is shown as JSON, and then all are.  References inside a
schema are resolved once each.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from antiphon.messages import ToolSpec, dump_json

Fields = Mapping[str, Any]

_WRITTEN = {
    "type", "description", "enum", "default", "properties", "required", "items", "oneOf", "anyOf",
    "additionalProperties", "patternProperties", "returns",
}  # fmt: skip
_PLAIN = {
    "description", "default", "title", "examples", "properties", "patternProperties",
    "additionalProperties", "returns", "items",
}  # fmt: skip
_ROOT = _WRITTEN | {"optional", "title", "examples", "$defs", "definitions", "$ref"}
_FUNCTION = {"name", "description", "parameters", "returns", "response", "type", "function"}


def listing(tools: Sequence[ToolSpec]) -> str:
    """The tools between their marks."""
    functions = [cast("Fields", spec.to_openai()["function"]) for spec in tools]
    if not all(map(_can_be_told, functions)):
        return listing_json(tools)
    lines = "\n".join(map(_told, functions))
    return f"<ifm|tools>{lines}\n</ifm|tools>"


def listing_json(tools: Sequence[ToolSpec]) -> str:
    """The tools between their marks, as JSON."""
    return (
        "<ifm|tools>" + "".join(f"\n{dump_json(s.to_openai())}" for s in tools) + "\n</ifm|tools>"
    )


# Whether a schema can be told.


def _can_be_told(function: Fields) -> bool:
    parameters: Any = function.get("parameters")
    if not isinstance(parameters, Mapping):
        return False
    fields = cast("Fields", parameters)
    others = [v for k, v in fields.items() if k not in _ROOT]
    others += [v for k, v in function.items() if k not in _FUNCTION]
    return not any(isinstance(v, Mapping | list) for v in others) and _plain(fields)


def _plain(schema: Any) -> bool:
    """Whether a schema, and all that are in it, hold nothing that has no words for it."""
    if not isinstance(schema, Mapping):
        return True
    fields = cast("Fields", schema)
    return all(_plain_field(fields, key, value) for key, value in fields.items()) and all(
        map(_plain, _inner(fields))
    )


def _plain_field(fields: Fields, key: str, value: Any) -> bool:
    match key:
        case "$ref":
            return isinstance(value, str) and _target(value) is not None
        case "$defs" | "definitions":
            return isinstance(value, Mapping)
        case "type":
            return not isinstance(value, Mapping)
        case "enum" | "oneOf" | "anyOf":
            return isinstance(value, list)
        case "required":
            return not value or bool(fields.get("properties"))
        case _ if key in _PLAIN:
            return True
        case _:
            return (
                not _holds_object(value)
                if isinstance(value, list)
                else not (
                    isinstance(value, Mapping)
                    and any(map(_holds_object, cast("Fields", value).values()))
                )
            )


def _inner(fields: Fields) -> list[Any]:
    """The schemas inside one."""
    found: list[Any] = []
    for key in ("properties", "patternProperties", "$defs", "definitions"):
        value: Any = fields.get(key)
        found += cast("Fields", value).values() if isinstance(value, Mapping) else ()
    for key in ("oneOf", "anyOf"):
        value = fields.get(key)
        found += cast("list[Any]", value) if isinstance(value, list) else ()
    return [*found, *(fields.get(key) for key in ("items", "additionalProperties", "returns"))]


def _holds_object(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_holds_object, cast("list[Any]", value)))
    return isinstance(value, Mapping)


# What is told.


def _told(function: Fields) -> str:
    teller = _Teller(cast("Fields", function["parameters"]))
    text = f"\n## {function['name']}"
    if function.get("description"):
        text += f"\n{function['description']}"
    text += "\n\n**Parameters**" + teller.parameters()
    returns: Any = function.get("returns", function.get("response"))
    if isinstance(returns, Mapping):
        text += f"\n\n**Returns**\n- Return *({_kind(returns)})*" + teller.details(returns, "")
    elif returns is not None:
        text += f"\n\n**Returns**\n- {_value(returns)}"
    return text


class _Teller:
    """Tells one tool's schema, resolving each of its definitions once."""

    def __init__(self, parameters: Fields) -> None:
        found: Any = parameters.get("$defs") or parameters.get("definitions")
        self._defs = _fields(found)
        self._seen: set[str] = set()
        self._root = self._resolved(parameters)

    def parameters(self) -> str:
        """The parameters, each on a line with what it holds below."""
        root = cast("Fields", self._root)
        if root.get("properties"):
            return self._members(root, "")
        if root.get("oneOf") or root.get("anyOf") or "items" in root:
            return self._notes(root, "", "- ") + self._parts(root, "", "- ") + _extras(root, "- ")
        return "\n- None"

    def details(self, schema: Any, indent: str, *, values: bool = True) -> str:
        """What a schema holds, indented below its line."""
        schema = self._resolved(schema)
        if not isinstance(schema, Mapping):
            told = isinstance(schema, bool)
            return "" if told else f"\n{indent}  - Value: {_literal(schema)}"
        fields, lead = cast("Fields", schema), f"{indent}  - "
        text = self._notes(fields, indent, lead, values=values)
        if fields.get("properties"):
            text += self._members(fields, f"{indent}  ")
        return text + self._parts(fields, indent, lead) + _extras(fields, lead)

    def _members(self, fields: Fields, indent: str) -> str:
        required: Any = fields.get("required") or ()
        properties = cast("Fields", fields["properties"])
        return "".join(
            self._member(name, schema, name in required, indent)
            for name, schema in properties.items()
        )

    def _member(self, name: str, schema: Any, required: bool, indent: str) -> str:
        schema = self._resolved(schema)
        kind = _kind(schema) + (", required" if required else "")
        text = f"\n{indent}- `{name}` *({kind})*"
        fields = _fields(schema)
        if fields.get("description"):
            told = str(fields["description"]).replace("\n", f"\n{indent}  ")
            text += f" - {told}"
        if fields.get("enum"):
            text += f"\n{indent}  - Allowed values: {_choices(fields['enum'])}"
        if "default" in fields:
            text += f"\n{indent}  - Default: {_literal(fields['default'])}"
        return text + self.details(schema, indent, values=False)

    def _notes(self, fields: Fields, indent: str, lead: str, *, values: bool = True) -> str:
        text = ""
        if values and "description" in fields:
            told = str(fields["description"]).replace("\n", f"\n{indent}    ")
            text += f"\n{lead}Description: {_value(told)}"
        if values and "enum" in fields:
            text += f"\n{lead}Allowed values: {_choices(fields['enum'])}"
        if values and "default" in fields:
            text += f"\n{lead}Default: {_literal(fields['default'])}"
        if "additionalProperties" in fields:
            text += self._part(
                fields["additionalProperties"], "Additional properties", indent, lead
            )
        return text

    def _parts(self, fields: Fields, indent: str, lead: str) -> str:
        text = ""
        if "items" in fields:
            text += self._part(fields["items"], "Items", indent, lead)
        inner = indent if lead == "- " else f"{indent}  "
        for key in ("oneOf", "anyOf"):
            if fields.get(key):
                text += f"\n{lead}{key}:" + self._variants(cast("list[Any]", fields[key]), inner)
        patterns: Any = fields.get("patternProperties")
        if isinstance(patterns, Mapping):
            text += f"\n{lead}Pattern properties:"
            for pattern, schema in cast("Fields", patterns).items():
                text += f"\n{inner}  - `{pattern}`"
                if isinstance(schema, Mapping):
                    text += f" *({_kind(schema)})*" + self.details(schema, f"{inner}  ")
                else:
                    text += f": {_value(schema)}"
        elif patterns is not None:
            text += f"\n{lead}Pattern properties: {_value(patterns)}"
        if "returns" in fields:
            text += self._part(fields["returns"], "Returns", indent, lead)
        return text

    def _part(self, schema: Any, label: str, indent: str, lead: str) -> str:
        if not isinstance(schema, Mapping):
            return f"\n{lead}{label}: {_value(schema)}"
        inner = "" if lead == "- " else f"{indent}  "
        return f"\n{lead}{label} *({_kind(schema)})*" + self.details(schema, inner)

    def _variants(self, schemas: Sequence[Any], indent: str) -> str:
        return "".join(
            f"\n{indent}  - Variant {n} *({_kind(schema)})*" + self.details(schema, f"{indent}  ")
            for n, schema in enumerate(schemas, 1)
        )

    def _resolved(self, schema: Any) -> Any:
        """A schema with what it refers to in place, unless that was told already."""
        for _ in range(2):  # as deep as the template follows
            fields = _fields(schema)
            name = _target(fields["$ref"]) if isinstance(fields.get("$ref"), str) else None
            if name is None or name in self._seen or not isinstance(self._defs.get(name), Mapping):
                return schema
            self._seen.add(name)
            own = {key: value for key, value in fields.items() if key != "$ref"}
            schema = {**cast("Fields", self._defs[name]), **own}
        return schema


def _fields(schema: Any) -> Fields:
    """A schema's fields; none of what is no object."""
    none: Fields = {}
    return cast("Fields", schema) if isinstance(schema, Mapping) else none


def _target(reference: str) -> str | None:
    """The name of a definition that is referred to."""
    for lead in ("#/$defs/", "#/definitions/"):
        if reference.startswith(lead):
            return reference[len(lead) :]
    return None


def _kind(schema: Any) -> str:
    """The type of a value, in words."""
    if not isinstance(schema, Mapping):
        return str(schema) if isinstance(schema, bool) else "any"
    fields = cast("Fields", schema)
    kind: Any = fields.get("type")
    if isinstance(kind, list):
        return " or ".join(_named(k, fields) for k in cast("list[Any]", kind)) or "any"
    if kind:
        return _named(kind, fields)
    if isinstance(fields.get("$ref"), str):
        return str(fields["$ref"]).rpartition("/")[2]
    for key in ("oneOf", "anyOf"):
        if fields.get(key):
            options = " or ".join(map(_kind, cast("list[Any]", fields[key])))
            return f"{key}[{options}]"
    if fields.get("properties"):
        return "object"
    return f"array of {_kind(fields['items'])}" if "items" in fields else "any"


def _named(kind: Any, fields: Fields) -> str:
    if kind == "array":
        return f"array of {_kind(fields['items'])}" if "items" in fields else "array of any"
    return str(kind) if kind else "any"


def _choices(values: Any) -> str:
    return ", ".join(map(_literal, cast("list[Any]", values)))


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return "`" + value.replace("\n", "\\n") + "`" if value else '""'
    return f"`{_python(value)}`"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value or '""'
    return _python(value)


def _python(value: Any) -> str:
    """A value as Python prints it, its strings on one line."""
    if isinstance(value, str):
        words = " ".join(value.split())
        return "'" + words.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if isinstance(value, Mapping):
        items = cast("Fields", value).items()
        return "{" + ", ".join(f"{_python(k)}: {_python(v)}" for k, v in items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_python, cast("list[Any]", value))) + "]"
    return str(value)


def _extras(fields: Fields, lead: str) -> str:
    """What a schema says besides, as it is named there."""
    others = ((key, value) for key, value in fields.items() if key not in _WRITTEN)
    return "".join(f"\n{lead}{key}: {_value(value)}" for key, value in others)
