"""Runs in SQL tables, whichever database holds them: one schema, one set of statements.

Each entry is in the database before what it tells is shown.  Only one process at a time runs a run;
how it is known that a process still does is the database's business (`Database.is_held`).
"""

import asyncio
import hashlib
import json
import os
import socket
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias
from weakref import WeakKeyDictionary

from antiphon.errors import DataError, RunError, UnknownNameError, UsageError
from antiphon.events import Trajectory, dump_row
from antiphon.messages import JsonObject
from antiphon.store._rebuild import Entry, rebuild
from antiphon.store._store import RunInfo

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        "CREATE TABLE IF NOT EXISTS runs ("
        "id TEXT PRIMARY KEY, session TEXT NOT NULL, agent TEXT NOT NULL, question TEXT NOT NULL, "
        "created DOUBLE PRECISION NOT NULL, updated DOUBLE PRECISION NOT NULL, "
        "status TEXT NOT NULL, owner TEXT NOT NULL)",
        "CREATE TABLE IF NOT EXISTS entries ("
        "run_id TEXT NOT NULL, n INTEGER NOT NULL, kind TEXT NOT NULL, row TEXT NOT NULL, "
        "PRIMARY KEY (run_id, n))",
        "CREATE INDEX IF NOT EXISTS runs_by_session ON runs (session, created)",
    ),
)
"""The statements that take a store from each version to the next; never changed once released."""

VERSION: Final = len(MIGRATIONS)
"""The version of the tables that this antiphon writes."""

Row: TypeAlias = tuple[Any, ...]
Head: TypeAlias = tuple[str, str, str]

_MAX_TOGETHER = 1000  # entries in one statement, of four values each


class Database(Protocol):
    """A connection to one database; statements have ``?`` where a value goes."""

    name: str
    """What errors call it: a path or a URL without its password."""
    waits: bool
    """Whether a write waits for a network or a disk, and so is not made in an event loop."""
    for_update: str
    """What makes a ``SELECT`` keep others from changing what it found."""

    errors: tuple[type[Exception], ...]
    """What its statements raise."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of one statement."""
        ...

    def transaction(self) -> AbstractContextManager[None]:
        """All of it or nothing."""
        ...

    def is_held(self, run_id: str, owner: str, updated: float) -> bool:
        """Whether the process that a run names as its owner lives and runs it."""
        ...

    def hold(self, run_id: str) -> bool:
        """Make known that this process runs a run; whether nobody else does."""
        ...

    def let_go(self, run_id: str) -> None:
        """Make known that it no longer does."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """An entry on its way into the tables."""

    journal: "SqlJournal"
    """Whose it is."""
    row: tuple[str, int, str, str]
    """The run's id, the entry's number in it, its kind, and the entry as JSON."""
    head: Head | None
    """With a run's first entry: session, agent and question of the run, which it makes."""
    status: str
    """What the run's row says from now on; empty where it says what it said before."""


class SqlJournal:
    """Where one run writes its entries."""

    def __init__(self, store: "SqlStore", run_id: str, n: int, head: Head | None = None) -> None:
        self._store = store
        self._n = n
        self._head = head
        self._last = 0
        self.run_id = run_id
        self.lost: Exception | None = None
        """Why nothing more can be written, once that is so."""

    def append(self, kind: str, row: JsonObject) -> None:
        """Keep one entry; it is durable when this returns.

        Raises:
            RunError: Another process has taken the run over, or the store is gone.
        """
        self._store.put(self._written(kind, row))
        self._store.flush()
        self._check()

    def put(self, kind: str, row: JsonObject) -> None:
        """Take one entry, in order; it is durable once `kept` has returned.

        Raises:
            RunError: Nothing is waited for, and another process has taken the run over.
        """
        if self._store.waits:
            self._last = self._store.put(self._written(kind, row))
        else:
            self.append(kind, row)

    async def kept(self) -> None:
        """Wait until all entries are durable.

        Raises:
            RunError: Another process has taken the run over, or the store is gone.
        """
        while not self._store.has_written(self._last):
            await self._store.written()
        self._check()

    def _written(self, kind: str, row: JsonObject) -> Written:
        ends = kind == "event" and row.get("type") == "run_end"
        status = str(row["stop_reason"]) if ends else "running" if kind == "step" else ""
        made = Written(self, (self.run_id, self._n, kind, dump_row(row)), self._head, status)
        self._n += 1
        self._head = None
        return made

    def _check(self) -> None:
        if self.lost is not None:
            raise self.lost


class _TakenOver(Exception):
    """Undoes a transaction: another process has written an entry of that number."""


