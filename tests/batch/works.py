"""Functions of a row that can be sent to other processes."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from antiphon.batch import RowFunction
from antiphon.errors import DataError, UsageError
from antiphon.messages import JsonObject


def doubled(row: JsonObject) -> JsonObject:
    """A row with its number doubled."""
    return {"n": int(str(row["n"])) * 2}


def picky(row: JsonObject) -> JsonObject:
    """Refuses every tenth row."""
    if int(str(row["n"])) % 10 == 9:
        raise DataError(f"nine is no good: {row['n']}")
    return row


def broken(row: JsonObject) -> JsonObject:
    """Has a fault."""
    return {"n": 1 // (int(str(row["n"])) - 3)}


async def slow(row: JsonObject) -> JsonObject:
    """Waits a little."""
    await asyncio.sleep(0.01)
    return doubled(row)


def deadly(row: JsonObject) -> JsonObject:
    """Kills its process at row 5."""
    if row["n"] == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return doubled(row)


@dataclass(frozen=True)
class DiesOnce:
    """Kills its process at row 5, the first time."""

    mark: Path

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[RowFunction]:
        """Opens nothing."""
        yield self._one

    def _one(self, row: JsonObject) -> JsonObject:
        if row["n"] == 5 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return doubled(row)


@dataclass(frozen=True)
class Counted:
    """Writes a line for each time that it is opened."""

    mark: Path

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[RowFunction]:
        """Adds a line."""
        with self.mark.open("a") as file:
            file.write("opened\n")
        yield slow


@dataclass(frozen=True)
class NeverReady:
    """Cannot be opened."""

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[RowFunction]:
        """Refuses."""
        raise UsageError("there is no such model")
        yield doubled


@dataclass(frozen=True)
class Waits:
    """Waits without letting go, and says which process it was."""

    seconds: float

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[RowFunction]:
        """Opens nothing."""
        yield self._one

    def _one(self, row: JsonObject) -> JsonObject:
        time.sleep(self.seconds)
        return row | {"process": os.getpid()}
