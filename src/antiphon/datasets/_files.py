"""Rows of a file, one at a time: JSON lines, a JSON array or object, plain or compressed, Parquet,
Arrow, or stdin.

Nothing here holds a whole file, but for one row.  Every row comes with the line that it begins on.
"""

import bz2
import codecs
import gzip
import json
import lzma
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, Any, cast

from antiphon.datasets._arrow import ARROW_SUFFIXES, arrow_lines, open_zstd
from antiphon.errors import DataError, clip

_OPEN: dict[str, Callable[..., IO[bytes]]] = {
    ".gz": cast("Any", gzip.open),
    ".bz2": cast("Any", bz2.open),
    ".xz": cast("Any", lzma.open),
    ".zst": open_zstd,
}
_CHUNK_BYTES = 1 << 20
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|["\[\]{}]', re.DOTALL)


def iter_rows(
    path: Path | str, *, report: Callable[[DataError], None] | None = None
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of a file, each with the number of its first line.

    Args:
        path: A file of JSON lines, of a JSON array, or of one JSON object, by itself or compressed
            (``.gz``, ``.bz2``, ``.xz``, ``.zst``); Parquet, Arrow, or a directory that `datasets`
            saved; ``-`` is stdin.
        report: Takes each broken line, and the rest goes on; without it the first one is raised.

    Raises:
        DataError: The file cannot be opened or read as UTF-8; or a row is broken.
    """
    tell = _raise if report is None else report
    for line, data in iter_lines(path, report=report):
        try:
            row = parse_line(data)
        except DataError as error:
            tell(DataError(str(error), path=path, line=line))
        else:
            yield line, row


def iter_lines(
    path: Path | str, *, report: Callable[[DataError], None] | None = None
) -> Iterator[tuple[int, bytes]]:
    """`iter_rows` before their JSON is read: the row's bytes, with the number of its first line.

    Args:
        path: See `iter_rows`.
        report: Takes what stands between rows, and the rest goes on; without it, it is raised.

    Raises:
        DataError: The file cannot be opened, or is damaged between its rows.
    """
    tell = _raise if report is None else report
    source = Path(path)
    if source.suffix in ARROW_SUFFIXES or source.is_dir():
        try:
            yield from arrow_lines(source)
        except OSError as error:
            raise DataError(f"cannot be read: {_reason(error)}", path=source) from error
        return
    try:
        with _open(source) as file:
            head = file.readline(_CHUNK_BYTES).removeprefix(codecs.BOM_UTF8)
            if not head.lstrip().startswith(b"["):
                head += b"" if head.endswith(b"\n") else file.readline()
            for line, data in _items(head, file) if _is_spread(head) else _by_line(head, file):
                if isinstance(data, _Broken):
                    tell(DataError(data.reason, path=source, line=line))
                else:
                    yield line, data
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"cannot be read: {_reason(error)}", path=source) from error


def _reason(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or "the compressed data is damaged").lower()


def parse_line(data: bytes) -> Mapping[str, Any]:
    """The row of a line.

    Raises:
        DataError: It is no JSON object in UTF-8.
    """
    try:
        value: Any = json.loads(data.decode())
    except UnicodeDecodeError as error:
        byte = data[error.start]
        raise DataError(f"not UTF-8: byte {byte:#04x}; convert the file first") from error
    except json.JSONDecodeError as error:
        what = error.msg[:1].lower() + error.msg[1:]
        raise DataError(f"not JSON: {what} at character {error.pos}") from error
    except RecursionError as error:
        raise DataError("not JSON: nested too deeply") from error
    if not isinstance(value, Mapping):
        raise DataError(f"a row must be an object, got {clip(value)}")
    return cast("Mapping[str, Any]", value)


@dataclass(frozen=True, slots=True)
class _Broken:
    """What stands in the place of a row that cannot be read."""

    reason: str


def _raise(error: DataError) -> None:
    raise error


def _open(path: Path) -> IO[bytes]:
    if str(path) == "-":
        return sys.stdin.buffer
    return _OPEN.get(path.suffix, open)(path, "rb")


def _is_spread(head: bytes) -> bool:
    """Whether a file that begins so is an array, or one object over many lines."""
    head = head.strip()
    if head.startswith(b"["):
        return True
    return head.startswith(b"{") and head.endswith((b"{", b"[", b","))


def _by_line(head: bytes, file: IO[bytes]) -> Iterator[tuple[int, bytes | _Broken]]:
    for number, line in enumerate(chain([head], file), start=1):
        if line.strip():
            yield number, line


def _items(head: bytes, file: IO[bytes]) -> Iterator[tuple[int, bytes | _Broken]]:
    """The items of an array, or objects one after the other, over any number of lines.

    Only quotes and brackets are looked at until an item is whole, so that the cost is linear.
    """
    base = 1 if head.lstrip().startswith(b"[") else 0
    data, place, depth, line, last = b"", 0, 0, 1, 0
    start: int | None = None
    for chunk in chain([head], iter(lambda: file.read(_CHUNK_BYTES), b"")):
        data += chunk
        for token in _TOKEN.finditer(data, place):
            mark = token.group()
            if mark == b'"':
                break  # a text that goes on in the next chunk
            place = token.end()
            if mark in b"{[":
                if depth < base:  # the array's own bracket
                    last = place
                elif depth == base:
                    start = token.start()
                    line += data.count(b"\n", last, start)
                    if data[last:start].strip(b" \t\r\n,"):
                        yield line, _Broken(f"between rows stands {clip(data[last:start])}")
                    last = start
                depth += 1
            elif mark in b"}]":
                depth -= 1
                if depth == base and start is not None:
                    yield line, data[start:place]
                    line += data.count(b"\n", last, place)
                    start, last = None, place
        cut = last if start is None else start
        data, place = data[cut:], place - cut
        last, start = 0, None if start is None else 0
    if start is not None or depth > 0:
        yield line, _Broken("the file ends inside a row")
    elif data.strip(b" \t\r\n,]"):
        yield line, _Broken(f"behind the rows stands {clip(data[:100])}")
