"""From a conversation to the tokens that a model is served and the tokens that it is trained on.

A Format says who wrote each piece; a `LossPolicy` says which of them count; the `Encoder` joins
both over one tokenization.  It knows no family and reads no dataset.

The text is cut where authorship passes between model and server: generation starts at a hard token
boundary when a model is served, so it does here.  Within such a region adjacent text is encoded as
one; a ``special`` piece is one mark where the vocabulary has it and text where it has not; no other
piece becomes a mark.  So the tokens before a written span are those of
``encode_prompt(fmt.render(conversation before it, generate=True))``.

Where a message's ``metadata["token_ids"]`` holds the ids that were sampled, they stand for its
text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby, islice
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from unicodedata import normalize

from antiphon.encode._example import IGNORE, TrainingExample
from antiphon.encode._media import Expansion, Senses, Vision, expansion
from antiphon.encode._numpy import np
from antiphon.encode._policy import LossPolicy, MessageWeights, Weighted
from antiphon.encode._texts import SERVER, Opening, side_of, texts_that_train, written_in
from antiphon.encode._tokenizer import Tokenizer
from antiphon.errors import AntiphonError, EncodeError, MissingExtraError, clip
from antiphon.formats import Format, Piece, Rendered
from antiphon.messages import Conversation, Message

if TYPE_CHECKING:
    import numpy.typing as npt

_BATCH = 64
_NO_PADS: Mapping[str, list[int]] = {}
_KEEP = "surrogateescape"


@dataclass(slots=True)
class _Run:
    """Adjacent pieces of one side, as positions in a plan's parts."""

    start: int
    end: int
    message: int
    """Which message a model wrote here; `SERVER` for what no model wrote."""
    pieces: list[Piece]
    n_end_marks: int = 0
    """How many parts at its end are marks that end the turn."""

    @property
    def written(self) -> bool:
        return self.message != SERVER


@dataclass(slots=True)
class _Plan:
    """A rendered conversation as parts that are encoded apart: texts, marks, recorded ids."""

    conversation: Conversation
    parts: list[str | list[int]]
    runs: list[_Run]
    pads: frozenset[int] = frozenset()
    """The marks that stand for what is seen and heard, which cannot be learned as tokens."""


Media: TypeAlias = "dict[int, list[Expansion]]"
"""What stands for the media of each message that shows some, in order."""


