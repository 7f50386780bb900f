"""Shared mechanics of rendering: pieces with authors, turns, and what a family refuses.

A family's ``render`` is a walk over messages that calls a `Writer`.  Nothing here knows a family.
"""

import operator
from bisect import bisect_right
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

from antiphon.errors import RenderError
from antiphon.formats._scan import Parser, Syntax
from antiphon.formats._types import Around, Author, Filled, Parts, Rendered, Run, Start, Stretch
from antiphon.formats._usual import NONE, PLAIN_NAME, Usuals
from antiphon.formats._walked import NOTHING, Walked, first_messages, last_walk
from antiphon.messages import (
    AudioPart,
    Conversation,
    ImagePart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolSpec,
    VideoPart,
    dump_json,
    indented_json,
    quoted_json,
)

Own: TypeAlias = str | Parts
"""A family's own text: of the author that the place has, or in parts with an author each."""
Made = TypeVar("Made")
"""What is made of tools."""


_NO_MARKS: frozenset[str] = frozenset()


@dataclass(slots=True)
class Writer:
    """Collects the pieces of one rendering."""

    family: str
    """The family's name, for refusals."""
    specials: frozenset[str] = frozenset()
    """Marks that are single tokens of the vocabulary, wherever `put` meets them."""
    pieces: list[Stretch] = field(default_factory=list["Stretch"])
    """What was written so far, not yet cut at marks."""
    changed: list[int] = field(default_factory=list[int])
    """Messages that are not written as they once were."""
    state: Any = None
    """What a family carries from one message to the next; never changed in place."""
    tools: tuple[ToolSpec, ...] = ()
    """The tools on offer, as `walk` was told."""
    ids: Sequence[Sequence[Any]] = ()
    """The ids of each message, as `walk` was told."""

    def mark(self, text: str, author: Author, message: int | None = None) -> None:
        """A special token."""
        self.pieces.append((text, author, message, True))

    def text(self, text: str, author: Author, message: int | None = None) -> None:
        """Text that never becomes a special token."""
        if text:
            self.pieces.append((text, author, message, False))

    def put(self, text: str, author: Author, message: int | None = None) -> None:
        """The family's own text, in which its marks are special tokens."""
        if text:
            self.pieces.append((text, author, message, self.specials))

    def around(self, frame: Around, text: str, message: int) -> None:
        """A text, and the family's own around it."""
        whole = frame.opens + text + frame.closes
        self.pieces.append((whole, frame.author, message, frame))

    def parts(self, parts: Iterable[tuple[str, bool]], message: int) -> None:
        """What a model wrote: texts, and whether each is the family's own."""
        specials = self.specials
        self.pieces.extend(
            [(text, "written", message, specials if own else False) for text, own in parts if text]
        )

    def written(self, since: int) -> str:
        """What a model wrote of the pieces from one on."""
        pieces = Rendered(self.pieces[since:]).pieces
        return "".join([text for text, author, *_ in pieces if author == "written"])

    def ends_with(self, text: str) -> bool:
        """Whether the family's own text is the last that was written, and ends so."""
        if self.pieces and isinstance(self.pieces[-1][3], (Around, Filled, Run)):
            self.pieces[-1:] = Rendered(self.pieces[-1:]).pieces
        if not self.pieces:
            return False
        last, author, _, _ = self.pieces[-1]
        return author == "frame" and last.endswith(text)

    def take_back(self, text: str) -> None:
        """Take the end of the family's own text back, if it is this one."""
        if self.ends_with(text):
            last, author, message, special = self.pieces.pop()
            if last != text:
                self.pieces.append((last.removesuffix(text), author, message, special))

    def walk(
        self,
        format: Hashable | None,
        messages: Sequence[Message],
        first: int = 0,
        *,
        tools: tuple[ToolSpec, ...] = (),
        shown_from: int = 0,
        usual: Usuals = NONE,
        ids: Sequence[Sequence[Any]] = (),
    ) -> Iterator[int]:
        """The positions of the messages to write; what was written before is not written again, and
        what is as usual is written here.

        A run renders its conversation at every step, a little longer each time.  The pieces of the
        messages that were the same objects last time, and whose next message was, are taken over.
        So a message's text may depend on the format, the tools, the messages up to the next one,
        `state`, and on which side of `shown_from` it stands; on nothing else that is behind it.

        Args:
            format: Whose text it is; ``None`` where a message's text depends on more than that.
            messages: The conversation's messages, as they are written.
            first: Where to begin.
            tools: The tools on offer.
            shown_from: From where on reasoning is shown again, or whatever else the position of
                a later message decides.
            usual: What writes messages as most are, each at its place.
            ids: The ids of each message's calls, or the one that it answers, where the family
                counts them.
        """
        if format is None or first >= len(messages):
            yield from range(first, len(messages))
            return
        self.tools, self.ids = tools, ids
        slot = last_walk(format, id(messages[first]))
        known = slot[0] if slot else NOTHING
        n = known.shared(messages, tools, first, shown_from)
        n_pieces, n_changed = len(self.pieces), len(self.changed)
        marks = known.marks[: bisect_right(known.marks, n, key=itemgetter(0))]
        if n:
            n_written, n_taken, self.state = marks[-1] if marks else (0, 0, self.state)
            self.pieces += known.pieces[:n_taken]
            self.pieces += first_messages(known.pieces[n_taken:], n - n_written)
            self.changed += [index for index in known.changed if index < first + n]
        for index in usual.write(messages, first + n, shown_from, self):
            yield index
            marks.append((index + 1 - first, len(self.pieces) - n_pieces, self.state))
        new, changed = self.pieces[n_pieces:], self.changed[n_changed:]
        slot[:] = [Walked(tuple(messages), tools, first, shown_from, new, changed, marks)]

    def done(self, *, start: Start = "content") -> Rendered:
        """The rendering."""
        return Rendered(tuple(self.pieces), start, tuple(dict.fromkeys(self.changed)))

    def refuse(self, what: str, index: int | None = None) -> RenderError:
        """A refusal, as a value to raise."""
        return RenderError(what, format=self.family, index=index)


