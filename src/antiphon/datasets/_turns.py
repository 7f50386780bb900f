"""Entries of a chat as messages: consecutive parts of one turn joined, results tied to their calls.

Works on messages that are spelled canonically already; `_unified.py` brings them to that.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import NoReturn

from antiphon.errors import DataError, clip
from antiphon.messages import JsonValue, Message, TextPart

LOSS_ENTRIES = "loss_entries"
_BETWEEN_RESULTS = "\n</tool_response>\n<tool_response>\n"


def join_turns(messages: Iterable[Message]) -> list[Message]:
    """Consecutive assistant entries as the one turn that they are.

    Text after a call begins another message, since a call ends what a model writes before it is
    answered.  Where the entries of a turn have different ``loss``, ``metadata["loss_entries"]``
    says of each how many parts and calls it has and what they count; the encoder reads it.
    """
    joined: list[Message] = []
    for message in messages:
        if joined and _continues(joined[-1], message):
            joined[-1] = _join(joined[-1], message)
        else:
            joined.append(message)
    return joined


def _continues(last: Message, message: Message) -> bool:
    if last.role != "assistant" or message.role != "assistant":
        return False
    return not last.tool_calls or not message.parts


def _join(a: Message, b: Message) -> Message:
    metadata = {k: v for k, v in a.metadata.items() if k != LOSS_ENTRIES}
    own = {k: v for k, v in b.metadata.items() if k != LOSS_ENTRIES}
    if metadata.keys() & own.keys():
        others = metadata.get("merged")
        entries: list[JsonValue] = list(others) if isinstance(others, list) else []
        metadata["merged"] = [*entries, own]
    else:
        metadata |= own
    differs = a.loss != b.loss or LOSS_ENTRIES in a.metadata
    if differs:
        metadata[LOSS_ENTRIES] = [*_entries(a), *_entries(b)]
    return replace(
        a,
        parts=a.parts + b.parts,
        tool_calls=a.tool_calls + b.tool_calls,
        invalid_tool_calls=a.invalid_tool_calls + b.invalid_tool_calls,
        loss=None if differs else a.loss,
        metadata=metadata,
    )


def _entries(message: Message) -> list[JsonValue]:
    known = message.metadata.get(LOSS_ENTRIES)
    if isinstance(known, list):
        return known
    n_calls = len(message.tool_calls)
    return [{"n_parts": len(message.parts), "n_calls": n_calls, "loss": message.loss}]


def tie_results(
    messages: Sequence[Message], *, report: Callable[[str], None] | None = None
) -> tuple[Message, ...]:
    """Calls with ids, and each result with the id and the name of the call that it answers.

    A result with an id answers the call of that id; one without, or whose id no call has, answers
    the first open call without one.  Calls that still have none get ``c0``, ``c1``, ... over the
    conversation.

    Args:
        messages: The messages, turns joined.
        report: Takes each problem in place of a raise; what has a problem stays as it is.

    Raises:
        DataError: A result answers no call of the turn before it.
    """
    tell = _refuse if report is None else report
    tied: list[Message] = []
    fresh = _fresh_ids(messages)
    for turn in _blocks(messages):
        head, results = turn[0], turn[1:]
        if head.role != "assistant":
            if head.role == "tool":
                tell(f"message {len(tied)}: a tool result, and no call before it")
            tied.append(head)
            continue
        opened = [_Open(c.id, c.name) for c in (*head.tool_calls, *head.invalid_tool_calls)]
        results = _split(results, len(opened))
        answers = list(_answers(results, opened, len(tied) + 1, tell))
        for call in opened:
            call.id = call.id or next(fresh)
        n_calls = len(head.tool_calls)
        calls = zip(head.tool_calls, opened, strict=False)
        invalid = zip(head.invalid_tool_calls, opened[n_calls:], strict=True)
        tied.append(
            replace(
                head,
                tool_calls=tuple(replace(call, id=own.id) for call, own in calls),
                invalid_tool_calls=tuple(replace(call, id=own.id) for call, own in invalid),
            )
        )
        tied += [
            message
            if own is None
            else replace(message, tool_call_id=own.id, name=message.name or own.name)
            for message, own in answers
        ]
    return tuple(tied)


@dataclass(slots=True)
class _Open:
    """A call that waits for its result."""

    id: str
    name: str
    answered: bool = False


def _refuse(problem: str) -> NoReturn:
    raise DataError(problem)


def _blocks(messages: Sequence[Message]) -> Iterator[list[Message]]:
    """Each assistant message with the results behind it; every other message alone."""
    block: list[Message] = []
    for message in messages:
        if message.role == "tool" and block and block[0].role == "assistant":
            block.append(message)
            continue
        if block:
            yield block
        block = [message]
    if block:
        yield block


def _split(results: Sequence[Message], n_calls: int) -> list[Message]:
    """The results; one text that holds those of several calls, in Hermes' tags, as that many."""
    if len(results) == 1 and n_calls > 1 and not results[0].tool_call_id:
        texts = results[0].text.split(_BETWEEN_RESULTS)
        if len(texts) == n_calls and not results[0].images:
            return [replace(results[0], parts=(TextPart(text),)) for text in texts]
    return list(results)


def _answers(
    results: Iterable[Message], calls: Sequence[_Open], index: int, tell: Callable[[str], None]
) -> Iterator[tuple[Message, _Open | None]]:
    """Each result with the call that it answers."""
    for place, result in enumerate(results, start=index):
        waiting = [call for call in calls if not call.answered]
        wanted = result.tool_call_id
        fits = [c for c in waiting if c.id == wanted] if wanted else waiting
        fits = fits or [c for c in waiting if not c.id]
        if not fits:
            names = ", ".join(repr(c.id or c.name) for c in calls) or "none"
            of = f" for call {clip(wanted)}" if wanted else ""
            open_ = "" if waiting else " and all are answered" if calls else ""
            tell(f"message {place}: tool result{of}, but the calls before it are {names}{open_}")
            yield result, None
            continue
        call = fits[0]
        call.answered, call.id = True, call.id or wanted
        yield result, call


def _fresh_ids(messages: Iterable[Message]) -> Iterator[str]:
    taken = {call.id for m in messages for call in (*m.tool_calls, *m.invalid_tool_calls)}
    return (name for i in count() if (name := f"c{i}") not in taken)
