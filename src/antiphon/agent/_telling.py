"""How a run tells what happens: recorded, kept in the journal, then shown, in this order.

A journal may wait for a network.  What it is given meanwhile is in the record already, and may be
shown once it is durable (`Record.n_shown`).

A run that goes on from a record does its last, unfinished step once more from what is known.  The
events that the record already has are recognised and not told again, so that a resumed run has the
events of one that was never broken off.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from time import perf_counter
from typing import TypeAlias

from antiphon.agent._record import Record
from antiphon.agent._start import Start
from antiphon.events import Event, ResultEvent, event_to_row

Shown: TypeAlias = Callable[[], Awaitable[None]]
"""Awaited after each event, until whoever looks wants the next one."""


class Telling:
    """The events of one run, as they happen."""

    def __init__(
        self,
        start: Start,
        record: Record,
        shown: Shown,
        told: Iterable[Event] = (),
        clock: Callable[[], float] = perf_counter,
    ) -> None:
        """Set up.

        Args:
            start: Has the journal, in which events are kept before they are shown.
            record: Where events are recorded; holds those of a run that goes on.
            shown: Awaited after each event.
            told: Events of the unfinished step, which will come once more.
            clock: What times are read from, in seconds, once the run has begun.
        """
        self._start = start
        self._record = record
        self._events = record.events
        self._shown = shown
        self._told = list(told)
        self._clock = clock
        self._begun: float | None = None

    def begin(self) -> None:
        """Time passes from now on, after that of a run that goes on."""
        self._begun = self._clock() - (self._events[-1].time if self._events else 0.0)

    def now(self) -> float:
        """Seconds since the run began, the time before it was broken off included."""
        return 0.0 if self._begun is None else round(self._clock() - self._begun, 6)

    def note(self, event: Event) -> bool:
        """Record an event without waiting for whoever looks; whether it was new."""
        for n, told in enumerate(self._told):  # of one step; mostly the first is the one
            if _same(told, event):
                del self._told[n]
                return False
        if self._start.journal is not None:
            self._start.keep("event", event_to_row(event))
        self._events.append(event)
        return True

    async def emit(self, event: Event) -> None:
        """Record an event and wait until whoever looks wants the next one."""
        if self.note(event):
            await self.shown()

    async def kept(self) -> None:
        """Wait until what has happened is durable."""
        if self._start.patient is not None:
            await self._start.patient.kept()

    async def shown(self) -> None:
        """Show what has happened, once it is durable, and wait until whoever looks wants more."""
        n = len(self._events)
        await self.kept()
        if n > self._record.n_shown:
            self._record.n_shown = n
        await self._shown()


def _same(a: Event, b: Event) -> bool:
    if isinstance(a, ResultEvent) and isinstance(b, ResultEvent):
        return a.result.call_id == b.result.call_id
    return type(a) is type(b) and replace(a, time=b.time) == b
