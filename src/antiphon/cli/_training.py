"""What a trainer would see of a conversation, prepared for the viewer, which knows no format.

With a tokenizer the spans are its tokens.  Without one every character and every mark is a token of
its own for the length of the encoding, and neighbours that are alike are shown as one stretch: the
weights come from the same `Encoder` either way.
"""

import codecs
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from unicodedata import normalize

from antiphon.datasets import conversations_of
from antiphon.encode import Encoder, Expansion, LossPolicy, Tokenizer, load_tokenizer
from antiphon.errors import EncodeError, UnknownNameError, clip
from antiphon.events import Trajectory
from antiphon.formats import Piece, read_format
from antiphon.messages import Conversation, MediaPart
from antiphon.models._catalog import card_named
from antiphon.models._weights import find
from antiphon.viewer import Encoding, Span

_FIRST_MARK = 0x110000  # above every character


class Characters:
    """A vocabulary of every character, and of every mark that is asked for."""

    vocab_size = _FIRST_MARK

    def __init__(self) -> None:
        self._marks: dict[str, int] = {}
        self._texts: dict[int, str] = {}

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The code points of each text."""
        for text in texts:
            try:
                text.encode()
            except UnicodeEncodeError as error:
                raise EncodeError(
                    f"text with a lone surrogate has no tokens: {clip(text)}; replace it first"
                ) from error
        return [[ord(char) for char in text] for text in texts]

    def mark_id(self, mark: str) -> int | None:
        """An id for a mark, the same every time."""
        found = self._marks.setdefault(mark, _FIRST_MARK + len(self._marks))
        self._texts[found] = mark
        return found

    def token_bytes(self, token_id: int) -> bytes:
        """A character or a mark in UTF-8."""
        text = chr(token_id) if token_id < _FIRST_MARK else self._texts[token_id]
        return text.encode()

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text of the ids."""
        return b"".join(self.token_bytes(i) for i in token_ids).decode()


class _OneToken:
    """A vision for people: what is shown stands as the one placeholder that the format wrote."""

    def expand(self, part: MediaPart) -> Expansion:
        """Nothing, whatever the part."""
        return Expansion((), "", ())


def tokenizer_of(trajectory: Trajectory) -> str:
    """The vocabulary of a run's own model, where that is a file on this machine; else empty."""
    for agent in trajectory.agents:
        spec = str(agent.get("model", "")).partition("?")[0]
        kind, _, name = spec.partition("/")
        if kind == "gguf" and Path(name).is_file():
            return name
        if kind == "local":
            return _local_file(spec)
    return ""


def _local_file(spec: str) -> str:
    try:
        path = find(card_named(spec))
    except UnknownNameError:
        return ""
    return "" if path is None else str(path)


def encode_for_view(
    trajectory: Trajectory, *, format: str, loss: str = "default", tokenizer: str = ""
) -> tuple[Encoding, ...]:
    """Render and weigh the conversations of a run, its children's left out.

    Args:
        trajectory: The run, or a row as one without steps.
        format: The Format's name, with variants as a record describes them.
        loss: The LossPolicy's name.
        tokenizer: What `load_tokenizer` takes, or a local model's name; without one the spans are
            stretches of text.  Sampled ids stand for the text where it is the run's own.

    Raises:
        AntiphonError: A name is unknown, an extra is missing, or a message cannot be expressed.
    """
    fmt = read_format(format)
    if tokenizer.partition("/")[0] == "local":
        tokenizer = _local_file(tokenizer) or tokenizer
    vocabulary: Tokenizer = load_tokenizer(tokenizer) if tokenizer else Characters()
    own = bool(tokenizer) and tokenizer == tokenizer_of(trajectory)
    encoder = Encoder(vocabulary, fmt, loss=LossPolicy.named(loss), vision=_OneToken())
    encodings: list[Encoding] = []
    for conversation in conversations_of(replace(trajectory, children=())):
        spans = list(_spans(encoder, conversation if own else _without_ids(conversation)))
        shown = spans if tokenizer else _stretches(spans)
        encodings.append(Encoding(tuple(shown), format, loss, Path(tokenizer).name))
    return tuple(encodings)


def _without_ids(conversation: Conversation) -> Conversation:
    """A conversation without the ids that another vocabulary was sampled from."""
    return replace(
        conversation,
        messages=tuple(
            replace(m, metadata={k: v for k, v in m.metadata.items() if k != "token_ids"})
            for m in conversation.messages
        ),
    )


def _spans(encoder: Encoder, conversation: Conversation) -> Iterator[Span]:
    example = encoder.encode(conversation)
    spelled = [encoder.tokenizer.token_bytes(int(i)) for i in example.token_ids]
    pieces = encoder.format.render(conversation).pieces
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for text, piece, token_id, weight in zip(
        spelled,
        _pieces_of(spelled, pieces, example.turns),
        example.token_ids,
        example.loss_weights,
        strict=True,
    ):
        yield Span(decoder.decode(text), float(weight), piece.author, int(token_id), piece.special)


def _pieces_of(
    spelled: Sequence[bytes], pieces: Sequence[Piece], turns: Sequence[tuple[int, int, int]]
) -> Iterator[Piece]:
    """For each token the piece it belongs to, turn by turn.

    What a model sampled may be spelled otherwise than the format would write it, so what it wrote
    and what stands between are followed apart.
    """
    starts = {message: (start, end) for message, start, end in turns}
    position = 0
    for message, group in groupby(pieces, key=_writer):
        start, end = starts.get(message, (len(spelled), len(spelled)))
        if message < 0:
            end = min((s for s, _ in starts.values() if s >= position), default=len(spelled))
            start = position
        yield from _aligned(spelled[start:end], list(group))
        position = end


def _writer(piece: Piece) -> int:
    """The message that a model wrote the piece in; -1 for what no model wrote."""
    return piece.message if piece.author == "written" and piece.message is not None else -1


def _aligned(spelled: Sequence[bytes], pieces: Sequence[Piece]) -> Iterator[Piece]:
    """For each token the piece that its first byte lies in."""
    sizes = [len(piece.text.encode()) for piece in pieces]
    if sum(sizes) != sum(map(len, spelled)):  # the vocabulary composes characters
        sizes = [len(normalize("NFC", piece.text).encode()) for piece in pieces]
    index, end, position = 0, sizes[0] if sizes else 0, 0
    for text in spelled:
        while position >= end and index + 1 < len(pieces):
            index += 1
            end += sizes[index]
        yield pieces[index]
        position += len(text)


def _stretches(spans: Sequence[Span]) -> Iterator[Span]:
    """Neighbours of one weight, author and kind as one; a mark stays alone."""

    def likeness(item: tuple[int, Span]) -> tuple[float, str, int]:
        index, span = item
        return span.weight, span.author, index if span.special else -1

    for _, group in groupby(enumerate(spans), key=likeness):
        members = [span for _, span in group]
        first = members[0]
        yield Span(
            "".join(s.text for s in members), first.weight, first.author, None, first.special
        )
