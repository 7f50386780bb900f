"""Who wrote what in a chat template's text, found by running it on stand-ins.

Two texts are laid side by side: the template's of the conversation, and its text of the same
conversation with a stand-in for each text.  They are the same between the stand-ins, or the
authors cannot be told and the conversation is refused.
"""

import html
import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from antiphon.formats._template_rows import Rows, Slot, Source, Unwritten
from antiphon.formats._types import Author, Piece


@dataclass(frozen=True, slots=True)
class Span:
    """What a model wrote of one message, without the mark that ends it."""

    message: int
    """The message's position."""
    before: str
    """The end of the text before it: what the prompt would have been, from the last text on."""
    text: str
    """What the model wrote."""
    prompt: str
    """The end of the prompt that it was written behind."""
    as_prompted: bool
    """Whether that prompt stands before it unchanged."""


@dataclass(frozen=True, slots=True)
class Spans:
    """A template's text with its authors."""

    pieces: tuple[Piece, ...]
    """The text in order."""
    written: tuple[Span, ...]
    """What the model wrote of each of its messages."""
    changed: tuple[int, ...]
    """Messages whose text is not what it was when it was written."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A part of both texts: the same in both, or a stand-in and what it stands for."""

    at: int
    """Where it begins in the text with stand-ins."""
    end: int
    """Where it ends there."""
    text: str
    """What it is in the real text."""
    slot: Slot | None = None
    """What it stands for."""


@dataclass(frozen=True, slots=True)
class _Region:
    """Where the model writes one message, in the text with stand-ins."""

    message: int
    before: int
    """Where the frame before it begins: behind the last text of others."""
    start: int
    end: int
    """Behind the mark that ends the turn."""
    stop: int
    """Before that mark."""
    prompt: str
    """The end of the prompt that it was written behind, from the last text on."""
    as_prompted: bool
    """Whether that prompt stands before it unchanged."""


def find_spans(
    source: Source,
    rows: Rows,
    ends: Sequence[str],
    *,
    stable: bool,
    generate: bool,
    block: tuple[str, str] = ("", ""),
) -> Spans:
    """The text of a conversation with its authors.

    Args:
        source: The template.
        rows: The conversation.
        ends: Marks that end the model's turn.
        stable: Whether a longer conversation is known to extend the text of a shorter one; else
            each of the model's messages is compared with what it was when it was written.
        generate: Whether to end where the model writes next.
        block: The marks around reasoning: an empty block that stands in the prompt's place is the
            template's own.

    Raises:
        Unwritten: The template refuses the conversation, or its authors cannot be told.
    """
    real = source.text(rows.real(), generate=generate)
    marked = source.text(rows.marked(), generate=generate)
    stretches = list(_aligned(rows, real, marked))
    changed = _check_all_shown(rows, stretches)
    upto = len(marked)
    messages = rows.conversation.messages
    if generate and messages and messages[-1].role == "assistant":
        upto = len(source.text(rows.marked(), generate=False))
    text = _Marked(marked[:upto], *_slots(rows, stretches))
    own = [index for index, message in enumerate(messages) if message.role == "assistant"]
    _look_ahead(source, rows, own, stable=stable)
    regions = [_region(source, rows, text, index, ends, block) for index in own]
    _check_order(regions, stretches)
    if not stable:
        changed |= {r.message for r in regions if not _is_as_written(source, rows, text, r)}
    edges = sorted({e for r in regions for e in (r.before, r.start, r.stop, r.end)})
    pieces: list[Piece] = []
    for stretch in stretches:
        pieces += _pieces(stretch, regions, edges, source.marks)
    written = tuple(_span(stretches, region) for region in regions)
    return Spans(tuple(pieces), written, tuple(sorted(changed)))


