"""The metadata of a GGUF file: everything before its tensors.

Only the header is read, so a model of many gigabytes costs as much as its vocabulary.
Source: ggml's ``docs/gguf.md``, versions 2 and 3, little-endian.
"""

import os
import struct
from pathlib import Path
from typing import BinaryIO

from antiphon.errors import DataError
from antiphon.messages import JsonValue

_SCALARS = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i",
    6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d",
}  # fmt: skip
_STRING, _ARRAY = 8, 9


def read_gguf_metadata(path: Path) -> dict[str, JsonValue]:
    """Read the key-value pairs at the head of a GGUF file.

    Args:
        path: The file.

    Returns:
        Key to value; arrays are lists.

    Raises:
        DataError: The file is no GGUF file of a known version, or ends too early.
        OSError: The file cannot be opened.
    """
    with path.open("rb") as file:
        try:
            if file.read(4) != b"GGUF":
                raise DataError("not a GGUF file: it does not begin with 'GGUF'", path=path)
            version, _n_tensors, n_pairs = struct.unpack("<IQQ", file.read(20))
            if version not in (2, 3):
                raise DataError(f"GGUF version {version} is unknown; known: 2, 3", path=path)
            return {_string(file): _value(file, _unpack(file, "<I")) for _ in range(n_pairs)}
        except (struct.error, UnicodeDecodeError, KeyError, EOFError) as error:
            raise DataError("the GGUF header is cut off or damaged", path=path) from error


def _unpack(file: BinaryIO, layout: str) -> int:
    return struct.unpack(layout, file.read(struct.calcsize(layout)))[0]


def _read(file: BinaryIO, n_bytes: int) -> bytes:
    # A damaged length must not ask for more memory than the file could fill.
    if n_bytes > os.fstat(file.fileno()).st_size - file.tell():
        raise EOFError
    return file.read(n_bytes)


def _string(file: BinaryIO) -> str:
    return _read(file, _unpack(file, "<Q")).decode("utf-8")


def _value(file: BinaryIO, kind: int) -> JsonValue:
    if kind == _STRING:
        return _string(file)
    if kind != _ARRAY:
        return _unpack(file, _SCALARS[kind])
    item, length = _unpack(file, "<I"), _unpack(file, "<Q")
    if item in (_STRING, _ARRAY):
        return [_value(file, item) for _ in range(length)]
    layout = _SCALARS[item]
    data = _read(file, struct.calcsize(layout) * length)
    return list(struct.unpack(f"<{length}{layout[1]}", data))
