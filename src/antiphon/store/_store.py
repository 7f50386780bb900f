"""What a store of runs does."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from antiphon.events import Trajectory
from antiphon.messages import JsonObject


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A line about a run in a store."""

    id: str
    """Its id."""
    session: str
    """The conversation that it belongs to; empty where it stands alone."""
    agent: str
    """The agent that began."""
    question: str
    """What was asked."""
    created: float
    """When it began, in seconds since 1970."""
    updated: float
    """When the last entry was written, in seconds since 1970."""
    status: str
    """``running``, or the stop reason."""
    is_live: bool
    """Whether a process runs it now; a run that is ``running`` and not live was broken off."""


class Journal(Protocol):
    """Where one run writes its entries."""

    def append(self, kind: str, row: JsonObject) -> None:
        """Keep one entry; it is durable when this returns."""
        ...


@runtime_checkable
class PatientJournal(Journal, Protocol):
    """A journal that need not hold up an event loop while a disk or a network is waited for."""

    def put(self, kind: str, row: JsonObject) -> None:
        """Take one entry, in order; it is durable once `kept` has returned."""
        ...

    async def kept(self) -> None:
        """Wait until all entries are durable."""
        ...


class Store(Protocol):
    """Runs, their entries, and who runs them."""

    def begin(
        self, run_id: str, *, session: str = "", agent: str = "", question: str = ""
    ) -> Journal:
        """Make a run, run by this process."""
        ...

    def claim(self, run_id: str) -> Journal:
        """Take over a run that no process is running.

        Raises:
            UnknownNameError: There is no such run.
            RunError: A process is running it.
        """
        ...

    def load(self, run_id: str) -> Trajectory:
        """The record of a run so far."""
        ...

    def runs(self, *, session: str | None = None, limit: int = 100) -> list[RunInfo]:
        """The newest runs, newest first."""
        ...
