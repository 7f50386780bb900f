"""Messages as most are: one text, or one call, between words that are the family's own.

Such a message is one stretch, and what stands around its text is told by where it stands.  A family
says so in a function of the `Place`.  `Writer.walk` asks it once for each place and then writes
such messages without the family; what else a message may be is the family's own to write.  Both
write the same: here it only takes less time.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, compress
from operator import getitem
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

from antiphon.formats._syntax import Syntax, meeting
from antiphon.formats._types import Around, Filled, Form, Run
from antiphon.messages import (
    Message,
    Role,
    TextPart,
    ToolCall,
    ToolSpec,
    dump_json,
    quoted_json,
)

if TYPE_CHECKING:
    from antiphon.formats._render import Writer

Kind: TypeAlias = Literal["", "calls"] | Role
"""A message's role; ``calls`` for an assistant's that holds calls, ``""`` where there is none."""
Call: TypeAlias = Callable[[ToolCall, tuple[ToolSpec, ...]], tuple[str, Around | Filled] | None]
"""Writes a message that is one call, given the tools on offer, and tells what the family's own is
of that; ``None`` where the call is not as most are."""
Counted: TypeAlias = Callable[[Message, Sequence[Any]], tuple[str, Around | Filled] | None]
"""The same of a message whose text holds ids that its family counts, given those that `Writer.walk`
was told of it."""


PLAIN_NAME = re.compile(r"[A-Za-z_][\w.-]*")
"""Names of tools that nobody could take for markup; others are left to the family."""


_NO_FRAME = Around((), "given", (), frozenset())


class Place(NamedTuple):
    """Where a message stands."""

    before: Kind
    """What the message before it is."""
    kind: Kind
    """What it is itself."""
    after: Kind
    """What the message behind it is."""
    is_shown: bool
    """Whether it stands where reasoning is shown; see `Writer.walk`."""

    @property
    def role(self) -> str:
        """The message's role."""
        return "assistant" if self.kind == "calls" else self.kind


@dataclass(frozen=True, slots=True, eq=False)
class Usual:
    """How a message is written that is one text, or one call."""

    frame: Around | None = None
    """What stands around the text; ``None`` where there is no text."""
    lead: str = ""
    """What stands before the text and is of the same author."""
    unless: Callable[[str], bool] | None = None
    """Tells texts that are left to the family."""
    change: Callable[[str], str] | None = None
    """What becomes of the text, where it is not written as it is."""
    call: Call | None = None
    """Writes a message that is a call."""
    counted: Counted | None = None
    """Writes a message with its ids."""
    changes: bool = False
    """Whether such a message differs from when it was written."""


class _At(dict[Kind, "_At"]):
    """A place, and where the next message stands, by what comes behind that one.

    What the walk looks at for every message is kept as it is used there.
    """

    __slots__ = (
        "_place", "_usuals", "call", "change", "changes", "closes", "counted", "frame", "opens",
        "unless",
    )  # fmt: skip

    def __init__(self, usuals: "Usuals", place: Place, usual: Usual) -> None:
        self._usuals, self._place = usuals, place
        self.frame = usual.frame or _NO_FRAME
        self.opens = None if usual.frame is None else usual.frame.opens + usual.lead
        self.closes = self.frame.closes
        self.unless, self.change, self.call = usual.unless, usual.change, usual.call
        self.counted, self.changes = usual.counted, usual.changes

    def __missing__(self, after: Kind) -> "_At":
        _, before, kind, is_shown = self._place
        self[after] = found = self._usuals.at(Place(before, kind, after, is_shown))
        return found


_step: Callable[[_At, Kind], _At] = cast("Any", getitem)


