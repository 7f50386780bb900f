"""Conversations that are too long, and rows that are packed full.

What is cut away is whole turns or whole steps: no call, result or answer is left in halves, and
what stays is a text that a server could have been sent.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from antiphon.encode._example import IGNORE, TrainingExample
from antiphon.encode._numpy import np
from antiphon.encode._rows import EncodedRow
from antiphon.messages import Conversation

if TYPE_CHECKING:
    import numpy.typing as npt

TooLong = Literal["split", "drop_turns", "drop_row", "cut"]
"""What becomes of a conversation with too many tokens: it is split into several, each a system
message and whole turns; it loses its oldest turns; it is left out; its last tokens are cut off."""

Encode = Callable[[Conversation], list[TrainingExample]]


def fit(
    encode: Encode, conversation: Conversation, *, max_tokens: int, too_long: TooLong = "split"
) -> list[TrainingExample]:
    """The examples of a conversation, each at most `max_tokens` long.

    A turn that is too long by itself loses its last steps.

    Args:
        encode: Encodes a conversation.
        conversation: The conversation.
        max_tokens: The longest example.
        too_long: What to do with one that is too long.

    Returns:
        The examples; none where nothing of the conversation fits.
    """
    examples = encode(conversation)
    if _fits(examples, max_tokens):
        return examples
    if too_long == "drop_row":
        return []
    if too_long == "cut":
        return [_cut(example, max_tokens) for example in examples]
    kept = _newest(encode, conversation, max_tokens)
    if kept is None:
        return []
    start, examples = kept
    rest = conversation.messages[:start]
    if too_long == "split" and any(m.role != "system" for m in rest):
        older = replace(conversation, messages=rest)
        examples = [*fit(encode, older, max_tokens=max_tokens, too_long="split"), *examples]
    return examples


def _fits(examples: Sequence[TrainingExample], max_tokens: int) -> bool:
    return all(len(example) <= max_tokens for example in examples)


def _cut(example: TrainingExample, n: int) -> TrainingExample:
    return replace(
        example,
        token_ids=example.token_ids[:n],
        labels=example.labels[:n],
        loss_weights=example.loss_weights[:n],
        turns=tuple((m, start, min(end, n)) for m, start, end in example.turns if start < n),
    )


def _newest(
    encode: Encode, conversation: Conversation, max_tokens: int
) -> tuple[int, list[TrainingExample]] | None:
    """The most turns from the end that fit, and where they start; the beginning of the last if
    none."""
    messages = conversation.messages
    n_system = 1 if messages and messages[0].role == "system" else 0
    starts = [i for i, m in enumerate(messages) if m.role == "user"] or [n_system]

    def turns(start: int, end: int) -> list[TrainingExample]:
        kept = (*messages[:n_system], *messages[start:end])
        return encode(replace(conversation, messages=kept))

    whole = len(messages)
    first = bisect_left(starts, True, key=lambda s: _fits(turns(s, whole), max_tokens))
    if first < len(starts):
        return starts[first], turns(starts[first], whole)
    last = starts[-1]
    steps = [i + 1 for i in range(last, whole) if messages[i].role == "assistant"]
    n = bisect_left(steps, True, key=lambda end: not _fits(turns(last, end), max_tokens))
    return (last, turns(last, steps[n - 1])) if n else None


def to_row(example: TrainingExample, line: int) -> EncodedRow:
    """An example as a row of its own."""
    return EncodedRow(
        example.token_ids,
        example.labels,
        example.loss_weights,
        np.arange(len(example), dtype=np.int32),
        line,
    )


def pack(rows: Sequence[EncodedRow], max_tokens: int) -> list[EncodedRow]:
    """Rows joined to rows of at most `max_tokens`, by best fit, the longest first.

    Positions restart with each example, which is how attention tells them apart, and the first
    token of each has no label, since nothing before it belongs to it.  The same rows give the same
    packs.

    Args:
        rows: Rows of one example each.
        max_tokens: The longest pack; a longer row stays alone.
    """
    order = sorted(range(len(rows)), key=lambda i: (-len(rows[i]), i))
    packs: list[list[int]] = []
    room: list[tuple[int, int]] = []  # tokens that are free, and the pack; sorted
    for i in order:
        place = bisect_left(room, (len(rows[i]), -1))
        if place == len(room):
            packs.append([i])
            free, which = max_tokens - len(rows[i]), len(packs) - 1
        else:
            free, which = room.pop(place)
            packs[which].append(i)
            free -= len(rows[i])
        if free > 0:
            insort(room, (free, which))
    return [_join([rows[i] for i in sorted(members)]) for members in sorted(packs, key=min)]


def pack_stream(
    rows: Iterable[EncodedRow], max_tokens: int, *, n_open: int = 64
) -> Iterator[EncodedRow]:
    """`pack` of rows that come one at a time: each goes into the first pack with room for it.

    Args:
        rows: Rows of one example each.
        max_tokens: The longest pack; a longer row stays alone.
        n_open: How many packs wait for more rows; beyond it the fullest is given away.
    """
    waiting: list[tuple[int, list[EncodedRow]]] = []  # tokens that are free, and the pack's rows
    for row in rows:
        place = next((i for i, (free, _) in enumerate(waiting) if free >= len(row)), None)
        if place is None:
            waiting.append((max_tokens - len(row), [row]))
        else:
            free, members = waiting[place]
            waiting[place] = (free - len(row), [*members, row])
        if len(waiting) > n_open:
            fullest = min(range(len(waiting)), key=lambda i: waiting[i][0])
            yield _join(waiting.pop(fullest)[1])
    for _, members in waiting:
        yield _join(members)


def _join(rows: Sequence[EncodedRow]) -> EncodedRow:
    starts = np.cumsum([0, *(len(row) for row in rows[:-1])])
    labels = np.concatenate([row.labels for row in rows])
    weights = np.concatenate([row.loss_weights for row in rows])
    labels[starts] = IGNORE
    weights[starts] = 0.0
    return EncodedRow(
        np.concatenate([row.input_ids for row in rows]),
        labels,
        weights,
        np.concatenate([row.position_ids for row in rows]),
        rows[0].line,
    )


def unpack(row: EncodedRow) -> list[EncodedRow]:
    """The examples of a packed row."""
    starts = [*np.flatnonzero(np.asarray(row.position_ids) == 0).tolist(), len(row)]
    return [
        EncodedRow(
            row.input_ids[a:b],
            row.labels[a:b],
            row.loss_weights[a:b],
            row.position_ids[a:b],
            row.line,
        )
        for a, b in pairwise(starts)
    ]


def batch(rows: Sequence[EncodedRow], *, pad_id: int) -> dict[str, npt.NDArray[Any]]:
    """Rows as one padded batch, shape ``(B, T)`` with ``T`` the longest.

    Padding is told by its place, never by its id, so that an end mark may serve as the padding.

    Args:
        rows: The rows.
        pad_id: The token to pad with.

    Returns:
        ``input_ids``, ``labels``, ``loss_weights``, ``position_ids`` and ``attention_mask``.
    """
    shape = (len(rows), max(map(len, rows), default=0))
    made: dict[str, npt.NDArray[Any]] = {
        "input_ids": np.full(shape, pad_id, dtype=np.int64),
        "labels": np.full(shape, IGNORE, dtype=np.int64),
        "loss_weights": np.zeros(shape, dtype=np.float32),
        "position_ids": np.zeros(shape, dtype=np.int64),
        "attention_mask": np.zeros(shape, dtype=np.int64),
    }
    for i, row in enumerate(rows):
        n = len(row)
        made["input_ids"][i, :n] = row.input_ids
        made["labels"][i, :n] = row.labels
        made["loss_weights"][i, :n] = row.loss_weights
        made["position_ids"][i, :n] = row.position_ids
        made["attention_mask"][i, :n] = 1
    return made