class SqlStore:
    """Runs, their entries, and who runs them."""

    def __init__(self, database: Database) -> None:
        """Use a database whose tables are there; see `migrate`."""
        self._database = database
        self._lock = threading.RLock()
        self._active: set[str] = set()
        self._putting = threading.Lock()  # never held while anything is waited for
        self._waiting: list[Written] = []
        self._n_put = self._n_written = 0
        self._writer: ThreadPoolExecutor | None = None
        self._writing: WeakKeyDictionary[Any, asyncio.Future[None]] = WeakKeyDictionary()

    @property
    def path(self) -> str:
        """Where the runs are: a path, or a URL without its password."""
        return self._database.name

    def begin(
        self, run_id: str, *, session: str = "", agent: str = "", question: str = ""
    ) -> SqlJournal:
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
            known = self._database.execute("SELECT 1 FROM runs WHERE id = ?", (run_id,))
            if known or run_id in self._active or not self._database.hold(run_id):
                raise UsageError(f"there is a run {run_id!r} in the store already")
            self._active.add(run_id)
        return SqlJournal(self, run_id, 0, (_clean(session), _clean(agent), _clean(question)))

    def claim(self, run_id: str) -> SqlJournal:
        """Take over a run that no process is running.

        Raises:
            UnknownNameError: There is no such run.
            RunError: A process is running it.
        """
        with self._transaction():
            found = self._database.execute(
                f"SELECT owner, updated FROM runs WHERE id = ?{self._database.for_update}",
                (run_id,),
            )
            if not found:
                raise self._unknown(run_id)
            owner, updated = found[0]
            if self._is_live(run_id, owner, updated) or not self._database.hold(run_id):
                raise RunError(f"run {run_id!r} is being run by {owner!r}; wait for its end")
            self._database.execute(
                "UPDATE runs SET owner = ?, updated = ?, status = 'running' WHERE id = ?",
                (this_process(), time.time(), run_id),
            )
            [(n,)] = self._database.execute(
                "SELECT COALESCE(MAX(n) + 1, 0) FROM entries WHERE run_id = ?", (run_id,)
            )
            self._active.add(run_id)
        return SqlJournal(self, run_id, n)

    @contextmanager
    def _transaction(self) -> Generator[None]:
        with self._lock, self._database.transaction():
            yield

    def _is_live(self, run_id: str, owner: str, updated: float) -> bool:
        if not owner:
            return False
        if owner == this_process() and run_id in self._active:
            return True
        return self._database.is_held(run_id, owner, updated)

    def _unknown(self, run_id: str) -> UnknownNameError:
        return UnknownNameError(f"no run {run_id!r} in {self.path}; see: antiphon runs list")

    def write(
        self, run_id: str, n: int, kind: str, row: Mapping[str, Any], head: Head | None = None
    ) -> None:
        """Keep one entry, whoever's it is; it is durable when this returns.

        Args:
            run_id: The run.
            n: The entry's number in it.
            kind: What it tells.
            row: The entry.
            head: With the first entry: session, agent and question of the run, which it makes.

        Raises:
            RunError: There is an entry of that number: another process has taken the run over.
        """
        SqlJournal(self, run_id, n, head).append(kind, dict(row))

    @property
    def waits(self) -> bool:
        """Whether a write waits for a network or a disk, and so is not made in an event loop."""
        return self._database.waits

    def put(self, entry: Written) -> int:
        """Take an entry, after those that were taken before; its number for `has_written`."""
        with self._putting:
            self._waiting.append(entry)
            self._n_put += 1
            return self._n_put

    def has_written(self, number: int) -> bool:
        """Whether the entry of that number, and all before it, are durable or given up."""
        return self._n_written >= number

    async def written(self) -> None:
        """Write what waits, in a thread; runs that wait at the same time share one writing."""
        loop = asyncio.get_running_loop()
        writing = self._writing.get(loop)
        if writing is None or writing.done():
            if self._writer is None:
                self._writer = ThreadPoolExecutor(1, "antiphon-store")
            writing = self._writing[loop] = loop.run_in_executor(self._writer, self.flush)
        await asyncio.shield(writing)

    def flush(self) -> None:
        """Write what waits; a journal whose entry cannot be written is told so in `lost`."""
        with self._lock:
            while True:
                with self._putting:
                    taken = self._waiting[:_MAX_TOGETHER]
                    del self._waiting[:_MAX_TOGETHER]
                if not taken:
                    return
                try:
                    self._write([entry for entry in taken if entry.journal.lost is None])
                except (RunError, *self._database.errors) as error:
                    for entry in taken:
                        entry.journal.lost = entry.journal.lost or error
                finally:
                    self._n_written += len(taken)

    def _write(self, entries: Sequence[Written]) -> None:
        """Write entries at once; one by one where a run among them was taken over."""
        if not entries or self._insert(entries):
            return
        if len(entries) > 1:
            for entry in entries:
                if entry.journal.lost is None:
                    self._write([entry])
            return
        run_id = entries[0].journal.run_id
        self._active.discard(run_id)
        entries[0].journal.lost = RunError(
            f"run {run_id!r} was taken over by another process; it goes on there"
        )

    def _insert(self, entries: Sequence[Written]) -> bool:
        """Write all of them, or none where another process has written one of them."""
        said = {e.journal.run_id: e.status for e in entries if e.status}
        if len(entries) == 1 and not said and entries[0].head is None:
            return self._insert_rows(entries)
        now = time.time()
        try:
            with self._database.transaction():
                for entry in entries:
                    if entry.head is not None:
                        self._database.execute(
                            "INSERT INTO runs VALUES (?,?,?,?,?,?,'running',?)",
                            (entry.journal.run_id, *entry.head, now, now, this_process()),
                        )
                if not self._insert_rows(entries):
                    raise _TakenOver
                for run_id, status in said.items():
                    owner = this_process() if status == "running" else ""
                    self._database.execute(
                        "UPDATE runs SET updated = ?, status = ?, owner = ? WHERE id = ?",
                        (now, status, owner, run_id),
                    )
        except _TakenOver:
            return False
        for run_id, status in said.items():
            if status != "running":
                self._active.discard(run_id)
                self._database.let_go(run_id)
        return True

    def _insert_rows(self, entries: Sequence[Written]) -> bool:
        """Whether no other process has written one of them."""
        values = ",".join(["(?,?,?,?)"] * len(entries))
        kept = self._database.execute(
            f"INSERT INTO entries VALUES {values} ON CONFLICT DO NOTHING RETURNING n",
            [value for entry in entries for value in entry.row],
        )
        return len(kept) == len(entries)

    def close(self) -> None:
        """Write what waits; a database of its own is closed by whoever opened it."""
        self.flush()
        if self._writer is not None:
            self._writer.shutdown()
            self._writer = None

    def entries(self, run_id: str) -> list[Entry]:
        """A run's journal, in order.

        Raises:
            UnknownNameError: There is no such run.
            DataError: An entry is damaged.
        """
        self.flush()
        with self._lock:
            rows = self._database.execute(
                "SELECT kind, row FROM entries WHERE run_id = ? ORDER BY n", (run_id,)
            )
        if not rows:
            raise self._unknown(run_id)
        try:
            return [(kind, json.loads(row)) for kind, row in rows]
        except ValueError as error:
            raise DataError(f"run {run_id!r} is damaged: {error}", path=self.path) from error

    def load(self, run_id: str) -> Trajectory:
        """The record of a run so far.

        Raises:
            UnknownNameError: There is no such run.
            DataError: Its entries are damaged.
        """
        entries = self.entries(run_id)
        try:
            return rebuild(entries)
        except (DataError, KeyError, ValueError) as error:
            raise DataError(f"run {run_id!r} is damaged: {error}", path=self.path) from error

    def runs(self, *, session: str | None = None, limit: int = 100) -> list[RunInfo]:
        """The newest runs, newest first.

        Args:
            session: Only those of this conversation.
            limit: How many.
        """
        where, values = ("WHERE session = ?", [session]) if session is not None else ("", [])
        self.flush()
        with self._lock:
            rows = self._database.execute(
                "SELECT id, session, agent, question, created, updated, status, owner FROM runs "
                f"{where} ORDER BY created DESC, id DESC LIMIT ?",
                (*values, limit),
            )
            return [
                RunInfo(*row[:7], is_live=self._is_live(row[0], row[7], row[5])) for row in rows
            ]