@dataclass(frozen=True, slots=True)
class Turns:
    """How a family frames a turn, whatever is in it."""

    open: str = "<|im_start|>{role}\n"
    """What stands before a turn's content."""
    end: str = "<|im_end|>"
    """The mark that ends a turn."""
    between: str = "\n"
    """What stands behind a turn."""
    before_all: str = ""
    """What stands before the first turn."""
    specials: frozenset[str] = frozenset({"<|im_start|>", "<|im_end|>"})
    """Marks that are single tokens."""
    roles: tuple[tuple[str, str], ...] = ()
    """Roles that are spelled otherwise."""

    _opens: dict[str, str] = field(init=False, repr=False, compare=False)
    """What stands before a turn, by the role."""
    _closes: str = field(init=False, repr=False, compare=False)
    """What stands behind a turn that no model wrote."""
    _frames: dict[frozenset[str], dict[Hashable, Around]] = field(
        init=False, repr=False, compare=False
    )
    """What stands around a turn's text, by the family's marks, and by the role and what else."""

    def __post_init__(self) -> None:
        spelled = {role: role for role in ("system", "user", "assistant", "tool")}
        spelled |= dict(self.roles)
        opens = {role: self.open.replace("{role}", name) for role, name in spelled.items()}
        object.__setattr__(self, "_opens", opens)
        object.__setattr__(self, "_closes", self.end + self.between)
        object.__setattr__(self, "_frames", {})

    def role(self, role: str) -> str:
        """A role as the family spells it."""
        return dict(self.roles).get(role, role) if self.roles else role

    def begin(self, w: Writer, role: str, message: int | None) -> None:
        """Open a turn."""
        opens = self._opens.get(role) or self.open.replace("{role}", role)
        w.pieces.append((opens, "frame", message, w.specials))

    def finish(self, w: Writer, role: str, message: int | None) -> None:
        """End a turn; an assistant writes the mark itself."""
        if role != "assistant":
            w.pieces.append((self._closes, "frame", message, w.specials))
            return
        w.pieces.append((self.end, "written", message, w.specials))
        if self.between:
            w.pieces.append((self.between, "frame", message, False))

    def whole(self, w: Writer, role: str, text: str, message: int) -> None:
        """A whole turn of text."""
        frames = self._frames.get(w.specials)
        frame = frames.get(role) if frames else None
        if frame is None:
            frame = self._framed(w.specials, role, role)
        w.pieces.append((frame.opens + text + frame.closes, frame.author, message, frame))

    def around(
        self, w: Writer, role: str, before: Own, text: str, after: Own, message: int
    ) -> None:
        """A whole turn of a text between two of the family's own, which are the same each time.

        Args:
            w: What is written.
            role: The turn's role.
            before: What the turn begins with.
            text: What stands between.
            after: What the turn ends with.
            message: The message's position.
        """
        frames = self._frames.get(w.specials)
        key = (role, before, after)
        frame = frames.get(key) if frames else None
        if frame is None:
            frame = self._framed(w.specials, key, role, before, after)
        w.pieces.append((frame.opens + text + frame.closes, frame.author, message, frame))

    def frame(
        self,
        role: str,
        before: Own = "",
        after: Own = "",
        *,
        specials: frozenset[str] = _NO_MARKS,
    ) -> Around:
        """What stands around the text of a turn.

        Args:
            role: The turn's role.
            before: What the turn begins with, of the family's own.
            after: What it ends with.
            specials: The family's marks beside the turns'.
        """
        own: Author = "written" if role == "assistant" else "frame"
        opens = self._opens.get(role) or self.open.replace("{role}", role)
        return Around(
            ((opens, "frame"), *_parts(before, own)),
            "written" if role == "assistant" else "given",
            (*_parts(after, own), *self._ends(role)),
            self.specials | specials,
        )

    def begin_with(self, w: Writer, role: str, before: Own, message: int) -> None:
        """Open a turn that begins with the family's own text, which is the same each time."""
        frames = self._frames.get(w.specials)
        key = (role, before)
        frame = frames.get(key) if frames else None
        if frame is None:
            frame = self._framed(w.specials, key, role, before, is_whole=False)
        w.pieces.append((frame.opens, frame.author, message, frame))

    def _framed(
        self,
        specials: frozenset[str],
        key: Hashable,
        role: str,
        before: Own = "",
        after: Own = "",
        *,
        is_whole: bool = True,
    ) -> Around:
        """What stands around a text, kept for the next turn that has the same."""
        own: Author = "written" if role == "assistant" else "frame"
        opens = self._opens.get(role) or self.open.replace("{role}", role)
        frame = Around(
            ((opens, "frame"), *_parts(before, own)),
            "written" if role == "assistant" else "given",
            (*_parts(after, own), *self._ends(role)) if is_whole else (),
            specials,
        )
        self._frames.setdefault(specials, {})[key] = frame
        return frame

    def _ends(self, role: str) -> tuple[tuple[str, Author], ...]:
        if role == "assistant":
            return (self.end, "written"), (self.between, "frame")
        return ((self._closes, "frame"),)


