"""Calls whose arguments stand each in a tag of its own: one description reads and writes them.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Lima
    </parameter>
    </function>
    </tool_call>

`Tagged` says which marks a family puts around calls, names, keys and values.  Strings are written
as they are; what else a value may be is told by the tool's schema (`_typing.py`) or, in some
families, by an attribute of the tag.  A value ends at its closing mark only where the call goes on
behind it, so that a value may quote the mark.  The grammar of the same marks is in
`_tagged_grammar.py`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import unescape as html_unescape
from typing import Any, Literal

from antiphon.formats._cursor import Cursor, Cut, Reading
from antiphon.formats._readers import JsonCalls, read_arguments
from antiphon.formats._render import (
    Writer,
    check_written,
    invalid_text,
    of_tools,
)
from antiphon.formats._scan import NotACall, Parser, Syntax, holds_markup
from antiphon.formats._types import Around, Filled, Form, Start
from antiphon.formats._typing import ALL, json_of, kind_of, kinds, parameter
from antiphon.formats._usual import Usual
from antiphon.formats._value_end import ValueEnd, attributes, key_of
from antiphon.formats._values import JSON, PYTHON, Dialect, escape, read_value
from antiphon.messages import JsonValue, Message, ToolCall, ToolSpec, dump_json

_STRING = frozenset({"string"})
_OTHERS = ALL - _STRING
_NONE: frozenset[str] = frozenset()
_WRITTEN_FEED = "written_line_feed"
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_MARKUP = re.compile(r"[<&\n]")
_MAY_BE_JSON = re.compile(r"""\s*(?:["'\[{(]|-?[0-9.]|[tfnTFN])""")
_MAX_SPACES = 8  # characters of white space inside a mark
_MAX_TAG = 40  # characters of a closing tag
_CLOSING_TAG = re.compile(r"</[\w:.-]+>")
CDATA, CDATA_END = "<![CDATA[", "]]>"


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """A family's tags, exactly as it writes them; what reads them takes other white space, too.

    Compared by identity, as there are few: a family makes its own once."""

    open: str = ""
    """What stands before a block of calls; ``""`` where a call opens by itself."""
    close: str = ""
    """What stands behind a block."""
    between: str = "\n"
    """What stands between blocks."""
    several: bool = False
    """Whether all calls of a message stand in one block."""
    call: str = ""
    """What stands before a call's name, inside its block."""
    named: str = ""
    """What stands behind the name."""
    call_close: str = ""
    """What stands behind a call; ``""`` where the block's own mark ends it."""
    key: str = "<arg_key>"
    """What stands before an argument's key."""
    keyed: str = "</arg_key>"
    """What stands behind the key."""
    value: str = ""
    """What stands before the value."""
    value_close: str = "</arg_value>"
    """What stands behind the value."""
    types: Literal["schema", "string", "type"] = "schema"
    """Who says what a value is: the tool's schema, an attribute ``string="true"``, or ``type=``."""
    empty: str = ""
    """What stands in place of arguments where a call has none."""
    json: tuple[str, str] = ("", "")
    """Marks around arguments that stand in a call as one JSON object, where the family has that."""
    cdata: bool = False
    """Whether strings with markup or line feeds stand in a CDATA section."""
    escapes: bool = False
    """Whether ``&`` and ``"`` are escaped in names and keys."""
    python: frozenset[str] = frozenset()
    """The JSON types whose values are written as Python writes them."""

    # What is read.

    @property
    def dialect(self) -> Dialect:
        """What values look like that are no strings."""
        return PYTHON if self.python else JSON

    @property
    def feeds(self) -> bool:
        """Whether a line feed stands behind a tag that holds a name or a key, where its end is
        missing at the latest."""
        return self.keyed.endswith(">\n")

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return (self.close.strip() or self.call_close.strip(), self.open.strip() or stem(self.call))

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c, marks = p.c, _marks(self)
        inside = bool(marks.open) and opened_by == marks.open
        if not p.call_in_progress:
            p.call_begin()
        if inside and (yield from self._head(p, marks)):
            return
        if not inside and marks.open:
            p.note("missing_open")
        while True:
            yield from self._call(p, marks)
            if not marks.close or not inside:
                p.call_end()
                return
            ch = yield from _behind_call(p, marks)
            if (yield from c.take(marks.close)):
                p.call_end()
                return
            if not ch or (yield from c.is_next(marks.open)):
                p.note("missing_close" if ch else "missing_end")
                p.call_end()
                return
            if not marks.call or not (
                (yield from c.take(marks.call)) or (yield from _spaced(p, (marks.call,)))
            ):
                raise c.unexpected(repr(marks.close))
            if not self.several:
                p.note("several_calls")
            p.call_end()
            p.call_begin()

    def _head(self, p: Parser, marks: "_Marks") -> Reading[bool]:
        """What stands between the block's mark and the name; whether that was all of the block."""
        c = p.c
        ch = yield from c.space()
        while ch == marks.open[0] and (yield from c.take(marks.open)):
            p.note("doubled_tag")
            ch = yield from c.space()
        if ch in ("{", "[") and marks.close:
            p.note("json_call")
            yield from JsonCalls(marks.close).read(p, "")
            return True
        if marks.call and not (yield from c.take(marks.call)):
            if (yield from _spaced(p, (marks.call,))):
                return False
            if self.several and (yield from c.take(marks.close)):
                p.call_drop()
                return True
            raise NotACall(str(c.unexpected(repr(marks.call))))
        return False

    def _call(self, p: Parser, marks: "_Marks") -> Reading[None]:
        """A call from its name on, up to and with its closing mark."""
        c = p.c
        name = yield from self._name(p, marks)
        p.call_name(name, quoted=False)
        spec = p.spec(name)
        seen: list[str] = []
        while True:
            ch = yield from _space(p)
            if (yield from c.take(marks.key)):
                yield from self._argument(p, marks, spec, seen)
            elif marks.call_close and (yield from c.take(marks.call_close)):
                break
            elif not ch:
                if not p.has_arguments or "" not in seen:
                    p.call_cut(seen)
                p.note("missing_end")
                break
            elif not seen and marks.call and (yield from c.take(marks.call)):
                p.note("doubled_tag")
                p.call_name((yield from self._name(p, marks)), quoted=False)
            elif mark := (yield from _over(p, marks)):
                if mark != marks.close:
                    p.call_cut(seen)
                p.note_if("missing_close" if marks.call_close else "")
                break
            elif self.json[0] and not seen and (yield from c.take(self.json[0])):
                yield from read_arguments(p, end=self.json[1])
                if not (yield from c.take(self.json[1])):
                    raise c.unexpected(repr(self.json[1]))
                seen.append("")
            elif not seen and ch == "{":
                p.note("json_arguments")
                yield from read_arguments(p, end=marks.call_close or marks.close)
                seen.append("")
            elif (yield from c.take(marks.value_close)):
                p.note("doubled_tag")
            elif mark := (yield from _spaced(p, (marks.key, marks.call_close))):
                if mark != marks.key:
                    break
                yield from self._argument(p, marks, spec, seen)
            else:
                raise c.unexpected(repr(marks.key))
        if "" not in seen:
            p.call_arguments("}" if seen else "{}")

    def _name(self, p: Parser, marks: "_Marks") -> Reading[str]:
        c = p.c
        if not marks.named:
            name = (yield from _upto(p, marks.name_ends)).strip()
            while name.endswith("\\n"):
                p.note(_WRITTEN_FEED)
                name = name.removesuffix("\\n").rstrip()
            return name
        if self.feeds:
            tag = yield from _upto(p, (marks.named, *marks.inner, "\n"), or_end=False)
            if not (yield from c.take(marks.named)):
                if not (yield from c.space()) or not tag.strip():
                    raise c.unexpected(repr(marks.named))
                p.note("misspelt_tag")
        else:
            tag = yield from c.until(marks.named, before=marks.inner)
        found = attributes(tag)
        name = found.get("", found.get("name", found.get("tool", "")))
        return html_unescape(name) if self.escapes else name

    def _argument(
        self, p: Parser, marks: "_Marks", spec: ToolSpec | None, seen: list[str]
    ) -> Reading[None]:
        c = p.c
        feed = ("\n",) if self.feeds else ()
        tag = yield from _upto(p, marks.key_ends + feed, or_end=False)
        found = attributes(tag)
        key = key_of(found)
        if not (yield from c.take(marks.keyed)):
            if feed and (yield from c.is_next("\n")) and not (key and parameter(spec, key)):
                raise c.malformed(f"{tag[:40]!r} is no key")
            p.note("misspelt_tag" if feed else "missing_tag")
        if key is None:
            raise c.malformed("an argument has no key")
        key = html_unescape(key) if self.escapes else key
        if holds_markup(key) and parameter(spec, key) is None:
            raise c.malformed(f"{key[:40]!r} is no key")
        if key in seen:
            p.note("repeated_key")
        p.call_arguments(f"{', ' if seen else '{'}{dump_json(key)}: ")
        seen.append(key)
        if marks.value:
            yield from _space(p)
            if not (yield from c.take(marks.value)):
                p.note("missing_tag")
        allowed = self._allowed(found, spec, key)
        end = marks.end
        if self.cdata and (yield from c.take(CDATA)):
            allowed = allowed if allowed - _STRING else _STRING
            end = marks.cdata_end
        elif end.padded:
            yield from c.take("\n")

        def lacks(other: str) -> bool:
            return other not in seen and parameter(spec, other) is not None

        if allowed == _STRING:
            p.call_arguments('"')
            slip = yield from end.read(c, lambda text: p.call_arguments(escape(text)), lacks)
            p.call_arguments('"')
        elif end is marks.end and (yield from _begins_json(c, allowed)):
            yield from read_value(
                c, p.call_arguments, p.note, dialect=self.dialect, end=end.close.strip()
            )
            slip = yield from end.taken(c)
        else:
            pieces: list[str] = []
            slip = yield from end.read(c, pieces.append, lacks)
            p.call_arguments(json_of("".join(pieces), allowed, p.note, dialect=self.dialect))
        p.note_if(slip)

    def _allowed(self, found: Mapping[str, str], spec: ToolSpec | None, key: str) -> frozenset[str]:
        """The types that a value may have; empty where nothing tells."""
        said = found.get(self.types)
        if said is not None:
            return _STRING if said in ("true", "string") else _OTHERS
        return kinds(parameter(spec, key), spec.parameters) if spec else frozenset()

    # What is written.

    def write(
        self, call: ToolCall, index: int = 0, *, opens: str = "", closes: str = ""
    ) -> list[tuple[str, bool]]:
        """A call: texts, and whether each is markup of the family's.

        Args:
            call: The call.
            index: Its position in the message, from 1, for families that write it.
            opens: What stands before it of its block.
            closes: What stands behind it of its block.
        """
        parts: list[tuple[str, bool]] = []
        arguments = call.arguments
        types = () if self.types == "schema" else tuple(map(kind_of, arguments.values()))
        numbered = index if "{index}" in self.named else 0
        own = _own(self, call.name, tuple(arguments), types, numbered, opens, closes)
        for before, value in zip(own, arguments.values(), strict=False):
            parts += before
            if isinstance(value, str) and not self.cdata:
                parts.append((value, False))
            else:
                parts.append((self.value_text(value), False))
        parts += own[-1]
        return parts

    def own_parts(
        self, name: str, keys: Sequence[str], types: Sequence[str], index: int
    ) -> "Iterator[list[tuple[str, bool]]]":
        """The texts before each value and behind the last, and whether each is markup."""
        parts: list[tuple[str, bool]] = []
        named = self.named.replace("{index}", str(index))
        markup = self._around(parts, self.call, name) + named
        for i, key in enumerate(keys):
            keyed = self._keyed(types[i] if types else "")
            markup = self._around(parts, markup + self.key, key) + keyed + self.value
            yield [*parts, (markup, True)]
            parts, markup = [], self.value_close
        if not keys:
            markup += self.empty
        yield [*parts, (markup + self.call_close, True)]

    def _around(self, parts: list[tuple[str, bool]], markup: str, name: str) -> str:
        """Markup up to behind a name, which is data unless it can hold no mark."""
        if name.isidentifier():
            return markup + name
        parts += ((markup, True), (self._attribute(name), False))
        return ""

    def value_text(self, value: JsonValue) -> str:
        """A value as it stands in its tag."""
        if not isinstance(value, str):
            return str(value) if kind_of(value) in self.python else dump_json(value)
        if self.cdata and _MARKUP.search(value):
            return f"{CDATA}{value}{CDATA_END}"
        return value

    def _attribute(self, text: str) -> str:
        return text.replace("&", "&amp;").replace('"', "&quot;") if self.escapes else text

    def _keyed(self, kind: str) -> str:
        if self.types == "string":
            return self.keyed.replace("{type}", "true" if kind == "string" else "false")
        if self.types == "type":
            return self.keyed.replace("{type}", "number" if kind == "integer" else kind)
        return self.keyed

    def doubtful(self, call: ToolCall, known: "_Known | None") -> bool:
        """Whether a call might be read back as something else, and has to be tried."""
        arguments = call.arguments
        if not _are_plain(call.name, tuple(arguments)):
            return True
        marks, by_schema = _marks(self), self.types == "schema"
        for key, value in arguments.items():
            is_text = isinstance(value, str)
            text = value if is_text and not self.cdata else self.value_text(value)
            if marks.inner_begins in text:
                for mark in marks.inner:
                    if mark in text:
                        return True
            if not by_schema:
                continue
            allowed = known.allowed(key) if known else _NONE
            if is_text:
                if allowed != _STRING and _MAY_BE_JSON.match(value):
                    return True
            elif allowed and not allowed & _OTHERS:
                return True
        return False


@lru_cache(maxsize=1024)
def _own(
    tags: Tagged,
    name: str,
    keys: tuple[str, ...],
    types: tuple[str, ...],
    index: int,
    opens: str,
    closes: str,
) -> list[list[tuple[str, bool]]]:
    """What is the family's own in all calls of a tool with the same arguments: what stands before
    each value and behind the last."""
    parts = list(tags.own_parts(name, keys, types, index))
    parts[0].insert(0, (opens, True))
    parts[-1].append((closes, True))
    return [[part for part in group if part[0]] for group in parts]


@lru_cache(maxsize=1024)
def _are_plain(name: str, keys: tuple[str, ...]) -> bool:
    """Whether a call's name and keys are such that nothing else could be read."""
    return all(map(_PLAIN_KEY.fullmatch, (name, *keys)))


@dataclass(frozen=True, slots=True)
class _Known:
    """A tool, and what was found of its parameters."""

    spec: ToolSpec
    """The tool."""
    types: dict[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    """The types that parameters may have, as far as they were asked for."""

    strings: dict[tuple[str, ...], bool] = field(default_factory=dict[tuple[str, ...], bool])
    """Parameters of calls that were found to be nothing but strings."""

    def allowed(self, key: str) -> frozenset[str]:
        """The types that a parameter may have; empty where nothing tells."""
        found = self.types.get(key)
        if found is None:
            schema = parameter(self.spec, key)
            found = kinds(schema, self.spec.parameters)
            if schema is not None:
                self.types[key] = found
        return found

    def are_strings(self, keys: tuple[str, ...]) -> bool:
        """Whether parameters can be nothing but strings."""
        found = self.strings.get(keys)
        if found is None:
            found = all(self.allowed(key) == _STRING for key in keys)
            if found:
                self.strings[keys] = found
        return found


def _known(tools: Sequence[ToolSpec]) -> dict[str, _Known]:
    return {spec.name: _Known(spec) for spec in tools}


def _begins_json(c: Cursor, allowed: frozenset[str]) -> Reading[bool]:
    """Whether a value is an object or an array that must be one: then it is sent on as it is
    read, and must be right to its end."""
    if "string" in allowed or not allowed & {"object", "array"}:
        return False
    return {"{": "object", "[": "array"}.get((yield from c.peek())) in allowed


def _over(p: Parser, marks: "_Marks") -> Reading[str]:
    """The mark that comes next if a block ends with it, or another one or another call begins."""
    for mark in (marks.close, marks.open, marks.call):
        if (yield from p.c.is_next(mark)):
            return mark
    return ""


def _behind_call(p: Parser, marks: "_Marks") -> Reading[str]:
    """Consume what stands between a call and what follows it: space, and closing tags of nothing;
    the character behind it."""
    c = p.c
    while True:
        ch = yield from _space(p)
        if ch != "<" or (yield from c.is_next(marks.close)):
            return ch
        if marks.call_close and (yield from c.take(marks.call_close)):
            p.note("doubled_tag")
            continue
        tag = yield from c.peek(_MAX_TAG)
        found = _CLOSING_TAG.match(tag)
        if found is None or (yield from c.is_next(marks.open)):
            return ch
        p.note("stray_tag")
        c.pos += len(found.group())


def _spaced(p: Parser, marks: tuple[str, ...]) -> Reading[str]:
    """Consume the first of some marks that comes with white space in it; give it back, else
    ``""``."""
    c = p.c
    for mark in filter(None, () if p.strict else marks):
        wanted, size = "".join(mark.split()), 0
        while True:
            window = c.text[c.pos : c.pos + len(mark) + _MAX_SPACES]
            found = "".join(window.split())
            if found.startswith(wanted):
                left = len(wanted)
                while left:
                    left -= not window[size].isspace()
                    size += 1
                p.note("spaced_mark")
                c.pos += size
                return mark
            is_full = len(window) == len(mark) + _MAX_SPACES
            if c.closed or is_full or not wanted.startswith(found):
                break
            yield
    return ""


def _space(p: Parser) -> Reading[str]:
    """Consume the space between marks, also where a model wrote out the escape of a line feed; the
    character behind it."""
    ch = yield from p.c.space()
    while ch == "\\" and (yield from p.c.take("\\n")):
        p.note(_WRITTEN_FEED)
        ch = yield from p.c.space()
    return ch


def stem(mark: str) -> str:
    """A tag's beginning, before its attributes.

    >>> stem('<invoke name="'), stem('<function='), stem('<tool_call>')
    ('<invoke', '<function', '<tool_call>')
    """
    return re.sub(r'(?:\s+\w+="|=)$', "", mark.strip())


def tag_end(text: str) -> str:
    """The mark that ends a tag, behind its attributes.

    >>> tag_end('" string="{type}">'), tag_end(">")
    ('>', '>')
    """
    return text.strip().rpartition('"')[2].strip()


def _upto(
    p: Parser, ends: tuple[str, ...], *, limit: int = 256, or_end: bool = True
) -> Reading[str]:
    """The text up to one of some marks, which stays, or to the end of the text."""
    c = p.c
    longest = limit + max(map(len, ends))
    while True:
        last = c.pos + longest
        found = [at for end in ends if (at := c.text.find(end, c.pos, last)) >= 0]
        size = (min(found) if found else len(c.text)) - c.pos
        if size > limit:
            raise c.malformed(f"no end of the name within {limit} characters")
        if c.closed and not found and not or_end:
            raise Cut(f"the text ends before {ends[0]!r}")
        if found or c.closed:
            text = c.text[c.pos : c.pos + size]
            c.pos += size
            return text
        yield


@dataclass(frozen=True, slots=True)
class _Marks:
    """A `Tagged` made ready for reading."""

    open: str
    close: str
    call: str
    named: str
    name_ends: tuple[str, ...]
    call_close: str
    key: str
    keyed: str
    key_ends: tuple[str, ...]
    value: str
    value_close: str
    end: ValueEnd
    cdata_end: ValueEnd
    inner: tuple[str, ...]
    inner_begins: str


@lru_cache(maxsize=64)
def _marks(tags: Tagged) -> _Marks:
    open, call, key = tags.open.strip(), stem(tags.call), stem(tags.key)
    close, call_close = tags.close.strip(), tags.call_close.strip()
    keyed, value_close = tag_end(tags.keyed), tags.value_close.strip()
    over = call_close or close
    inner = (value_close, key, over, CDATA)
    begins = {mark[:1] for mark in inner}

    def end(mark: str) -> ValueEnd:
        return ValueEnd(
            close=mark,
            padded=tags.value_close.startswith("\n"),
            spaced=tags.value_close.endswith("\n"),
            key=key,
            keyed=keyed,
            over=over,
            block=close if call_close else "",
            others=tuple(m for m in (open, call) if m),
        )

    return _Marks(
        open=open,
        close=close,
        call=call,
        named=tag_end(tags.named) if call or tags.named.strip() else "",
        name_ends=tuple(m for m in ("\n", key, over, open, "{") if m),
        call_close=call_close,
        key=key,
        keyed=keyed,
        key_ends=tuple(m for m in (keyed, tags.value.strip()) if m),
        value=tags.value.strip(),
        value_close=value_close,
        end=end(value_close),
        cdata_end=end(CDATA_END + value_close),
        inner=inner,
        inner_begins=begins.pop() if len(begins) == 1 else "",
    )


def write_calls(w: Writer, tags: Tagged, message: Message, index: int, *, before: str) -> None:
    """The calls of an assistant message.

    Args:
        w: What is written.
        tags: The family's tags.
        message: The message.
        index: Its position.
        before: What stands before its first block.
    """
    calls = message.tool_calls
    lead = before
    for i, call in enumerate(calls):
        opens = lead + tags.open if not i or not tags.several else ""
        closes = tags.close if i + 1 == len(calls) or not tags.several else ""
        w.parts(tags.write(call, i + 1, opens=opens, closes=closes), index)
        lead = tags.between
    if message.invalid_tool_calls:
        w.put(lead + invalid_text(message), "written", index)


def called(frame: Around, tags: Tagged, *, lead: str = "", changes: bool = False) -> Usual:
    """How a message is written that is one call, which nobody could take for anything else.

    Args:
        frame: What stands around the call.
        tags: The family's tags.
        lead: What stands before the call's block.
        changes: Whether such a message differs from when it was written.
    """
    marks, by_schema = _marks(tags), tags.types == "schema"
    begins = (marks.inner_begins,) if marks.inner_begins else marks.inner
    odd = _MARKUP if tags.cdata else re.compile("|".join(map(re.escape, begins)))

    @lru_cache(maxsize=256)
    def form(name: str, keys: tuple[str, ...], types: tuple[str, ...]) -> Form | None:
        """What stands around the values; ``None`` where the name or a key is odd."""
        if not _are_plain(name, keys):
            return None
        index = 1 if "{index}" in tags.named else 0
        return Form(frame, _own(tags, name, keys, types, index, lead + tags.open, tags.close))

    def write(call: ToolCall, tools: tuple[ToolSpec, ...]) -> tuple[str, Filled] | None:
        keys = tuple(call.arguments)
        texts: tuple[Any, ...] = tuple(call.arguments.values())
        own = form(call.name, keys, () if by_schema else tuple(map(kind_of, texts)))
        if own is None:
            return None
        known = of_tools(_known, tools).get(call.name)
        are_strings = known is not None and known.are_strings(keys) if by_schema else True
        if not are_strings or not _are_texts(texts, odd):
            if tags.doubtful(call, known):
                return None
            texts = tuple(map(tags.value_text, texts))
        return own.filled(texts)

    return Usual(call=write, changes=changes)


def _are_texts(values: tuple[Any, ...], odd: re.Pattern[str]) -> bool:
    """Whether values are all strings, and plain ones."""
    try:
        joined = "".join(values)
    except TypeError:
        return False
    return odd.search(joined) is None


def check_calls(
    w: Writer,
    tags: Tagged,
    syntax: Syntax,
    message: Message,
    index: int,
    *,
    since: int,
    tools: Sequence[ToolSpec],
    start: Start = "content",
) -> None:
    """Refuse a message that would be read back as something else. See `check_written`.

    Raises:
        RenderError: Text or arguments cannot be told from markup, or from another type.
    """
    problem, doubtful = "", []
    if message.tool_calls:
        known = of_tools(_known, tools)
        doubtful = [c.name for c in message.tool_calls if tags.doubtful(c, known.get(c.name))]
    if doubtful:
        names = ", ".join(map(repr, doubtful))
        problem = (
            f"the arguments of {names} would be read as something else: this family writes no "
            "quotes around strings; give the tool's schema, or a value of the type it asks for"
        )
    if doubtful or message.parts:
        check_written(
            w, syntax, message, index,
            since=since, tools=tools, start=start, doubtful=bool(doubtful), problem=problem,
        )  # fmt: skip
