"""What stands in a block of calls: a few readers for all families, set up by fields.

`JsonCalls`: objects that hold the name and the arguments.  `NamedJson`: the name before its
arguments' JSON.  Each turns the text into calls through the `Parser` it is given, as the text
arrives.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

from antiphon.formats._cursor import Cursor, Reading
from antiphon.formats._scan import NotACall, Parser
from antiphon.formats._syntax import BARE, Reader
from antiphon.formats._values import JSON, convert, read_key, read_string, read_value
from antiphon.messages import dump_json

_FENCE = "```"
_QUOTES = ('"', "'")
_NAME_KEYS = ("function", "function_name", "tool", "tool_name", "action", "recipient_name")
_ARGUMENT_KEYS = ("args", "input", "params", "tool_args", "tool_input", "action_input")
_WRAPPERS = ("tool_calls", "calls")
_TAG_END = re.compile(r"<\s*/\s*[\w:.-]{1,40}\s*>")
_MAX_TAG = 48  # characters of a closing tag
MAX_HEAD = 512  # characters before the mark behind a call's name


def ignore(text: str) -> None:
    """Take text and do nothing with it."""


@dataclass(frozen=True, slots=True)
class JsonCalls:
    """JSON objects with a name and arguments, one or an array of them."""

    close: str = ""
    """The mark behind them; ``""`` where they end by themselves."""
    name: tuple[str, ...] = ("name",)
    """Keys of the name; the first is the family's own."""
    arguments: tuple[str, ...] = ("arguments", "parameters")
    """Keys of the arguments; the first is the family's own, others are taken with a note."""
    id: tuple[str, ...] = ("id",)
    """Keys of the call's id."""
    array: bool = False
    """Whether the family writes an array, even for one call."""
    several: bool = False
    """Whether the family writes several objects one behind another, without an array."""
    bare_note: str = ""
    """What to note when this reads calls that lost their marks."""
    next_block: tuple[str, ...] = ()
    """Marks that start the next block, where a malformed one ends at the latest."""
    tagged: Reader | None = None
    """Reads calls in tags, behind their block's mark, where models write such in place of JSON."""
    python: Reader | None = None
    """Reads calls in Python's syntax, behind their opening bracket, where models write such in
    place of the family's."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return ((self.close,) if self.close else ()) + self.next_block

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        if not p.call_in_progress:
            p.call_begin()
        fenced, ch = yield from self._opening(p, opened_by)
        if ch == "<":
            assert self.tagged is not None
            p.note("tagged_call")
            yield from self.tagged.read(p, opened_by)
            return
        in_array = ch == "["
        if in_array:
            ch = yield from c.space()
            if self.python is not None and ch not in ("{", "]", ""):
                p.note("python_calls")
                yield from self.python.read(p, "[")
                return
            if ch not in ("{", "]"):
                raise NotACall(str(c.unexpected("a call as a JSON object")))
            if not self.array:
                p.note("array")
            if ch == "]":
                c.pos += 1
                yield from self._closing(p, opened_by, fenced)
                p.call_drop()
                return
        elif ch == "{" and self.array:
            p.note("no_array")
        while True:
            yield from self._object(p)
            more, in_array = yield from self._between(p, in_array)
            if not more:
                break
            p.call_end()
            p.call_begin()
        yield from self._closing(p, opened_by, fenced)
        p.call_end()

    def _opening(self, p: Parser, opened_by: str) -> Reading[tuple[bool, str]]:
        """Skip a doubled mark, a fence and an array's bracket; whether there was a fence, and the
        bracket that opens the calls."""
        c = p.c
        if opened_by.endswith(("{", "[")):
            c.pos -= opened_by.endswith("{")
            p.note_if(self.bare_note)
            return False, opened_by[-1]
        fenced = opened_by == _FENCE
        if fenced:
            p.note_if(self.bare_note)
        ch = yield from c.space() if not fenced else c.peek()
        while opened_by and not fenced and ch == opened_by[0] and (yield from c.take(opened_by)):
            p.note("doubled_tag")
            ch = yield from c.space()
        if fenced or (ch == "`" and (yield from c.take(_FENCE))):
            p.note("json_fence")
            language = (yield from c.until("\n", limit=20)).strip()
            if language not in ("", "json", "tool_call", "tool_code"):
                raise NotACall("a fence of something else")
            fenced = True
            ch = yield from c.space()
        if ch == "<" and self.tagged is not None and (yield from c.is_next("<function=")):
            return False, ch
        if ch not in ("{", "["):
            raise NotACall(str(c.unexpected("a call as a JSON object")))
        c.pos += ch == "["
        return fenced, ch

    def _between(self, p: Parser, in_array: bool) -> Reading[tuple[bool, bool]]:
        """What follows an object: whether another one does, and whether the array is open."""
        c = p.c
        if not in_array and not self.close:
            return False, False
        ch = yield from c.space()
        while ch == "}":
            p.note("extra_bracket")
            c.pos += 1
            ch = yield from c.space()
        if not in_array:
            if ch == ",":
                p.note("trailing_comma")
                c.pos += 1
                ch = yield from c.space()
            if ch == "{" and not self.several:
                p.note("several_objects")
            return ch == "{", False
        if ch == ",":
            c.pos += 1
            ch = yield from c.space()
            if ch == "{":
                return True, True
            if ch == "]":
                p.note("trailing_comma")
        elif ch == "{":
            p.note("missing_comma")
            return True, True
        if ch == "]":
            c.pos += 1
        elif not ch or (self.close and ch == self.close[0]):
            p.note("missing_bracket")
        else:
            raise c.unexpected("',' or ']' after a call")
        return False, False

    def _closing(self, p: Parser, opened_by: str, fenced: bool) -> Reading[None]:
        c = p.c
        if fenced:
            ch = yield from c.space()
            if ch == "`":
                yield from c.take(_FENCE)
        if not self.close or (p.without_marks and opened_by in BARE):
            return
        yield from close_call(p, self.close, others=self.next_block)

    def _object(self, p: Parser) -> Reading[None]:
        """One call object; the engine checks that it has what a call needs."""
        c = p.c
        if (yield from c.space()) != "{":
            raise c.unexpected("a call as a JSON object")
        c.pos += 1
        ch = yield from c.space()
        if ch == "}":
            c.pos += 1
            raise c.malformed("an empty object is no call")
        others: dict[str, str] = {}
        while True:
            key = yield from read_key(c, p.note)
            if (yield from c.space()) != ":":
                raise c.unexpected("':' after a key")
            c.pos += 1
            yield from self._member(p, key, others)
            ch = yield from c.space()
            if ch == ",":
                c.pos += 1
                ch = yield from c.space()
                if ch != "}":
                    continue
                p.note("trailing_comma")
            if ch == "}":
                c.pos += 1
                _take_others(p, others)
                return
            if ch == '"':
                p.note("missing_comma")
                continue
            closes = self.close and ch == self.close[0]
            if (not ch and p.has_arguments) or (
                closes and (yield from c.peek(2)) == self.close[:2]
            ):
                p.note("missing_bracket")
                _take_others(p, others)
                return
            raise c.unexpected("',' or '}' in a call")

    def _member(self, p: Parser, key: str, others: dict[str, str]) -> Reading[None]:
        """The value of one key of a call; of a key that calls do not have, it goes to `others`."""
        c = p.c
        if key in self.name:
            p.call_name((yield from read_string(c, p.note)))
        elif key in self.arguments:
            if key != self.arguments[0]:
                p.note(f"{key}_key")
            yield from read_arguments(p, end=self.close)
        elif key in self.id:
            written: list[str] = []
            yield from read_value(c, written.append, p.note)
            id: object = json.loads("".join(written))
            if id is not None:
                p.call_id(str(id))
        elif key == "function" and (yield from c.space()) == "{":
            p.note("function_wrapper")
            yield from self._object(p)
        elif not self.name:
            p.call_name(key)
            yield from read_arguments(p, end=self.close)
        elif key in _NAME_KEYS and not p.has_name and (yield from c.space()) in _QUOTES:
            name = yield from read_string(c, p.note)
            if key == "action" and p.tools and name not in p.tools:
                others[key] = dump_json(name)
                return
            p.note(f"{key}_key")
            p.call_name(name)
        elif key in _ARGUMENT_KEYS and not p.has_arguments and (yield from c.space()) == "{":
            p.note(f"{key}_key")
            yield from read_arguments(p, end=self.close)
        elif key in _WRAPPERS and not p.has_name and (yield from c.space()) == "[":
            p.note("calls_wrapper")
            yield from self._wrapped(p)
        elif p.without_marks and not p.has_arguments and key != "type":
            raise NotACall("no key of a call")
        elif key in p.tools and not p.has_name and (yield from c.space()) == "{":
            p.note("name_as_key")
            p.call_name(key)
            yield from read_arguments(p, end=self.close)
        elif key == "type":
            yield from read_value(c, ignore, p.note)
        else:
            pieces: list[str] = []
            yield from read_value(c, pieces.append, p.note)
            others[key] = "".join(pieces)

    def _wrapped(self, p: Parser) -> Reading[None]:
        """Calls in an array that stands in an object where a call should be."""
        c = p.c
        c.pos += 1
        while True:
            yield from self._object(p)
            ch = yield from c.space()
            if ch not in (",", "]"):
                raise c.unexpected("',' or ']' after a call")
            c.pos += 1
            if ch == "]":
                return
            p.call_end()
            p.call_begin()


def _take_others(p: Parser, others: dict[str, str]) -> None:
    """What a call has besides a name and arguments: its arguments, where it has none of its own and
    its tool takes what is there; else it means nothing.

    Raises:
        Malformed: The parser is strict.
    """
    if not others:
        return
    known = [key for key in others if p.takes(key)]
    if not known or not p.lacks_arguments:
        p.note("extra_key")
        return
    p.note("flat_arguments")
    members = ", ".join(f"{dump_json(key)}: {value}" for key, value in others.items())
    p.call_arguments(f"{{{members}}}")


def read_arguments(p: Parser, *, end: str = "") -> Reading[None]:
    """Read an arguments object, or what models write in its place."""
    c = p.c
    ch = yield from c.space()
    if (yield from c.is_next(end)):
        p.note("no_arguments")
        p.call_arguments("{}")
    elif ch == "{":
        doubled = (yield from c.peek(2)) == "{{"
        if doubled:
            p.note("doubled_bracket")
            c.pos += 1
        yield from read_value(c, p.call_arguments, p.note, dialect=JSON, end=end)
        if doubled and (yield from c.space()) == "}":
            c.pos += 1
    elif ch and ch in "\"'":
        p.note("string_arguments")
        text = yield from read_string(c, p.note)
        if not text.strip():
            p.call_arguments("{}")
        elif text.lstrip()[0] != "{":
            raise c.malformed("the arguments are a string that is no JSON object")
        else:
            p.call_arguments(convert(text, p.note))
    elif ch == "[":
        c.pos += 1
        ch = yield from c.space()
        if ch in ("{", "]"):
            p.note("array_arguments")
        if ch == "{":
            yield from read_value(c, p.call_arguments, p.note, end=end)
            ch = yield from c.space()
        elif ch == "]":
            p.call_arguments("{}")
        if ch != "]":
            raise c.malformed("the arguments must be a JSON object")
        c.pos += 1
    else:
        pieces: list[str] = []
        yield from read_value(c, pieces.append, p.note)
        if "".join(pieces) != "null":
            raise c.malformed("the arguments must be a JSON object")
        p.note("null_arguments")
        p.call_arguments("{}")


@dataclass(frozen=True, slots=True)
class NamedJson:
    """A name, a mark, and the arguments as a JSON object."""

    separator: str
    """The mark between name and arguments."""
    close: str = ""
    """The mark behind the arguments; ``""`` where the object ends by itself."""
    name: Callable[[str], tuple[str, str]] = lambda text: (text.strip(), "")
    """Takes the text before the separator apart into name and id."""
    next_block: tuple[str, ...] = ()
    """Marks that start the next call, where a malformed one ends at the latest."""
    slip: str = ""
    """What to note where this reads calls of the family's kin."""
    direct: bool = False
    """Whether the object may stand right behind the name."""
    around: tuple[str, str] = ("", "")
    """Patterns of what models write before and behind the name of a tool in place of the family's
    own."""
    nameless: re.Pattern[str] | None = None
    """What models write in place of a name that is only an id."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return ((self.close,) if self.close else ()) + self.next_block

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        if not p.call_in_progress:
            p.call_begin()
        yield from take_doubled(p, opened_by)
        marks = (self.separator, "{") if self.direct else (self.separator,)
        name, id = self.name((yield from read_head(p, marks, before=self.resync)))
        p.note_if(self.slip)
        name = self._meant(p, name, id)
        if p.tools and name not in p.tools and self.nameless and self.nameless.fullmatch(id):
            p.call_nameless(id)
        else:
            p.call_name(name, id=id, quoted=False)
        yield from c.take(self.separator)
        if self.close:
            yield from read_arguments(p, end=self.close)
            yield from close_call(p, self.close, others=self.next_block)
        elif (yield from self._is_over(p)):
            p.call_cut(())
            p.note("no_arguments")
        else:
            yield from read_arguments(p)
        p.call_end()

    def _is_over(self, p: Parser) -> Reading[bool]:
        """Whether the text ends here, or another call begins."""
        if not (yield from p.c.space()):
            return True
        for mark in self.next_block:
            if (yield from p.c.is_next(mark)):
                return True
        return False

    def _meant(self, p: Parser, name: str, id: str) -> str:
        """The tool on offer whose name an id of another form holds; else the name as it is."""
        if name in p.tools or not any(self.around):
            return name
        before, behind = self.around
        names = [n for n in p.tools if re.fullmatch(before + re.escape(n) + behind, id or name)]
        if not names:
            return name
        p.note("misspelt_id")
        return max(names, key=len)


@dataclass(frozen=True, slots=True)
class Section:
    """A section of calls that have marks of their own; a first one without it is read, too."""

    call: str
    """The mark before a call."""
    close: str
    """The mark that ends the section."""
    reader: Reader
    """What reads a call."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return (self.close, self.call)

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        ch = yield from c.space()
        if not ch:
            return
        for mark in (*self.resync, opened_by):
            if (yield from c.is_next(mark)):
                return
        p.call_begin()
        p.note("missing_open")
        yield from self.reader.read(p, "")


