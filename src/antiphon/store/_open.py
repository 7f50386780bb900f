"""A store by its path or URL."""

from pathlib import Path

from antiphon.errors import UsageError
from antiphon.store._postgres import PostgresStore
from antiphon.store._sqlite import SqliteStore


def open_store(url: str | Path) -> SqliteStore | PostgresStore:
    """Open a store by its path or URL.

    Args:
        url: A path, ``sqlite:///path``, or ``postgresql://user:password@host:port/database``.

    Raises:
        UsageError: No such kind of store is known.
        DataError: It cannot be opened.
        MissingExtraError: The URL names a PostgreSQL server and psycopg is not installed.
    """
    text = str(url)
    kind = text.partition("://")[0]
    if kind in ("postgresql", "postgres"):
        return PostgresStore(text)
    if text.startswith("sqlite:///"):
        text = text.removeprefix("sqlite:///")
    elif "://" in text:
        raise UsageError(
            f"no store for {kind!r}; known: a path, sqlite:///path, postgresql://host/database"
        )
    return SqliteStore(text)
