"""Encoded rows on disk: shards that are written whole or not at all, and read without loading them.

A shard is a safetensors file of flat arrays over all its rows, ``N`` tokens and ``R`` rows (or a
Parquet or Arrow file with a list a row, see `_arrow_shards.py`):

    row_starts    int64   (R + 1,) row ``r`` is ``[row_starts[r], row_starts[r + 1])``
    lines         int64   (R,)     the source line that a row, or the first of its pack, is of
    input_ids     int32   (N,)     the tokens
    labels        int32   (N,)     the token, or -100 where it is not trained
    loss_weights  float32 (N,)     how much each counts
    position_ids  int32   (N,)     restarts with each example of a packed row

and ``index.json`` beside them says how they were made and what they hold.  This module encodes
nothing.  Source of the container: the safetensors format, version 0.4.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from antiphon.encode._arrow_shards import COLUMNS, ArrowShard, arrow_bytes, arrow_note
from antiphon.encode._numpy import np
from antiphon.encode._rows import EncodedRow, JoinedRows
from antiphon.errors import DataError

if TYPE_CHECKING:
    import numpy.typing as npt

    Array = npt.NDArray[Any]

ShardKind = Literal["safetensors", "parquet", "arrow"]
"""The kinds of files that shards can be."""

INDEX = "index.json"
_DTYPES = {"I32": "<i4", "I64": "<i8", "F32": "<f4"}
_NAMES = {spelled: name for name, spelled in _DTYPES.items()}


@dataclass(slots=True)
class ShardBuilder:
    """Collects rows of one shard."""

    ids: list[Array] = field(default_factory=list["Array"])
    labels: list[Array] = field(default_factory=list["Array"])
    weights: list[Array] = field(default_factory=list["Array"])
    positions: list[Array] = field(default_factory=list["Array"])
    lines: list[int] = field(default_factory=list[int])

    def add(self, row: EncodedRow) -> None:
        """Append a row."""
        self.ids.append(row.input_ids)
        self.labels.append(row.labels)
        self.weights.append(row.loss_weights)
        self.positions.append(row.position_ids)
        self.lines.append(row.line)

    def arrays(self) -> dict[str, Array]:
        """The flat arrays of the shard."""
        starts = np.cumsum([0, *map(len, self.ids)])
        return {
            "row_starts": starts.astype("<i8"),
            "lines": np.array(self.lines, dtype="<i8"),
            "input_ids": _flat(self.ids, "<i4"),
            "labels": _flat(self.labels, "<i4"),
            "loss_weights": _flat(self.weights, "<f4"),
            "position_ids": _flat(self.positions, "<i4"),
        }

    def to_bytes(self, kind: ShardKind, note: Mapping[str, str]) -> bytes:
        """The shard as a file's content.

        Args:
            kind: The kind of file.
            note: What the file says of itself.

        Raises:
            MissingExtraError: The kind needs pyarrow, which is not installed.
        """
        if kind == "safetensors":
            return _safetensors(self.arrays(), note)
        return arrow_bytes(self.arrays(), kind, note)


def _flat(arrays: Sequence[Array], dtype: str) -> Array:
    return np.concatenate(arrays).astype(dtype) if arrays else np.zeros(0, dtype)


class EncodedRows(JoinedRows):
    """The rows of a directory of shards, mapped from disk when they are read.

    Args:
        directory: Where `encode` wrote.

    Raises:
        DataError: The directory has no index, or a shard is missing or damaged.
    """

    def __init__(self, directory: Path | str) -> None:
        directory = Path(directory)
        self.info = read_index(directory)
        """What ``index.json`` says: how the rows were made and what they hold."""
        super().__init__([_open(directory / shard["file"]) for shard in self.info["shards"]])


def _open(path: Path) -> _Shard | ArrowShard:
    return _Shard(path) if path.suffix == ".safetensors" else ArrowShard(path)


class _Shard:
    def __init__(self, path: Path) -> None:
        self._arrays = read_arrays(path)

    @cached_property
    def _starts(self) -> list[int]:
        return self._arrays["row_starts"].tolist()

    def __len__(self) -> int:
        return len(self._arrays["lines"])

    def __getitem__(self, index: int) -> EncodedRow:
        span = slice(self._starts[index], self._starts[index + 1])
        ids, labels, weights, positions = (self._arrays[name][span] for name in COLUMNS)
        return EncodedRow(ids, labels, weights, positions, int(self._arrays["lines"][index]))


def read_index(directory: Path) -> dict[str, Any]:
    """What ``index.json`` says.

    Raises:
        DataError: There is none, or it is damaged.
    """
    path = directory / INDEX
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"no encoded rows: {(error.strerror or '').lower()}", path=path) from error
    except ValueError as error:
        raise DataError("the index is not JSON; encode again", path=path) from error
    if not isinstance(value, dict) or not isinstance(cast("Any", value).get("shards"), list):
        raise DataError("this is no index of encoded rows", path=path)
    return cast("dict[str, Any]", value)


def write_index(directory: Path, index: Mapping[str, Any]) -> None:
    """Write ``index.json``, whole or not at all.

    Raises:
        DataError: The file cannot be written.
    """
    text = json.dumps(index, ensure_ascii=False, indent=1) + "\n"
    write_whole(directory / INDEX, text.encode())


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a safetensors file, mapped.

    Raises:
        DataError: The file is missing or damaged.
    """
    header, begin = _header(path)
    size = path.stat().st_size
    arrays: dict[str, Array] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        dtype = np.dtype(_DTYPES[entry["dtype"]])
        shape = tuple(entry["shape"])
        if begin + end > size or end - start != dtype.itemsize * int(np.prod(shape)):
            raise DataError("the shard is cut off or damaged; encode again", path=path)
        empty = end == start
        arrays[name] = (
            np.zeros(shape, dtype)
            if empty
            else np.memmap(path, dtype=dtype, mode="r", offset=begin + start, shape=shape)
        )
    return arrays


def read_note(path: Path) -> dict[str, str]:
    """The notes that a shard was written with.

    Raises:
        DataError: The file is missing or damaged.
    """
    if path.suffix != ".safetensors":
        return arrow_note(path)
    return _header(path)[0].get("__metadata__", {})


def _header(path: Path) -> tuple[dict[str, Any], int]:
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > os.fstat(file.fileno()).st_size:
                raise ValueError
            return json.loads(file.read(length)), 8 + length
    except OSError as error:
        raise DataError(f"no shard: {(error.strerror or '').lower()}", path=path) from error
    except (struct.error, ValueError) as error:
        raise DataError("not a shard, or damaged; encode again", path=path) from error


def _safetensors(arrays: Mapping[str, Array], note: Mapping[str, str]) -> bytes:
    header: dict[str, Any] = {"__metadata__": dict(note)}
    place = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _NAMES[array.dtype.str],
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
    text += b" " * (-len(text) % 8)
    return b"".join(
        [struct.pack("<Q", len(text)), text, *(array.tobytes() for array in arrays.values())]
    )


def make_directory(directory: Path) -> None:
    """Make a directory, and those above it, where there is none.

    Raises:
        DataError: It cannot be made.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise DataError(f"cannot be made: {reason}", path=directory) from error


def write_whole(path: Path, data: bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        DataError: It cannot be written.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        reason = (error.strerror or type(error).__name__).lower()
        raise DataError(f"cannot be written: {reason}", path=path) from error
