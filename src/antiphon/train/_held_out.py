"""What a model makes of held-out rows: its loss by kind of text, and the calls that it gets right.

Kinds: ``call`` and ``reasoning`` as the format parses them, ``end`` the marks that end a turn,
``text`` what else a model wrote, ``given`` what it did not.  A call, or a turn, is right where each
of its tokens is the most likely one behind the right text before it; a turn that is right so is
what greedy decoding writes.  Nothing is generated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from antiphon.encode import Encoder, TrainingExample, to_row
from antiphon.encode._numpy import np
from antiphon.messages import Conversation
from antiphon.train._collate import Collator
from antiphon.train._libraries import library
from antiphon.train._loss import token_losses

KINDS = ("given", "text", "reasoning", "call", "end")
_GIVEN, _TEXT, _REASONING, _CALL, _END = range(len(KINDS))


@dataclass(frozen=True, slots=True)
class HeldOutRow:
    """One example with what its tokens are."""

    example: TrainingExample
    """The tokens, with labels and weights."""
    kinds: Any
    """The kind of each token, as a place in `KINDS`; shape ``(T,)``."""
    calls: tuple[tuple[int, int], ...]
    """Where each call stands, ``[start, end)`` in tokens."""


def held_out_rows(encoder: Encoder, conversations: Sequence[Conversation]) -> list[HeldOutRow]:
    """Encode conversations and tell what their tokens are.

    Raises:
        RenderError: The family cannot express a message.
        EncodeError: Recorded ids or text do not fit the vocabulary.
    """
    return [
        _told(encoder, conversation, example)
        for conversation in conversations
        for example in encoder.encode_all(conversation)
        if example.n_trained
    ]


def _told(encoder: Encoder, conversation: Conversation, example: TrainingExample) -> HeldOutRow:
    kinds = np.zeros(len(example), dtype=np.int8)
    calls: list[tuple[int, int]] = []
    for message, start, end in example.turns:
        kinds[start:end] = _TEXT
        ids: list[int] = example.token_ids[start:end].tolist()
        spelled = [encoder.tokenizer.token_bytes(i) for i in ids]
        stops = {mark.encode() for mark in encoder.format.stop}
        n = len(ids)
        while n and spelled[n - 1] in stops:
            n -= 1
        kinds[start + n : end] = _END
        starts = np.cumsum([0, *map(len, spelled[:n])])
        for kind, (a, b) in _stretches(encoder, conversation, message, b"".join(spelled[:n])):
            first = start + int(np.searchsorted(starts, a, side="right")) - 1
            last = start + int(np.searchsorted(starts, b, side="left"))
            kinds[first:last] = kind
            if kind == _CALL and (example.labels[first:last] >= 0).all():
                calls.append((first, last))
    return HeldOutRow(example, kinds, tuple(calls))


def _stretches(
    encoder: Encoder, conversation: Conversation, index: int, written: bytes
) -> Iterator[tuple[int, tuple[int, int]]]:
    """The reasoning and the calls of a written span, ``[start, end)`` in bytes."""
    before = replace(conversation, messages=conversation.messages[:index])
    start = encoder.format.render(before, generate=True).start
    text = written.decode("utf-8", "surrogateescape")
    message = encoder.format.parse(text, tools=conversation.tools, start=start)
    place = 0
    thought = message.reasoning.encode("utf-8", "surrogateescape")
    if thought and (found := written.find(thought)) >= 0:
        place = found + len(thought)
        yield _REASONING, (0, place)
    for call in message.tool_calls:
        raw = call.raw.encode("utf-8", "surrogateescape")
        if raw and (found := written.find(raw, place)) >= 0:
            place = found + len(raw)
            yield _CALL, (found, place)


def measure(
    model: Any, rows: Sequence[HeldOutRow], *, pad_id: int, batch_rows: int = 4
) -> dict[str, float]:
    """Measure a model on held-out rows; with several processes, each measures its share.

    Args:
        model: The model, in its state for evaluation.
        rows: The rows, at least one.
        pad_id: The token to pad with.
        batch_rows: Rows that are seen at once.

    Returns:
        ``loss``; ``loss_<kind>`` for each kind that counts; ``turns_right`` and, where there are
        calls, ``calls_right``, as shares.
    """
    torch = library("torch")
    rank, world = _place(torch)
    batches = [rows[i : i + batch_rows] for i in range(0, len(rows), batch_rows)]
    sums = torch.zeros(len(KINDS) + 2, 2, dtype=torch.float64)
    for step in range(0, len(batches), world):
        mine = step + rank
        # A process without a batch of its own still takes part in sharded forwards.
        numbers = _measure(model, batches[min(mine, len(batches) - 1)], pad_id)
        if mine < len(batches):
            sums += numbers
    if world > 1:
        device = next(model.parameters()).device
        shared = sums.float().to(device)
        torch.distributed.all_reduce(shared)
        sums = shared.double().cpu()
    return _named(sums.tolist())


def _place(torch: Any) -> tuple[int, int]:
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def _measure(model: Any, rows: Sequence[HeldOutRow], pad_id: int) -> Any:
    """Sums of a batch: for each kind loss and weight, for turns and calls right and all."""
    torch = library("torch")
    batch = Collator(pad_id, packed=False)([to_row(row.example, 0) for row in rows])
    device = next(model.parameters()).device
    with torch.no_grad():
        losses, weights, right, places = token_losses(
            model, {name: value.to(device) for name, value in batch.items()}
        )
    losses, weights, right, places = (x.cpu().numpy() for x in (losses, weights, right, places))
    sums = np.zeros((len(KINDS) + 2, 2))
    for row, loss, weight, hit in zip(rows, losses, weights, right, strict=True):
        inside = places < len(row.example)
        at, loss, weight, hit = places[inside], loss[inside], weight[inside], hit[inside]
        kinds = row.kinds[at]
        for kind in range(len(KINDS)):
            of = kinds == kind
            sums[kind] += (loss[of] * weight[of]).sum(), weight[of].sum()
        missed = at[(weight > 0) & ~hit]
        turns = [
            (a, b) for _, a, b in row.example.turns if (row.example.loss_weights[a:b] > 0).any()
        ]
        for place, spans in ((-2, turns), (-1, row.calls)):
            n_right = sum(not ((missed >= a) & (missed < b)).any() for a, b in spans)
            sums[place] += n_right, len(spans)
    return torch.from_numpy(sums)


def _named(sums: list[list[float]]) -> dict[str, float]:
    total = [sum(kind[i] for kind in sums[: len(KINDS)]) for i in (0, 1)]
    numbers = {"loss": total[0] / max(total[1], 1e-9)}
    for name, (loss, weight) in zip(KINDS, sums[: len(KINDS)], strict=True):
        if weight:
            numbers[f"loss_{name}"] = loss / weight
    for name, (right, n) in zip(("turns_right", "calls_right"), sums[-2:], strict=True):
        if n:
            numbers[name] = right / n
    return numbers
