"""Rows to a file of the kind that its name says, there when all of it is written."""

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Protocol, cast

from antiphon.datasets._arrow import ARROW_SUFFIXES, ArrowWriter, open_zstd
from antiphon.errors import DataError
from antiphon.events import dump_row, written_whole

_OPEN: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
    ".zst": open_zstd,
}


class _Writer(Protocol):
    def write(self, row: Mapping[str, Any]) -> None: ...
    def close(self) -> None: ...


class _Lines:
    """JSON lines, plain or compressed."""

    def __init__(self, file: IO[bytes], *, closes: bool = True) -> None:
        self._file = file
        self._closes = closes

    def write(self, row: Mapping[str, Any]) -> None:
        self._file.write(dump_row(dict(row)).encode() + b"\n")

    def close(self) -> None:
        if self._closes:
            self._file.close()
        else:
            self._file.flush()


class RowFile:
    """A file of rows that is written, as a context: JSON lines (``.gz``, ``.bz2``, ``.xz``,
    ``.zst``), Parquet (``.parquet``) or Arrow (``.arrow``); ``-`` is stdout.

    Nothing stands under the file's name until the context ends well.

    Args:
        path: Where to write.

    Raises:
        DataError: The file cannot be written.
        MissingExtraError: The kind of file needs pyarrow, which is not installed.
    """

    def __init__(self, path: Path | str) -> None:
        self._path = Path(path)
        self._to_stdout = str(path) == "-"
        self._writer: _Writer | None = None
        self._stack = ExitStack()

    def __enter__(self) -> "RowFile":
        if self._to_stdout:
            self._writer = _Lines(sys.stdout.buffer, closes=False)
            self._stack.callback(self._writer.close)
            return self
        try:
            with ExitStack() as stack:
                self._writer = self._open(stack.enter_context(written_whole(self._path)))
                self._stack = stack.pop_all()
        except OSError as error:
            raise self._fault(error) from error
        self._stack.callback(self._writer.close)
        return self

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row.

        Raises:
            DataError: The file cannot be written: the disk is full, for example.
        """
        assert self._writer is not None, "a RowFile is written within its context"
        try:
            self._writer.write(row)
        except OSError as error:
            raise self._fault(error) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._stack.__exit__(kind, value, trace)
        except OSError as error:
            if kind is None:
                raise self._fault(error) from error

    def _open(self, path: Path) -> _Writer:
        suffix = self._path.suffix
        if suffix in ARROW_SUFFIXES:
            return ArrowWriter(path, suffix)
        return _Lines(cast("IO[bytes]", _OPEN.get(suffix, open)(path, "wb")))

    def _fault(self, error: OSError) -> DataError:
        reason = (error.strerror or type(error).__name__).lower()
        return DataError(f"cannot be written: {reason}", path=self._path)
