"""Rows of a file, one at a time: JSON lines, a JSON array or object, plain or compressed, or stdin.

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

from antiphon.errors import DataError, clip

_OPEN: dict[str, Callable[..., IO[bytes]]] = {
    ".gz": cast("Any", gzip.open),
    ".bz2": cast("Any", bz2.open),
    ".xz": cast("Any", lzma.open),
}
_CHUNK_BYTES = 1 << 20
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|["\[\]{}]', re.DOTALL)


def iter_rows(
    path: Path | str, *, report: Callable[[DataError], None] | None = None
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The rows of a file, each with the number of its first line.

    Args:
        path: A file of JSON lines, of a JSON array, or of one JSON object, by itself or compressed
            (``.gz``, ``.bz2``, ``.xz``); ``-`` is stdin.
        report: Takes each broken line, and the rest goes on; without it the first one is raised.

    Raises:
        DataError: The file cannot be opened or read as UTF-8; or a row is broken.
    """
    tell = _raise if report is None else report
    source = Path(path)
    try:
        with _open(source) as file:
            head = file.readline(_CHUNK_BYTES).removeprefix(codecs.BOM_UTF8)
            if not head.lstrip().startswith(b"["):
                head += b"" if head.endswith(b"\n") else file.readline()
            rows = _items(head, file) if _is_spread(head) else _by_line(head, file)
            for line, value in rows:
                if isinstance(value, Mapping):
                    yield line, cast("Mapping[str, Any]", value)
                    continue
                wrong = value if isinstance(value, _Broken) else _Broken(_not_an_object(value))
                tell(DataError(wrong.reason, path=source, line=line))
    except (OSError, EOFError, lzma.LZMAError) as error:
        reason = getattr(error, "strerror", None) or "the compressed data is damaged"
        raise DataError(f"cannot be read: {reason.lower()}", path=source) from error


@dataclass(frozen=True, slots=True)
class _Broken:
    """What stands in the place of a row that cannot be read."""

    reason: str


def _not_an_object(value: object) -> str:
    return f"a row must be an object, got {clip(value)}"


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
    return head.startswith(b"{") and not head.endswith(b"}")


def _by_line(head: bytes, file: IO[bytes]) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(chain([head], file), start=1):
        if line.strip():
            yield number, _value(line)


def _value(data: bytes) -> object:
    try:
        return json.loads(data.decode())
    except UnicodeDecodeError as error:
        return _Broken(f"not UTF-8: byte {data[error.start]:#04x}; convert the file first")
    except json.JSONDecodeError as error:
        return _Broken(f"not JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos}")
    except RecursionError:
        return _Broken("not JSON: nested too deeply")


def _items(head: bytes, file: IO[bytes]) -> Iterator[tuple[int, object]]:
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
                    yield line, _value(data[start:place])
                    line += data.count(b"\n", last, place)
                    start, last = None, place
        cut = last if start is None else start
        data, place = data[cut:], place - cut
        last, start = 0, None if start is None else 0
    if start is not None or depth > 0:
        yield line, _Broken("the file ends inside a row")
    elif data.strip(b" \t\r\n,]"):
        yield line, _Broken(f"behind the rows stands {clip(data[:100])}")
