"""Gemma's own objects: keys in the open, strings between delimiter tokens, keys sorted.

    call:get_weather{city:<|"|>Lima<|"|>,days:3,detail:{wind:true}}

A string is written verbatim, so that one that holds the delimiter cannot be told from markup and is
refused.  FunctionGemma, the family before it, writes the same objects with another delimiter
(`quote`).  A key that could not be read back in the open is written as a string is, which the
template does for keys of a declaration.
Source: ``gemma4_v5.jinja`` as trl 1.16 ships it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from antiphon.formats._cursor import Reading
from antiphon.formats._members import is_bare_key, read_members
from antiphon.formats._readers import close_call, take_doubled
from antiphon.formats._scan import Block, NotACall, Parser
from antiphon.formats._values import Dialect
from antiphon.messages import JsonValue, ToolSpec

QUOTE = '<|"|>'
CALL, CALL_END = "<|tool_call>", "<tool_call|>"
RESULT, RESULT_END = "<|tool_response>", "<tool_response|>"
OBJECTS = Dialect(delimiter=QUOTE, bare_keys=True)
_WORD = "call:"
_NAME = re.compile(r"[^\s{(<]+")
_STANDARD = {"description", "type", "properties", "required", "nullable"}


@dataclass(frozen=True, slots=True)
class GemmaCalls:
    """Reads one call: ``call:``, a name, and an object."""

    call: str = CALL
    """The mark before a call."""
    close: str = CALL_END
    """The mark behind it."""
    dialect: Dialect = OBJECTS
    """What the arguments look like."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return (self.close, self.call, RESULT)

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        if not p.call_in_progress:
            p.call_begin()
        is_word = opened_by == _WORD
        if is_word:
            p.note("missing_open")
        else:
            yield from take_doubled(p, opened_by)
            yield from c.space()
            is_word = yield from c.take(_WORD)
        parts: list[str] = []
        while True:
            found = _NAME.match(c.text, c.pos)
            if found:
                parts.append(found.group())
                c.pos = found.end()
            if c.pos < len(c.text) or c.closed or sum(map(len, parts)) > 200:
                break
            yield
        bracket = yield from c.space()
        over = yield from c.is_next(self.close)
        if not over and bracket not in ("{", "("):
            raise NotACall(str(c.unexpected("'{' after the name of a call")))
        if not is_word:
            p.note("missing_word")
        p.call_name("".join(parts))
        if over:
            p.note("no_arguments")
            yield from close_call(p, self.close)
            p.call_end()
            return
        if bracket == "(":
            p.note("round_brackets")
        c.pos += 1
        if (yield from c.space()) == bracket:
            p.note("doubled_bracket")
            c.pos += 1
        yield from read_members(
            c, p.call_arguments, p.note,
            dialect=self.dialect, sign=":", close="}" if bracket == "{" else ")",
        )  # fmt: skip
        yield from close_call(p, self.close, others=(self.call, RESULT))
        p.call_end()


def blocks(reader: GemmaCalls) -> tuple[Block, ...]:
    """The regions that hold calls: behind the family's mark, and where it was left out."""
    return Block(reader.call, reader, token=True), Block(_WORD, reader, lost=True)


