"""Messages as most are: one text, or one call, between words that are the family's own.

Such a message is one stretch, and what stands around its text is told by where it stands.  A family
says so in a function of the `Place`.  `Writer.walk` asks it once for each place and then writes
such messages without the family; what else a message may be is the family's own to write.  Both
write the same: here it only takes less time.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, repeat
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from antiphon.formats._syntax import Syntax
from antiphon.formats._types import Around, Stretch
from antiphon.messages import Message, Role, TextPart, ToolCall, dump_json, quoted_json

if TYPE_CHECKING:
    from antiphon.formats._render import Writer

Kind: TypeAlias = Literal["", "calls"] | Role
"""A message's role; ``calls`` for an assistant's that holds calls, ``""`` where there is none."""
Usual: TypeAlias = Callable[[Message, int, "Writer"], Stretch | None]
"""Makes the stretch of a message, given its position and what it is written to, which is told
where the message is changed; ``None`` where it is not as most are."""


PLAIN_NAME = re.compile(r"[A-Za-z_][\w.-]*")
"""Names of tools that nobody could take for markup; others are left to the family."""


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


class Usuals(dict[tuple[Kind, Kind, Kind, bool], Usual | None]):
    """How a family writes its messages, place by place, as far as it was asked."""

    def __init__(self, usual: Callable[[Place], Usual | None]) -> None:
        """Nothing yet.

        Args:
            usual: What writes the messages of a place; ``None`` where the family does so itself.
        """
        self._usual = usual

    def __missing__(self, place: tuple[Kind, Kind, Kind, bool]) -> Usual | None:
        self[place] = usual = self._usual(Place(*place))
        return usual


def placed(
    messages: Sequence[Message], first: int, shown_from: int
) -> Iterator[tuple[tuple[Kind, Kind, Kind, bool], Message]]:
    """The messages from `first` on, each with its place."""
    known = messages[first - 1 :] if first else messages
    kinds: list[Kind] = ["calls" if m.tool_calls else m.role for m in known]
    if not first:
        kinds.insert(0, "")
    kinds.append("")
    is_shown = chain(repeat(False, shown_from - first), repeat(True))
    places = zip(kinds, kinds[1:], kinds[2:], is_shown, strict=False)
    return zip(places, messages[first:], strict=True)


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
    opens, closes, author = frame.opens, frame.closes, frame.author

    def write(message: Message, index: int, w: "Writer") -> Stretch | None:
        parts = message.parts
        if len(parts) != 1 or not isinstance(part := parts[0], TextPart):
            return None
        if unless is not None and unless(part.text):
            return None
        text = part.text if change is None else change(part.text)
        return f"{opens}{text}{closes}", author, index, frame

    return write


def answered(
    frame: Around,
    syntax: Syntax,
    change: Callable[[str], str] | None = None,
    *,
    lead: str = "",
    changes: bool = False,
) -> Usual:
    """How an answer of a model is written that nobody could take for markup.

    Args:
        frame: What stands around it.
        syntax: The family's table.
        change: What the family makes of a text; where that changes it, the family writes it.
        lead: What the model writes before it.
        changes: Whether such a message differs from when it was written.
    """
    opens, closes, author, meets = frame.opens + lead, frame.closes, frame.author, syntax.meets

    def write(message: Message, index: int, w: "Writer") -> Stretch | None:
        parts = message.parts
        if len(parts) != 1 or message.invalid_tool_calls:
            return None
        part = parts[0]
        if not isinstance(part, TextPart) or meets(text := part.text):
            return None
        if change is not None and change(text) != text:
            return None
        if changes:
            w.changed.append(index)
        return f"{opens}{text}{closes}", author, index, frame

    return write


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
    def around(name: str) -> tuple[str, str, Around] | None:
        if PLAIN_NAME.fullmatch(name) is None:
            return None
        own = frame if isinstance(frame, Around) else frame(name)
        return own.opens + head(name), tail + own.closes, own

    def write(message: Message, index: int, w: "Writer") -> Stretch | None:
        calls = message.tool_calls
        if len(calls) != 1 or message.parts or message.invalid_tool_calls:
            return None
        call = calls[0]
        known = around(call.name)
        if known is None:
            return None
        opens, closes, own = known
        if changes:
            w.changed.append(index)
        return f"{opens}{dump_json(call.arguments)}{closes}", own.author, index, own

    return write


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

    def write(message: Message, index: int, w: "Writer") -> Stretch | None:
        calls = message.tool_calls
        if len(calls) != 1 or message.parts or message.invalid_tool_calls:
            return None
        if PLAIN_NAME.fullmatch(calls[0].name) is None:
            return None
        if changes:
            w.changed.append(index)
        return f"{frame.opens}{spell(calls[0])}{frame.closes}", frame.author, index, frame

    return write


NONE = Usuals(lambda place: None)
"""No message is as usual."""
