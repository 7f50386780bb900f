"""Values in the texts of models, read as they arrive and given on as strict JSON text.

One reader serves JSON, JSON with the slips that models make, Python literals and Gemma's objects:
they differ in a `Dialect`.  It is a transducer: each piece of the source becomes a piece of JSON at
once, so that arguments can be sent on while they are written.  Slips are mended and named through
`note`; a strict reader's `note` raises instead.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from antiphon.formats._cursor import Cursor, Cut, Malformed, Reading

Emit = Callable[[str], None]
Note = Callable[[str], None]

MAX_DEPTH = 200  # levels of nesting; deeper text is refused before Python's recursion limit is

_PLAIN = {
    '"': re.compile(r'[^"\\\x00-\x1f]+'),
    "'": re.compile(r"""[^'"\\\x00-\x1f]+"""),
}
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_WORD = re.compile(r"[^\s,:=\[\]{}()\"'<>|]+")
_WORDS = re.compile(r"[^,\]})<|\n]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_OTHER_NUMBER = re.compile(
    r"\+?(?P<sign>-?)(?=\.?[0-9])(?P<whole>[0-9]*)\.?(?P<rest>[0-9]*)(?P<power>[eE][+-]?[0-9]+)?"
)
_QUOTES, _RAW = ('"', "'"), ("r", "R")
_JSON_WORDS = {"true": "true", "false": "false", "null": "null"}
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """What a family's values look like; compared by identity, as there are few."""

    words: Mapping[str, str] = field(default_factory=lambda: _JSON_WORDS)
    """Words that are values, with their JSON."""
    slips: Mapping[str, str] = field(default_factory=lambda: _PYTHON_WORDS)
    """Words that are taken with a note."""
    quotes: str = '"'
    """Quotes of strings."""
    delimiter: str = ""
    """A mark around verbatim strings, Gemma's ``<|"|>``."""
    bare_keys: bool = False
    """Whether keys stand without quotes."""
    python: bool = False
    """Whether tuples and Python's numbers and escapes are values."""


JSON = Dialect()
PYTHON = Dialect(words=_JSON_WORDS | _PYTHON_WORDS, slips={}, quotes="\"'", python=True)


def escape(text: str) -> str:
    """Text as the inside of a JSON string.

    >>> escape('a "b"')
    'a \\\\"b\\\\"'
    """
    return json.dumps(text, ensure_ascii=False)[1:-1]


def read_value(
    c: Cursor, emit: Emit, note: Note, *, dialect: Dialect = JSON, end: str = ""
) -> Reading[None]:
    """Read one value and emit it as JSON text, piece by piece.

    Args:
        c: Where the value starts; white space may come first.
        emit: Takes the JSON text.
        note: Takes the name of each slip; raises `Malformed` to refuse it.
        dialect: What values look like.
        end: The mark after the value; where it comes too early, open brackets are closed.

    Raises:
        Malformed: The text is no value.
        Cut: The text ends inside the value.
    """
    closers: list[str] = []
    while True:
        ch = yield from c.space()
        if ch in _OPEN and (ch != "(" or dialect.python):
            if len(closers) >= MAX_DEPTH:
                raise c.malformed(f"nested deeper than {MAX_DEPTH} levels")
            c.pos += 1
            closers.append(_OPEN[ch])
            emit("{" if ch == "{" else "[")
            ch = yield from c.space()
            if ch != closers[-1]:
                if ch and ch == "{" and closers[-1] == "}":
                    raise c.unexpected("a key")
                if closers[-1] == "}":
                    yield from _key(c, emit, note, dialect)
                continue
        else:
            yield from _scalar(c, emit, note, dialect, ch)
        if not (yield from _after(c, emit, note, dialect, closers, end)):
            return


_OPEN = {"{": "}", "[": "]", "(": ")"}


