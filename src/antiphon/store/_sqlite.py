"""Runs in one SQLite file: each entry is in the file before what it tells is shown.

An entry is safe once `append` returns, whatever happens to the process; ``synced=True`` makes it
safe against a loss of power too, at the price of a disk flush an entry.  Only one process at a time
runs a run: who does is written beside it, and a process that is gone has let go of it.
"""

import json
import os
import socket
import sqlite3
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from antiphon.errors import DataError, RunError, UnknownNameError, UsageError
from antiphon.events import Trajectory, dump_row
from antiphon.messages import JsonObject
from antiphon.store._rebuild import rebuild
from antiphon.store._store import RunInfo, Store

VERSION = 1
"""The version of the file's tables."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS runs (
    id TEXT PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, question TEXT NOT NULL,
    created REAL NOT NULL, updated REAL NOT NULL, status TEXT NOT NULL, owner TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS entries (
    run_id TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, row TEXT NOT NULL,
    PRIMARY KEY (run_id, n)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_by_session ON runs (session, created);
"""

Head: TypeAlias = tuple[str, str, str]

_FOREIGN_LEASE_SECONDS = 300.0
"""After how long without an entry a run on another machine counts as let go."""


class SqliteJournal:
    """Where one run writes its entries."""

    def __init__(self, store: "SqliteStore", run_id: str, n: int, head: Head | None = None) -> None:
        self._store = store
        self._n = n
        self._head = head
        self.run_id = run_id

    def append(self, kind: str, row: JsonObject) -> None:
        """Keep one entry; it is durable when this returns."""
        self._store.write(self.run_id, self._n, kind, row, self._head)
        self._n += 1
        self._head = None