class Encoder:
    """Encodes conversations for one vocabulary, one format and one policy.

    Args:
        tokenizer: The model's vocabulary.
        fmt: The model's format.
        loss: Which tokens count; a policy or its name.
        vision: How many tokens images, sounds and films are, where conversations show some.

    >>> from antiphon.encode import load_tokenizer
    >>> from antiphon.formats.smollm2 import FORMAT
    >>> from antiphon.messages import Message
    >>> encoder = Encoder(load_tokenizer("qwen2_5"), FORMAT)
    >>> example = encoder.encode(Conversation((Message.user("2+2?"), Message.assistant("4"))))
    >>> example.show(color=False).splitlines()[-1]
    '⟦4<|im_end|>⟧'
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        fmt: Format,
        *,
        loss: LossPolicy | str = "default",
        vision: Vision | Senses | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.format = fmt
        self.loss = LossPolicy.named(loss) if isinstance(loss, str) else loss
        self.vision = vision
        self._opening = Opening.of(fmt)

    def encode(self, conversation: Conversation) -> TrainingExample:
        """The tokens, labels and weights of one conversation, as one text.

        Spans that the family rewrites in later history, and those after a rewritten one that were
        written before the rewriting, are not trained here: no server would have sent this text for
        them.  `encode_all` trains those too.

        Raises:
            RenderError: The family cannot express a message.
            EncodeError: Recorded ids or text do not fit the vocabulary.
        """
        return next(self._finish(self._plans(conversation)[:1]))

    def encode_all(self, conversation: Conversation) -> list[TrainingExample]:
        """One example, or several where the family rewrites history.

        Each example is a text that the server would have sent, and no written span is trained
        twice.

        Raises:
            RenderError: The family cannot express a message.
            EncodeError: Recorded ids or text do not fit the vocabulary.
        """
        return list(self._finish(self._plans(conversation)))

    def encode_many(self, conversations: Iterable[Conversation]) -> Iterator[list[TrainingExample]]:
        """`encode_all` of each conversation, in order, tokenized in batches.

        Raises:
            RenderError: The family cannot express a message.
            EncodeError: Recorded ids or text do not fit the vocabulary.
        """
        stream = iter(conversations)
        while batch := list(islice(stream, _BATCH)):
            plans = [self._plans(conversation) for conversation in batch]
            examples = self._finish([plan for group in plans for plan in group])
            for group in plans:
                yield list(islice(examples, len(group)))

    def try_many(
        self, conversations: Iterable[Conversation]
    ) -> Iterator[list[TrainingExample] | AntiphonError]:
        """`encode_many`, with the error in the place of a conversation that cannot be encoded."""
        stream = iter(conversations)
        while batch := list(islice(stream, _BATCH)):
            try:
                yield from list(self.encode_many(batch))
            except AntiphonError:
                yield from (self._try(conversation) for conversation in batch)

    def _try(self, conversation: Conversation) -> list[TrainingExample] | AntiphonError:
        try:
            return self.encode_all(conversation)
        except MissingExtraError:  # which is no fault of the row's
            raise
        except AntiphonError as error:
            return error

    def encode_prompt(self, rendered: Rendered) -> list[int]:
        """The ids that a server is sent for a rendered prompt."""
        parts, _ = _cut(rendered, self.tokenizer)
        return [i for ids in self._ids([parts]) for part in ids for i in part]

    def prompt_ids(self, conversation: Conversation) -> list[int]:
        """The ids of the prompt for a conversation's next message, recorded ids in their places.

        Raises:
            RenderError: The family cannot express a message.
            EncodeError: Recorded ids or text do not fit the vocabulary.
        """
        rendered = self.format.render(conversation, generate=True)
        media = self._media(conversation)
        plan = self._plan(conversation, media, len(conversation.messages), rendered, ())
        return list(chain.from_iterable(self._ids([plan.parts])[0]))

    # ---- planning -----------------------------------------------------------------------------

    def _plans(self, conversation: Conversation) -> list[_Plan]:
        texts = list(texts_that_train(self.format, conversation, self._opening))
        media = self._media(conversation)  # behind rendering, which refuses what nobody sees
        return [self._plan(conversation, media, *text) for text in texts]

    def _plan(
        self,
        conversation: Conversation,
        media: Media,
        end: int,
        rendered: Rendered,
        trained: Collection[int],
    ) -> _Plan:
        known = self._pads(media)
        pieces = _expanded(rendered, media, self.format.name) if media else rendered
        parts, runs = _cut(pieces, self.tokenizer, self.format.stop, known)
        messages = list(conversation.messages[:end])
        for i in written_in(rendered).difference(trained):
            messages[i] = replace(messages[i], loss=0.0)
        pads = frozenset(ids[0] for ids in known.values())
        plan = _Plan(replace(conversation, messages=tuple(messages)), parts, runs, pads)
        for run in runs:
            if run.written and run.message not in rendered.changed:
                self._use_recorded(plan, run)
        return plan

    def _media(self, conversation: Conversation) -> Media:
        """What stands for a conversation's images, sounds and films, each looked at once."""
        shown = {i: m.media for i, m in enumerate(conversation.messages) if m.media}
        if shown and self.vision is None:
            kinds = {part.kind for parts in shown.values() for part in parts}
            raise EncodeError(
                f"the conversation shows {' and '.join(sorted(kinds))}, and how many tokens each "
                "is was not said; give the encoder a vision"
            )
        vision = self.vision
        if vision is None:
            return {}
        return {i: [expansion(vision, part) for part in parts] for i, parts in shown.items()}

    def _pads(self, media: Media) -> dict[str, list[int]]:
        """The ids of each row of pads, by its text."""
        ids: dict[str, list[int]] = {}
        for shown in chain.from_iterable(media.values()):
            if not shown.placeholder:
                continue
            pad = self.tokenizer.mark_id(shown.pad)
            if pad is None:
                raise EncodeError(f"the vocabulary has no token {shown.pad!r} for what is shown")
            ids |= {shown.pad * n: [pad] * n for mark, n in shown.pieces if mark == shown.pad}
        return ids

    def _use_recorded(self, plan: _Plan, run: _Run) -> None:
        """Put the ids that were sampled in the place of the span's text; its end marks stay."""
        recorded = plan.conversation.messages[run.message].metadata.get("token_ids")
        if recorded is None:
            return
        if not isinstance(recorded, list) or not all(isinstance(i, int) for i in recorded):
            raise EncodeError(
                f"message {run.message}: token_ids must be a list of integers, got {clip(recorded)}"
            )
        if sum(other.message == run.message for other in plan.runs) > 1:
            raise EncodeError(
                f"message {run.message} is written in several spans, so that its token_ids have no "
                "one place; leave token_ids out"
            )
        ids = cast("list[int]", recorded)
        self.tokenizer.decode(ids)
        body = run.end - run.n_end_marks
        marks = [i for part in plan.parts[body : run.end] for i in part if isinstance(i, int)]
        if marks and ids[-len(marks) :] == marks:
            ids = ids[: -len(marks)]
        plan.parts[run.start : body] = [ids, *([[]] * (body - run.start - 1))]

    # ---- encoding -----------------------------------------------------------------------------

    def _finish(self, plans: Sequence[_Plan]) -> Iterator[TrainingExample]:
        encoded = self._ids([plan.parts for plan in plans])
        return (self._example(plan, ids) for plan, ids in zip(plans, encoded, strict=True))

    def _ids(self, plans: Sequence[Sequence[str | list[int]]]) -> list[list[list[int]]]:
        """The ids of each part; texts that are the same are encoded once."""
        texts = list(dict.fromkeys(p for parts in plans for p in parts if isinstance(p, str)))
        encoded = dict(zip(texts, self.tokenizer.encode_batch(texts), strict=True))
        return [[encoded[p] if isinstance(p, str) else p for p in parts] for parts in plans]

    def _example(self, plan: _Plan, ids: list[list[int]]) -> TrainingExample:
        starts: list[int] = [0, *accumulate(map(len, ids))]
        token_ids = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=starts[-1])
        weights = np.zeros(len(token_ids), dtype=np.float32)
        of_message = self.loss.message_weights(plan.conversation)
        reads = any(m.given for m in of_message) or self.loss.base == "all"
        turns: list[tuple[int, int, int]] = []
        for run in plan.runs:
            start, end = starts[run.start], starts[run.end]
            if run.written:
                body = starts[run.end - run.n_end_marks]
                turns.append((run.message, start, end))
                weights[start:end] = of_message[run.message].written
                weights[start:end] *= self._entries(plan, run, token_ids[start:end])
                weights[start:body] *= self._scaled(plan, run, token_ids[start:body])
                if _broke_off(plan.conversation.messages[run.message]):
                    weights[body:end] = 0.0
            elif reads:
                weights[start:end] = self._read(run, token_ids[start:end], of_message)
        if plan.pads:
            weights[np.isin(token_ids, list(plan.pads))] = 0.0
        labels = np.where(weights > 0, token_ids, IGNORE)
        return TrainingExample(token_ids, labels, weights, tuple(turns), self.tokenizer)

    def _entries(
        self, plan: _Plan, run: _Run, ids: npt.NDArray[np.int64]
    ) -> float | npt.NDArray[np.float32]:
        """The weights of a span whose message was several entries of a row, each with its own."""
        message = plan.conversation.messages[run.message]
        entries = cast("list[dict[str, Any]] | None", message.metadata.get("loss_entries"))
        if not entries or message.loss == 0:
            return 1.0
        text = "".join(piece.text for piece in run.pieces)
        parts: Weighted = []
        n_parts, n_calls, place = 0, 0, 0
        for entry in entries:
            n_parts, n_calls = n_parts + entry["n_parts"], n_calls + entry["n_calls"]
            begun = replace(
                message, parts=message.parts[:n_parts], tool_calls=message.tool_calls[:n_calls]
            )
            up_to = len(text)
            if entry is not entries[-1]:
                up_to = _n_common(text, self._written_text(plan.conversation, run.message, begun))
            loss = entry.get("loss")
            parts.append((text[place:up_to], 1.0 if loss is None else float(loss)))
            place = up_to
        return self._spread(ids, parts)

    def _written_text(self, conversation: Conversation, index: int, message: Message) -> str:
        """What a model writes of another message in the place of one."""
        messages = (*conversation.messages[:index], message)
        pieces = self.format.render(replace(conversation, messages=messages)).pieces
        stop = self.format.stop
        return "".join(p.text for p in pieces if side_of(p) == index and p.text not in stop)

    def _read(
        self, run: _Run, ids: npt.NDArray[np.int64], of_message: Sequence[MessageWeights]
    ) -> npt.NDArray[np.float32]:
        """The weights of a stretch that no model wrote."""
        parts = [(piece.text, self._piece_weight(piece, of_message)) for piece in run.pieces]
        return self._spread(ids, parts)

    def _piece_weight(self, piece: Piece, of_message: Sequence[MessageWeights]) -> float:
        if self.loss.base == "all":
            return 1.0 if piece.message is None else of_message[piece.message].given
        if piece.message is None or piece.author != "given":
            return 0.0
        return of_message[piece.message].given

    def _scaled(
        self, plan: _Plan, run: _Run, ids: npt.NDArray[np.int64]
    ) -> float | npt.NDArray[np.float32]:
        """The scales' weights of a written span without its end mark."""
        if not self.loss.scales:
            return 1.0
        text = b"".join(map(self.tokenizer.token_bytes, ids.tolist()))
        query = _query(plan.conversation, run.message)
        return self._spread(ids, self.loss.split(text.decode("utf-8", _KEEP), query))

    def _spread(self, ids: npt.NDArray[np.int64], parts: Weighted) -> npt.NDArray[np.float32]:
        """For each token the weight of the part that its first byte lies in."""
        spelled = [len(self.tokenizer.token_bytes(i)) for i in ids.tolist()]
        sizes = [len(part.encode("utf-8", _KEEP)) for part, _ in parts]
        if sum(spelled) != sum(sizes):  # the vocabulary composes characters before it encodes
            sizes = [len(normalize("NFC", part).encode("utf-8", _KEEP)) for part, _ in parts]
        starts = np.cumsum([0, *spelled])[:-1]
        where = np.searchsorted(np.cumsum(sizes), starts, side="right")
        weights = np.array([weight for _, weight in parts] or [0.0], dtype=np.float32)
        return weights[where.clip(max=len(weights) - 1)]


