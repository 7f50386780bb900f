"""Three views of the same words as one ranking: BM25, TF-IDF cosine, and pieces of words.

BM25 trusts rare words and forgets repetition, the cosine of TF-IDF weighs a text as a whole, and
pieces of four characters find what is spelled or put together otherwise (``airqualityforecast`` for
"air quality").  Each view's scores are brought to its best one and added.  The first two are read
from the same postings in one pass; the third looks only at the texts that they found.

Words in a title count more.  Texts are added, replaced and removed in place.
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from functools import lru_cache
from typing import TypeVar

from antiphon.retrieval._lexical import Hit
from antiphon.retrieval._postings import Postings

KeyT = TypeVar("KeyT", bound=Hashable)

_POOL = 50
"""How many of the texts that words find are looked at for pieces of words."""

_K1 = 1.2
_B = 0.6
_TITLE_WEIGHT = 2.5
_PIECE = 4
_WORD = re.compile(r"[^\W_]+")


@lru_cache(100_000)
def _pieces(word: str) -> tuple[str, ...]:
    marked = f" {word} "
    return tuple(marked[at : at + _PIECE] for at in range(max(1, len(marked) - _PIECE + 1)))


def _pieces_in(text: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text.lower()):
        counts.update(_pieces(word))
    return counts


class BlendedIndex(Postings[KeyT]):
    """An index over short texts, such as the descriptions of tools.

    >>> index = BlendedIndex[str]()
    >>> index.add("a", "Forecast for a ZIP code", title="airqualityforecast")
    >>> index.add("b", "Current weather in a city", title="weather")
    >>> [hit.key for hit in index.search("How is the air in this ZIP code?", 1)]
    ['a']
    """

    def __init__(self) -> None:
        super().__init__(_TITLE_WEIGHT)
        self._texts: dict[KeyT, tuple[str, str]] = {}
        self._norms: dict[KeyT, tuple[float, float]] | None = None
        self._pieces: dict[KeyT, dict[str, float]] = {}

    def add(self, key: KeyT, text: str, *, title: str = "") -> None:
        """Add a text, or replace the one that has this key; see `Postings.add`."""
        super().add(key, text, title=title)
        self._texts[key] = (text, title)

    def _changed(self, key: KeyT) -> None:
        self._texts.pop(key, None)
        self._pieces.pop(key, None)
        self._norms = None

    def search(self, query: str, k: int = 10) -> list[Hit[KeyT]]:
        """The texts that fit a query best, best first.

        Args:
            query: Any text.
            k: How many at most; texts that share no word with the query are never among them.
        """
        if not self._texts or k < 1:
            return []
        words = self._by_words(query, max(_POOL, 4 * k))
        by_pieces = self._by_pieces(query, words)
        best = max(by_pieces.values(), default=0.0) or 1.0
        total = {key: score + by_pieces[key] / best for key, score in words.items()}
        found = heapq.nlargest(k, total.items(), key=lambda item: item[1])
        return [Hit(key, score) for key, score in found]

    def _by_words(self, query: str, pool: int) -> dict[KeyT, float]:
        """The best by BM25 and cosine together, each brought to its best."""
        norms = self._all_norms()
        n = len(self._texts)
        bm25: dict[KeyT, float] = {}
        cosine: dict[KeyT, float] = {}
        for posting, repeated in self._found(query):
            n_with = len(posting)
            rare = math.log(1.0 + (n - n_with + 0.5) / (n_with + 0.5))
            gain = rare * (_K1 + 1.0) * min(repeated, 3)
            idf = math.log((n + 1) / (n_with + 1)) + 1.0
            share = (1.0 + math.log(repeated)) * idf * idf
            keys: Iterable[KeyT] = posting
            if len(posting) > len(bm25) >= pool:
                keys = posting.keys() & bm25.keys()
            for key in keys:
                weight = posting[key]
                held_back, length = norms[key]
                bm25[key] = bm25.get(key, 0.0) + gain * weight / (weight + held_back)
                cosine[key] = cosine.get(key, 0.0) + share * weight / length
        top = max(bm25.values(), default=0.0) or 1.0
        near = max(cosine.values(), default=0.0) or 1.0
        both = {key: score / top + cosine[key] / near for key, score in bm25.items()}
        return dict(heapq.nlargest(pool, both.items(), key=lambda item: item[1]))

    def _all_norms(self) -> dict[KeyT, tuple[float, float]]:
        """What holds back each text for BM25, and its length as a vector; anew after a change."""
        if self._norms is None:
            n = len(self._texts)
            base = _K1 * (1.0 - _B)
            slope = _K1 * _B * n / (self._total or 1.0)
            idf = {t: math.log((n + 1) / (len(p) + 1)) + 1.0 for t, p in self._postings.items()}
            self._norms = {
                key: (
                    base + slope * self._lengths[key],
                    math.sqrt(sum((w * idf[t]) ** 2 for t, w in weights.items())) or 1.0,
                )
                for key, weights in self._terms.items()
            }
        return self._norms

    def _by_pieces(self, query: str, keys: Collection[KeyT]) -> dict[KeyT, float]:
        """How many pieces of words each text shares with a query, the rare among them weighing
        more: rare among the texts that words found, so that nothing is counted beforehand."""
        asked = _pieces_in(query)
        owns = {key: self._pieces_of(key) for key in keys}
        n_with: Counter[str] = Counter()
        for own in owns.values():
            n_with.update(asked.keys() & own.keys())
        idf = {piece: math.log((len(keys) + 1) / (n + 1)) + 1.0 for piece, n in n_with.items()}
        gains = {piece: (1.0 + math.log(asked[piece])) * rare for piece, rare in idf.items()}
        return {
            key: sum([gains[piece] * own[piece] for piece in gains.keys() & own.keys()]) / own[""]
            for key, own in owns.items()
        }

    def _pieces_of(self, key: KeyT) -> dict[str, float]:
        """A text's pieces with their weights, and its length as a vector under ``""``."""
        own = self._pieces.get(key)
        if own is None:
            text, title = self._texts[key]
            own = {piece: 1.0 + math.log(count) for piece, count in _pieces_in(text).items()}
            for piece, count in _pieces_in(title).items():
                own[piece] = own.get(piece, 0.0) + 2.0 * count
            own[""] = math.sqrt(sum([weight * weight for weight in own.values()])) or 1.0
            self._pieces[key] = own
        return own