def _parts(own: Own, author: Author) -> tuple[tuple[str, Author], ...]:
    return ((own, author),) if isinstance(own, str) else own


CHATML = Turns()


def spec_value(spec: ToolSpec) -> dict[str, Any]:
    """A tool as it came, which is what templates are given."""
    openai = spec.to_openai()
    return openai if spec.wrapped else openai["function"]


def spec_json(spec: ToolSpec) -> str:
    """A tool as templates print it: the JSON that it came as."""
    return dump_json(spec_value(spec))


def functions_json(tools: Iterable[ToolSpec]) -> str:
    """The tools as one JSON list, each without what it is wrapped in."""
    return dump_json([spec.to_openai()["function"] for spec in tools])


def specs_json(tools: Iterable[ToolSpec]) -> str:
    """The tools as one JSON list, each as it came."""
    return dump_json([spec_value(spec) for spec in tools])


def indented(tools: Iterable[ToolSpec]) -> str:
    """The tools as indented JSON, a blank line behind each."""
    return "".join([indented_json(spec_value(spec)) + "\n\n" for spec in tools])


def of_tools(write: Callable[[Sequence[ToolSpec]], Made], tools: Sequence[ToolSpec]) -> Made:
    """What `write` makes of the tools; remembered for the next step, which has the same ones."""
    slot = _of_tools(write, id(tools[0]) if tools else 0)
    if slot:
        known, made = slot[0]
        if known is tools or (len(known) == len(tools) and all(map(operator.is_, known, tools))):
            return made
    made = write(tools)
    slot[:] = [(tuple(tools), made)]
    return made


