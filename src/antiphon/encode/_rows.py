"""Encoded rows as trainers read them, out of parts that are read when they are asked for.

A part is whatever has rows by number: a shard, a directory of shards, a list.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Protocol, overload

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True, eq=False)
class EncodedRow:
    """One row as trainers read it; shape ``(T,)`` each."""

    input_ids: Array
    """The tokens."""
    labels: Array
    """The token, or -100 where it is not trained."""
    loss_weights: Array
    """How much each token counts."""
    position_ids: Array
    """Place of each token in its example."""
    line: int
    """The line of the source."""

    def __len__(self) -> int:
        return len(self.input_ids)


class Part(Protocol):
    """Some rows by their number, from 0."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> EncodedRow: ...


class JoinedRows(Sequence[EncodedRow]):
    """Rows of several parts behind each other; nothing is read before it is asked for.

    Args:
        parts: For example what `antiphon encode` wrote of the same rows in two formats.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
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
        for part in self._parts:
            yield from (part[i] for i in range(len(part)))
