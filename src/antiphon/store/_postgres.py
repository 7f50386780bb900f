"""Runs in a PostgreSQL database, in a schema of their own.

A process that runs a run holds an advisory lock of its connection, so that a process that is gone,
on whichever machine, has let go of it at once.  Needs the ``postgres`` extra (psycopg).
"""

import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString, cast

from antiphon.errors import DataError, MissingExtraError, RunError
from antiphon.store._sql import Database, Row, SqlStore, is_gone, migrate, run_number
from antiphon.store._store import Store

if TYPE_CHECKING:
    pass

_MIGRATION_LOCK = run_number("antiphon migration")
_GONE_SECONDS = 2.0
"""How long to wait for the server to notice that a process of this machine is gone."""


class PostgresStore(SqlStore):
    """Runs in a database server."""

    def __init__(self, url: str, *, schema: str = "antiphon") -> None:
        """Connect, and make or upgrade the tables.

        Args:
            url: ``postgresql://user:password@host:port/database``, as libpq reads it.
            schema: The schema that holds the tables.

        Raises:
            DataError: There is no such server or database, or it is of a later version.
            MissingExtraError: psycopg is not installed.
        """
        self._server = PostgresDatabase(url, schema)
        super().__init__(self._server)

    def close(self) -> None:
        """Write what waits and close the connection, which lets go of every run.

        May be called twice.
        """
        super().close()
        self._server.close()


class PostgresDatabase:
    """One connection."""

    for_update = " FOR UPDATE"
    waits = True

    def __init__(self, url: str, schema: str) -> None:
        self.name = re.sub(r"(//[^/@:]*):[^/@]*@", r"\1@", url)
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtraError("a PostgreSQL store", "postgres") from error
        self.errors: tuple[type[Exception], ...] = (psycopg.Error,)
        try:
            self._db: psycopg.Connection[Row] = psycopg.connect(
                url, autocommit=True, application_name="antiphon"
            )
            self._prepare(schema)
        except psycopg.Error as error:
            raise DataError(f"no store of runs: {_reason(error)}", path=self.name) from error

    def _prepare(self, schema: str) -> None:
        from psycopg import sql

        own = sql.Identifier(schema)
        with self._db.transaction():
            self._db.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            known = "SELECT 1 FROM pg_namespace WHERE nspname = ?"
            if not self.execute(known, (schema,)):  # to ask for it takes a right even if it exists
                self._db.execute(sql.SQL("CREATE SCHEMA {}").format(own))
            self._db.execute(sql.SQL("SET search_path TO {}").format(own))
            self._db.execute("CREATE TABLE IF NOT EXISTS version (version INTEGER NOT NULL)")
            [(version,)] = self.execute("SELECT COALESCE(MAX(version), 0) FROM version")
            now = migrate(self, version)
            if now != version:
                self.execute("INSERT INTO version VALUES (?)", (now,))

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """The rows of one statement.

        Raises:
            RunError: The connection is gone.
        """
        query = cast("LiteralString", statement.replace("?", "%s"))  # ours, from this room alone
        try:
            cursor = self._db.execute(query, values)
            return cursor.fetchall() if cursor.description is not None else []
        except self.errors as error:
            if not self._db.closed:
                raise
            raise RunError(f"the store {self.name} is gone: {_reason(error)}") from error

    @contextmanager
    def transaction(self) -> Generator[None]:
        """All of it or nothing."""
        with self._db.transaction():
            yield

    def is_held(self, run_id: str, owner: str, updated: float) -> bool:
        """Whether any connection but this one holds the run's lock.

        Where the owner is known to be gone, the server is given time to notice.
        """
        deadline = time.monotonic() + _GONE_SECONDS
        while self._is_locked(run_id):
            if not is_gone(owner) or time.monotonic() > deadline:
                return True
            time.sleep(0.01)
        return False

    def _is_locked(self, run_id: str) -> bool:
        number = run_number(run_id) % (1 << 64)
        return bool(
            self.execute(
                "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
                "AND classid = ? AND objid = ? AND pid <> pg_backend_pid()",
                (number >> 32, number & 0xFFFFFFFF),
            )
        )

    def hold(self, run_id: str) -> bool:
        """Take the run's lock, unless another connection has it."""
        [(held,)] = self.execute("SELECT pg_try_advisory_lock(?)", (run_number(run_id),))
        return bool(held)

    def let_go(self, run_id: str) -> None:
        """Give the run's lock back."""
        self.execute("SELECT pg_advisory_unlock(?)", (run_number(run_id),))

    def close(self) -> None:
        """Close the connection."""
        self._db.close()


def _reason(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


if TYPE_CHECKING:
    _store: Store = PostgresStore("")
    _database: Database = PostgresDatabase("", "")
