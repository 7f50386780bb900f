"""Calls in Python's syntax, and Python literals: ``[get_weather(city="Lima", days=3), clock()]``.

Only literals are values; nothing is evaluated.  Names of arguments may be Python's keywords.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from antiphon.formats._cursor import Reading
from antiphon.formats._grammar import Node, Rules, seq
from antiphon.formats._members import is_bare_key, read_members
from antiphon.formats._readers import JsonCalls, close_call, take_doubled
from antiphon.formats._render import Writer
from antiphon.formats._scan import NotACall, Parser, Unmarked
from antiphon.formats._spelled_grammar import Spelling, quoted, spelled_arguments
from antiphon.formats._types import Around
from antiphon.formats._usual import PLAIN_NAME, Usual
from antiphon.formats._values import PYTHON
from antiphon.messages import JsonValue, ToolCall, ToolSpec, dump_json

_NAME = re.compile(r"[^\W\d][\w.-]*")
MAX_NAME = 200  # characters; longer text is no name


@dataclass(frozen=True, slots=True)
class PythonCalls:
    """Reads calls in Python's syntax: a list of them, or one a line."""

    close: str = ""
    """The mark behind them; ``""`` where they end by themselves."""
    lines: bool = False
    """Whether they stand one a line, without brackets."""
    stops: tuple[str, ...] = ()
    """Marks at which content goes on after a malformed call, besides `close`."""
    bare_note: str = ""
    """What to note when this reads calls that lost their marks."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return ((self.close,) if self.close else ()) + self.stops

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        if not p.call_in_progress:
            p.call_begin()
        if opened_by in ("{", "```"):
            if not p.tools:
                raise NotACall("Python calls begin with a bracket")
            yield from self._json("json_calls").read(p, opened_by)
            return
        in_list, slip = opened_by == "[", ""
        if in_list:
            p.note_if(self.bare_note)
            if (yield from c.space()) == "{":
                p.note("json_calls")
                yield from self._json("").read(p, "[")
                return
        else:
            yield from take_doubled(p, opened_by)
            in_list = (yield from c.space()) == "["
            if in_list and "{" in (yield from c.peek(3)):
                p.note("json_calls")
                yield from self._json("").read(p, "")
                return
            c.pos += in_list
            if self.lines and not opened_by:
                slip = self.bare_note
            elif in_list == self.lines:
                slip = "array" if in_list else "no_array"
        if in_list and (yield from c.space()) == "]":
            if p.without_marks:
                raise NotACall("an empty list")
            c.pos += 1
            yield from self._closing(p)
            p.call_drop()
            return
        while True:
            yield from self._call(p, slip)
            if not (yield from self._more(p, in_list)):
                break
            p.call_end()
            p.call_begin()
        yield from self._closing(p)
        p.call_end()

    def _json(self, note: str) -> JsonCalls:
        """Reads the calls where they are written as JSON."""
        return JsonCalls(self.close, array=True, bare_note=note)

    def _call(self, p: Parser, slip: str) -> Reading[None]:
        c = p.c
        yield from c.space()
        parts: list[str] = []
        while True:
            found = _NAME.match(c.text, c.pos) if not parts else _REST.match(c.text, c.pos)
            if found:
                parts.append(found.group())
                c.pos = found.end()
            if c.pos < len(c.text) or c.closed or sum(map(len, parts)) > MAX_NAME:
                break
            yield
        if (yield from c.peek()) != "(":
            raise NotACall(str(c.unexpected("'(' after the name of a call")))
        p.note_if(slip)
        p.call_name("".join(parts))
        c.pos += 1
        yield from read_members(c, p.call_arguments, p.note, dialect=PYTHON, sign="=", close=")")

    def _more(self, p: Parser, in_list: bool) -> Reading[bool]:
        """Whether another call follows."""
        c = p.c
        ch = yield from c.space()
        if not in_list:
            return bool(ch) and (not self.close or ch != self.close[0]) and self.lines
        if ch == ",":
            c.pos += 1
            if (yield from c.space()) != "]":
                return True
            p.note("trailing_comma")
            ch = "]"
        if ch == "]":
            c.pos += 1
            return False
        if not ch or (self.close and ch == self.close[0]):
            p.note("missing_bracket")
            return False
        raise c.unexpected("',' or ']' after a call")

    def _closing(self, p: Parser) -> Reading[None]:
        if self.close and not p.without_marks:
            yield from close_call(p, self.close, others=self.stops)


BARE_LINES = Unmarked(PythonCalls(lines=True, bare_note="bare_calls"), ("(",), alone=True)
"""Calls that stand one a line, without the family's brackets or marks, as the whole answer."""
_REST = re.compile(r"[\w.-]+")


def literal(value: JsonValue) -> str:
    """A value as a Python literal, strings in double quotes.

    >>> literal({"a": [True, None, "it's"]})
    '{"a": [True, None, "it\\'s"]}'
    """
    if isinstance(value, Mapping):
        members = [f"{dump_json(key)}: {literal(inner)}" for key, inner in value.items()]
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(literal(item) for item in cast("list[JsonValue]", value)) + "]"
    return dump_json(value) if isinstance(value, str) else repr(value)


def call_text(
    w: Writer, call: ToolCall, index: int, argument: Callable[[JsonValue], str] = literal
) -> str:
    """A call in Python's syntax.

    Raises:
        RenderError: The name of an argument, or of the tool, cannot stand in a call.
    """
    bad = [key for key in call.arguments if not is_bare_key(key)]
    if bad or not _NAME.fullmatch(call.name) or len(call.name) > MAX_NAME:
        what = f"argument {bad[0]!r}" if bad else f"tool {call.name!r}"
        raise w.refuse(f"the name of {what} cannot stand in a Python call; change it", index)
    members = ", ".join(f"{key}={argument(value)}" for key, value in call.arguments.items())
    return f"{call.name}({members})"


def called(frame: Around, argument: Callable[[JsonValue], str]) -> Usual:
    """How a message is written that is one call in Python's syntax, in a list.

    Args:
        frame: What stands around the list.
        argument: Writes a value.
    """

    @lru_cache(maxsize=256)
    def form(name: str, keys: tuple[str, ...]) -> str | None:
        """The whole, with ``%s`` for each value; ``None`` where a name is odd."""
        if PLAIN_NAME.fullmatch(name) is None or len(name) > MAX_NAME:
            return None
        if not all(map(is_bare_key, keys)):
            return None
        before, behind = f"{frame.opens}[{name}(", f")]{frame.closes}"
        members = ", ".join([key.replace("%", "%%") + "=%s" for key in keys])
        return before.replace("%", "%%") + members + behind.replace("%", "%%")

    def write(call: ToolCall, tools: tuple[ToolSpec, ...]) -> tuple[str, Around] | None:
        arguments = call.arguments
        template = form(call.name, tuple(arguments))
        if template is None:
            return None
        return template % tuple(map(argument, arguments.values())), frame

    return Usual(call=write)


def call_node(spec: ToolSpec, rules: Rules, spelling: Spelling) -> Node:
    """A call in Python's syntax, for the grammar."""
    return seq(spec.name, spelled_arguments(spec, rules, spelling, around=("(", ")"), sign="="))


LITERALS = Spelling("literal", literal, quoted('"', escapes='"\\/bfnrt'))
"""Python literals, strings in double quotes."""
