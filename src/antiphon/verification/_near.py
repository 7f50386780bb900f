"""Near duplicates: MinHash with one permutation to find candidates, exact sets to decide.

Each shingle is hashed once; the hash says which of the bins it falls into and its rank there, and
an empty bin takes the rank of the next one that is not (Shrivastava and Li, "Densifying One
Permutation Hashing", ICML 2014).  Bins are cut into bands; texts that agree in a whole band are
candidates, and what they share is then counted exactly, so that nothing is dropped by chance.
"""

import re
from collections.abc import Iterable, Iterator
from hashlib import blake2b

from antiphon.errors import UsageError

_N_BINS = 128
_BAND = 4
"""Bins in a band: texts that share 70 % meet in one of 32 bands with a chance of 99.99 %."""
_SPACES = re.compile(r"\s+")
_WIDTH = 5
"""Characters of a shingle."""


def shingles(text: str) -> frozenset[str]:
    """All runs of five characters of a text, in lower case and with single spaces."""
    plain = _SPACES.sub(" ", text.lower()).strip()
    return frozenset(plain[i : i + _WIDTH] for i in range(max(1, len(plain) - _WIDTH + 1)))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """What two sets share of all that they hold (Jaccard).

    >>> likeness(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    both = len(one & other)
    return both / (len(one) + len(other) - both) if one or other else 1.0


class NearDuplicates:
    """Texts so far, and whether a further one is nearly one of them.

    Args:
        threshold: The likeness from which on two texts are duplicates, between 0.5 and 1.

    Raises:
        UsageError: The threshold is out of range: bands cannot find what shares less than half.
    """

    def __init__(self, threshold: float = 0.85) -> None:
        if not 0.5 <= threshold <= 1:
            raise UsageError(f"the likeness of near duplicates is 0.5 to 1, got {threshold}")
        self.threshold = threshold
        self._sets: list[tuple[str, frozenset[str]]] = []
        self._bands: dict[tuple[int, ...], list[int]] = {}

    def add(self, id: str, text: str) -> tuple[str, float] | None:
        """Take a text, unless it is nearly one that was taken.

        Args:
            id: Its name.
            text: The text.

        Returns:
            The id of the most alike that was taken, and how alike it is; ``None`` if there is none.
        """
        own = shingles(text)
        bands = list(_bands(own))
        candidates = {index for band in bands for index in self._bands.get(band, ())}
        alike = [(likeness(own, self._sets[index][1]), index) for index in candidates]
        best, index = max(alike, default=(0.0, -1))
        if best >= self.threshold:
            return self._sets[index][0], best
        for band in bands:
            self._bands.setdefault(band, []).append(len(self._sets))
        self._sets.append((id, own))
        return None


def _bands(items: Iterable[str]) -> Iterator[tuple[int, ...]]:
    bins = _signature(items)
    for start in range(0, _N_BINS, _BAND):
        yield (start, *bins[start : start + _BAND])


def _signature(items: Iterable[str]) -> list[int]:
    """The least rank in each bin."""
    least: list[int | None] = [None] * _N_BINS
    for item in items:
        digest = blake2b(item.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        value = int.from_bytes(digest, "big")
        rank, place = divmod(value, _N_BINS)
        known = least[place]
        if known is None or rank < known:
            least[place] = rank
    return _dense(least)


def _dense(least: list[int | None]) -> list[int]:
    """Empty bins filled from the next that is not, each with how far that was."""
    dense = [0] * _N_BINS
    rank, distance = 0, 0
    for place in range(2 * _N_BINS - 1, -1, -1):  # twice around, so that the end knows the start
        own = least[place % _N_BINS]
        rank, distance = (rank, distance + 1) if own is None else (own, 0)
        dense[place % _N_BINS] = rank + (distance << 64)
    return dense
