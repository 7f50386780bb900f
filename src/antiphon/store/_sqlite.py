"""Runs in one SQLite file.

An entry is safe once `append` returns, whatever happens to the process; ``synced=True`` makes it
safe against a loss of power too, at the price of a disk flush an entry.  A process that is gone has
let go of its runs: its pid and its birth stand beside them.
"""

import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.errors import DataError, RunError
from antiphon.store._sql import (
    Database,
    Row,
    SqlStore,
    is_gone,
    is_of_this_machine,
    migrate,
    this_process,
)
from antiphon.store._store import Store

_FOREIGN_LEASE_SECONDS = 300.0
"""After how long without an entry a run on another machine counts as let go."""


class SqliteStore(SqlStore):
    """Runs in a file."""

    def __init__(self, path: Path | str, *, synced: bool = False) -> None:
        """Open or make a store.

        Args:
            path: The file; ``:memory:`` for one that is gone with the process.
            synced: Whether each entry is flushed to the disk.

        Raises:
            DataError: The file cannot be opened, is no store, or is of a later version.
        """
        self._file = SqliteDatabase(str(path), synced=synced)
        super().__init__(self._file)

    def close(self) -> None:
        """Write what waits and let go of the file. May be called twice."""
        super().close()
        self._file.close()


class SqliteDatabase:
    """The file."""

    for_update = ""  # a transaction begins with the only lock that there is
    errors: tuple[type[Exception], ...] = (sqlite3.Error,)

    def __init__(self, path: str, *, synced: bool) -> None:
        self.name = path
        self.waits = synced
        try:
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=30.0
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
            with self.transaction():
                [(version,)] = self.execute("PRAGMA user_version")
                self.execute(f"PRAGMA user_version={migrate(self, version)}")
        except sqlite3.Error as error:
            raise DataError(f"no store of runs: {error}", path=path) from error

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of one statement.

        Raises:
            RunError: The file is busy for longer than anyone waits.
        """
        try:
            return self._db.execute(statement, tuple(values)).fetchall()
        except sqlite3.OperationalError as error:
            if "locked" not in str(error):
                raise
            raise RunError(f"the store {self.name} is locked by another program") from error

    @contextmanager
    def transaction(self) -> Generator[None]:
        """All of it or nothing, and nobody else at the same time."""
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self.execute("COMMIT")

    def is_held(self, run_id: str, owner: str, updated: float) -> bool:
        """Whether the process lives; of another machine's, whether it wrote something lately."""
        if owner == this_process():
            return False  # the store that ran it here is gone
        if not is_of_this_machine(owner):
            return time.time() - updated < _FOREIGN_LEASE_SECONDS
        return not is_gone(owner)

    def hold(self, run_id: str) -> bool:
        """What stands beside the run is enough."""
        return True

    def let_go(self, run_id: str) -> None:
        """What stands beside the run is enough."""

    def close(self) -> None:
        """Close the file."""
        self._db.close()


if TYPE_CHECKING:
    _store: Store = SqliteStore("")
    _database: Database = SqliteDatabase("", synced=False)