def _expanded(rendered: Rendered, media: Media, family: str) -> Rendered:
    """A rendering with what stands for each image, sound and film in its placeholder's place.

    Raises:
        EncodeError: The family wrote no placeholder, or another.
    """
    left = {i: list(shown) for i, shown in media.items()}
    pieces: list[Piece] = []
    texts = [piece.text if piece.special else None for piece in rendered.pieces]
    place = 0
    while place < len(texts):
        piece = rendered.pieces[place]
        here = left.get(-1 if piece.message is None else piece.message, ())
        found = next((x for x in here if _stands_at(x.placeholder, texts, place)), None)
        if found is None:
            pieces.append(piece)
            place += 1
            continue
        left[cast("int", piece.message)].remove(found)
        for text, n in found.pieces:
            pieces.append(piece._replace(text=text * (n or 1), special=n > 0))
        place += len(found.placeholder)
    written = {piece.message for piece in pieces}
    for i, shown in left.items():
        for missing in shown:
            if i in written and missing.placeholder:
                raise EncodeError(
                    f"message {i}: {family} wrote no {''.join(missing.placeholder)!r} for what it "
                    "shows; the vision is another model's"
                )
    return Rendered(pieces, rendered.start, rendered.changed)


def _stands_at(marks: Sequence[str], texts: Sequence[str | None], place: int) -> bool:
    return bool(marks) and list(texts[place : place + len(marks)]) == list(marks)