def _after(
    c: Cursor, emit: Emit, note: Note, dialect: Dialect, closers: list[str], end: str
) -> Reading[bool]:
    """Close brackets and take a comma; whether another value follows."""
    while closers:
        ch = yield from c.space()
        if ch == closers[-1]:
            c.pos += 1
            closers.pop()
            emit("}" if ch == "}" else "]")
        elif ch == ",":
            c.pos += 1
            ch = yield from c.space()
            if ch == closers[-1]:
                if ch != ")":
                    note("trailing_comma")
                continue
            emit(", ")
            if closers[-1] == "}":
                yield from _key(c, emit, note, dialect)
            return True
        elif _begins_member(ch, closers[-1], dialect):
            note("missing_comma")
            emit(", ")
            if closers[-1] == "}":
                yield from _key(c, emit, note, dialect)
            return True
        elif end and ch == end[0] and (yield from c.peek(len(end))) == end:
            note("missing_bracket")
            while closers:
                emit("}" if closers.pop() == "}" else "]")
        else:
            raise c.unexpected(f"',' or {closers[-1]!r}")
    return False


def _begins_member(ch: str, closer: str, dialect: Dialect) -> bool:
    """Whether a character behind a value begins the next one of an object or an array."""
    return bool(ch) and ch in ('"' if closer == "}" else '"{[') and not dialect.delimiter


def read_key(c: Cursor, note: Note) -> Reading[str]:
    """Read the key of an object's member and give back what it says."""
    pieces: list[str] = []
    yield from _name(c, pieces.append, note, JSON)
    return json.loads("".join(pieces))


def _name(c: Cursor, emit: Emit, note: Note, dialect: Dialect) -> Reading[None]:
    ch = yield from c.space()
    if ch and ch in "\"'":
        yield from _quoted(c, emit, note, dialect, ch, key=True)
    elif dialect.delimiter and ch == dialect.delimiter[0]:
        yield from _delimited(c, emit, dialect.delimiter)
    elif dialect.bare_keys or ch.isidentifier():
        word = yield from _word(c)
        if not dialect.bare_keys:
            unopened = yield from c.take('"')
            note("missing_quote" if unopened else "bare_key")
        emit(json.dumps(word, ensure_ascii=False))
    else:
        raise c.unexpected("a quoted key")


def _key(c: Cursor, emit: Emit, note: Note, dialect: Dialect) -> Reading[None]:
    yield from _name(c, emit, note, dialect)
    ch = yield from c.space()
    if ch != ":":
        if ch != "=" or not dialect.bare_keys:
            raise c.unexpected("':' after a key")
        note("equals_sign")
    c.pos += 1
    emit(": ")


def _scalar(c: Cursor, emit: Emit, note: Note, dialect: Dialect, ch: str) -> Reading[None]:
    is_raw = dialect.python and ch in _RAW and (yield from c.peek(2))[1:] in _QUOTES
    if is_raw or ch in _QUOTES:
        yield from _quoted(c, emit, note, dialect, c.text[c.pos + is_raw])
        return
    if dialect.delimiter and ch == dialect.delimiter[0]:
        yield from _delimited(c, emit, dialect.delimiter)
        return
    start = c.offset
    word = yield from _word(c)
    if _NUMBER.fullmatch(word):
        emit(word)
    elif word in dialect.words:
        emit(dialect.words[word])
    elif word in dialect.slips:
        note("python_literals")
        emit(dialect.slips[word])
    elif dialect.python and (number := _python_number(word)):
        emit(number)
    elif not dialect.delimiter and (number := _json_number(word)):
        note("bad_number")
        emit(number)
    elif dialect.delimiter:
        note("missing_delimiters")
        emit(json.dumps((word + (yield from _words(c))).strip(), ensure_ascii=False))
    else:
        raise Malformed(f"at character {start}: {word[:40]!r} is not a value")


def _json_number(word: str) -> str:
    """A number that JSON writes otherwise, with a plus sign, leading zeros or a point at an end;
    ``""`` where it is none."""
    found = _OTHER_NUMBER.fullmatch(word)
    if found is None:
        return ""
    sign, whole, rest = found["sign"], found["whole"].lstrip("0") or "0", found["rest"]
    return f"{sign}{whole}{'.' + rest if rest else ''}{found['power'] or ''}"