@lru_cache(maxsize=64)
def _of_tools(write: Hashable, anchor: int) -> list[tuple[tuple[ToolSpec, ...], Any]]:
    """The last tools that began with one, told by its identity, and what was made of them."""
    return []


def call_json(call: ToolCall, *, name: str = "name", arguments: str = "arguments") -> str:
    """A call as one JSON object."""
    named, given = quoted_json(call.name), dump_json(call.arguments)
    return f'{{"{name}": {named}, "{arguments}": {given}}}'


def split_system(conversation: Conversation) -> tuple[str | None, int]:
    """The text of a leading system message, and where the others start."""
    messages = conversation.messages
    if messages and messages[0].role == "system":
        return messages[0].text, 1
    return None, 0


def moved_up(w: Writer, index: int, place: int) -> None:
    """List a system message that stands before messages that it followed, and the first of them."""
    if index != place:
        w.changed += [place, index]


def says_system(w: Writer, messages: Sequence[Message]) -> bool:
    """Whether there is a system message, so that the family's own is left out; where it is a later
    one, what stood behind the family's own is listed."""
    first = next((i for i, m in enumerate(messages) if m.role == "system"), -1)
    if first > 0:
        w.changed.append(0)
    return first >= 0


def is_first_result(messages: Sequence[Message], index: int) -> bool:
    """Whether a tool message starts a run of them."""
    return index == 0 or messages[index - 1].role != "tool"


def is_last_result(messages: Sequence[Message], index: int) -> bool:
    """Whether a tool message ends a run of them."""
    return index + 1 == len(messages) or messages[index + 1].role != "tool"


def last_user(messages: Sequence[Message]) -> int:
    """The position of the last user message; -1 without one."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            return index
    return -1


def last_query(messages: Sequence[Message]) -> int | None:
    """The position of the last user message that is no quoted result; ``None`` without one."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user":
            text = message.text
            if not (text.startswith("<tool_response>") and text.endswith("</tool_response>")):
                return index
    return None


def trimmed(message: Message) -> Message:
    """A message without white space at its ends; an assistant's is left as it is."""
    text = message.text
    if message.role == "assistant" or text == text.strip():
        return message
    parts = list(message.parts)
    while parts and isinstance(parts[0], TextPart) and not parts[0].text.strip():
        parts.pop(0)
    while parts and isinstance(parts[-1], TextPart) and not parts[-1].text.strip():
        parts.pop()
    if parts and isinstance(parts[0], TextPart):
        parts[0] = TextPart(parts[0].text.lstrip())
    if parts and isinstance(parts[-1], TextPart):
        parts[-1] = TextPart(parts[-1].text.rstrip())
    return replace(message, parts=tuple(parts))