def _aligned(rows: Rows, real: str, marked: str) -> Iterator[_Stretch]:
    """The stretches of both texts, in order.

    Raises:
        Unwritten: They are not the same between the stand-ins.
    """
    parts = rows.stand_ins.split(marked)
    pos, at = len(parts[0]), len(parts[0])
    if not real.startswith(parts[0]):
        raise _otherwise(rows.slots[int(parts[1])] if len(parts) > 1 else None)
    if parts[0]:
        yield _Stretch(0, at, parts[0])
    for n in range(1, len(parts), 2):
        slot, following = rows.slots[int(parts[n])], parts[n + 1]
        form = _form(slot.text, real, pos, following, is_last=n + 2 == len(parts))
        if form is None:
            raise _otherwise(slot)
        end = at + len(rows.stand_in(int(parts[n])))
        yield _Stretch(at, end, form, slot)
        if following:
            yield _Stretch(end, end + len(following), following)
        pos, at = pos + len(form) + len(following), end + len(following)


def _otherwise(slot: Slot | None) -> Unwritten:
    return Unwritten(
        "the chat template writes it, or what stands around it, otherwise than other words, so its "
        "authors cannot be told; take marks out of it",
        None if slot is None else slot.message,
    )


def _form(text: str, real: str, pos: int, following: str, *, is_last: bool) -> str | None:
    """What stands for a text at a position, before what follows it; `None` where nothing does."""
    for form in _forms(text):
        end = pos + len(form)
        fits = real.startswith(form, pos) and real.startswith(following, end)
        if fits and (not is_last or end + len(following) == len(real)):
            return form
    return None


def _forms(text: str) -> Iterator[str]:
    """How templates write a text: as it is, trimmed, quoted as JSON, escaped for XML."""
    seen: set[str] = set()
    trimmed = (text.strip(), text.lstrip(), text.rstrip())
    lines = (text.strip("\n"), text.lstrip("\n"), text.rstrip("\n"))
    for form in (text, *trimmed, *lines):
        for written in (
            form,
            json.dumps(form, ensure_ascii=False)[1:-1],
            json.dumps(form)[1:-1],
            html.escape(form),
        ):
            if written not in seen:
                seen.add(written)
                yield written


def _check_all_shown(rows: Rows, stretches: Sequence[_Stretch]) -> set[int]:
    """Messages whose reasoning is left out or whose own text is written otherwise.

    Raises:
        Unwritten: Something else is left out.
    """
    shown = {id(s.slot) for s in stretches if s.slot is not None}
    changed = {
        s.slot.message
        for s in stretches
        if s.slot is not None and s.slot.kind in ("text", "reasoning") and s.text != s.slot.text
    }
    for slot in rows.slots:
        if id(slot) in shown:
            continue
        if slot.kind != "reasoning":
            what = "a string in it" if slot.kind == "data" else "what it says"
            raise Unwritten(f"the chat template leaves out {what}", slot.message)
        changed.add(slot.message)
    return {index for index in changed if index is not None}


def _region(
    source: Source,
    rows: Rows,
    marked: "_Marked",
    index: int,
    ends: Sequence[str],
    block: tuple[str, str],
) -> _Region:
    """Where the model writes one message."""
    prompt = _end_of(source, rows, index, generate=True)
    before, text = marked.place(prompt), marked.text
    if before is None:
        raise Unwritten("the chat template drops what came before it", index)
    tail = prompt.text
    whole = text.startswith(tail, before)
    start = before + (len(tail) if whole else _common(tail, text[before:], source.marks))
    if not whole and start == before:
        raise Unwritten("where the model begins to write it cannot be told", index)
    if not whole and block[1]:
        opened, closed = map(re.escape, block)
        empty = re.compile(rf"\s*(?:{opened})?\s*{closed}\s*").match(text, start)
        start = empty.end() if empty else start
    own_end = max(start, marked.ends.get(index, 0))
    following = bisect_left(marked.starts, own_end)
    limit = marked.starts[following] if following < len(marked.starts) else len(text)
    places = [(at, mark) for mark in ends if mark and (at := text.find(mark, own_end)) >= 0]
    at, mark = min(places, default=(limit + 1, ""))
    if at > limit:
        if limit < len(text):
            raise Unwritten("where the model ends its turn cannot be told", index)
        at, mark = len(text.rstrip()), ""
    return _Region(index, before, start, at + len(mark), at, tail, whole)