def _python_number(word: str) -> str:
    try:
        return json.dumps(int(word, 0) if "." not in word else float(word))
    except ValueError:
        return ""


def _word(c: Cursor) -> Reading[str]:
    parts: list[str] = []
    while True:
        match = _WORD.match(c.text, c.pos)
        if match:
            parts.append(match.group())
            c.pos = match.end()
        if c.pos < len(c.text):
            break
        if c.closed:
            raise Cut(f"the text ends at character {c.offset}, inside a value")
        yield
    if not parts:
        raise c.unexpected("a value")
    return "".join(parts)


def _words(c: Cursor) -> Reading[str]:
    """The rest of a string that stands without delimiters, up to what ends a value."""
    parts: list[str] = []
    while True:
        match = _WORDS.match(c.text, c.pos)
        if match:
            parts.append(match.group())
            c.pos = match.end()
        if c.pos < len(c.text):
            return "".join(parts)
        if c.closed:
            raise Cut(f"the text ends at character {c.offset}, inside a value")
        yield


def _quoted(
    c: Cursor, emit: Emit, note: Note, dialect: Dialect, quote: str, *, key: bool = False,
    is_name: bool = False,
) -> Reading[None]:  # fmt: skip
    if quote not in dialect.quotes:
        note("python_quotes")
    emit('"')
    if dialect.python and not key:
        yield from _python_strings(c, emit, note, dialect)
    else:
        c.pos += 1
        yield from _quoted_text(c, emit, note, dialect, quote, key=key, is_name=is_name)
    emit('"')


def _python_strings(c: Cursor, emit: Emit, note: Note, dialect: Dialect) -> Reading[None]:
    """What Python's string literals say that stand one behind another: they are one string."""
    while True:
        raw = yield from c.take_any(_RAW)
        quote = yield from c.peek()
        c.pos += 1
        mark = quote * 3 if (yield from c.take(quote * 2)) else quote
        yield from _quoted_text(c, emit, note, dialect, mark, raw=bool(raw))
        following = yield from c.space()
        if not following or following not in dialect.quotes:
            return


def _quoted_text(
    c: Cursor, emit: Emit, note: Note, dialect: Dialect, mark: str, *, key: bool = False,
    is_name: bool = False, raw: bool = False,
) -> Reading[None]:  # fmt: skip
    """The text of a string, up to and with the mark that ends it."""
    quote = mark[0]
    plain, in_quotes = _PLAIN[quote], False
    while True:
        match = plain.match(c.text, c.pos)
        if match:
            emit(match.group())
            c.pos = match.end()
        if c.pos >= len(c.text):
            if c.closed:
                raise Cut(f"the text ends at character {c.offset}, inside a string")
            yield
            continue
        ch = c.text[c.pos]
        if ch == quote and (yield from c.take(mark)):
            if key or is_name or len(mark) > 1 or (yield from _is_over(c, in_quotes)):
                return
            note("unescaped_quote")
            in_quotes = not in_quotes
            emit('\\"' if quote == '"' else quote)
            continue
        if ch == "\\":
            yield from _escaped(c, emit, note, dialect, raw=raw)
            continue
        if key and ch != '"':
            raise c.unexpected("the end of a key")
        if ch != '"' and not dialect.python:
            note("raw_control_character")
        c.pos += 1
        emit(escape(ch))


def _is_over(c: Cursor, in_quotes: bool) -> Reading[bool]:
    """Whether a string is over behind a quote, or the quote is one of its text that no backslash
    stands before: a word is glued to it, or one was and something else than a value's end follows.
    """
    while c.pos >= len(c.text) and not c.closed:
        yield
    if c.text[c.pos : c.pos + 1].isalnum():
        return False
    if not in_quotes:
        return True
    while True:
        rest = c.text[c.pos :].lstrip()
        if rest or c.closed:
            return not rest or rest[0] in _BEHIND_STRING
        yield