class Usuals:
    """How a family writes its messages, place by place, as far as it was asked."""

    def __init__(self, usual: Callable[[Place], Usual | None]) -> None:
        """Nothing yet.

        Args:
            usual: How the messages of a place are written; ``None`` where the family does so.
        """
        self._usual = usual
        self._known: dict[Place, _At] = {}
        self._changes = False

    def at(self, place: Place) -> _At:
        """What is known of a place."""
        found = self._known.get(place)
        if found is None:
            found = self._known[place] = _At(self, place, self._usual(place) or Usual())
            self._changes = self._changes or found.changes
        return found

    def write(
        self, messages: Sequence[Message], first: int, shown_from: int, w: "Writer"
    ) -> Iterator[int]:
        """Write the messages from one on that are as usual, and tell where the others stand, each
        in its turn.

        Args:
            messages: The messages.
            first: The position of the first one.
            shown_from: From where on reasoning is shown.
            w: What they are written to.
        """
        if self is NONE:
            yield from range(first, len(messages))
            return
        places = self._places(messages, first, shown_from)
        ids = w.ids[first:] or [()] * len(places)
        texts, frames = _written(places, messages[first:], ids, w.tools)
        begin = 0
        while True:
            try:
                end = texts.index(None, begin)
            except ValueError:
                end = len(texts)
            if begin < end:
                run = Run(first + begin, cast("list[str]", texts[begin:end]), frames[begin:end])
                w.pieces.append(run.stretch())
                if self._changes:
                    changed = [at.changes for at in places[begin:end]]
                    w.changed += compress(range(first + begin, first + end), changed)
            if end == len(texts):
                return
            yield first + end
            begin = end + 1

    def _places(self, messages: Sequence[Message], first: int, shown_from: int) -> list[_At]:
        """The places of the messages from one on.

        Each is told by the one before it: that takes less time than a look at three kinds.
        """
        n = len(messages) - first
        known = messages[first - 1 :] if first else messages
        kinds: list[Kind] = [
            "calls" if m.tool_calls and m.role == "assistant" else m.role for m in known
        ]
        kinds = [*kinds, ""] if first else ["", *kinds, ""]
        n_hidden = min(max(0, shown_from - first), n)
        places: list[_At] = []
        for is_shown, begin, end in ((False, 0, n_hidden), (True, n_hidden, n)):
            if begin < end:
                before, kind, after = kinds[begin : begin + 3]
                start = self.at(Place(before, kind, after, is_shown))
                places += accumulate(kinds[begin + 3 : end + 2], _step, initial=start)
        return places


def _written(
    places: Sequence[_At],
    messages: Sequence[Message],
    ids: Sequence[Sequence[Any]],
    tools: tuple[ToolSpec, ...],
) -> tuple[list[str | None], list[Around | Filled]]:
    """The texts of messages, ``None`` for those that are not as usual, and what is the family's own
    of each."""
    texts: list[str | None] = []
    frames: list[Around | Filled] = []
    for at, message, counted in zip(places, messages, ids, strict=True):
        text, frame, parts = None, at.frame, message.parts
        if message.invalid_tool_calls:
            pass
        elif (call := at.call) is not None:
            calls = message.tool_calls
            if len(calls) == 1 and not parts and (found := call(calls[0], tools)) is not None:
                text, frame = found
        elif (opens := at.opens) is not None:
            if len(parts) == 1 and type(part := parts[0]) is TextPart:
                said = part.text
                if (unless := at.unless) is None or not unless(said):
                    if (change := at.change) is not None:
                        said = change(said)
                    text = opens + said + at.closes
        elif (write := at.counted) is not None and (found := write(message, counted)) is not None:
            text, frame = found
        texts.append(text)
        frames.append(frame)
    return texts, frames


def given(
    frame: Around,
    change: Callable[[str], str] | None = None,
    *,
    unless: Callable[[str], bool] | None = None,
) -> Usual:
    """How a text that a model reads is written.

    Args:
        frame: What stands around it.
        change: What becomes of it, where it is not written as it is.
        unless: Tells texts that are left to the family.
    """
    return Usual(frame, unless=unless, change=change)


def answered(
    frame: Around,
    syntax: Syntax,
    change: Callable[[str], str] | None = None,
    *,
    without: Sequence[str] = (),
    trims: bool = False,
    lead: str = "",
    changes: bool = False,
) -> Usual:
    """How an answer of a model is written that nobody could take for markup.

    Args:
        frame: What stands around it.
        syntax: The family's table.
        change: What the family makes of a text; where that changes it, the family writes it.
        without: What it may not hold besides, or the family writes it.
        trims: Whether the family takes white space from its ends; where there is some, too.
        lead: What the model writes before it; where it is empty, the family writes it.
        changes: Whether such a message differs from when it was written.
    """
    meets = meeting(syntax, *without, padded=trims)

    def unless(text: str) -> bool:
        if lead and not text:
            return True
        return meets(text) or (change is not None and change(text) != text)

    by_marks_only = change is None and not lead
    return Usual(frame, lead, meets if by_marks_only else unless, changes=changes)


