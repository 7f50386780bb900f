"""The streaming engine: one parser for every family, driven by a table of marks.

A `Syntax` says which marks open reasoning and calls; a `Reader` says what stands inside a block.
The engine walks through content and reasoning, releases text as soon as it cannot be part of a
mark, hands blocks to their readers, and keeps every character: what is not a call is text, and what
meant to be a call and failed is an `InvalidToolCall`.  Whole parsing is the same engine fed once.

It knows no family and no argument syntax.  Cost is linear in the text.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from antiphon.errors import UsageError
from antiphon.formats._code import Code, goes_on
from antiphon.formats._cursor import Cursor, Malformed, Reading
from antiphon.formats._syntax import (
    BARE,
    Reader,
    Syntax,
    Thinking,
    reasoning_table,
    table_of,
    tokens,
)
from antiphon.formats._syntax import Block as Block  # families take their tables' parts from here
from antiphon.formats._syntax import Unmarked as Unmarked
from antiphon.formats._types import Start
from antiphon.formats._typing import fits_tool, parameter
from antiphon.formats._values import tail
from antiphon.messages import (
    Delta,
    InvalidToolCall,
    JsonObject,
    Message,
    Part,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
    dump_json,
)


class NotACall(Malformed):
    """Text that looked like a call and is none: without marks, or a mark that is only named."""


@dataclass(slots=True)
class _Call:
    """The call that is being read."""

    index: int
    tentative: bool
    name: str = ""
    id: str = ""
    arguments: list[str] = field(default_factory=list[str])
    repairs: list[str] = field(default_factory=list[str])
    nameless: str = ""
    n_sent: int = 0
    name_sent: bool = False
    id_sent: bool = False


class Parser:
    """A `StreamParser` for any `Syntax`. Readers use the ``call_*`` methods and `note`.

    Args:
        syntax: The family's table.
        tools: Specs that tell argument types and which names exist.
        start: Where the prompt left off.
        strict: Whether slips are refused instead of repaired with a record.
    """

    def __init__(
        self,
        syntax: Syntax,
        *,
        tools: Sequence[ToolSpec] = (),
        start: Start = "content",
        strict: bool = False,
    ) -> None:
        self.c = Cursor()
        self.tools = {spec.name: spec for spec in tools}
        self.strict = strict
        self._syntax = syntax
        bare = syntax.bare is not None and (
            syntax.bare_is_native or (bool(self.tools) and not strict)
        )
        mends = bool(self.tools) and not strict
        names = tuple(filter(_NAME.fullmatch, self.tools)) if mends and syntax.unmarked else ()
        self._table = table_of(syntax, bare, mends, names)
        self._between = syntax.gap + ("," if mends and syntax.bare_is_native else "")
        self._parts: list[tuple[type[TextPart] | type[ThinkingPart], list[str]]] = []
        self._calls: list[ToolCall] = []
        self._invalid: list[InvalidToolCall] = []
        self._call: _Call | None = None
        self._n_calls = 0
        self._wrote_text = False
        self._after_call = False
        self._line_start = True
        self._gap: list[str] = []
        self._early_notes: list[str] = []
        self._bare_reading = False
        self._space = ""
        self._code = Code()
        self._out: list[Delta] = []
        self._told: list[str] = []
        self._telling: type[TextDelta] | type[ThinkingDelta] = TextDelta
        self._done = False
        self._run = self._message(start)
        next(self._run)

    def feed(self, text: str) -> list[Delta]:
        """Take the next characters; give back what they settle."""
        if self._done:
            raise UsageError("the text is finished; make a new parser for the next message")
        if text:
            self.c.feed(text)
            next(self._run)
        return self._deltas()

    def finish(self) -> list[Delta]:
        """End of text: settle what was held back. Call once, then read `message`."""
        if self._done:
            raise UsageError("finish was called before; make a new parser for the next message")
        self._done = True
        self.c.feed("")
        self.c.closed = True
        for _ in self._run:
            raise AssertionError("a closed cursor has nothing to wait for")
        return self._deltas()

    @property
    def message(self) -> Message:
        """The message so far; complete after `finish`."""
        parts: list[Part] = [kind("".join(pieces)) for kind, pieces in self._parts]
        return Message(
            "assistant",
            tuple(parts),
            tool_calls=tuple(self._calls),
            invalid_tool_calls=tuple(self._invalid),
        )

    def _deltas(self) -> list[Delta]:
        call = self._call
        if call is not None:
            self._send(call)
        self._flush()
        out, self._out = self._out, []
        return out

    # What readers report.

    def text(self, text: str) -> None:
        """More text of the answer."""
        if not text:
            return
        if self._after_call:
            stripped = text.lstrip(self._between)
            self._gap.append(text[: len(text) - len(stripped)])
            if not stripped:
                return
            self._after_call = False
            gap = "".join(self._gap).strip("".join(set(self._syntax.gap) - set(" \t\r\n")))
            text = gap + stripped if self._wrote_text or "," in gap else stripped
            self._gap.clear()
        self._line_start = text[-1] == "\n"
        self._code.add(text)
        self._wrote_text = self._wrote_text or not text.isspace()
        self._append(TextPart, text)
        self._tell(TextDelta, text)

    def think(self, text: str) -> None:
        """More reasoning."""
        if not text:
            return
        self._append(ThinkingPart, text)
        self._tell(ThinkingDelta, text)

    def _tell(self, kind: type[TextDelta] | type[ThinkingDelta], text: str) -> None:
        """More text to send; what comes of one kind is one delta."""
        if kind is not self._telling:
            self._flush()
            self._telling = kind
        self._told.append(text)

    def _flush(self) -> None:
        if self._told:
            self._out.append(self._telling("".join(self._told)))
            self._told.clear()

    def _append(self, kind: type[TextPart] | type[ThinkingPart], text: str) -> None:
        if not self._parts or self._parts[-1][0] is not kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(text)

    def note(self, repair: str) -> None:
        """Record a slip on the call that is being read, or on the last one.

        Raises:
            Malformed: The parser is strict.
        """
        if self.strict:
            raise self.c.malformed(f"{repair} (strict)")
        if self._call is not None:
            if repair not in self._call.repairs:
                self._call.repairs.append(repair)
        elif self._calls and repair not in self._calls[-1].repairs:
            last = self._calls[-1]
            self._calls[-1] = replace(last, repairs=(*last.repairs, repair))

    def note_if(self, repair: str) -> None:
        """Record a slip if there is one."""
        if repair:
            self.note(repair)

    @property
    def said(self) -> tuple[bool, bool]:
        """Whether any text, and any reasoning, was written so far."""
        kinds = [kind for kind, _ in self._parts]
        return TextPart in kinds, ThinkingPart in kinds

    def call_drop(self) -> None:
        """What was read holds no call after all, and nothing is lost with it."""
        self.c.kept()
        self._call = None

    @property
    def has_name(self) -> bool:
        """Whether the name of the call being read is known."""
        return self._call is not None and bool(self._call.name)

    @property
    def has_arguments(self) -> bool:
        """Whether the call being read has a name and whole arguments."""
        return self._call is not None and bool(self._call.name and self._call.arguments)

    @property
    def lacks_arguments(self) -> bool:
        """Whether the call being read has a name and no arguments."""
        return self._call is not None and bool(self._call.name and not self._call.arguments)

    def takes(self, key: str) -> bool:
        """Whether the tool that the call being read names has a parameter, or is not known."""
        if self._call is None:
            return False
        spec = self.tools.get(self._call.name)
        return spec is None or parameter(spec, key) is not None

    @property
    def without_marks(self) -> bool:
        """Whether the call being read stands without the family's marks."""
        return self._bare_reading

    def call_begin(self, *, tentative: bool = False) -> None:
        """A call starts here, or at the opening mark just read.

        Args:
            tentative: Whether it is only a call if it names a tool and has arguments.
        """
        if not self.c.keeping:
            self.c.keep(self.c.pos)
        self._call = _Call(self._n_calls, tentative)
        notes, self._early_notes = self._early_notes, []
        for repair in notes:
            self.note(repair)

    def call_name(self, name: str, *, id: str = "", quoted: bool = True) -> None:
        """The name of the call being read; sent before its arguments.

        Args:
            name: The name.
            id: The call's id, where it is known with the name.
            quoted: Whether it is in quotes or of a name's letters only; otherwise markup in it
                shows that a mark behind it is missing.

        Raises:
            Malformed: It is no name, or the second one.
        """
        call = self._current()
        if not name:
            raise self.c.malformed("the call has no name")
        name = self._without_namespace(name)
        if call.name not in ("", name):
            raise self.c.malformed("the call has two names")
        if call.tentative and self.tools and name not in self.tools:
            raise NotACall("no tool of that name")
        if not quoted and holds_markup(name) and name not in self.tools:
            raise NotACall(str(self.c.malformed(f"{name[:40]!r} is no name of a tool")))
        call.name = name
        if id:
            call.id = id
        if call.arguments:
            call.tentative = False

    def _without_namespace(self, name: str) -> str:
        """The tool on offer that a name means which has a namespace before it; else the name."""
        if name in self.tools or not self.tools or self.strict:
            return name
        for sign in _NAMESPACE.finditer(name):
            if name[sign.end() :] in self.tools:
                self.note("namespaced_name")
                return name[sign.end() :]
        return name

    def call_nameless(self, id: str) -> None:
        """The call being read has only an id where its name should stand; what it is called is told
        by its arguments, if they fit one tool on offer and no other.

        Args:
            id: What stands in the place of the name.
        """
        call = self._current()
        call.id, call.nameless = id, id or "nothing"

    def call_id(self, id: str) -> None:
        """The id of the call being read."""
        self._current().id = id

    def call_arguments(self, piece: str) -> None:
        """More of the arguments' JSON text."""
        call = self._current()
        call.arguments.append(piece)
        if call.tentative and call.name:
            call.tentative = False

    def call_end(self) -> None:
        """The call is complete, and an invalid one if it has no name or no object of arguments."""
        call = self._current()
        if call.tentative and (self.strict or not self._takes_none(call.name)):
            raise NotACall("a name without arguments")
        try:
            if call.nameless:
                self._call_by_arguments(call)
            if not call.name:
                raise self.c.malformed("the call has no name")
            if not call.arguments:
                if call.tentative:
                    self.note("no_arguments")
                self.call_arguments("{}")
            arguments, keys_repeat = _load("".join(call.arguments))
            if keys_repeat:
                self.note("repeated_key")
        except Malformed as error:
            self._refuse(call, error)
            return
        self._send(call)
        self._calls.append(
            ToolCall(call.name, arguments, call.id, self.c.kept(), tuple(call.repairs))
        )
        self._call_over()

    def _takes_none(self, name: str) -> bool:
        """Whether a tool on offer has no parameters."""
        spec = self.tools.get(name)
        return spec is not None and not spec.parameters.get("properties")

    def _call_by_arguments(self, call: _Call) -> None:
        """Name a call after the only tool on offer that its arguments fit.

        Raises:
            Malformed: They fit none, or several, or say nothing; or the parser is strict.
        """
        arguments, _ = _load("".join(call.arguments) or "{}")
        fits = [spec.name for spec in self.tools.values() if fits_tool(spec, arguments)]
        named = arguments.get("name")
        if not fits and isinstance(named, str) and named in self.tools:
            rest = {key: value for key, value in arguments.items() if key != "name"}
            if fits_tool(self.tools[named], rest):
                fits, call.arguments = [named], [dump_json(rest)]
        if len(fits) != 1 or not (arguments or len(self.tools) == 1):
            which = "say nothing" if not arguments else f"fit {', '.join(fits) or 'none'}"
            what = (
                f"the call has no name: {call.nameless[:40]!r} is none, and of the tools on offer"
            )
            raise self.c.malformed(f"{what} its arguments {which}")
        self.note("missing_name")
        call.name = fits[0]

    def call_cut(self, keys: Sequence[str]) -> None:
        """The call stops where it could go on.

        Args:
            keys: The arguments that it has.

        Raises:
            Malformed: Its tool asks for more, or it is not known what the tool asks for and there
                is none.
        """
        spec = self.tools.get(self._current().name)
        required: Sequence[str] = spec.parameters.get("required") or () if spec else ()
        if set(required) - set(keys) or not (keys or self._takes_none(self._current().name)):
            raise self.c.malformed("the call stops before it has all its arguments")

    @property
    def call_in_progress(self) -> bool:
        """Whether a call has begun and not ended."""
        return self._call is not None

    def spec(self, name: str) -> ToolSpec | None:
        """The spec of a tool on offer."""
        return self.tools.get(name)

    def _current(self) -> _Call:
        assert self._call is not None, "call_begin comes first"
        return self._call

    def _call_over(self) -> None:
        self._call = None
        self._n_calls += 1
        self._after_call = True
        self._line_start = True
        self._gap.clear()

    def _send(self, call: _Call) -> None:
        """Send on what is known of a call: its name as soon as it is sure, then its arguments."""
        if not call.name or call.tentative:
            return
        pieces = call.arguments[call.n_sent :]
        id = "" if call.id_sent else call.id
        if call.name_sent and not pieces and not id:
            return
        name = "" if call.name_sent else call.name
        self._flush()
        self._out.append(ToolCallDelta(call.index, name=name, id=id, arguments="".join(pieces)))
        call.n_sent = len(call.arguments)
        call.name_sent = True
        call.id_sent = bool(call.id)

    # The walk through a message.

    def _message(self, start: Start) -> Reading[None]:
        yield
        yield from self._drop(self._syntax.lead)
        if start == "reasoning" and self._syntax.thinking:
            yield from self._reasoning(self._syntax.thinking[0])
        if self._syntax.first is not None:
            yield from self._read(self._syntax.first, "")
        while True:
            mark = yield from self._content()
            if not mark:
                return
            if mark in self._table.thinking:
                self.c.kept()
                yield from self._reasoning(self._table.thinking[mark])
            elif mark in self._table.closers:
                self.c.kept()
                yield from self._drop(self._table.closers[mark])
            elif mark in self._table.blocks:
                yield from self._block(self._table.blocks[mark])
            elif mark in self._table.names:
                assert self._syntax.unmarked is not None
                yield from self._named(self._syntax.unmarked, mark)
            else:
                assert self._syntax.bare is not None
                yield from self._bare(self._syntax.bare, mark)

    def _content(self) -> Reading[str]:
        """Release text up to the next mark that counts; ``""`` at the end of the text."""
        c, table = self.c, self._table
        while True:
            match = table.search.search(c.text, c.pos)
            if match is None:
                held = 0 if c.closed else self._held()
                end = len(c.text) - held
                if end > c.pos:
                    self.text(c.text[c.pos : end])
                    c.pos = end
                if c.closed:
                    return ""
                yield
                continue
            if not c.closed and len(c.text) - match.start() < table.longest:
                held = len(c.text) - self._held()
                if held <= match.start():
                    self.text(c.text[c.pos : held])
                    c.pos = held
                    yield  # it may become a longer mark, or be the end of one
                    continue
            found = match.group()
            self.text(c.text[c.pos : match.start()])
            c.pos = match.start()
            mark = self._counts(found)
            if mark in table.blocks or mark in table.names:
                if (yield from self._is_quoted(found.removesuffix(mark or ""))):
                    mark = None
            elif mark == "" and not self._after_call:
                place = self._code.read("")
                if place.in_span or (place.in_fence and self._code.is_shown):
                    mark = None
            if mark is None:
                self.text(found)
                c.pos += len(found)
            else:
                c.pos += len(found)
                if mark:
                    self._space = found.removesuffix(mark)
                    c.keep(c.pos - len(mark))
                    return mark

    def _is_quoted(self, space: str) -> Reading[bool]:
        """Whether the mark at the position stands in code that is shown to the reader.

        That is a span of code in a line, or a fence behind which the text goes on; a call in a
        fence at the end of an answer is meant as one.  Then what comes is held back until the end.

        Args:
            space: The white space that stands before the mark and belongs to it.
        """
        place = self._code.read(space)
        if place.begins_span or not place.in_fence:
            return place.begins_span
        if self._code.is_shown is None:
            c, held = self.c, list[str]()
            while True:
                held.append(c.rest())
                if c.closed:
                    break
                yield
            c.give_back("".join(held))
            rest = Parser(self._syntax, tools=tuple(self.tools.values()), strict=self.strict)
            rest.feed(c.text)
            rest.finish()
            self._code.is_shown = goes_on(rest.message.text)
        return self._code.is_shown

    def _counts(self, found: str) -> str | None:
        """The mark in a match if it counts here, ``""`` if it is to be left out, else ``None``."""
        syntax = self._syntax
        plain = found.lstrip()
        mark = plain if plain in self._table.blocks or plain in self._table.names else found
        at_line_start = self._line_start or found[0] == "\n"
        if mark in self._table.blocks:
            block = self._table.blocks[mark]
            return mark if at_line_start or not (block.line_start or block.lost) else None
        if mark in self._table.thinking or mark in self._table.names:
            return mark if at_line_start else None
        if mark in syntax.ignored:
            return ""
        if mark in syntax.doubled and self._after_call and not self.strict:
            self.note("doubled_tag")
            return ""
        if mark in BARE:
            allowed = at_line_start if syntax.bare_is_native else not self._wrote_text
            return mark if allowed else None
        # Reasoning that the prompt opened and the model closed at once, or an answer's own mark.
        closes = mark in self._table.closers and not self._wrote_text and not self._calls
        return mark if closes else None

    def _held(self) -> int:
        text, table = self.c.text, self._table
        for size in range(min(table.longest - 1, len(text) - self.c.pos), 0, -1):
            end = text[len(text) - size :]
            if end in table.prefixes or (end in table.starts and self._starts_line(size)):
                return size
        return 0

    def _starts_line(self, size: int) -> bool:
        """Whether the last characters that arrived stand at the start of a line."""
        before = self.c.text[self.c.pos : len(self.c.text) - size]
        rest = before.strip(self._between) if self._after_call else before
        return before.endswith("\n") or (self._line_start and not rest)

    def _block(self, block: Block) -> Reading[None]:
        if block.slip:
            self._early_notes.append(block.slip)
        if block.lost:
            yield from self._bare(block.reader, block.open)
            return
        yield from self._read(block.reader, block.open)

    def _read(self, reader: Reader, mark: str) -> Reading[None]:
        is_mentioned = bool(mark) and not self._line_start and "\n" not in self._space
        try:
            yield from reader.read(self, mark)
        except NotACall as error:
            if is_mentioned:
                self._say(mark)
                return
            yield from self._recover(reader, error)
        except Malformed as error:
            yield from self._recover(reader, error)
        self.c.kept()

    def _say(self, mark: str) -> None:
        """A mark is only spoken of: it is text, and what stands behind it is read as ever."""
        self._call = None
        self._early_notes.clear()
        self.c.give_back(self.c.kept().removeprefix(mark))
        self._wrote_text = True
        self.text(self._space + mark)

    def _named(self, unmarked: Unmarked, name: str) -> Reading[None]:
        """Read a call from its name on, if a mark that the family writes behind names follows."""
        c = self.c
        c.pos -= len(name)
        follows = yield from self._comes_behind(len(name), unmarked.behind)
        if follows and unmarked.alone:
            follows = yield from self._is_all(unmarked.reader)
            if follows:
                yield from self._read(unmarked.reader, "")
                return
        if follows:
            self._early_notes.append("missing_open")
            yield from self._bare(unmarked.reader, name, opened_by="")
            return
        c.pos += len(name)
        self._wrote_text = True
        self.text(self._space + c.kept())

    def _is_all(self, reader: Reader) -> Reading[bool]:
        """Whether the answer is nothing but calls of tools on offer, from the position on; what
        comes is held back until that is known."""
        c, held = self.c, list[str]()
        if self._wrote_text or self._calls or self._invalid:
            return False
        c.kept()
        while not c.closed:
            held.append(c.rest())
            yield
        text = "".join(held) + c.rest()
        c.give_back(text)
        c.keep(c.pos)
        whole = Parser(Syntax(first=reader), tools=tuple(self.tools.values()))
        whole.feed(text)
        whole.finish()
        message = whole.message
        names = {call.name for call in message.tool_calls}
        is_all = not (message.parts or message.invalid_tool_calls)
        return is_all and bool(names) and names <= self.tools.keys()

    def _comes_behind(self, size: int, marks: Sequence[str]) -> Reading[bool]:
        """Whether a mark comes behind the next `size` characters and a little space."""
        c, longest = self.c, _MAX_SPACE + max(map(len, marks))
        while True:
            start = c.pos + size
            rest = c.text[start : start + longest].lstrip(" \t\r\n")
            if rest.startswith(tuple(marks)):
                return True
            is_full = len(c.text) >= start + longest
            if c.closed or is_full or (rest and not any(m.startswith(rest) for m in marks)):
                return False
            yield

    def _bare(self, reader: Reader, mark: str, *, opened_by: str | None = None) -> Reading[None]:
        """Read what may be a call without marks; as long as it is not sure, it may be text."""
        if self._after_call and "," in "".join(self._gap):
            self._early_notes.append("comma_between")
        self.call_begin(tentative=True)
        self._bare_reading = True
        try:
            yield from reader.read(self, mark if opened_by is None else opened_by)
        except Malformed as error:
            call = self._call
            if call is not None and not call.tentative:
                yield from self._recover(reader, error)
            else:
                self._call = None
                kept = self.c.kept()
                if not kept:  # refused before even the mark was taken
                    self.c.pos += len(mark)
                    kept = mark
                self._wrote_text = True
                self.text(self._space + kept)
        finally:
            self._bare_reading = False

    def _recover(self, reader: Reader, error: Malformed) -> Reading[None]:
        """Skip to where content goes on; what was skipped is an invalid call."""
        if self._call is None:
            self.call_begin()
        yield from self._skip(reader.resync)
        self._refuse(self._current(), error)

    def _refuse(self, call: _Call, error: Malformed) -> None:
        """What was read of a call is an invalid one."""
        self._send(call)
        self._invalid.append(InvalidToolCall(self.c.kept(), str(error), call.name, call.id))
        self._call_over()

    def _skip(self, marks: tuple[str, ...]) -> Reading[None]:
        c = self.c
        while not marks:
            c.rest()
            if c.closed:
                return
            yield
        while True:
            found = [(at, mark) for mark in marks if (at := c.text.find(mark, c.pos)) >= 0]
            if found:
                at, mark = min(found)
                c.pos = at + (len(mark) if mark == marks[0] else 0)
                return
            if c.closed:
                c.rest()
                return
            c.pos = max(c.pos, len(c.text) - max(map(len, marks)) + 1)
            yield

    def _reasoning(self, thinking: Thinking) -> Reading[None]:
        """Release reasoning up to its closing mark, or to a call at the start of a line."""
        c = self.c
        yield from self._drop(thinking.after_open)
        search, prefixes, longest = reasoning_table(self._syntax, thinking, self.strict)
        at_line_start, is_drafted = True, False
        while True:
            match = search.search(c.text, c.pos)
            if match is None:
                held = 0
                for size in range(min(longest - 1, len(c.text) - c.pos), 0, -1):
                    if not c.closed and c.text[len(c.text) - size :] in prefixes:
                        held = size
                        break
                piece = c.text[c.pos : len(c.text) - held]
                if piece:
                    at_line_start = piece[-1] == "\n"
                self.think(piece)
                c.pos = len(c.text) - held
                if c.closed:
                    return
                yield
                continue
            found = match.group()
            before = c.text[c.pos : match.start()]
            self.think(before)
            if found.endswith(thinking.close):
                c.pos = match.end()
                break
            at_line_start = before[-1] == "\n" if before else at_line_start
            if at_line_start or found[0] == "\n" or found in tokens(self._syntax):
                c.pos = match.start()
                if not thinking.call_ends_it:
                    self._early_notes.append("unclosed_reasoning")
                return
            c.pos = match.start()
            if not is_drafted and (yield from self._call_in_mid_line(thinking)):
                self._early_notes.append("unclosed_reasoning")
                return
            is_drafted = True
            self.think(found)
            c.pos += len(found)
            at_line_start = False
        yield from self._drop(thinking.after_close)
        self._line_start = True

    def _call_in_mid_line(self, thinking: Thinking) -> Reading[bool]:
        """Whether the mark at the position, in the middle of a line of reasoning, opens a call.

        It does where reasoning is not closed behind it and what it opens can be read; a call that
        is only considered is closed in time.  What comes is held back until that is known.
        """
        c, held = self.c, list[str]()
        while not (is_closed := thinking.close in c.text[c.pos :]) and not c.closed:
            safe = len(c.text) - tail(c.text, c.pos, thinking.close)
            held.append(c.text[c.pos : safe])
            c.pos = safe
            yield
        c.give_back("".join(held))
        if is_closed:
            return False
        rest = Parser(self._syntax, tools=tuple(self.tools.values()))
        rest.feed(c.text)
        rest.finish()
        names = {call.name for call in rest.message.tool_calls}
        return bool(names) and (not self.tools or names <= self.tools.keys())

    def _drop(self, space: str) -> Reading[None]:
        for ch in space:
            if not (yield from self.c.take(ch)):
                return


_NAME = re.compile(r"[\w.:/-]+")
_NAMESPACE = re.compile(r"[.:/]+|__")
_MAX_SPACE = 8  # characters between a name and the mark behind it
_MARKUP = re.compile(r"[<>{}\s`]")


def holds_markup(name: str) -> bool:
    """Whether a name holds what shows that a mark around it is missing."""
    return _MARKUP.search(name) is not None


def _load(text: str) -> tuple[JsonObject, bool]:
    """An object from its JSON text, and whether any key in it stands twice."""
    repeated: list[str] = []

    def object_of(members: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(members)
        if len(found) < len(members):
            repeated.append("")
        return found

    try:
        value = json.loads(text, object_pairs_hook=object_of)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"the arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Malformed("the arguments are not a JSON object")
    if "\\ud" in text.lower():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            raise Malformed("the arguments hold half of a surrogate pair") from error
    return cast("JsonObject", value), bool(repeated)