def refuse_media(
    w: Writer,
    messages: Sequence[Message],
    *,
    shows: Collection[type] = (),
    by: Collection[Role] = ("user", "tool"),
) -> None:
    """Refuse images, audio and video by name, but for the kinds that the family shows.

    Args:
        w: What refuses.
        messages: The messages.
        shows: The kinds of parts that the family has a place for.
        by: The roles whose messages it has that place in.

    Raises:
        RenderError: A message holds another.
    """
    if not {type(part) for message in messages for part in message.parts} & MEDIA_WORDS.keys():
        return
    for index, message in enumerate(messages):
        for part in message.media:
            what = MEDIA_WORDS[type(part)]
            if type(part) not in shows:
                takes = " and ".join(["text", *(MEDIA_WORDS[kind] for kind in shows)])
                raise w.refuse(f"{what} cannot be shown; this family reads {takes} only", index)
            if message.role not in by:
                whose = "an assistant's" if message.role == "assistant" else f"a {message.role}"
                raise w.refuse(f"{whose} message cannot hold {what}", index)


MEDIA_WORDS: dict[type, str] = {ImagePart: "images", AudioPart: "audio", VideoPart: "video"}
"""What messages call each kind of part."""


def refuse_images(w: Writer, messages: Sequence[Message]) -> None:
    """Refuse all media by name: the family reads text only.

    Raises:
        RenderError: A message holds some.
    """
    refuse_media(w, messages)


def on_own_line(message: Message) -> Message:
    """Reasoning apart, from its first character on: a line feed before it is the mark's own."""
    apart = inline_reasoning(message)
    return with_parts(apart, reasoning=apart.reasoning.lstrip("\n"), text=apart.text)


def with_parts(message: Message, *, reasoning: str, text: str) -> Message:
    """The same message saying something else."""
    if (
        len(message.parts) == bool(reasoning) + bool(text)
        and message.text == text
        and message.reasoning == reasoning
    ):
        return message
    parts: tuple[Part, ...] = (ThinkingPart(reasoning),) if reasoning else ()
    if text:
        parts = (*parts, TextPart(text))
    return message if parts == message.parts else replace(message, parts=parts)


def inline_reasoning(
    message: Message, *, open: str = "<think>", close: str = "</think>"
) -> Message:
    """A message whose reasoning stands inside its text, as some rows have it, with the two
    apart."""
    text = message.text
    if open not in text or message.reasoning or not text.lstrip().startswith(open):
        return message
    head, found, tail = text.partition(close)
    if not found:
        return message
    return with_parts(
        message, reasoning=head.lstrip()[len(open) :].strip("\n"), text=tail.lstrip("\n")
    )


def refuse_late_systems(w: Writer, messages: Sequence[Message], first: int) -> None:
    """Refuse system messages that do not come first.

    Raises:
        RenderError: There is one.
    """
    roles = [message.role for message in messages]
    if "system" in roles[first:]:
        index = roles.index("system", first)
        raise w.refuse("a system message must come first; join system messages into one", index)


def as_said(w: Writer, message: Message, index: int, *, text: str, reasoning: str = "") -> Message:
    """The message as its family writes it, listed as changed where that says something else."""
    if message.text == text and message.reasoning == reasoning:
        return message
    w.changed.append(index)
    return with_parts(message, reasoning=reasoning, text=text)


def calls_json(
    calls: Iterable[ToolCall], *, name: str = "name", arguments: str = "arguments"
) -> str:
    """Calls as one JSON array."""
    members = [call_json(call, name=name, arguments=arguments) for call in calls]
    return "[" + ", ".join(members) + "]"


def write_reasoning(
    w: Writer, reasoning: str, index: int, block: tuple[str, str], *, empty: str, asks: bool
) -> Start:
    """The reasoning block of a message, and where its prompt left off.

    Args:
        w: What is written.
        reasoning: The reasoning.
        index: The message's position.
        block: What stands before and behind it.
        empty: What stands in its place where there is none.
        asks: Whether the prompt opens the block: then its opening is no word of the model's.
    """
    if not reasoning:
        w.put(empty, "frame", index)
        return "content"
    w.put(block[0], "frame" if asks else "written", index)
    w.text(reasoning, "written", index)
    w.put(block[1], "written", index)
    return "reasoning" if asks else "content"


def invalid_text(message: Message) -> str:
    """The exact text of calls that failed, to be shown again as it was written."""
    return "".join(call.raw for call in message.invalid_tool_calls)