class SqliteStore:
    """Runs, their entries, and who runs them."""

    def __init__(self, path: Path | str, *, synced: bool = False) -> None:
        """Open or make a store.

        Args:
            path: The file; ``:memory:`` for one that is gone with the process.
            synced: Whether each entry is flushed to the disk.

        Raises:
            DataError: The file cannot be opened, is no store, or is of a later version.
        """
        self.path = str(path)
        self._lock = threading.Lock()
        self._active: set[str] = set()
        try:
            self._db = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=30.0
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
            self._migrate()
        except sqlite3.Error as error:
            raise DataError(f"no store of runs: {error}", path=self.path) from error

    def _migrate(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > VERSION:
            raise DataError(
                f"this store is of version {version} and this antiphon knows {VERSION}; upgrade it",
                path=self.path,
            )
        self._db.executescript(_SCHEMA)
        self._db.execute(f"PRAGMA user_version={VERSION}")

    def begin(
        self, run_id: str, *, session: str = "", agent: str = "", question: str = ""
    ) -> SqliteJournal:
        """A run, run by this process; its first entry makes it.

        Args:
            run_id: Its id.
            session: The conversation that it belongs to.
            agent: The agent that begins.
            question: What is asked.

        Raises:
            UsageError: There is a run of that id.
        """
        with self._lock:
            found = self._db.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,)).fetchone()
        if found is not None or run_id in self._active:
            raise UsageError(f"there is a run {run_id!r} in the store already")
        self._active.add(run_id)
        return SqliteJournal(self, run_id, 0, (session, agent, _clean(question)))

    def claim(self, run_id: str) -> SqliteJournal:
        """Take over a run that no process is running.

        Raises:
            UnknownNameError: There is no such run.
            RunError: A process is running it.
        """
        with self._transaction():
            found = self._db.execute(
                "SELECT owner, updated FROM runs WHERE id = ?", (run_id,)
            ).fetchone()
            if found is None:
                raise UnknownNameError(f"no run {run_id!r} in {self.path}; see: antiphon runs list")
            if self._is_live(run_id, *found):
                raise RunError(f"run {run_id!r} is being run by {found[0]!r}; wait for its end")
            self._db.execute(
                "UPDATE runs SET owner = ?, updated = ?, status = 'running' WHERE id = ?",
                (_me(), time.time(), run_id),
            )
            n = self._db.execute(
                "SELECT COALESCE(MAX(n) + 1, 0) FROM entries WHERE run_id = ?", (run_id,)
            ).fetchone()[0]
        self._active.add(run_id)
        return SqliteJournal(self, run_id, n)

    @contextmanager
    def _transaction(self) -> Generator[None]:
        """All of it or nothing, and nobody else at the same time."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def _is_live(self, run_id: str, owner: str, updated: float) -> bool:
        if not owner:
            return False
        if owner == _me():
            return run_id in self._active
        host, pid, born = owner.rsplit("/", 2)
        if host != socket.gethostname():
            return time.time() - updated < _FOREIGN_LEASE_SECONDS
        return _born(int(pid)) == born

    def write(
        self, run_id: str, n: int, kind: str, row: Mapping[str, Any], head: Head | None = None
    ) -> None:
        """Keep one entry; a journal's `append` calls this.

        Args:
            run_id: The run.
            n: The entry's number in it.
            kind: What it tells.
            row: The entry.
            head: With the first entry: session, agent and question of the run, which it makes.
        """
        ends = kind == "event" and row.get("type") == "run_end"
        text, now = dump_row(dict(row)), time.time()
        with self._transaction():
            if head is not None:
                values = (run_id, *head, now, now, _me())
                self._db.execute("INSERT INTO runs VALUES (?,?,?,?,?,?,'running',?)", values)
            self._db.execute("INSERT INTO entries VALUES (?,?,?,?)", (run_id, n, kind, text))
            if ends or kind == "step":
                status, owner = (row["stop_reason"], "") if ends else ("running", _me())
                self._db.execute(
                    "UPDATE runs SET updated = ?, status = ?, owner = ? WHERE id = ?",
                    (now, status, owner, run_id),
                )
        if ends:
            self._active.discard(run_id)

    def load(self, run_id: str) -> Trajectory:
        """The record of a run so far.

        Raises:
            UnknownNameError: There is no such run.
            DataError: Its entries are damaged.
        """
        with self._lock:
            rows = self._db.execute(
                "SELECT kind, row FROM entries WHERE run_id = ? ORDER BY n", (run_id,)
            ).fetchall()
        if not rows:
            raise UnknownNameError(f"no run {run_id!r} in {self.path}; see: antiphon runs list")
        try:
            return rebuild((kind, json.loads(row)) for kind, row in rows)
        except (DataError, KeyError, ValueError) as error:
            raise DataError(f"run {run_id!r} is damaged: {error}", path=self.path) from error

    def runs(self, *, session: str | None = None, limit: int = 100) -> list[RunInfo]:
        """The newest runs, newest first.

        Args:
            session: Only those of this conversation.
            limit: How many.
        """
        where, values = ("WHERE session = ?", [session]) if session is not None else ("", [])
        with self._lock:
            rows = self._db.execute(
                "SELECT id, session, agent, question, created, updated, status, owner FROM runs "
                f"{where} ORDER BY created DESC, rowid DESC LIMIT ?",
                (*values, limit),
            ).fetchall()
        return [RunInfo(*row[:7], is_live=self._is_live(row[0], row[7], row[5])) for row in rows]

    def close(self) -> None:
        """Let go of the file. May be called twice."""
        self._db.close()


def open_store(url: str | Path) -> SqliteStore:
    """Open a store by its path or URL.

    Args:
        url: A path, or ``sqlite:///path``.

    Raises:
        UsageError: No such kind of store is known.
        DataError: It cannot be opened.
    """
    text = str(url)
    if text.startswith("sqlite:///"):
        text = text.removeprefix("sqlite:///")
    elif "://" in text:
        raise UsageError(f"no store for {text.split('://')[0]!r}; known: a path, sqlite:///path")
    return SqliteStore(text)


def _me() -> str:
    """This process, in a way that no later one can be taken for it."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_born(pid)}"


def _born(pid: int) -> str:
    """When a process began, in the kernel's own words; empty where there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return stat.rpartition(")")[2].split()[19]
    except OSError:
        if os.path.isdir("/proc/self"):
            return ""
    try:  # no /proc: that it lives is all that can be known
        os.kill(pid, 0)
    except OSError:
        return ""
    return "alive"


def _clean(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


if TYPE_CHECKING:
    _store: Store = SqliteStore("")