@dataclass(frozen=True, slots=True)
class _Marked:
    """A text with stand-ins, and where they are."""

    text: str
    starts: list[int]
    """Where each begins, in order."""
    places: dict[str, list[int]]
    """Behind which characters a stand-in ends, by the stand-in."""
    ends: dict[int, int]
    """Where the last one of a message ends, by the message."""

    def place(self, end: "_End") -> int | None:
        """Behind which character an end begins; `None` where it does not."""
        if not end.last:
            return 0
        places = self.places.get(end.last, [])
        return places[end.nth - 1] if len(places) >= end.nth else None


def _slots(
    rows: Rows, stretches: Sequence[_Stretch]
) -> tuple[list[int], dict[str, list[int]], dict[int, int]]:
    """What `_Marked` says of the stand-ins."""
    starts: list[int] = []
    places: dict[str, list[int]] = {}
    ends: dict[int, int] = {}
    number = {id(slot): rows.stand_in(n) for n, slot in enumerate(rows.slots)}
    for s in stretches:
        if s.slot is None:
            continue
        starts.append(s.at)
        places.setdefault(number[id(s.slot)], []).append(s.end)
        if s.slot.message is not None:
            ends[s.slot.message] = s.end
    return starts, places, ends


@dataclass(frozen=True, slots=True)
class _End:
    """The end of a text with stand-ins."""

    last: str
    """A stand-in; ``""`` where there is none."""
    nth: int
    """Which of its places it is, from 1."""
    text: str
    """What stands behind it."""


@lru_cache(maxsize=32)
def _known_ends(source: Source) -> dict[tuple[bytes, bool], _End]:
    """The ends that were looked at; a run looks at the same ones again at each step."""
    return {}


def _end_of(source: Source, rows: Rows, upto: int, *, generate: bool) -> _End:
    """The text up to a message, from the last stand-in of another than the model's last message.

    Args:
        source: The template.
        rows: The conversation.
        upto: How many messages.
        generate: Whether it ends where the model writes next.
    """
    known, key = _known_ends(source), (rows.key(upto), generate)
    if key not in known:
        if len(known) > _MOST_ENDS:
            known.clear()
        known[key] = _run_to(source, rows, upto, generate=generate)
    return known[key]


def _run_to(source: Source, rows: Rows, upto: int, *, generate: bool, since: int = 0) -> _End:
    """See `_end_of`; messages before `since` may be left out."""
    text = source.text(rows.marked(upto, since=since), generate=generate)
    own = None if generate else upto - 1
    found = [m for m in rows.stand_ins.finditer(text) if rows.slots[int(m[1])].message != own]
    last = found[-1].group() if found else ""
    nth = sum(match.group() == last for match in found)
    return _End(last, nth, text[found[-1].end() if found else 0 :])


def _look_ahead(source: Source, rows: Rows, own: Sequence[int], *, stable: bool) -> None:
    """Find the ends that a long conversation will ask for without running the template on all that
    came before each.

    How a text ends is nearly always told by the turn that it stands in.  That is tried where it can
    be: at the first ends, the last one, and ever more rarely between, the template is run on all
    that came before, too.  Where one of them is another, nothing is remembered.

    Args:
        source: The template.
        rows: The conversation.
        own: The model's messages.
        stable: Whether only their prompts are asked for.
    """
    known = _known_ends(source)
    asked = [(index, True) for index in own]
    asked += [] if stable else [(index + 1, False) for index in own]
    for generate in (True, False):
        missing = [n for n, g in asked if g == generate and (rows.key(n), generate) not in known]
        if len(missing) <= _FEW_ENDS:
            continue
        tried = {missing[-1], *(missing[(1 << k) - 1] for k in range(len(missing).bit_length()))}
        try:
            by_turn = {
                n: _run_to(source, rows, n, generate=generate, since=rows.turn(n)) for n in missing
            }
            whole = {n: _run_to(source, rows, n, generate=generate) for n in sorted(tried)}
        except Unwritten:
            continue  # said where it is asked for
        if all(by_turn[n] == end for n, end in whole.items()):
            known.update({(rows.key(n), generate): end for n, end in by_turn.items()})