_BEHIND_STRING = ",:]})\"'<"
_PYTHON_ESCAPES = {"'": "'", "\n": "", "a": "\\u0007", "v": "\\u000b", "0": "\\u0000"}


def _escaped(
    c: Cursor, emit: Emit, note: Note, dialect: Dialect, *, raw: bool = False
) -> Reading[None]:
    pair = yield from c.peek(2)
    if raw and len(pair) == 2:
        c.pos += 2
        emit(escape(pair))
        return
    text = (yield from c.peek(6)) if pair == "\\u" else pair
    if len(text) < 2:
        raise Cut(f"the text ends at character {c.offset}, inside a string")
    if _ESCAPE.fullmatch(text):
        c.pos += len(text)
        emit(text)
        return
    if dialect.python and text[1] in "xU":
        digits = yield from c.peek(4 if text[1] == "x" else 10)
        if re.fullmatch(r"\\(?:x[0-9a-fA-F]{2}|U000[0-9a-fA-F]{5}|U0010[0-9a-fA-F]{4})", digits):
            c.pos += len(digits)
            emit(escape(chr(int(digits[2:], 16))))
            return
    if text[1] in _PYTHON_ESCAPES and (dialect.python or text[1] == "'"):
        if not dialect.python:
            note("python_quotes")
        c.pos += 2
        emit(_PYTHON_ESCAPES[text[1]])
        return
    if not dialect.python:
        note("bad_escape")
    c.pos += 1
    emit("\\\\")


def _delimited(c: Cursor, emit: Emit, mark: str) -> Reading[None]:
    if not (yield from c.take(mark)):
        raise c.unexpected(repr(mark))
    emit('"')
    yield from read_raw(c, lambda text: emit(escape(text)), mark)
    emit('"')


def read_raw(c: Cursor, emit: Emit, mark: str) -> Reading[None]:
    """Emit text as it arrives, up to `mark`; consumes the mark.

    Raises:
        Cut: The text ends before the mark.
    """
    while True:
        end = c.text.find(mark, c.pos)
        if end >= 0:
            if end > c.pos:
                emit(c.text[c.pos : end])
            c.pos = end + len(mark)
            return
        if c.closed:
            raise Cut(f"the text ends before {mark!r}")
        safe = len(c.text) - tail(c.text, c.pos, mark)
        if safe > c.pos:
            emit(c.text[c.pos : safe])
            c.pos = safe
        yield


def tail(text: str, start: int, mark: str) -> int:
    """How many characters at the end of `text`, from `start` on, may begin `mark`."""
    for size in range(min(len(mark) - 1, len(text) - start), 0, -1):
        if mark.startswith(text[len(text) - size :]):
            return size
    return 0


def read_string(
    c: Cursor, note: Note, *, dialect: Dialect = JSON, key: bool = False
) -> Reading[str]:
    """Read one quoted string and give back what it says; a key holds no line feed."""
    ch = yield from c.space()
    if not ch or ch not in "\"'":
        raise c.unexpected("a string")
    pieces: list[str] = []
    yield from _quoted(c, pieces.append, note, dialect, ch, key=key, is_name=True)
    return json.loads("".join(pieces))


def convert(text: str, note: Note, *, dialect: Dialect = JSON) -> str:
    """A whole text that is one value, as JSON text.

    Raises:
        Malformed: It is none, or something follows it.
    """
    c = Cursor(text + "\n", closed=True)  # a word at the very end is whole
    pieces: list[str] = []
    for _ in read_value(c, pieces.append, note, dialect=dialect):
        raise AssertionError("a closed cursor has nothing to wait for")
    for _ in c.space():
        raise AssertionError("a closed cursor has nothing to wait for")
    if c.pos < len(c.text):
        raise c.unexpected("the end of the value")
    return "".join(pieces)
