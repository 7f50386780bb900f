"""What is done, written down line by line, so that a kill loses no finished row.

A line is ``{"key": ..., "rows": [...]}``; the key is a digest of the source row and of the
settings, so that the journal is also a cache: a changed row, or changed settings, has another key.
A line that was cut by a kill or a full disk is dropped when the journal is next opened.
"""

import hashlib
import json
import os
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TextIO

from antiphon.errors import DataError, RunError
from antiphon.events import dump_row, written_whole
from antiphon.messages import JsonObject, JsonValue


def digest(*values: JsonValue) -> str:
    """24 hexadecimal digits that are the same for equal values, whatever the order of keys."""
    text = json.dumps(values, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


class Journal:
    """The finished rows of one stage.  One process writes it at a time."""

    def __init__(self, path: Path) -> None:
        """Name the file; entering opens it."""
        self.path = path
        self._places: dict[str, tuple[int, int]] = {}
        self._end = 0

    def __enter__(self) -> Self:
        """Open, lock, and read what is done.

        Raises:
            DataError: The file cannot be opened, or is no journal.
            RunError: Another process is writing it.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = self.path.open("a+b")
        except OSError as error:
            raise _trouble(error, "cannot be opened", self.path) from error
        try:
            _lock(self._file, self.path)
            self._read()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def _read(self) -> None:
        self._file.seek(0)
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                break
            try:
                key = json.loads(line)["key"]
            except (ValueError, TypeError, KeyError) as error:
                raise DataError(
                    "is no journal of a stage; delete the line, or choose another folder",
                    path=self.path,
                    line=number,
                ) from error
            self._places[key] = (self._end, len(line))
            self._end += len(line)
        self._file.truncate(self._end)

    def add(self, key: str, rows: Iterable[JsonObject]) -> None:
        """Write down what became of a row; it is in the file when this returns.

        Raises:
            DataError: It cannot be written, for example because the disk is full.  What was written
                before stays, and the next opening goes on from there.
        """
        line = (dump_row({"key": key, "rows": list(rows)}) + "\n").encode()
        try:
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            self._drop_rest()
            raise _trouble(error, "cannot be written", self.path) from error
        self._places[key] = (self._end, len(line))
        self._end += len(line)

    def _drop_rest(self) -> None:
        """Forget the line that could not be written: a buffer would try again when it is closed."""
        raw = os.dup(self._file.fileno())
        with suppress(OSError):  # the same fault once more
            self._file.close()
        self._file = os.fdopen(raw, "a+b")

    def rows(self, key: str) -> list[JsonObject]:
        """What became of a row.

        Raises:
            KeyError: It is not done.
        """
        start, length = self._places[key]
        self._file.seek(start)  # what is written goes to the end all the same
        found: Any = json.loads(self._file.read(length))
        return found["rows"]


def write_text(path: Path, text: str) -> None:
    """Write a file, whole or not at all.

    Raises:
        DataError: The file cannot be written.
    """
    with _replacing(path) as file:
        file.write(text)


def write_rows(path: Path, rows: Iterable[JsonObject]) -> int:
    """Write rows as JSON lines, the file whole or not at all.

    Returns:
        How many there were.

    Raises:
        DataError: The file cannot be written.
    """
    return write_split({"": path}, (("", row) for row in rows))


def write_split(paths: Mapping[str, Path], rows: Iterable[tuple[str, JsonObject]]) -> int:
    """Write rows to several files, each whole or not at all, in one pass.

    Args:
        paths: The files, by name.
        rows: Each row with the name of its file.

    Returns:
        How many rows there were.

    Raises:
        DataError: A file cannot be written.
    """
    n = 0
    with ExitStack() as stack:
        files = {name: stack.enter_context(_replacing(path)) for name, path in paths.items()}
        for name, row in rows:
            files[name].write(dump_row(row) + "\n")
            n += 1
    return n


@contextmanager
def _replacing(path: Path) -> Generator[TextIO]:
    """A file to write that takes the place of another when it is whole."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as beside, beside.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise _trouble(error, "cannot be written", path) from error


def _trouble(error: OSError, what: str, path: Path) -> DataError:
    reason = (error.strerror or type(error).__name__).lower()
    return DataError(f"{what}: {reason}; what was done before is kept", path=path)


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: nobody guards against a second process
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise RunError(
            f"another process is writing {str(path)!r}; wait for its end, or choose another folder"
        ) from error
