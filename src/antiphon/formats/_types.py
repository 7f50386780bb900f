"""The values and the Protocol that every family shares.

A Format is the only place that knows a family's text.  It renders a Conversation into `Piece`s,
each with an author; it parses what the model wrote, fed in any chunks; and it gives the Grammar of
what the model may write.  Formats never load a tokenizer and never see a Python function.

Life of a completion: ``prompt = fmt.render(conversation, generate=True)``; the model continues
``prompt.text``; ``fmt.parser(tools=..., start=prompt.start)`` reads the continuation.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast

from antiphon.formats._grammar import Grammar
from antiphon.messages import Conversation, Delta, JsonObject, Message, ToolSpec

Author = Literal["frame", "given", "written"]
Start = Literal["content", "reasoning"]
ToolChoice = str  # "auto", "none", "required", or the name of one tool


class Piece(NamedTuple):
    """A stretch of rendered text with one author.

    A named tuple, as a long conversation has thousands and a frozen dataclass takes four times as
    long to make.
    """

    text: str
    """The text, exactly."""
    author: Author
    """``frame``: the family's own text; ``given``: the model reads it; ``written``: the model
    writes it, its end mark included."""
    message: int | None = None
    """Which message of the conversation it comes from; ``None`` for the family's own."""
    special: bool = False
    """Whether it is one special token of the vocabulary.  Only such pieces may become one."""


# Makes a piece without a call of Python's, in half the time.  `Any`: typeshed leaves it unknown.
_new: Callable[..., Piece] = cast("Any", tuple).__new__


Parts: TypeAlias = tuple[tuple[str, Author], ...]
"""A family's own text in parts, each with its author."""


@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """What a family writes around a text, always the same: the two together are one stretch.

    A long conversation has thousands of turns, and what costs is how many stretches they are.
    """

    before: Parts
    """The family's own texts before it, each with its author."""
    author: Author
    """The author of the text between."""
    after: Parts
    """The family's own texts behind it."""
    specials: frozenset[str]
    """Marks that are special wherever the family's own texts hold them."""
    opens: str = field(init=False)
    """All that stands before it."""
    closes: str = field(init=False)
    """All that stands behind it."""
    before_cut: list[tuple[str, Author, bool]] = field(init=False, repr=False)
    """What stands before it, cut at its marks: the parts, their authors, and which are marks."""
    after_cut: list[tuple[str, Author, bool]] = field(init=False, repr=False)
    """The same of what stands behind it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "opens", "".join([text for text, _ in self.before]))
        object.__setattr__(self, "closes", "".join([text for text, _ in self.after]))
        object.__setattr__(self, "before_cut", self._cut_own(self.before))
        object.__setattr__(self, "after_cut", self._cut_own(self.after))

    def _cut_own(self, parts: Parts) -> list[tuple[str, Author, bool]]:
        return [
            (text, author, is_mark)
            for own, author in parts
            for text, is_mark in _split(self.specials, own)
        ]

    def cut(self, whole: str, message: int | None) -> list[Piece]:
        """The pieces of a stretch."""
        pieces = [_new(Piece, (text, who, message, mark)) for text, who, mark in self.before_cut]
        text = whole[len(self.opens) : len(whole) - len(self.closes)]
        if text:
            pieces.append(_new(Piece, (text, self.author, message, False)))
        pieces += [_new(Piece, (text, who, message, mark)) for text, who, mark in self.after_cut]
        return pieces


@dataclass(frozen=True, eq=False)
class Form:
    """What a family writes around and between several texts, always the same."""

    around: Around
    """What stands around all of it."""
    own: Sequence[Sequence[tuple[str, bool]]]
    """The family's own before each text and behind the last one, and whether each is markup; of the
    author that `around` has for what stands in it."""
    authors: tuple[Author, ...] = ()
    """The author of each text; where it is not said, the same."""
    blank: list[str] = field(init=False, repr=False)
    """The whole in parts, each text empty."""

    def __post_init__(self) -> None:
        texts = ["".join([text for text, _ in group]) for group in self.own]
        whole = [self.around.opens + texts[0], *texts[1:]]
        whole[-1] += self.around.closes
        blank = [part for text in whole for part in (text, "")]
        object.__setattr__(self, "blank", blank[:-1])
        authors = self.authors or (self.around.author,) * (len(self.own) - 1)
        object.__setattr__(self, "authors", authors)

    @cached_property
    def cut(self) -> list[list[tuple[str, Author, bool]]]:
        """The same as `own`, cut at its marks: the parts, their authors, and which are marks."""
        cut = [self._cut(group) for group in self.own]
        cut[0] = [*self.around.before_cut, *cut[0]]
        cut[-1] = [*cut[-1], *self.around.after_cut]
        return cut

    def _cut(self, group: Sequence[tuple[str, bool]]) -> list[tuple[str, Author, bool]]:
        parts: list[tuple[str, Author, bool]] = []
        for text, is_markup in group:
            cut = _split(self.around.specials, text) if is_markup else ((text, False),)
            for part, is_mark in cut:
                if part:
                    parts.append((part, self.around.author, is_mark))
        return parts

    def filled(self, texts: tuple[str, ...]) -> tuple[str, "Filled"]:
        """What it is with these texts, and what the family's own is of that."""
        whole = self.blank.copy()
        whole[1::2] = texts
        return "".join(whole), Filled(self, texts)  # not %: an enum of strings prints otherwise