def read_head(p: Parser, marks: tuple[str, ...], *, before: tuple[str, ...]) -> Reading[str]:
    """Read the head of a call: a name, up to one of some marks, which stays.

    Args:
        p: The parser.
        marks: Marks behind the head.
        before: Marks that it must come before.

    Raises:
        Malformed: Another mark comes first, or none does in time.
        NotACall: The same, and what stands there is no name.
    """
    c, ends = p.c, (*marks, *before)
    longest = MAX_HEAD + max(map(len, ends))
    while True:
        last = c.pos + longest
        found = [(at, mark) for mark in ends if (at := c.text.find(mark, c.pos, last)) >= 0]
        end, mark = min(found, default=(len(c.text), ""))
        head = c.text[c.pos : min(end, c.pos + MAX_HEAD)]
        if mark in marks and end <= c.pos + MAX_HEAD:
            c.pos = end
            return head
        if mark or c.closed or len(head) == MAX_HEAD:
            error = c.malformed(f"no {marks[0]!r} behind the name of a call")
            is_name = len(head.split()) < 2 and len(head) < MAX_HEAD
            raise error if is_name else NotACall(str(error))
        yield


def take_doubled(p: Parser, mark: str) -> Reading[None]:
    """Take an opening mark where it stands again."""
    while mark and (yield from p.c.take(mark)):
        p.note("doubled_tag")


def close_call(p: Parser, mark: str, *, others: tuple[str, ...] = ()) -> Reading[None]:
    """Take the closing mark of a call; missing only at the end of the text, or before others."""
    c = p.c
    while (ch := (yield from c.space())) == "}":
        p.note("extra_bracket")
        c.pos += 1
    if (yield from c.take(mark)):
        return
    if c.closed and mark.startswith(c.text[c.pos :]):
        c.rest()
        p.note("missing_end")
        return
    for other in others:
        if (yield from c.is_next(other)):
            p.note("missing_close")
            return
    if ch == "<" and mark[0] == "<" and (yield from _take_tag_end(c)):
        p.note("misspelt_tag")
        return
    raise c.unexpected(f"{mark!r} after the call")


def _take_tag_end(c: Cursor) -> Reading[bool]:
    """Consume a closing tag of any name."""
    while True:
        tag = c.text[c.pos : c.pos + _MAX_TAG]
        found = _TAG_END.match(tag)
        if found:
            c.pos += found.end()
            return True
        if c.closed or len(tag) == _MAX_TAG or ">" in tag:
            return False
        yield