def migrate(database: Database, version: int) -> int:
    """Bring a database's tables to `VERSION`, inside a transaction of the caller's.

    Args:
        database: The database.
        version: The version that it has; 0 for an empty one.

    Returns:
        The version that it has now.

    Raises:
        DataError: It is of a later version.
    """
    if version > VERSION:
        raise DataError(
            f"this store is of version {version} and this antiphon knows {VERSION}; upgrade it",
            path=database.name,
        )
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            database.execute(statement)
    return VERSION


def this_process() -> str:
    """This process, in a way that no later one can be taken for it."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_born(pid)}"


def is_of_this_machine(process: str) -> bool:
    """Whether a process, as `this_process` names it, runs or ran here."""
    return process.rsplit("/", 2)[0] == socket.gethostname()


def is_gone(process: str) -> bool:
    """Whether a process is known to have ended; of another machine's, nothing is known."""
    _, pid, birth = process.rsplit("/", 2)
    return is_of_this_machine(process) and _born(int(pid)) != birth


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


def run_number(run_id: str) -> int:
    """A run's id as a number of 64 bits, for databases that lock by number."""
    digest = hashlib.blake2b(run_id.encode("utf-8", "backslashreplace"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def _clean(text: str) -> str:
    """Text that any database takes: no lone surrogates, no NUL."""
    return text.encode("utf-8", "backslashreplace").decode().replace("\x00", "\\x00")
