"""Named arguments in brackets: ``a=1, b='x'`` of a Python call, ``a:1,b:<|"|>x<|"|>`` of Gemma's.

The values are `_values.py`'s; only the keys and what stands between are read here.
"""

import re

from antiphon.formats._cursor import Cursor, Cut, Reading
from antiphon.formats._values import Dialect, Emit, Note, escape, read_string, read_value

_KEY = re.compile(r"[^\s,:=\[\]{}()\"'<>|]+")
MAX_KEY = 200  # characters; longer text is no name


def is_bare_key(key: str) -> bool:
    """Whether a name can stand without quotes and be read back."""
    return len(key) <= MAX_KEY and _KEY.fullmatch(key) is not None


def read_members(
    c: Cursor, emit: Emit, note: Note, *, dialect: Dialect, sign: str, close: str
) -> Reading[None]:
    """Read arguments behind their opening bracket and emit them as a JSON object.

    Args:
        c: Behind the opening bracket.
        emit: Takes the JSON text.
        note: Takes the name of each slip.
        dialect: What values look like.
        sign: What stands between a name and its value.
        close: The closing bracket, which is consumed.

    Raises:
        Malformed: The text is no list of arguments.
        Cut: It ends too early.
    """
    emit("{")
    first = True
    while (ch := (yield from c.space())) != close:
        if not first:
            if ch == ",":
                c.pos += 1
            elif dialect.delimiter and ch and (_KEY.match(ch) or ch in "\"'"):
                note("missing_comma")
            else:
                raise c.unexpected(f"',' or {close!r}")
            if (yield from c.space()) == close:
                note("trailing_comma")
                break
            emit(", ")
        first = False
        key = yield from _key(c, note, dialect)
        emit(f'"{escape(key)}": ')
        ch = yield from c.space()
        if ch not in ("=", ":"):
            raise c.unexpected(f"{sign!r} after a name")
        if ch != sign:
            note("equals_sign" if ch == "=" else "colon")
        c.pos += 1
        yield from read_value(c, emit, note, dialect=dialect)
    c.pos += 1
    emit("}")


def _key(c: Cursor, note: Note, dialect: Dialect) -> Reading[str]:
    ch = yield from c.space()
    if ch and ch in "\"'":
        return (yield from read_string(c, note, dialect=dialect, key=True))
    if dialect.delimiter and (yield from c.take(dialect.delimiter)):
        return (yield from c.until(dialect.delimiter))
    parts: list[str] = []
    while True:
        found = _KEY.match(c.text, c.pos)
        if found:
            parts.append(found.group())
            c.pos = found.end()
        if c.pos < len(c.text) or sum(map(len, parts)) > MAX_KEY:
            break
        if c.closed:
            raise Cut(f"the text ends at character {c.offset}, inside a name")
        yield
    if not parts:
        raise c.unexpected("a name")
    return "".join(parts)