def plain_text(syntax: Syntax, message: Message) -> str | None:
    """The text of a message that says nothing else, and that nobody could take for markup.

    ``None`` of all others.  Most answers are so, and need nothing of what others do.
    """
    parts = message.parts
    if len(parts) != 1 or message.tool_calls or message.invalid_tool_calls:
        return None
    part = parts[0]
    if not isinstance(part, TextPart) or syntax.suspects("", part.text):
        return None
    return part.text


def odd_name(message: Message) -> str:
    """The name of a call that might hold markup; ``""`` where none does."""
    for call in message.tool_calls:
        if PLAIN_NAME.fullmatch(call.name) is None:
            return call.name or " "
    return ""


def only_calls(message: Message) -> tuple[ToolCall, ...]:
    """The calls of a message that holds nothing else, and no name that needs reading back; empty
    of all others."""
    others = message.parts or message.invalid_tool_calls or odd_name(message)
    return () if others else message.tool_calls


def write_answer(
    w: Writer,
    syntax: Syntax,
    conversation: Conversation,
    message: Message,
    index: int,
    *calls: str,
    since: int | None = None,
    start: Start = "content",
    doubtful: bool = False,
) -> None:
    """The text of an assistant message and what its calls are written as; then it is read back.

    Args:
        w: Where it is written.
        syntax: The family's table.
        conversation: What the message is part of.
        message: The message as the family says it.
        index: Its position.
        calls: The calls' text in parts; a part that is one of the family's marks is special.
        since: Position of the first piece of the message, where some were written before.
        start: Where the prompt would have left off.
        doubtful: Whether it needs reading back whatever it holds.

    Raises:
        RenderError: The text cannot be told from markup.
    """
    since = len(w.pieces) if since is None else since
    text = message.text
    w.text(text, "written", index)
    for part in calls:
        if part:
            w.pieces.append((part, "written", index, part in w.specials))
    if message.invalid_tool_calls:
        w.put(invalid_text(message), "written", index)
    elif doubtful or syntax.suspects(message.reasoning, text) or odd_name(message):
        check_written(
            w, syntax, message, index,
            since=since, tools=conversation.tools, start=start, doubtful=True,
        )  # fmt: skip


def check_written(
    w: Writer,
    syntax: Syntax,
    message: Message,
    index: int,
    *,
    since: int,
    tools: Sequence[ToolSpec] = (),
    start: Start = "content",
    doubtful: bool = False,
    problem: str = "",
) -> None:
    """Refuse a message that would be read back as something else.

    Only messages whose text holds something like a mark are read back, so this costs nothing for
    the others.

    Args:
        w: What was written; its pieces from `since` on are the message's.
        syntax: The family's table.
        message: What the pieces should say.
        index: Its position, for the refusal.
        since: Position of the first piece of the message, its end mark not yet written.
        tools: The tools on offer.
        start: Where the prompt would have left off.
        doubtful: Whether something else in the message needs reading back.
        problem: What to say when it is that which is read as something else.

    Raises:
        RenderError: The text cannot be told from markup.
    """
    if message.invalid_tool_calls:
        return
    odd = odd_name(message)
    if not (doubtful or odd or syntax.suspects(message.reasoning, message.text)):
        return
    parser = Parser(syntax, tools=tools, start=start)
    parser.feed(w.written(since))
    parser.finish()
    back = parser.message
    same = (
        back.text == message.text
        and back.reasoning == message.reasoning
        and not back.invalid_tool_calls
        and [(c.name, c.arguments) for c in back.tool_calls]
        == [(c.name, c.arguments) for c in message.tool_calls]
    )
    if not same:
        if odd and {c.name for c in back.tool_calls} != {c.name for c in message.tool_calls}:
            problem = f"the name {odd[:40]!r} would be read as something else; rename the tool"
        raise w.refuse(
            problem
            or "its text holds the family's own marks and would be read as something else; "
            "take them out of the assistant's text",
            index,
        )
