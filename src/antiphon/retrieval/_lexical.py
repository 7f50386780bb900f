"""BM25F in memory: which texts share the rare words of a query.

A text has a title (for a tool: its name) and a body; a term in the title counts for more (BM25F:
Robertson, Zaragoza, Taylor, CIKM 2004).  Texts are added, replaced and removed in place, at a cost
that does not depend on how many there are.

A query's rare terms are scored in full.  A term that more texts have than the rarer terms found is
scored for those found only: by itself it says too little to bring a text to the top.
"""

import heapq
import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from antiphon.retrieval._postings import Postings

KeyT = TypeVar("KeyT", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Hit(Generic[KeyT]):
    """One text that was found."""

    key: KeyT
    """What it was added under."""
    score: float
    """How well it fits; comparable within one answer only."""


class LexicalIndex(Postings[KeyT]):
    """An index over texts, by the words in them.

    Args:
        k1: How soon repeating a term stops to count.
        b: How much long texts are held back, from 0 to 1.
        title_weight: How many times a term in the title counts.

    >>> index = LexicalIndex[str]()
    >>> index.add("w", "Current weather in a city", title="get_weather")
    >>> index.add("t", "Current time in a city", title="get_time")
    >>> [hit.key for hit in index.search("How is the weather?")]
    ['w']
    """

    def __init__(self, *, k1: float = 1.2, b: float = 0.6, title_weight: float = 2.5) -> None:
        super().__init__(title_weight)
        self.k1 = k1
        self.b = b
        self._norms: dict[KeyT, float] | None = None

    def _changed(self, key: KeyT) -> None:
        self._norms = None

    def search(self, query: str, k: int = 10) -> list[Hit[KeyT]]:
        """The texts that fit a query best, best first.

        Args:
            query: Any text.
            k: How many at most; texts that share no term with the query are never among them.
        """
        if not self._terms or k < 1:
            return []
        scores: dict[KeyT, float] = {}
        for posting, repeated in self._found(query):
            n_with = len(posting)
            idf = math.log(1.0 + (len(self._terms) - n_with + 0.5) / (n_with + 0.5))
            self._score(posting, idf * (self.k1 + 1.0) * min(repeated, 3), scores, k)
        best = heapq.nlargest(k, scores.items(), key=lambda item: item[1])
        return [Hit(key, score) for key, score in best]

    def _score(
        self, posting: dict[KeyT, float], gain: float, scores: dict[KeyT, float], k: int
    ) -> None:
        norms = self._all_norms()
        if len(posting) > len(scores) >= 4 * k:
            for key in posting.keys() & scores.keys():
                weight = posting[key]
                scores[key] += gain * weight / (weight + norms[key])
            return
        so_far = scores.get
        for key, weight in posting.items():
            scores[key] = so_far(key, 0.0) + gain * weight / (weight + norms[key])

    def _all_norms(self) -> dict[KeyT, float]:
        """What holds back each text for its length; worked out again after a change."""
        if self._norms is None:
            base = self.k1 * (1.0 - self.b)
            slope = self.k1 * self.b * len(self._terms) / (self._total or 1.0)
            self._norms = {key: base + slope * length for key, length in self._lengths.items()}
        return self._norms