_FEW_ENDS = 8  # below, each is found by running the template on all that came before
_MOST_ENDS = 20_000  # of a template; each is as long as a message


def _is_as_written(source: Source, rows: Rows, marked: _Marked, region: _Region) -> bool:
    """Whether a message stands as it did when it was the last one."""
    try:
        then = _end_of(source, rows, region.message + 1, generate=False)
    except Unwritten:
        return True  # the template has no text of it as the last one
    now = marked.text[region.before : region.stop]
    return marked.place(then) == region.before and then.text.startswith(now)


def _common(tail: str, text: str, marks: frozenset[str]) -> int:
    """How much of a prompt's end stands in a text, in whole marks and lines."""
    cut = re.compile("(" + "|".join([*map(re.escape, marks), r"\n"]) + ")")
    size = 0
    for part in cut.split(tail):
        if not text.startswith(part, size):
            break
        size += len(part)
    return size


def _check_order(regions: Sequence[_Region], stretches: Sequence[_Stretch]) -> None:
    """Refuse messages that run into each other, and words of the model outside of its own."""
    last = 0
    for region in regions:
        if region.start < last or region.start > region.stop:
            raise Unwritten("where the model begins to write it cannot be told", region.message)
        last = region.end
    by_message = {region.message: region for region in regions}
    for s in stretches:
        if s.slot is None or s.slot.message is None:
            continue
        region = by_message.get(s.slot.message)
        if region is not None and not region.start <= s.at < region.end:
            raise Unwritten("the chat template writes it in another place", s.slot.message)


def _pieces(
    stretch: _Stretch, regions: Sequence[_Region], edges: Sequence[int], marks: frozenset[str]
) -> Iterator[Piece]:
    """A stretch cut where the writer changes."""
    if stretch.slot is not None:
        author, message = _author(stretch.at, regions)
        if stretch.slot.kind == "given":
            author = "given"
        yield Piece(stretch.text, author, stretch.slot.message if message is None else message)
        return
    inside = edges[bisect_right(edges, stretch.at) : bisect_left(edges, stretch.end)]
    for start, end in pairwise((stretch.at, *inside, stretch.end)):
        author, message = _author(start, regions)
        text = stretch.text[start - stretch.at : end - stretch.at]
        for part, is_mark in _at_marks(text, marks):
            yield Piece(part, author, message, is_mark)


def _author(at: int, regions: Sequence[_Region]) -> tuple[Author, int | None]:
    place = bisect_right(regions, at, key=lambda region: region.before) - 1
    region = regions[place] if place >= 0 else None
    if region is not None and region.start <= at < region.end:
        return "written", region.message
    if region is not None and at < region.start:
        return "frame", region.message
    return "frame", None


def _at_marks(text: str, marks: frozenset[str]) -> Iterator[tuple[str, bool]]:
    for n, part in enumerate(_cut(marks).split(text)):
        if part:
            yield part, n % 2 == 1


@lru_cache(maxsize=32)
def _cut(marks: frozenset[str]) -> re.Pattern[str]:
    by_length = sorted(marks, key=len, reverse=True)
    return re.compile("(" + ("|".join(map(re.escape, by_length)) or r"(?!)") + ")")


def _span(stretches: Sequence[_Stretch], region: _Region) -> Span:
    before, text = "", ""
    first = max(0, bisect_right(stretches, region.before, key=lambda s: s.at) - 1)
    for s in stretches[first : bisect_left(stretches, region.stop, key=lambda s: s.at)]:
        if s.slot is not None:
            if region.start <= s.at < region.stop:
                text += s.text
            continue
        before += s.text[max(0, region.before - s.at) : max(0, region.start - s.at)]
        text += s.text[max(0, region.start - s.at) : max(0, region.stop - s.at)]
    return Span(region.message, before, text, region.prompt, region.as_prompted)
