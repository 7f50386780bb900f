"""Shards as Parquet and Arrow files: a list of numbers a row, as `datasets` and trainers read them.

The columns are those of `_shards.py`, with ``line`` for the source line; the notes stand in the
schema.  Needs the extra ``parquet``.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from antiphon.encode._numpy import np
from antiphon.encode._rows import EncodedRow
from antiphon.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import numpy.typing as npt

COLUMNS = ("input_ids", "labels", "loss_weights", "position_ids")
"""What a row holds for each of its tokens."""


def _pyarrow(module: str = "pyarrow") -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError("Parquet and Arrow shards", "parquet") from error


def arrow_bytes(
    arrays: Mapping[str, npt.NDArray[Any]], kind: str, note: Mapping[str, str]
) -> bytes:
    """Flat arrays as the content of a file with a list a row.

    Args:
        arrays: As `ShardBuilder.arrays` gives them.
        kind: ``parquet`` or ``arrow``.
        note: What the file says of itself.

    Raises:
        MissingExtraError: pyarrow is not installed.
    """
    arrow = _pyarrow()
    starts = arrow.array(arrays["row_starts"].astype("<i4"))
    lists = [arrow.ListArray.from_arrays(starts, arrow.array(arrays[name])) for name in COLUMNS]
    table = arrow.table(
        [*lists, arrow.array(arrays["lines"])], names=[*COLUMNS, "line"]
    ).replace_schema_metadata(dict(note))
    file = io.BytesIO()
    if kind == "parquet":
        _pyarrow("pyarrow.parquet").write_table(table, file, compression="zstd")
    else:
        with arrow.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return file.getvalue()


def arrow_note(path: Path) -> dict[str, str]:
    """The notes that a file was written with.

    Raises:
        DataError: The file is missing or damaged.
        MissingExtraError: pyarrow is not installed.
    """
    schema = _read(path, lambda source: _schema(path, source))
    found = cast("dict[bytes, bytes]", schema.metadata or {})
    return {
        key.decode(): value.decode()
        for key, value in found.items()
        if not key.startswith(b"ARROW:")
    }


def _schema(path: Path, source: Any) -> Any:
    if path.suffix == ".parquet":
        return _pyarrow("pyarrow.parquet").read_schema(source)
    return _pyarrow().ipc.open_file(source).schema


def _table(path: Path, source: Any) -> Any:
    if path.suffix == ".parquet":
        return _pyarrow("pyarrow.parquet").read_table(source)
    return _pyarrow().ipc.open_file(source).read_all()


def _read(path: Path, read: Callable[[Any], Any]) -> Any:
    arrow = _pyarrow()
    try:
        with arrow.memory_map(str(path)) as source:
            return read(source)
    except OSError as error:
        if isinstance(error, FileNotFoundError | PermissionError):
            reason = (error.strerror or "cannot be read").lower()
            raise DataError(f"no shard: {reason}", path=path) from error
        raise DataError("not a shard, or damaged; encode again", path=path) from error
    except arrow.ArrowException as error:
        raise DataError("not a shard, or damaged; encode again", path=path) from error


class ArrowShard:
    """The rows of a Parquet or Arrow shard, read when the first one is.

    Args:
        path: The file.

    Raises:
        DataError: The file is missing or damaged.
        MissingExtraError: pyarrow is not installed.
    """

    def __init__(self, path: Path) -> None:
        self._table = _read(path, lambda source: _table(path, source))

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __getitem__(self, index: int) -> EncodedRow:
        ids, labels, weights, positions = (
            np.asarray(self._table[name][index].values) for name in COLUMNS
        )
        return EncodedRow(ids, labels, weights, positions, int(self._table["line"][index].as_py()))
