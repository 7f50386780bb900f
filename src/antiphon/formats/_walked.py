"""What was written of a conversation, so that a longer one takes it over; see `Writer.walk`."""

import operator
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from antiphon.formats._types import Run, Stretch
from antiphon.messages import Message, ToolSpec


@dataclass(frozen=True, slots=True)
class Walked:
    """What was written of a conversation, to be taken over by a longer one."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    first: int
    shown_from: int
    pieces: list[Stretch]
    changed: list[int]
    marks: list[tuple[int, int, Any]]
    """Behind each message that is not usual: how many messages were written, how many pieces, and
    the state.  What stands between is whole messages, which leave the state as it is."""

    def shared(
        self, messages: Sequence[Message], tools: tuple[ToolSpec, ...], first: int, shown_from: int
    ) -> int:
        """How many messages from `first` on are written as they were."""
        if first != self.first or len(tools) != len(self.tools):
            return 0
        if not all(map(operator.is_, tools, self.tools)):
            return 0
        same = map(operator.is_, messages, self.messages)
        n = next((i for i, is_same in enumerate(same) if not is_same), None)
        n = (min(len(messages), len(self.messages)) if n is None else n) - 1
        if shown_from != self.shown_from:
            n = min(n, shown_from, self.shown_from)
        return max(0, n - first)


def first_messages(stretches: Iterable[Stretch], n: int) -> Iterator[Stretch]:
    """The first ones of stretches that are whole messages."""
    for stretch in stretches:
        run = stretch[3]
        size = len(run.texts) if isinstance(run, Run) else 1
        if n < size:
            if isinstance(run, Run) and n:
                yield Run(run.first, run.texts[:n], run.frames[:n]).stretch()
            return
        yield stretch
        n -= size


NOTHING = Walked((), (), 0, 0, [], [], [])


@lru_cache(maxsize=64)
def last_walk(format: Hashable, anchor: int) -> list[Walked]:
    """The last walk of a format from a first message, told by its identity; empty before it."""
    return []
