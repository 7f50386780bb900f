"""What is done to a row, and how the place where it is done is made ready.

The work of a stage is a function of one row, or an object that opens once in each process what all
of its rows share: a model's connection, a tokenizer, a database.
"""

import inspect
import pickle
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol, TypeAlias, runtime_checkable

from antiphon.errors import UsageError
from antiphon.messages import JsonObject

Rows: TypeAlias = "JsonObject | Sequence[JsonObject] | None"
"""What becomes of a row: one row, several, or none."""
RowFunction: TypeAlias = Callable[[JsonObject], "Rows | Awaitable[Rows]"]
"""Makes rows of a row, plain or async."""


@runtime_checkable
class Work(Protocol):
    """Work that opens something first.  It is sent to other processes, so it can be pickled."""

    def open(self) -> AbstractAsyncContextManager[RowFunction]:
        """Make ready, once in a process; give the function of a row."""
        ...


@asynccontextmanager
async def opened(work: Work | RowFunction) -> AsyncGenerator[RowFunction]:
    """The function of some work, for as long as its place is open."""
    if isinstance(work, Work):
        async with work.open() as function:
            yield function
    else:
        yield work


async def apply(function: RowFunction, row: JsonObject) -> list[JsonObject]:
    """The rows that a function makes of a row, as a list."""
    made = function(row)
    return list(iterate(await made if inspect.isawaitable(made) else made))


def iterate(rows: Rows) -> Iterator[JsonObject]:
    """One row after the other, of whatever a function of a row may give."""
    if isinstance(rows, dict):
        yield rows
    elif rows is not None:
        yield from rows


def pickled(work: Work | RowFunction) -> bytes:
    """The work as another process can read it.

    Raises:
        UsageError: It cannot be sent.
    """
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"{work!r} cannot be sent to another process; use a function or class of a module"
        ) from error
