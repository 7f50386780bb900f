"""Text to token ids and back, without the text ever becoming a special token.

A vocabulary has two kinds of entries: those that spell text, and marks (``<|im_start|>``,
``<tool_call>``) that only a format may write.  A `Tokenizer` keeps them apart: `encode_batch`
spells every text with the first kind, whatever it says, and `mark_id` gives the id of a mark.

`load_tokenizer` finds a vocabulary; `FastTokenizer` wraps the `tokenizers` engine.  Nothing here
knows a conversation or a format.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from antiphon.encode._words import Words, make_words
from antiphon.errors import EncodeError, clip

if TYPE_CHECKING:
    import tokenizers


class Tokenizer(Protocol):
    """A model's vocabulary, as the encoder needs it."""

    @property
    def vocab_size(self) -> int:
        """One more than the highest id."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, each on its own, without marks and without additions.

        Raises:
            EncodeError: A text holds a lone surrogate.
        """
        ...

    def mark_id(self, mark: str) -> int | None:
        """The id of a special token by its text; ``None`` where the vocabulary has none."""
        ...

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token spells; may be part of a character.

        Raises:
            EncodeError: The vocabulary has no such id.
        """
        ...

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text that tokens spell, marks included; broken characters become U+FFFD.

        Raises:
            EncodeError: The vocabulary has no such id.
        """
        ...


class FastTokenizer:
    """A vocabulary run by the `tokenizers` engine.

    Args:
        engine: Encodes text; has no added tokens and adds none.
        marks: Special tokens: text to id.
        spelling: Id to bytes, marks included.
        source: What `load_tokenizer` loads the same vocabulary from, in another process too.
    """

    def __init__(
        self,
        engine: "tokenizers.Tokenizer",
        *,
        marks: Mapping[str, int],
        spelling: Mapping[int, bytes],
        source: str = "",
    ) -> None:
        self._engine = engine
        self._marks = dict(marks)
        self._spelling = dict(spelling)
        self._added: dict[int, bytes] = {}
        self._vocab_size = max(self._spelling, default=-1) + 1
        self.source = source

    @property
    def marks(self) -> Mapping[str, int]:
        """All special tokens: text to id."""
        return self._marks

    @property
    def vocab_size(self) -> int:
        """One more than the highest id."""
        return self._vocab_size

    def with_marks(self, marks: Sequence[str]) -> "FastTokenizer":
        """The same vocabulary with more special tokens behind it, as a model is resized for.

        Args:
            marks: Their texts; those that are there already stay as they are.
        """
        new = [mark for mark in dict.fromkeys(marks) if mark not in self._marks]
        ids = {mark: self.vocab_size + i for i, mark in enumerate(new)}
        made = copy(self)  # with the same engine, words and spelling: they are large
        made._marks = self._marks | ids
        made._added = self._added | {i: mark.encode() for mark, i in ids.items()}
        made._vocab_size = self._vocab_size + len(ids)
        made.source = ""
        return made

    def engine_json(self) -> str:
        """The engine's definition as a ``tokenizer.json``, without marks."""
        return self._engine.to_str()

    @cached_property
    def _words(self) -> Words | None:
        return make_words(self._engine)

    def encode(self, text: str) -> list[int]:
        """The ids of one text; see `Tokenizer.encode_batch`."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text; see `Tokenizer.encode_batch`."""
        try:
            if self._words is not None:
                return self._words.encode_batch(texts)
            batch = self._engine.encode_batch_fast(list(texts), add_special_tokens=False)
        except (TypeError, UnicodeEncodeError) as error:
            broken = next((t for t in texts if not _is_unicode(t)), None)
            if broken is None:
                raise
            raise EncodeError(
                f"text with a lone surrogate has no tokens: {clip(broken)}; replace it first"
            ) from error
        return [encoding.ids for encoding in batch]

    def mark_id(self, mark: str) -> int | None:
        """The id of a special token by its text."""
        return self._marks.get(mark)

    def token_bytes(self, token_id: int) -> bytes:
        """The bytes that a token spells."""
        spelled = self._spelling.get(token_id)
        if spelled is None:
            spelled = self._added.get(token_id)
        if spelled is None:
            raise EncodeError(
                f"no token has the id {token_id}; the vocabulary ends at {self.vocab_size - 1}"
            )
        return spelled

    def decode(self, token_ids: Sequence[int]) -> str:
        """The text that tokens spell, marks included."""
        return b"".join([self.token_bytes(i) for i in token_ids]).decode("utf-8", "replace")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


if TYPE_CHECKING:
    _fits: type[Tokenizer] = FastTokenizer
