"""Texts by meaning, and rankings of several indices as one.

`VectorIndex` ranks by the embeddings that a function of the caller's makes (an endpoint's, a local
model's); this module has no model.  `fuse` joins rankings by reciprocal rank (Cormack, Clarke,
Buettcher, SIGIR 2009), which needs no common scale of scores.
"""

import heapq
import math
import operator
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from antiphon.errors import UsageError
from antiphon.retrieval._lexical import Hit

KeyT = TypeVar("KeyT", bound=Hashable)
Embed = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
"""Makes one vector a text, all of the same length."""


def fuse(
    rankings: Sequence[Sequence[Hit[KeyT]]], k: int = 10, *, damping: float = 60.0
) -> list[Hit[KeyT]]:
    """One ranking from several: each text gets ``1 / (damping + rank)`` from each.

    Args:
        rankings: Hits of each index, best first.
        k: How many hits at most.
        damping: How much the first ranks stand out; small values trust them more.

    >>> a, b, c = Hit("a", 9.0), Hit("b", 5.0), Hit("c", 0.9)
    >>> [hit.key for hit in fuse([[a, b], [b, c]])]
    ['b', 'a', 'c']
    """
    scores: dict[KeyT, float] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, 1):
            scores[hit.key] = scores.get(hit.key, 0.0) + 1.0 / (damping + rank)
    best = heapq.nlargest(k, scores.items(), key=lambda item: item[1])
    return [Hit(key, score) for key, score in best]


class VectorIndex(Generic[KeyT]):
    """An index over texts, by the vectors that `embed` makes of them.

    Args:
        embed: Makes the vectors.
    """

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._vectors: dict[KeyT, list[float]] = {}
        self._matrix: Any = None

    def __len__(self) -> int:
        return len(self._vectors)

    async def add_all(self, rows: Sequence[tuple[KeyT, str]]) -> None:
        """Add texts, or replace those that have the same keys.

        Args:
            rows: Key and text of each.

        Raises:
            UsageError: `embed` gave another number of vectors than it got texts.
        """
        vectors = await self._embed([text for _, text in rows])
        if len(vectors) != len(rows):
            raise UsageError(f"embed gave {len(vectors)} vectors for {len(rows)} texts")
        for (key, _), vector in zip(rows, vectors, strict=True):
            self._vectors[key] = _unit(vector)
        self._matrix = None

    def remove(self, key: KeyT) -> None:
        """Remove a text.

        Raises:
            KeyError: There is none of that key.
        """
        del self._vectors[key]
        self._matrix = None

    async def search(self, query: str, k: int = 10) -> list[Hit[KeyT]]:
        """The texts whose vectors point most nearly where the query's does.

        Args:
            query: Any text.
            k: How many at most.
        """
        if not self._vectors:
            return []
        (vector,) = await self._embed([query])
        scores = self._products(_unit(vector))
        best = heapq.nlargest(k, zip(scores, range(len(scores)), self._vectors, strict=True), _rank)
        return [Hit(key, score) for score, _, key in best]

    def _products(self, wanted: list[float]) -> list[float]:
        """The product of a vector with each of the index: one of a matrix where numpy is there."""
        try:
            import numpy as np
        except ImportError:
            return [math.fsum(map(operator.mul, wanted, own)) for own in self._vectors.values()]
        if self._matrix is None:
            self._matrix = np.array(list(self._vectors.values()))
        return (self._matrix @ np.array(wanted)).tolist()


def _rank(item: tuple[float, int, object]) -> tuple[float, int]:
    """By score; of equal ones, the one that was added first."""
    return item[0], -item[1]


def _unit(vector: Sequence[float]) -> list[float]:
    length = math.sqrt(math.fsum(x * x for x in vector)) or 1.0
    return [x / length for x in vector]
