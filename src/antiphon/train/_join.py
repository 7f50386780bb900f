"""Encoded rows of several directories as one sequence, so that a model learns them together."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import overload

from antiphon.encode import EncodedRow


class JoinedRows(Sequence[EncodedRow]):
    """Rows behind each other; nothing is read before it is asked for.

    Args:
        parts: For example what `antiphon encode` wrote of the same rows in two formats.
    """

    def __init__(self, parts: Sequence[Sequence[EncodedRow]]) -> None:
        self._parts = parts
        self._ends = [*accumulate(map(len, parts))]

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: int) -> EncodedRow: ...
    @overload
    def __getitem__(self, index: slice) -> list[EncodedRow]: ...
    def __getitem__(self, index: int | slice) -> EncodedRow | list[EncodedRow]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        place = index + len(self) if index < 0 else index
        if not 0 <= place < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        which = bisect_right(self._ends, place)
        return self._parts[which][place - (self._ends[which - 1] if which else 0)]

    def __iter__(self) -> Iterator[EncodedRow]:
        return chain.from_iterable(self._parts)
