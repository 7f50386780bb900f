"""Rows of Parquet and Arrow files, read in batches and written as JSON in columns.

Arrow gives all rows of a column one shape: keys of other rows come back as null, and a number may
change its text.  So nulls inside values are left out when reading, and what is written here holds
each nested value as the JSON text that it was: ``messages``, ``tools`` and ``more`` (every other
key), which are put together again when read.  Needs the extra ``parquet``.
"""

import base64
import importlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, cast

from antiphon.errors import DataError, MissingExtraError

ARROW_SUFFIXES = (".parquet", ".arrow", ".feather")
_BATCH_ROWS = 256
_MARK = b"antiphon"
_OWN = ("messages", "tools")
_KEEP_NULL = ("default", "const")
_KINDS = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8", "image/jpeg"),
    (b"RIFF....WEBP", "image/webp"),
    (b"RIFF....WAVE", "audio/wav"),
    (b"RIFF....AVI ", "video/x-msvideo"),
    (b"fLaC", "audio/flac"),
    (b"ID3", "audio/mp3"),
    (b"\xff[\xe2\xe3\xf2\xf3\xfa\xfb]", "audio/mp3"),
    (b"OggS", "audio/ogg"),
    (b"....ftyp", "video/mp4"),
    (b"\x1aE\xdf\xa3", "video/webm"),
)
"""What a file of a kind begins with, as a pattern."""


def pyarrow(module: str = "pyarrow") -> Any:
    """pyarrow, or one of its modules.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError("Parquet, Arrow and zstd files", "parquet") from error


def open_zstd(path: Path, mode: str = "rb") -> IO[bytes]:
    """A zstd file as bytes.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    arrow = pyarrow()
    make = arrow.input_stream if "r" in mode else arrow.output_stream
    return cast("IO[bytes]", _Stream(make(str(path), compression="zstd")))


class _Stream:
    """pyarrow's stream with the methods that lines are read by."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._rest = b""

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")

    def close(self) -> None:
        self._stream.close()

    def write(self, data: bytes) -> int:
        return int(self._stream.write(data))

    def read(self, size: int = -1) -> bytes:
        if size < 0:
            whole, self._rest = self._rest + bytes(self._stream.read()), b""
            return whole
        if not self._rest:
            return bytes(self._stream.read(size))
        part, self._rest = self._rest[:size], self._rest[size:]
        return part

    def readline(self, size: int = -1) -> bytes:
        parts: list[bytes] = []
        n = 0
        while size < 0 or n < size:
            if not self._rest:
                self._rest = bytes(self._stream.read(1 << 16))
                if not self._rest:
                    break
            line, mark, rest = self._rest.partition(b"\n")
            part = line + mark
            if 0 <= size < n + len(part):
                cut = size - n
                part, rest = part[:cut], part[cut:] + rest
            parts.append(part)
            n += len(part)
            self._rest = rest
            if part.endswith(b"\n"):
                break
        return b"".join(parts)


def arrow_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The rows of a Parquet or Arrow file, or of a directory that `datasets` saved, as JSON.

    Args:
        path: The file or the directory.

    Yields:
        Each row's number, from 1, and its JSON.

    Raises:
        DataError: The file is damaged, or the directory holds no data set.
        MissingExtraError: pyarrow is not installed.
    """
    files = _files(path)
    arrow = pyarrow()
    number = 0
    for file in files:
        try:
            for batch in _batches(arrow, file):
                joined = _MARK in (batch.schema.metadata or ())
                for row in batch.to_pylist():
                    number += 1
                    yield number, _dump(_joined(row)) if joined else _json(row)
        except arrow.ArrowException as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"cannot be read: {reason}", path=file) from error


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    state = path / "state.json"
    try:
        names = [str(f["filename"]) for f in json.loads(state.read_text("utf-8"))["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            "cannot be read: a directory, and no data set that was saved with save_to_disk; "
            "name its files",
            path=path,
        ) from error
    return [path / name for name in names]


def _batches(arrow: Any, path: Path) -> Iterator[Any]:
    if path.suffix == ".parquet":
        with path.open("rb") as source:
            file = pyarrow("pyarrow.parquet").ParquetFile(source)
            yield from file.iter_batches(batch_size=_BATCH_ROWS)
        return
    with arrow.memory_map(str(path)) as source:
        magic = source.read(6)
        source.seek(0)
        if magic == b"ARROW1":
            file = arrow.ipc.open_file(source)
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
        else:
            batches = iter(arrow.ipc.open_stream(source))
        for batch in batches:
            for start in range(0, batch.num_rows, _BATCH_ROWS):
                yield batch.slice(start, _BATCH_ROWS)


def _joined(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of what was written here."""
    own = {key: json.loads(row[key]) for key in _OWN if row.get(key) is not None}
    return own | json.loads(row["more"])


def _json(row: Mapping[str, Any]) -> bytes:
    plain = {key: _plain(value) for key, value in row.items() if value is not None}
    return _dump(plain)


def _dump(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, default=str).encode()


def _plain(value: Any) -> Any:
    """A value as JSON: without the nulls of other rows, bytes as data URIs, no NaN."""
    if isinstance(value, dict):
        given = cast("dict[str, Any]", value)
        if given.keys() == {"bytes", "path"}:  # how `datasets` stores media
            return _plain(given["bytes"] if given["bytes"] is not None else given["path"])
        return {k: _plain(v) for k, v in given.items() if v is not None or k in _KEEP_NULL}
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    if isinstance(value, bytes):
        kind = next(
            (k for magic, k in _KINDS if re.match(magic, value, re.DOTALL)),
            "application/octet-stream",
        )
        return f"data:{kind};base64,{base64.b64encode(value).decode()}"
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


class ArrowWriter:
    """Writes rows to a Parquet or Arrow file, nested values as JSON text.

    Args:
        path: The file.
        kind: ``.parquet``, or another suffix for Arrow's own stream.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self._arrow = pyarrow()
        text = self._arrow.string()
        fields = [(name, text) for name in (*_OWN, "more")]
        self._schema = self._arrow.schema(fields).with_metadata({_MARK: b"1"})
        self._file = path.open("wb")
        if kind == ".parquet":
            parquet = pyarrow("pyarrow.parquet")
            self._writer = parquet.ParquetWriter(self._file, self._schema, compression="zstd")
        else:
            self._writer = self._arrow.ipc.new_stream(self._file, self._schema)
        self._rows: list[dict[str, str | None]] = []

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row."""
        cells: dict[str, str | None] = {
            key: json.dumps(row[key]) if key in row else None for key in _OWN
        }
        rest = {key: value for key, value in row.items() if key not in _OWN}
        self._rows.append(cells | {"more": json.dumps(rest)})
        if len(self._rows) == _BATCH_ROWS:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the end."""
        self._flush()
        self._writer.close()
        self._file.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_batch(
                self._arrow.RecordBatch.from_pylist(self._rows, schema=self._schema)
            )
            self._rows = []