class Filled(NamedTuple):
    """Texts in a form: all of it is one stretch."""

    form: Form
    """The family's own."""
    texts: tuple[str, ...]
    """The texts."""

    def cut(self, whole: str, message: int | None) -> list[Piece]:
        """The pieces of the stretch."""
        pieces: list[Piece] = []
        *between, behind = self.form.cut
        for own, text, author in zip(between, self.texts, self.form.authors, strict=True):
            pieces += [_new(Piece, (part, who, message, mark)) for part, who, mark in own]
            if text:
                pieces.append(_new(Piece, (text, author, message, False)))
        pieces += [_new(Piece, (part, who, message, mark)) for part, who, mark in behind]
        return pieces


class Run(NamedTuple):
    """Whole messages that follow each other: all of them are one stretch.

    Thousands of stretches would be as many things that Python's collector of garbage looks at.
    """

    first: int
    """The first message's position."""
    texts: list[str]
    """The text of each."""
    frames: list[Around | Filled]
    """What is the family's own of each."""

    def stretch(self) -> "Stretch":
        """The stretch that they are."""
        return "".join(self.texts), "frame", self.first, self

    def cut(self, whole: str, message: int | None) -> list[Piece]:
        """The pieces of the stretch."""
        pieces: list[Piece] = []
        for index, (text, frame) in enumerate(
            zip(self.texts, self.frames, strict=True), self.first
        ):
            pieces += frame.cut(text, index)
        return pieces


Stretch: TypeAlias = tuple[str, Author, int | None, bool | frozenset[str] | Around | Filled | Run]
"""A `Piece`, or text that holds several: in the place of `special` stand the marks that are special
wherever they are met, or what is the family's own of the text."""


