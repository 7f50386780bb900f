"""Calls as nested elements: an object's fields and an array's items are elements of their own.

    <get_weather><where><city>Lima</city></where><days><item>1</item></days></get_weather>

Every tag is led by one mark (`Elements.lead`), which is a single token that text does not hold, so
a value ends where the lead and its own closing tag stand.  What a leaf is, is told by the tool's
schema.  ``null`` is not written: the element is left out.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from antiphon.formats._cursor import Reading
from antiphon.formats._grammar import EMPTY, Free, Lit, Node, Rep, Rules, alt, seq
from antiphon.formats._render import of_tools
from antiphon.formats._scan import NotACall, Parser
from antiphon.formats._schema_grammar import SchemaMaker, rule_name
from antiphon.formats._types import Around, Filled, Form
from antiphon.formats._typing import json_of, kinds, resolved
from antiphon.formats._usual import Usual
from antiphon.formats._value_end import attributes
from antiphon.formats._values import MAX_DEPTH, escape, read_raw
from antiphon.messages import JsonValue, ToolCall, ToolSpec, dump_json

Emit = Callable[[str], None]

_STRING = frozenset({"string"})
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_ITEM = "item"


@dataclass(frozen=True, slots=True)
class Elements:
    """Reads and writes calls as elements."""

    lead: str
    """The mark before every tag."""

    @property
    def open(self) -> str:
        """What opens a block of calls."""
        return f"{self.lead}<tool_call>"

    @property
    def close(self) -> str:
        """What closes it."""
        return f"{self.lead}</tool_call>"

    @property
    def call(self) -> str:
        """What opens a call."""
        return f"{self.lead}<invoke"

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return (self.close, self.open)

    # What is read.

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        inside = opened_by == self.open
        p.call_begin()
        if not inside:
            p.note("missing_open")
        else:
            yield from c.space()
            if not (yield from c.take(self.call)):
                if (yield from c.take(self.close)):
                    p.call_drop()
                    return
                if not (yield from c.take(f"{self.lead}invoke")):
                    raise NotACall(str(c.unexpected(repr(self.call))))
                p.note("misspelt_tag")
        while True:
            yield from self._call(p)
            if not inside:
                p.call_end()
                return
            yield from c.space()
            if (yield from c.take(self.close)):
                p.call_end()
                return
            if c.closed and c.pos >= len(c.text):
                p.note("missing_end")
                p.call_end()
                return
            if not (yield from c.take(self.call)):
                raise c.unexpected(repr(self.close))
            p.call_end()
            p.call_begin()

    def _call(self, p: Parser) -> Reading[None]:
        c = p.c
        found = attributes((yield from c.until(">")))
        name = found.get("name", found.get("", ""))
        p.call_name(name, quoted=False)
        spec = p.spec(name)
        schema: Any = spec.parameters if spec else {}
        p.call_arguments("{")
        yield from self._fields(p, schema, spec, "invoke", depth=1)
        p.call_arguments("}")

    def _fields(
        self, p: Parser, schema: Any, spec: ToolSpec | None, tag: str, *, depth: int
    ) -> Reading[None]:
        """The fields of an object, up to and with the closing tag of `tag`."""
        c = p.c
        seen: list[str] = []
        while True:
            ch = yield from c.space()
            if not (yield from c.take(self.lead)):
                if not ch and tag == "invoke":
                    p.call_cut(seen)
                    p.note("missing_end")
                    return
                raise c.unexpected(repr(self.lead + f"</{tag}>"))
            if (yield from c.take(f"</{tag}>")):
                return
            before = ", " if seen else ""
            if not (yield from c.take("<")):
                seen.append((yield from self._untagged(p, schema, spec, before)))
                continue
            key = yield from c.until(">")
            p.call_arguments(f"{before}{dump_json(key)}: ")
            seen.append(key)
            yield from self._value(p, _field(schema, key, spec), spec, key, depth=depth)

    def _untagged(self, p: Parser, schema: Any, spec: ToolSpec | None, before: str) -> Reading[str]:
        """A field whose opening tag is missing, up to and with its closing one; its key."""
        c = p.c
        pieces: list[str] = []
        yield from read_raw(c, pieces.append, self.lead)
        if not (yield from c.take("</")):
            raise c.unexpected("a closing tag")
        key = yield from c.until(">")
        inner = _field(schema, key, spec)
        if inner is None:
            raise c.malformed(f"{key[:40]!r} is no key of a tool on offer")
        p.note("missing_tag")
        allowed = kinds(inner, spec.parameters) if spec else frozenset[str]()
        p.call_arguments(f"{before}{dump_json(key)}: {_leaf(''.join(pieces), allowed, p.note)}")
        return key

    def _value(
        self, p: Parser, schema: Any, spec: ToolSpec | None, tag: str, *, depth: int
    ) -> Reading[None]:
        """A value, up to and with the closing tag of `tag`."""
        c = p.c
        if depth > MAX_DEPTH:
            raise c.malformed(f"nested deeper than {MAX_DEPTH} levels")
        allowed = kinds(schema, spec.parameters) if spec else frozenset[str]()
        end = f"{self.lead}</{tag}>"
        if allowed == _STRING:
            p.call_arguments('"')
            yield from read_raw(c, lambda text: p.call_arguments(escape(text)), end)
            p.call_arguments('"')
            return
        pieces: list[str] = []
        yield from read_raw(c, pieces.append, self.lead)
        text = "".join(pieces)
        if (yield from c.take(f"</{tag}>")):
            p.call_arguments(_leaf(text, allowed, p.note))
            return
        if text.strip():
            raise c.unexpected(repr(end))
        if not (yield from c.take("<")):
            p.call_arguments("{")
            yield from self._untagged(p, schema, spec, "")
            yield from self._more_fields(p, schema, spec, tag, depth=depth + 1)
            return
        key = yield from c.until(">")
        is_array = key == _ITEM and ("array" in allowed or "object" not in allowed)
        if is_array:
            yield from self._items(p, schema, spec, tag, depth=depth)
            return
        p.call_arguments(f"{{{dump_json(key)}: ")
        yield from self._value(p, _field(schema, key, spec), spec, key, depth=depth + 1)
        yield from self._more_fields(p, schema, spec, tag, depth=depth + 1)

    def _more_fields(
        self, p: Parser, schema: Any, spec: ToolSpec | None, tag: str, *, depth: int
    ) -> Reading[None]:
        c = p.c
        while True:
            yield from c.space()
            if not (yield from c.take(self.lead)):
                raise c.unexpected(repr(self.lead + f"</{tag}>"))
            if (yield from c.take(f"</{tag}>")):
                p.call_arguments("}")
                return
            if not (yield from c.take("<")):
                yield from self._untagged(p, schema, spec, ", ")
                continue
            key = yield from c.until(">")
            p.call_arguments(f", {dump_json(key)}: ")
            yield from self._value(p, _field(schema, key, spec), spec, key, depth=depth)

    def _items(
        self, p: Parser, schema: Any, spec: ToolSpec | None, tag: str, *, depth: int
    ) -> Reading[None]:
        """The items of an array; the first one's tag is open."""
        c = p.c
        inner = _item(schema, spec)
        p.call_arguments("[")
        while True:
            yield from self._value(p, inner, spec, _ITEM, depth=depth + 1)
            yield from c.space()
            if (yield from c.take(f"{self.lead}</{tag}>")):
                p.call_arguments("]")
                return
            if not (yield from c.take(f"{self.lead}<{_ITEM}>")):
                raise c.unexpected(repr(f"{self.lead}</{tag}>"))
            p.call_arguments(", ")

    # What is written.

    def write(self, call: ToolCall) -> list[tuple[str, bool]]:
        """A call: texts, and whether each is markup of the family's."""
        parts: list[tuple[str, bool]] = [(f'{self.call} name="', True), (call.name, False)]
        parts.append(('">', True))
        self._write_fields(parts, call.arguments)
        parts.append((f"{self.lead}</invoke>\n", True))
        return parts

    def _write_fields(self, parts: list[tuple[str, bool]], fields: Mapping[str, JsonValue]) -> None:
        for key, value in fields.items():
            if value is not None:
                self._write_element(parts, key, value)

    def _write_element(self, parts: list[tuple[str, bool]], tag: str, value: JsonValue) -> None:
        parts += [(self.lead, True), (f"<{tag}>", False)]
        if isinstance(value, dict):
            self._write_fields(parts, value)
        elif isinstance(value, list):
            for item in value:
                self._write_element(parts, _ITEM, item)
        elif value is not None:
            text = value if isinstance(value, str) else dump_json(value)
            parts.append((text, False))
        parts += [(self.lead, True), (f"</{tag}>", False)]

    @property
    def opens(self) -> tuple[tuple[str, bool], ...]:
        """What stands before a block's calls, and whether each is markup."""
        return (self.open, True), ("\n", False)

    @property
    def closes(self) -> tuple[tuple[str, bool], ...]:
        """What stands behind them."""
        return ((self.close, True),)

    def doubtful(self, call: ToolCall, tools: Sequence[ToolSpec]) -> bool:
        """Whether a call might be read back as something else, and has to be tried: all but those
        of strings that the schema of its tool knows as such."""
        arguments = call.arguments
        are_strings = of_tools(_Strings, tools).are_all(call.name, tuple(arguments))
        return not are_strings or not _are_texts(tuple(arguments.values()), self.lead)

    # What may be written under a grammar.

    def node(self, spec: ToolSpec, rules: Rules) -> Node:
        """One call of one tool."""
        maker = _ElementMaker(spec.parameters, rules, spec.name)
        maker.lead = self.lead
        fields = maker.fields(spec.parameters, "")
        return seq(f'{self.call} name="{spec.name}">', fields, f"{self.lead}</invoke>\n")


