"""Which texts have which terms, and how much of them: what every index over words keeps."""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from antiphon.retrieval._text import terms

KeyT = TypeVar("KeyT", bound=Hashable)


class Postings(Generic[KeyT]):
    """Texts by their terms; added, replaced and removed in place.

    Args:
        title_weight: How many times a term in the title counts.
    """

    def __init__(self, title_weight: float) -> None:
        self.title_weight = title_weight
        self._terms: dict[KeyT, dict[str, float]] = {}
        self._lengths: dict[KeyT, float] = {}
        self._total = 0.0
        self._postings: defaultdict[str, dict[KeyT, float]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._terms)

    def __contains__(self, key: KeyT) -> bool:
        return key in self._terms

    def add(self, key: KeyT, text: str, *, title: str = "") -> None:
        """Add a text, or replace the one that has this key.

        Args:
            key: What hits are told by.
            text: The text.
            title: Words that count for more.
        """
        if key in self._terms:
            self.remove(key)
        weights: dict[str, float] = dict(Counter(terms(text)))
        for term in terms(title):
            weights[term] = weights.get(term, 0.0) + self.title_weight
        length = sum(weights.values())
        self._terms[key] = weights
        self._lengths[key] = length
        self._total += length
        postings = self._postings
        for term, weight in weights.items():
            postings[term][key] = weight
        self._changed(key)

    def add_all(self, rows: Iterable[tuple[KeyT, str, str]]) -> None:
        """Add many texts.

        Args:
            rows: Key, text and title of each.
        """
        for key, text, title in rows:
            self.add(key, text, title=title)

    def remove(self, key: KeyT) -> None:
        """Remove a text.

        Raises:
            KeyError: There is none of that key.
        """
        for term in self._terms.pop(key):
            posting = self._postings[term]
            del posting[key]
            if not posting:
                del self._postings[term]
        self._total -= self._lengths.pop(key)
        self._changed(key)

    def _changed(self, key: KeyT) -> None:
        """A text came or went: forget what was worked out from it."""
        raise NotImplementedError

    def _found(self, query: str) -> list[tuple[dict[KeyT, float], int]]:
        """The postings of a query's terms, the rarest first, and how often it says each."""
        found = [
            (posting, repeated)
            for term, repeated in Counter(terms(query)).items()
            if (posting := self._postings.get(term)) is not None
        ]
        found.sort(key=lambda item: len(item[0]))
        return found
