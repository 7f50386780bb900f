"""What the tests of stores take."""

from collections.abc import Callable
from typing import TypeAlias

from antiphon.store import PostgresStore, SqliteStore

AnyStore: TypeAlias = SqliteStore | PostgresStore
Reopen: TypeAlias = Callable[[], AnyStore]
