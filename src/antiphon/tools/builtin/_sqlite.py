"""A SQLite database as a tool: SQL in, rows out, read-only unless asked otherwise.

The file is opened read-only, and an authorizer refuses what could leave it (``ATTACH``, extensions,
``PRAGMA``s that write).  Statements end at a time limit; results are cut at a number of rows.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

from antiphon.errors import ToolError, UsageError
from antiphon.tools._tool import Tool, tool

MAX_SQL_CHARS = 20_000
MAX_VALUE_BYTES = 10_000_000
_MAX_CELL_CHARS = 2_000
_READING = frozenset(
    {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    }
)
_REFUSED = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH})
_READING_PRAGMAS = frozenset(
    {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "foreign_key_list"}
)


def sqlite_query(
    path: str | os.PathLike[str],
    *,
    write: bool = False,
    max_rows: int = 200,
    timeout: float = 10.0,
) -> Tool[..., Any]:
    """A tool that queries one SQLite database; its description lists the tables.

    Args:
        path: The database file.
        write: Whether it may change the database.
        max_rows: How many rows of a result the model reads.
        timeout: Seconds until a statement is stopped.

    Raises:
        UsageError: The file is no SQLite database.
    """
    place = Path(path)
    try:
        tables = _tables(place)
    except sqlite3.Error as error:
        raise UsageError(f"{str(path)!r} is no SQLite database that can be read: {error}") from None
    does = "Query or change" if write else "Query"

    @tool(
        name="sqlite_query",
        description=f"{does} a database with one SQL statement. Tables: {tables}.",
        timeout=timeout + 5,
        idempotent=not write,
    )
    def query(sql: str) -> dict[str, Any]:
        """Run one SQL statement.

        Args:
            sql: One statement in SQLite's SQL.
        """
        if len(sql) > MAX_SQL_CHARS:
            raise ToolError(
                f"the statement has {len(sql)} characters; at most {MAX_SQL_CHARS} are run"
            )
        with _open(place, write) as connection:
            return _run(connection, sql, max_rows, timeout)

    return query


def _tables(place: Path) -> str:
    with _open(place, False) as connection:
        names = [
            str(row[0])
            for row in connection.execute(
                "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
                "AND name NOT LIKE 'sqlite_%' ORDER BY name LIMIT 50"
            )
        ]
        shown: list[str] = []
        for name in names:
            quoted = name.replace('"', '""')
            columns = [str(row[1]) for row in connection.execute(f'PRAGMA table_info("{quoted}")')]
            shown.append(f"{name}({', '.join(columns)})")
    return ", ".join(shown) or "none"


@contextlib.contextmanager
def _open(place: Path, write: bool) -> Generator[sqlite3.Connection]:
    uri = f"{place.resolve().as_uri()}?mode={'rw' if write else 'ro'}"
    connection = sqlite3.connect(uri, uri=True, timeout=5.0, isolation_level=None)
    try:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.set_authorizer(_authorizer(write))
        yield connection
    finally:
        connection.close()


def _authorizer(write: bool) -> Any:
    def allow(
        action: int, first: str | None, second: str | None, _base: str | None, _by: str | None
    ) -> int:
        if action == sqlite3.SQLITE_PRAGMA:
            fine = first in _READING_PRAGMAS
        elif action == sqlite3.SQLITE_FUNCTION:
            fine = second not in ("load_extension", "readfile", "writefile", "edit")
        else:
            fine = action in _READING or (write and action not in _REFUSED)
        return sqlite3.SQLITE_OK if fine else sqlite3.SQLITE_DENY

    return allow


def _run(connection: sqlite3.Connection, sql: str, max_rows: int, timeout: float) -> dict[str, Any]:
    deadline = time.monotonic() + timeout
    connection.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchmany(max_rows + 1)
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise ToolError(
                f"the statement was stopped after {timeout:g} s; make it do less"
            ) from None
        raise ToolError(f"SQLite refused the statement: {error}") from None
    except (sqlite3.Error, sqlite3.Warning, UnicodeError) as error:
        text = str(error)
        if "not authorized" in text or "prohibited" in text:
            text = "it is not allowed here; only reading statements are"
        raise ToolError(f"SQLite refused the statement: {text}") from None
    if cursor.description is None:
        return {"changed_rows": max(cursor.rowcount, 0)}
    answer: dict[str, Any] = {
        "columns": [str(column[0]) for column in cursor.description],
        "rows": [[_cell(value) for value in row] for row in rows[:max_rows]],
    }
    if len(rows) > max_rows:
        answer["note"] = f"only the first {max_rows} rows; add LIMIT and OFFSET, or aggregate"
    return answer


def _cell(value: Any) -> Any:
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, str) and len(value) > _MAX_CELL_CHARS:
        return f"{value[:_MAX_CELL_CHARS]}... ({len(value)} characters)"
    return value