def _n_common(a: str, b: str) -> int:
    """Length of the common beginning."""
    pairs = enumerate(zip(a, b, strict=False))
    return next((i for i, (x, y) in pairs if x != y), min(len(a), len(b)))


def _query(conversation: Conversation, index: int) -> str:
    """The text that a message answers: of the last message before it that no model wrote."""
    before = (m for m in reversed(conversation.messages[:index]) if m.role != "assistant")
    return next((m.text for m in before), "")


def _broke_off(message: Message) -> bool:
    """Whether the model was stopped before it ended its turn, so that it wrote no end mark."""
    return message.metadata.get("stop_reason") in ("length", "cancelled", "error")


def _cut(
    rendered: Rendered,
    tokenizer: Tokenizer,
    stop: Collection[str] = (),
    pads: Mapping[str, list[int]] = _NO_PADS,
) -> tuple[list[str | list[int]], list[_Run]]:
    """A rendering as parts that are encoded apart, and the runs of one side and message over
    them.

    Args:
        rendered: The rendering.
        tokenizer: Its vocabulary.
        stop: The marks that end a turn.
        pads: The ids of special pieces that are rows of one mark.
    """
    parts: list[str | list[int]] = []
    runs: list[_Run] = []
    groups = rendered.cut(lambda mark: mark in pads or tokenizer.mark_id(mark) is not None)
    for side, members in groupby(groups, key=lambda group: side_of(group[0])):
        run = _Run(len(parts), 0, message=side, pieces=[])
        for group in members:
            first = group[0]
            run.pieces += group
            alone = first.special and len(group) == 1
            marks = pads.get(first.text) if alone else None
            if alone and marks is None and (mark := tokenizer.mark_id(first.text)) is not None:
                marks = [mark]
            parts.append("".join([p.text for p in group]) if marks is None else marks)
            ends = marks is not None and first.text in stop
            run.n_end_marks = run.n_end_marks + 1 if ends else 0
        run.end = len(parts)
        runs.append(run)
    return parts, runs
