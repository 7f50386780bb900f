"""What training reads of one conversation: token ids, labels and loss weights, built together.

Shapes: ``T`` tokens.  Labels are not shifted: position ``t`` holds the token at ``t`` or `IGNORE`;
causal language models in transformers shift by one inside their loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from antiphon.encode._numpy import np
from antiphon.encode._tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy.typing as npt

IGNORE = -100
"""The label that PyTorch's cross entropy leaves out."""

_RESET, _DIM = "\x1b[0m", "\x1b[2m"


@dataclass(frozen=True, slots=True, eq=False)
class TrainingExample:
    """Tokens of one conversation with what is learned from each."""

    token_ids: npt.NDArray[np.int64]
    """The tokens, shape ``(T,)``."""
    labels: npt.NDArray[np.int64]
    """The token itself where it is trained, `IGNORE` elsewhere; shape ``(T,)``."""
    loss_weights: npt.NDArray[np.float32]
    """How much each token counts, 0 where it is not trained; shape ``(T,)``."""
    turns: tuple[tuple[int, int, int], ...] = ()
    """Each span that a model wrote: message index, and ``[start, end)`` in tokens."""
    tokenizer: Tokenizer | None = field(default=None, repr=False)
    """What spells the tokens, for `show`."""

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def n_trained(self) -> int:
        """Tokens that count."""
        return int(np.count_nonzero(self.labels != IGNORE))

    def runs(self) -> list[tuple[bool, int]]:
        """Stretches of trained and untrained tokens in order, each with its length."""
        trained = self.labels != IGNORE
        if not len(trained):
            return []
        edges = np.flatnonzero(np.diff(trained)) + 1
        lengths = np.diff([0, *edges.tolist(), len(trained)])
        return [(bool(trained[0]) ^ bool(i % 2), int(n)) for i, n in enumerate(lengths)]

    def masked_runs(self) -> list[int]:
        """Lengths of the stretches that are not trained, in order."""
        return [n for trained, n in self.runs() if not trained]

    def show(self, *, color: bool = True) -> str:
        """The text with each stretch of one weight coloured, for a terminal.

        Untrained text is dim, weight 1 green, less yellow, more magenta.  Without `color`, trained
        stretches stand in ``⟦ ⟧``, with their weight where it is not 1.  Control characters other
        than line breaks and tabs are shown as escapes, so that a text cannot steer the terminal.

        Args:
            color: Whether to write terminal colours.

        Raises:
            ValueError: The example has no tokenizer.
        """
        return "".join(_paint(text, weight, color) for text, weight in self._stretches())

    def _stretches(self) -> Iterator[tuple[str, float]]:
        if self.tokenizer is None:
            raise ValueError("an example without its tokenizer cannot be shown; encode it again")
        edges = np.flatnonzero(np.diff(self.loss_weights)) + 1
        bounds = [0, *edges.tolist(), len(self)]
        for start, end in pairwise(bounds):
            if start < end:
                ids: list[int] = self.token_ids[start:end].tolist()
                yield self.tokenizer.decode(ids), float(self.loss_weights[start])


def _paint(text: str, weight: float, color: bool) -> str:
    safe = "".join(c if c.isprintable() or c in "\n\t" else _escaped(c) for c in text)
    if not color:
        return safe if weight == 0 else f"⟦{safe}⟧" + ("" if weight == 1 else f"*{weight:g}")
    if weight == 0:
        return f"{_DIM}{safe}{_RESET}"
    code = 32 if weight == 1 else 33 if weight < 1 else 35
    return f"\x1b[{code}m{safe}{_RESET}"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode()