class _Strings:
    """Which arguments of which tools are only strings; what was found so is remembered."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        """Nothing yet."""
        self._specs = {spec.name: spec for spec in tools}
        self._known: set[tuple[str, tuple[str, ...]]] = set()

    def are_all(self, name: str, keys: tuple[str, ...]) -> bool:
        """Whether all of these are, and no name is odd."""
        if (name, keys) in self._known:
            return True
        spec = self._specs.get(name)
        if spec is None or not all(map(_PLAIN_KEY.fullmatch, (name, *keys))):
            return False
        schemas = [_field(spec.parameters, key, spec) for key in keys]
        if not all(kinds(schema, spec.parameters) == _STRING for schema in schemas):
            return False
        self._known.add((name, keys))
        return True


def _are_texts(values: tuple[Any, ...], lead: str) -> bool:
    """Whether values are all strings without the lead mark."""
    try:
        return lead not in "\n".join(values)
    except TypeError:
        return False


def called(frame: Around, elements: Elements) -> Usual:
    """How a message is written that is one call, of strings that nobody could take for markup.

    Args:
        frame: What stands around the call.
        elements: The family's elements.
    """

    @lru_cache(maxsize=256)
    def form(name: str, keys: tuple[str, ...]) -> Form:
        """What stands around the values."""
        empty = elements.write(ToolCall(name, dict.fromkeys(keys, ""), ""))
        own: list[list[tuple[str, bool]]] = [[]]
        for part in (*elements.opens, *empty, *elements.closes):
            if part[0]:
                own[-1].append(part)
            else:
                own.append([])
        return Form(frame, own)

    def write(call: ToolCall, tools: tuple[ToolSpec, ...]) -> tuple[str, Filled] | None:
        if elements.doubtful(call, tools):
            return None
        texts = cast("tuple[str, ...]", tuple(call.arguments.values()))
        return form(call.name, tuple(call.arguments)).filled(texts)

    return Usual(call=write)


class _ElementMaker(SchemaMaker):
    """Makes the rules of one schema for values as elements."""

    lead = ""

    def fields(self, schema: Mapping[str, Any], path: str) -> Node:
        """The fields of an object, in order."""
        properties = cast("Mapping[str, Any]", schema.get("properties") or {})
        required = set(cast("Sequence[str]", schema.get("required") or ()))
        later: Node = EMPTY
        for key, value in reversed(list(properties.items())):
            element = seq(
                f"{self.lead}<{key}>", self.node(value, f"{path}.{key}"), f"{self.lead}</{key}>"
            )
            node = seq(element, later)
            if key not in required or "null" in kinds(value, self.root):
                node = alt(node, later)
            later = self.rules.add(rule_name(f"{self.tool}{path}.{key}.from"), node)
        return later

    def object(self, schema: Mapping[str, Any], path: str) -> Node:
        """An object."""
        if not schema.get("properties"):
            self.unheld(path, "additionalProperties")
        return self.fields(schema, path)

    def array(self, schema: Mapping[str, Any], path: str) -> Node:
        """An array with bounds."""
        self.check_all(schema, path, {"items", "minItems", "maxItems"})
        item = self.node(schema.get("items", {}), f"{path}[]")
        most: Any = schema.get("maxItems")
        return Rep(
            seq(f"{self.lead}<{_ITEM}>", item, f"{self.lead}</{_ITEM}>"),
            int(schema.get("minItems") or 0),
            None if most is None else int(most),
        )

    def string(self, schema: Mapping[str, Any], path: str) -> Node:
        """A string: free text."""
        self.check_all(schema, path, set())
        return Free((self.lead,))

    def literal(self, value: Any) -> Lit:
        """One value."""
        return Lit("" if value is None else value if isinstance(value, str) else dump_json(value))

    def any_value(self) -> Node:
        """Any text without elements in it."""
        return Free((self.lead,))


def _leaf(text: str, allowed: frozenset[str], note: Callable[[str], None]) -> str:
    """A value without elements in it."""
    if not text.strip() and allowed and "string" not in allowed:
        for kind, empty in (("array", "[]"), ("object", "{}"), ("null", "null")):
            if kind in allowed:
                return empty
    return json_of(text, allowed, note)


def _field(schema: Any, key: str, spec: ToolSpec | None) -> Any:
    """The schema of an object's field."""
    if spec is None:
        return None
    for option in _options(schema, spec):
        properties = cast("Mapping[str, Any]", option.get("properties") or {})
        if key in properties:
            return properties[key]
    return None


def _item(schema: Any, spec: ToolSpec | None) -> Any:
    """The schema of an array's items."""
    if spec is None:
        return None
    return next((o["items"] for o in _options(schema, spec) if "items" in o), None)


def _options(schema: Any, spec: ToolSpec) -> list[Mapping[str, Any]]:
    fields = resolved(schema, spec.parameters)
    found = [fields]
    for key in ("anyOf", "oneOf", "allOf"):
        for option in cast("Sequence[Any]", fields.get(key) or ()):
            found += _options(option, spec)
    return found
