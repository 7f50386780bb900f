"""From a row of any published shape, or a file of them, to Conversations."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from antiphon.datasets._adapters import adapter_of
from antiphon.datasets._files import iter_rows, parse_line
from antiphon.datasets._trajectory import conversations_of
from antiphon.errors import DataError
from antiphon.events import Trajectory
from antiphon.messages import Conversation


def read_row(row: Mapping[str, Any]) -> Conversation:
    """Read one row.

    Args:
        row: A row in any of the spellings of design §5, or a recorded run.

    Raises:
        DataError: The row is malformed, or is a run that was shown several conversations; those are
            read with `read_row_all`.
    """
    conversations = read_row_all(row)
    if len(conversations) != 1:
        raise DataError(
            f"the run holds {len(conversations)} conversations, of agents with instructions or "
            "tools of their own; read them with read_row_all or read_rows"
        )
    return conversations[0]


def read_row_all(row: Mapping[str, Any]) -> list[Conversation]:
    """Read one row that may hold several conversations, as a run
    of several agents does.

    Raises:
        DataError: The row is malformed.
    """
    if is_run(row):
        return list(conversations_of(Trajectory.from_row(row)))
    return [adapter_of(row).read(row)]


def is_run(row: Mapping[str, Any]) -> bool:
    """Whether a row is a recorded run."""
    return "antiphon" in row and "steps" in row


def read_line(data: bytes) -> list[Conversation]:
    """Read one line of a file of JSON lines.

    Raises:
        DataError: The line is no JSON, or the row is malformed.
    """
    return read_row_all(parse_line(data))


def read_rows(
    path: Path | str, *, report: Callable[[DataError], None] | None = None
) -> Iterator[Conversation]:
    """The conversations of a file, one at a time, in order.

    Args:
        path: JSON lines, a JSON array or object, by itself or compressed; ``-`` is stdin.
        report: Takes each row that cannot be read, and the rest goes on; without it the first one
        is
            raised.

    Raises:
        DataError: The file cannot be read, or a row is malformed; with path and line.
    """
    for line, row in iter_rows(path, report=report):
        try:
            conversations = read_row_all(row)
        except DataError as error:
            where = DataError(str(error), path=path, line=line)
            if report is None:
                raise where from error
            report(where)
            continue
        yield from conversations