@dataclass(frozen=True, init=False, eq=False)
class Rendered:
    """A conversation as the family's text."""

    start: Start
    """What the model writes next: ``reasoning`` when the prompt opened the thinking block."""
    changed: tuple[int, ...]
    """Messages whose text differs from when they were written, e.g. dropped earlier reasoning."""
    _stretches: tuple[Stretch, ...]

    def __init__(
        self,
        pieces: Iterable[Stretch],
        start: Start = "content",
        changed: tuple[int, ...] = (),
    ) -> None:
        """A rendering of pieces, or of stretches that are cut when `pieces` is asked for.

        Args:
            pieces: The text in order.
            start: What the model writes next.
            changed: Messages whose text differs from when they were written.
        """
        self.__dict__.update(_stretches=tuple(pieces), start=start, changed=changed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rendered):
            return NotImplemented
        same = self.start == other.start and self.changed == other.changed
        return same and self.pieces == other.pieces

    def __hash__(self) -> int:
        return hash((self.pieces, self.start, self.changed))

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The text in order, cut by author."""
        pieces: list[Piece] = []
        for stretch in self._stretches:
            text, author, message, special = stretch
            if isinstance(special, bool):
                pieces.append(_new(Piece, stretch))
                continue
            if isinstance(special, (Around, Filled, Run)):
                pieces += special.cut(text, message)
                continue
            for part, is_mark in _split(special, text):
                pieces.append(_new(Piece, (part, author, message, is_mark)))
        return tuple(pieces)

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return "".join([stretch[0] for stretch in self._stretches])

    @cached_property
    def runs(self) -> tuple[tuple[Piece, ...], ...]:
        """The pieces in the groups that a tokenizer must take as one text each.

        A special piece stands alone: it is one token.  Neighbouring text is joined, as in the
        family's own template, except where the writer changes: what the model writes begins and
        ends at a token boundary, when it is served and when it is trained.
        """
        return self.cut(lambda mark: True)

    def cut(self, is_mark: Callable[[str], bool]) -> tuple[tuple[Piece, ...], ...]:
        """`runs` for a vocabulary that lacks some of the family's special tokens.

        Args:
            is_mark: Whether the vocabulary has a special token of that text.  Where it has not, a
                special piece is text like its neighbours, as the server's own tokenizer takes it.
        """
        runs: list[list[Piece]] = []
        joins = False
        for piece in self.pieces:
            if not piece.text:
                continue
            mark = piece.special and is_mark(piece.text)
            if joins and not mark and _writer(piece) == _writer(runs[-1][-1]):
                runs[-1].append(piece)
            else:
                runs.append([piece])
            joins = not mark
        return tuple(tuple(run) for run in runs)


@lru_cache(maxsize=2048)
def _split(specials: frozenset[str], text: str) -> tuple[tuple[str, bool], ...]:
    """A family's own text at its marks: the parts, and whether each is a mark."""
    parts = _marks(specials).split(text)
    return tuple((part, i % 2 == 1) for i, part in enumerate(parts) if part)


@lru_cache(maxsize=256)
def _marks(specials: frozenset[str]) -> re.Pattern[str]:
    by_length = sorted(specials, key=len, reverse=True)
    return re.compile("(" + ("|".join(map(re.escape, by_length)) or r"(?!)") + ")")


def _writer(piece: Piece) -> int | None:
    """Which message a model wrote the piece in; ``None`` for what it reads."""
    if piece.author != "written":
        return None
    return -1 if piece.message is None else piece.message


class StreamParser(Protocol):
    """Reads one assistant message as it arrives.

    Fed in any chunks, the deltas and the message are the same.  Cost is linear in the text.
    """

    def feed(self, text: str) -> list[Delta]:
        """Take the next characters; give back what they settle."""
        ...

    def finish(self) -> list[Delta]:
        """End of text: settle what was held back. Call once, then read `message`."""
        ...

    @property
    def message(self) -> Message:
        """The message so far; complete after `finish`."""
        ...


class Format(Protocol):
    """How one model family writes and reads a Conversation.  A frozen dataclass; variants are
    fields."""

    @property
    def name(self) -> str:
        """The family's name: the module's."""
        ...

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a model's turn; a runtime stops there and leaves them out."""
        ...

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text; with `generate` up to where the model writes next.

        Raises:
            RenderError: The family cannot express a message.
        """
        ...

    def parser(
        self, *, tools: Sequence[ToolSpec] = (), start: Start = "content", strict: bool = False
    ) -> StreamParser:
        """A parser for one assistant message.

        Args:
            tools: Specs that tell argument types where the text does not.
            start: Where the prompt left off.
            strict: Whether slips are refused instead of repaired with a record.
        """
        ...

    def parse(
        self,
        text: str,
        *,
        tools: Sequence[ToolSpec] = (),
        start: Start = "content",
        strict: bool = False,
    ) -> Message:
        """Read one whole assistant message: the same as `parser` fed once.

        Args:
            text: What the model wrote, without the mark that ended it.
            tools: Specs that tell argument types where the text does not.
            start: Where the prompt left off.
            strict: Whether slips are refused instead of repaired with a record.
        """
        ...

    def grammar(
        self,
        tools: Sequence[ToolSpec],
        *,
        choice: ToolChoice = "auto",
        parallel: bool = True,
        start: Start = "content",
        answer: "JsonObject | str | None" = None,
    ) -> Grammar:
        """What constrained decoding may write.

        Args:
            tools: The tools on offer.
            choice: ``auto``: text, then calls or none; ``required``: at least one call; or a
            tool's name.
            parallel: Whether more than one call may be written.
            start: Where the prompt left off.
            answer: What an answer without calls must be, where any text will not do: JSON that fits
            this JSON Schema, or text that matches this regular expression.
        """
        ...
