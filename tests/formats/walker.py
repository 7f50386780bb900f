"""Texts drawn from a grammar with llguidance's own matcher: at each step one of the tokens that it
allows.

The tokens are single bytes and the grammar's own literals, so that a walk comes to an end.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon.formats._grammar import Alt, Lit, Node, Rep, Seq, Texts

llguidance = pytest.importorskip("llguidance")

_END = 256
_MOST = 400  # steps of a walk


class _Vocabulary:
    """Single bytes, an end, and some texts."""

    eos_token_id = _END
    bos_token_id = None
    special_token_ids = (_END,)

    def __init__(self, texts: list[str]) -> None:
        self.tokens = (
            *(bytes([i]) for i in range(256)),
            b"<end>",
            *(text.encode() for text in texts),
        )

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


def _literals(node: Node) -> Iterator[str]:
    match node:
        case Lit(text):
            yield text
        case Seq(parts) | Alt(parts):
            for part in parts:
                yield from _literals(part)
        case Rep(inner):
            yield from _literals(inner)
        case _:
            pass


class Walker:
    """Draws texts of one grammar."""

    def __init__(self, grammar: Texts) -> None:
        found = {text for node in grammar.rules.values() for text in _literals(node)}
        vocabulary = _Vocabulary(sorted(text for text in found if len(text) > 1))
        self.tokens = vocabulary.tokens
        tokenizer: Any = llguidance.LLTokenizer(llguidance.TokenizerWrapper(vocabulary))
        self._matcher: Any = llguidance.LLMatcher(
            tokenizer, grammar.to_lark(specials=frozenset[str]())
        )
        assert not self._matcher.get_error()

    def text(self, rng: random.Random) -> str | None:
        """A text that the grammar accepts; ``None`` if the walk does not end."""
        self._matcher.reset()
        written: list[bytes] = []
        for _ in range(_MOST):
            allowed = self._allowed()
            ends = _END in allowed
            if ends and (len(allowed) == 1 or rng.random() < 0.2):
                return b"".join(written).decode()
            token = self._one_of([t for t in allowed if t != _END], rng)
            assert self._matcher.consume_token(token)
            written.append(self.tokens[token])
        return None

    def _allowed(self) -> list[int]:
        mask: bytes = self._matcher.compute_bitmask()
        return [t for t in range(len(self.tokens)) if mask[t >> 3] >> (t & 7) & 1]

    def _one_of(self, allowed: list[int], rng: random.Random) -> int:
        literals = [t for t in allowed if t > _END]
        closing = [t for t in allowed if t < 128 and chr(t) in "\"'}])\n"]
        ascii = [t for t in allowed if 32 <= t < 127]
        for choice, chance in ((literals, 0.4), (closing, 0.3), (ascii, 0.9)):
            if choice and rng.random() < chance:
                return rng.choice(choice)
        return rng.choice(allowed)
