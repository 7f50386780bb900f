"""What a model is shown of a long result: within a budget, and never less than can be read again.

A result within its budget is passed on as it is.  Of a longer one the model sees its head and tail,
the parts that fit the question, or a summary; JSON is thinned out instead of cut, so that every
value in it is whole.  Whoever shortens keeps the full text: see `Observations` and the tool
``read_result`` in `antiphon.agent`.

Sizes are estimates in tokens: characters through four, rounded up.  This module calls no model; a
summary is made by the function that it is given.
"""

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

from antiphon.errors import ModelError, UsageError
from antiphon.models import Model
from antiphon.retrieval import LexicalIndex

CHARS_A_TOKEN = 4
ObservationMode = Literal["head_tail", "extract", "summary"]
SummariseText: TypeAlias = Callable[[str, str], str | Awaitable[str]]
"""Makes a shorter text; given the long one and the question."""

_CHUNK_CHARS = 400
_MIN_TOKENS = 50


@dataclass(frozen=True, slots=True)
class Observations:
    """How much a model is shown of what tools return."""

    max_tokens: int = 2000
    """The most of one result, in tokens."""
    max_step_tokens: int | None = None
    """The most of all results of one step together; the largest ones are shortened first."""
    mode: ObservationMode = "head_tail"
    """How a longer text is shortened; JSON is thinned out in every mode."""
    summariser: Model | str | None = None
    """Who summarises in mode ``summary``; the agent's own model without one."""

    def __post_init__(self) -> None:
        for name in ("max_tokens", "max_step_tokens"):
            value = getattr(self, name)
            if value is not None and value < _MIN_TOKENS:
                raise UsageError(f"{name} of Observations must be {_MIN_TOKENS} or more: {value}")

    def budgets(self, sizes: Sequence[int]) -> list[int]:
        """How much of each result of a step is shown, in tokens.

        Args:
            sizes: How long the results are, in tokens.

        >>> Observations(max_tokens=1000, max_step_tokens=1500).budgets([1000, 100, 5000])
        [700, 100, 700]
        """
        own = [min(size, self.max_tokens) for size in sizes]
        left = self.max_step_tokens
        if left is None or sum(own) <= left:
            return own
        budgets = list(own)
        waiting = sorted(range(len(own)), key=lambda at: own[at])
        while waiting:
            share = max(_MIN_TOKENS, left // len(waiting))
            at = waiting.pop(0)
            budgets[at] = min(own[at], share)
            left = max(0, left - budgets[at])
        return budgets


def n_tokens(text: str) -> int:
    """An estimate of how many tokens a text takes.

    >>> n_tokens("12345")
    2
    """
    return -(-len(text) // CHARS_A_TOKEN)


async def shorten(
    text: str,
    max_tokens: int,
    *,
    mode: ObservationMode = "head_tail",
    query: str = "",
    summarise: SummariseText | None = None,
    name: str = "",
) -> str:
    """A text within a budget, its note of what is left out included.

    Args:
        text: The whole.
        max_tokens: The budget.
        mode: How it is shortened, where it is not JSON.
        query: What is asked, for ``extract`` and ``summary``.
        summarise: Makes the summary; where it fails or writes too much, head and tail are shown.
        name: What to call `read_result` with, for the note; no note of it where empty.
    """
    if n_tokens(text) <= max_tokens:
        return text
    thinned = thin_json(text, max_tokens, name=name)
    if thinned is not None:
        return thinned
    if mode == "summary" and summarise is not None:
        made = await _summary(text, max_tokens, query, summarise, name)
        if made is not None:
            return made
    if mode == "extract" and query.strip():
        return extract(text, query, max_tokens, name=name)
    return head_tail(text, max_tokens, name=name)


async def _summary(
    text: str, max_tokens: int, query: str, summarise: SummariseText, name: str
) -> str | None:
    note = f"[summary of {len(text)} characters, the rest omitted{_how(name)}]\n"
    try:
        made = summarise(text, query)
        summary = await made if inspect.isawaitable(made) else made
    except ModelError:
        return None
    whole = note + summary.strip()
    return whole if summary.strip() and n_tokens(whole) <= max_tokens else None


def _how(name: str) -> str:
    return f'; read_result("{name}") shows it' if name else ""


def head_tail(text: str, max_tokens: int, *, name: str = "") -> str:
    """The beginning and the end of a text, two parts to three, and how much is left out between.

    Lines are kept whole where they are short: a line that is cut may say something else.

    Args:
        text: The whole.
        max_tokens: The budget, the note included.
        name: What to call `read_result` with.

    >>> head_tail("a" * 100 + "z" * 100, 25)[-10:]
    'zzzzzzzzzz'
    """
    if n_tokens(text) <= max_tokens:
        return text
    room = max_tokens * CHARS_A_TOKEN
    note = f"\n[{len(text)} of {len(text)} characters omitted here{_how(name)}]\n"
    keep = max(0, room - len(note))
    head = keep * 2 // 5
    begin = len(text) - (keep - head)
    last = text.rfind("\n", head // 2, head + 1)
    head = head if last < 0 else last
    first = text.find("\n", begin - 1, begin + (len(text) - begin) // 2)
    begin = begin if first < 0 else first + 1
    n_left_out = begin - head
    note = f"\n[{n_left_out} of {len(text)} characters omitted here{_how(name)}]\n"
    return f"{text[:head]}{note}{text[begin:]}"[:room]


_RECORD = re.compile(r"\n[ \t]*\n")


def extract(text: str, query: str, max_tokens: int, *, name: str = "") -> str:
    """The whole lines or paragraphs of a text that fit a query best, in their own order.

    Args:
        text: The whole.
        query: What is asked.
        max_tokens: The budget, notes of gaps included.
        name: What to call `read_result` with.
    """
    chunks = _chunks(text)
    index: LexicalIndex[int] = LexicalIndex()
    seen: dict[str, int] = {}
    for at, chunk in enumerate(chunks):
        if seen.setdefault(chunk, at) == at:  # of lines that repeat, one stands for all
            index.add(at, chunk)
    hits = index.search(query, len(index))
    end = f"[{len(chunks)} of {len(chunks)} parts omitted as less relevant{_how(name)}]"
    room = max_tokens * CHARS_A_TOKEN - len(end) - 1
    kept: list[int] = []
    for hit in hits:
        if len(chunks[hit.key]) + 6 <= room:
            kept.append(hit.key)
            room -= len(chunks[hit.key]) + 6
    if not kept:
        return head_tail(text, max_tokens, name=name)
    parts: list[str] = []
    last = -1
    for at in sorted(kept):
        if at > last + 1:
            parts.append("[...]")
        parts.append(chunks[at])
        last = at
    n_left = len(chunks) - len(kept)
    parts.append(f"[{n_left} of {len(chunks)} parts omitted as less relevant{_how(name)}]")
    return "\n".join(parts)


def _chunks(text: str) -> list[str]:
    """Lines where they are short, paragraphs where they are wrapped; long ones cut at words."""
    lines = text.splitlines()
    if sum(1 for line in lines if not line.strip()) * 4 > len(lines):
        lines = [part.strip("\n") for part in _RECORD.split(text)]
    chunks: list[str] = []
    for line in lines:
        while len(line) > _CHUNK_CHARS * 2:
            cut = line.rfind(" ", _CHUNK_CHARS, _CHUNK_CHARS * 2)
            cut = cut if cut > 0 else _CHUNK_CHARS
            chunks.append(line[:cut])
            line = line[cut:].lstrip(" ")
        if line.strip():
            chunks.append(line)
    return chunks


def thin_json(text: str, max_tokens: int, *, name: str = "") -> str | None:
    """JSON text with long lists sampled and long texts cut at their ends, still valid JSON.

    A list keeps items of its beginning and its end; what is left out between is one text that
    counts it.  ``None`` where the text is no JSON object or list, or cannot be made to fit.

    Args:
        text: The whole.
        max_tokens: The budget.
        name: What to call `read_result` with.

    >>> thin_json(json.dumps(list(range(1000))), 20)
    '[0, 1, 2, 3, 4, 5, "... 990 of 1000 items omitted ...", 996, 997, 998, 999]'
    """
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list):
        return None
    for n_items, n_chars in _MEASURES:
        made = json.dumps(_thinned(value, n_items, n_chars, _how(name), 0), ensure_ascii=False)
        if n_tokens(made) <= max_tokens:
            return made
    return None


_MEASURES = ((50, 2000), (20, 500), (10, 200), (5, 100), (3, 60), (2, 40), (1, 20))
"""Items that a list or object keeps, and characters that a text keeps, ever fewer."""
_MAX_DEPTH = 40


def _thinned(value: Any, n_items: int, n_chars: int, how: str, depth: int) -> Any:
    if isinstance(value, str):
        if len(value) <= n_chars + 40:
            return value
        return (
            f"{value[:n_chars]}[... {len(value) - n_chars} of {len(value)} characters omitted{how}]"
        )
    if not isinstance(value, dict | list):
        return value
    if depth > _MAX_DEPTH:
        return "[... omitted]"
    if isinstance(value, list):
        items = cast("list[Any]", value)
        head, tail = -(-n_items * 3 // 5), n_items - -(-n_items * 3 // 5)
        if len(items) <= n_items + 1:
            return [_thinned(item, n_items, n_chars, how, depth + 1) for item in items]
        note = f"... {len(items) - n_items} of {len(items)} items omitted{how} ..."
        kept = [*items[:head], note, *items[len(items) - tail :]]
        return [_thinned(item, n_items, n_chars + len(note), how, depth + 1) for item in kept]
    pairs = list(cast("dict[str, Any]", value).items())
    n_keys = n_items * 4
    thin = {key: _thinned(item, n_items, n_chars, how, depth + 1) for key, item in pairs[:n_keys]}
    if len(pairs) > n_keys:
        thin["..."] = f"{len(pairs) - n_keys} of {len(pairs)} keys omitted{how}"
    return thin