def by_key(items: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The members of an object as the family's templates sort them."""
    return sorted(items.items(), key=lambda item: item[0].lower())


def problem(value: JsonValue, quote: str = QUOTE) -> str:
    """Why a value cannot be written as a Gemma object; empty where it can."""
    if isinstance(value, str):
        return f"a string that holds {quote}" if quote in value else ""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if found := problem(key, quote) or problem(inner, quote):
                return found
    elif isinstance(value, list):
        return next((found for item in value if (found := problem(item, quote))), "")
    return ""


def written(value: Any, *, quote_keys: bool = False, quote: str = QUOTE) -> str:
    """A value as the family writes it.

    >>> written({"b": "x", "a": [1, True, None]})
    '{a:[1,true,null],b:<|"|>x<|"|>}'
    """
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        members = [
            f"{_key(key, quote_keys, quote)}:{written(inner, quote_keys=quote_keys, quote=quote)}"
            for key, inner in by_key(cast("Mapping[str, Any]", value))
        ]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        items = (
            written(item, quote_keys=quote_keys, quote=quote) for item in cast("list[Any]", value)
        )
        return "[" + ",".join(items) + "]"
    return str(value)


def _key(key: str, quotes: bool, quote: str) -> str:
    return f"{quote}{key}{quote}" if quotes or not is_bare_key(key) else key


def declaration(tool: ToolSpec, quote: str = QUOTE) -> str:
    """A tool as the family is shown it."""
    function: Mapping[str, Any] = tool.to_openai()["function"]
    text = f"declaration:{tool.name}{{description:{written(tool.description, quote=quote)}"
    parameters: Mapping[str, Any] = function.get("parameters") or {}
    if parameters:
        text += ",parameters:{"
        if parameters.get("properties"):
            text += f"properties:{{{_properties(parameters['properties'], quote)}}},"
        if parameters.get("required"):
            text += f"required:{written(parameters['required'], quote=quote)},"
        if parameters.get("type"):
            text += f"type:{written(_upper(parameters['type']), quote=quote)}}}"
    response: Mapping[str, Any] | None = function.get("response")
    if response is not None:
        text += ",response:{"
        if response.get("description"):
            text += f"description:{written(response['description'], quote=quote)},"
        if _upper(response.get("type")) == "OBJECT":
            text += f"type:{written('OBJECT', quote=quote)}}}"
    return text + "}"


def _upper(kind: Any) -> str:
    """A type as the family shows it; a list of types as Python prints it."""
    return "" if kind is None else str(kind).upper()


def _properties(properties: Mapping[str, Any], quote: str, *, skip: bool = False) -> str:
    return ",".join(
        f"{key}:{{{_property(_fields(value), quote)}}}"
        for key, value in by_key(properties)
        if not (skip and key in _STANDARD)
    )


def _fields(schema: Any) -> Mapping[str, Any]:
    """A schema's fields; none of a schema that is only yes or no."""
    return cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}


def _property(schema: Mapping[str, Any], quote: str) -> str:
    kind = _upper(schema.get("type"))
    fields: list[str] = []
    if schema.get("description"):
        fields.append(f"description:{written(schema['description'], quote=quote)}")
    items: Any = schema.get("items")
    if kind == "STRING" and schema.get("enum"):
        fields.append(f"enum:{written(schema['enum'], quote=quote)}")
    elif kind == "ARRAY" and isinstance(items, Mapping) and items:
        fields.append(f"items:{{{_items(cast('Mapping[str, Any]', items), quote)}}}")
    if schema.get("nullable"):
        fields.append("nullable:true")
    if kind == "OBJECT":
        inner: Any = schema.get("properties")
        shown = (
            _properties(cast("Mapping[str, Any]", inner), quote)
            if isinstance(inner, Mapping)
            else _properties(schema, quote, skip=True)
        )
        fields.append(f"properties:{{{shown}}}")
        if schema.get("required"):
            fields.append(f"required:{written(schema['required'], quote=quote)}")
    fields.append(f"type:{written(kind, quote=quote)}")
    return ",".join(fields)


def _items(items: Mapping[str, Any], quote: str) -> str:
    fields: list[str] = []
    for key, value in by_key(items):
        if value is None:
            continue
        if key == "properties":
            shown = _properties(cast("Mapping[str, Any]", value), quote) if value else ""
            fields.append(f"properties:{{{shown}}}")
        elif key == "type":
            kinds = cast("Sequence[str]", value)
            upper = kinds.upper() if isinstance(kinds, str) else [k.upper() for k in kinds]
            fields.append(f"type:{written(upper, quote=quote)}")
        elif key == "required":
            fields.append(f"required:{written(value, quote=quote)}")
        else:
            fields.append(f"{key}:{written(value, quote_keys=True, quote=quote)}")
    return ",".join(fields)