_quoted: Callable[[Any], str] = quoted_json


def called(
    frame: Around | Callable[[str], Around],
    head: Callable[[str], str] = lambda name: "",
    tail: str = "",
    *,
    changes: bool = False,
) -> Usual:
    """How a message is written that is one call, whose arguments are a JSON object.

    Args:
        frame: What stands around the call; or around its arguments, told by its name.
        head: What the model writes before the arguments, told by the call's name.
        tail: What it writes behind them.
        changes: Whether such a message differs from when it was written.
    """

    @lru_cache(maxsize=256)
    def form(name: str, keys: tuple[Any, ...]) -> tuple[str, Around] | None:
        """The whole, with ``%s`` for each value."""
        if PLAIN_NAME.fullmatch(name) is None or not all(isinstance(key, str) for key in keys):
            return None
        own = frame if isinstance(frame, Around) else frame(name)
        before, behind = own.opens + head(name) + "{", "}" + tail + own.closes
        members = ", ".join([quoted_json(key).replace("%", "%%") + ": %s" for key in keys])
        return before.replace("%", "%%") + members + behind.replace("%", "%%"), own

    def write(call: ToolCall, tools: tuple[ToolSpec, ...]) -> tuple[str, Around] | None:
        arguments = call.arguments
        known = form(call.name, tuple(arguments))
        if known is None:
            return None
        template, own = known
        try:
            return template % tuple(map(_quoted, arguments.values())), own
        except TypeError:  # not all are strings
            return template % tuple(map(dump_json, arguments.values())), own

    return Usual(call=write, changes=changes)


def counted_call(
    write: Callable[[ToolCall, Any], tuple[str, Around | Filled]], *, changes: bool = False
) -> Usual:
    """How a message is written that is one call, with an id that its family counts.

    Args:
        write: Writes the call with its id, and tells what is the family's own.
        changes: Whether such a message differs from when it was written.
    """

    def counted(message: Message, ids: Sequence[Any]) -> tuple[str, Around | Filled] | None:
        calls = message.tool_calls
        if len(calls) != 1 or message.parts or not _is_plain(calls[0].name):
            return None
        return write(calls[0], ids[0])

    return Usual(counted=counted, changes=changes)


@lru_cache(maxsize=256)
def _is_plain(name: str) -> bool:
    return PLAIN_NAME.fullmatch(name) is not None


def counted_result(form: Form, texts: Callable[[str, Any], tuple[str, ...]]) -> Usual:
    """How a result that says something is written, with an id that its family counts.

    Args:
        form: What stands around and between its texts.
        texts: These, told by what the tool said, and the id.
    """

    def counted(message: Message, ids: Sequence[Any]) -> tuple[str, Around | Filled] | None:
        parts = message.parts
        if len(parts) != 1 or type(part := parts[0]) is not TextPart or not part.text:
            return None
        return form.filled(texts(part.text, ids[0]))

    return Usual(counted=counted)


def json_head(
    before: str = "", *, name: str = "name", arguments: str = "arguments"
) -> Callable[[str], str]:
    """What stands before a call's arguments where the call is one JSON object.

    Args:
        before: What stands before the object.
        name: The key of the call's name.
        arguments: The key of its arguments.
    """
    return lambda called: f'{before}{{"{name}": {quoted_json(called)}, "{arguments}": '


def spelled(frame: Around, spell: Callable[[ToolCall], str], *, changes: bool = False) -> Usual:
    """How a message is written that is one call, in words of the family's own.

    Args:
        frame: What stands around the call.
        spell: What the call is written as.
        changes: Whether such a message differs from when it was written.
    """

    def write(call: ToolCall, tools: tuple[ToolSpec, ...]) -> tuple[str, Around] | None:
        if PLAIN_NAME.fullmatch(call.name) is None:
            return None
        return f"{frame.opens}{spell(call)}{frame.closes}", frame

    return Usual(call=write, changes=changes)


NONE = Usuals(lambda place: None)
"""No message is as usual."""
