"""Where a value ends that stands as it is between two marks.

A value may quote its own closing mark: it ends only where the call goes on behind the mark.  Where
the mark is missing, the value ends at the next key that the tool has, or where the call is over and
nothing follows but the end of the text or another call.  Text is given on as it arrives.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from antiphon.formats._cursor import Cursor, Cut, Reading

Emit = Callable[[str], None]

_SPACE = re.compile(r"(?:[ \t\r\n]|\\n)*")  # and a line feed that a model wrote as two characters
_ATTRIBUTE = re.compile(r"""\s*([\w:-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+)""")
_LONGER = 12  # characters that a misspelt tag may have behind its beginning
_KEY_LIMIT = 256  # characters of a tag's inside


def attributes(text: str) -> Mapping[str, str]:
    """What stands in a tag behind its name; a value without a name is the one named ``""``.

    >>> attributes("=city"), attributes(' name="q" string="true"'), attributes("city")
    ({'': 'city'}, {'name': 'q', 'string': 'true'}, {'': 'city'})
    """
    bare = text.strip()
    if bare.startswith("="):
        return {"": bare[1:].strip().strip("\"'")}
    found = {name: value.strip("\"'") for name, value in _ATTRIBUTE.findall(bare)}
    if found and "<" in _ATTRIBUTE.sub("", bare):
        return {}  # the tag's end is missing, and a value stands among its attributes
    return found or {"": bare}


def key_of(found: Mapping[str, str]) -> str | None:
    """The key that a tag's attributes name."""
    return found.get("", found.get("name", found.get("key")))


@dataclass(frozen=True, slots=True)
class ValueEnd:
    """The marks around a value's end."""

    close: str
    """The mark that closes the value."""
    padded: bool
    """Whether one line feed before a mark is the family's."""
    spaced: bool
    """Whether the family writes a line feed between its marks: where a value's closing mark is
    missing, one line feed before the next mark is not the value's."""
    key: str
    """The mark before the next key."""
    keyed: str
    """The mark behind a key."""
    over: str
    """The mark that ends the call."""
    block: str
    """The mark that ends a block of calls, if that is another one; else ``""``."""
    others: tuple[str, ...]
    """Marks that may open the next call."""
    _search: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _prefixes: frozenset[str] = field(init=False, repr=False, compare=False)
    _unfinished: re.Pattern[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        plain = tuple(m for m in (self.close, self.key, self.over) if m)
        led = plain if self.padded else plain[1:] if self.spaced else ()
        forms = {*plain, *("\n" + m for m in led)}
        by_length = sorted(forms, key=len, reverse=True)
        patterns = list(map(re.escape, by_length))
        misspelt = _misspelt(self.close)
        feed = "\n?" if self.padded else ""
        if misspelt:
            patterns.append(f"{feed}(?!{re.escape(self.close)}){misspelt}>")
        search = re.compile("|".join(patterns))
        prefixes = frozenset(form[:i] for form in forms for i in range(1, len(form)))
        object.__setattr__(self, "_search", search)
        object.__setattr__(self, "_prefixes", prefixes)
        unfinished = re.compile(rf"{feed}{misspelt}\Z" if misspelt else r"(?!)")
        object.__setattr__(self, "_unfinished", unfinished)

    def read(self, c: Cursor, emit: Emit, is_key: Callable[[str], bool]) -> Reading[str]:
        """Emit a value as it arrives, and consume its closing mark.

        Args:
            c: Where the value starts.
            emit: Takes the text.
            is_key: Whether a key is one that the tool has and the call lacks.

        Returns:
            What was wrong with the closing mark; ``""`` where it was right.

        Raises:
            Cut: The text ends inside the value.
        """
        while True:
            match = self._search.search(c.text, c.pos)
            end = match.start() if match else len(c.text) - self._held(c.text, c.pos)
            if end > c.pos:
                emit(c.text[c.pos : end])
                c.pos = end
            if match is None:
                if c.closed:
                    raise Cut(f"the text ends at character {c.offset}, inside a value")
                yield
                continue
            found = match.group()
            mark = found.removeprefix("\n")
            if mark == self.close:
                if (yield from self._goes_on(c, len(found))):
                    c.pos += len(found)
                    return ""
            elif mark == self.over:
                if (yield from self._is_over(c, len(found))):
                    return "missing_close"
            elif mark == self.key:
                if (yield from self._is_key(c, len(found), is_key)):
                    return "missing_close"
            elif (yield from _follows(c, len(found), (self.key, self.over, self.block))):
                c.pos += len(found)
                return "misspelt_tag"
            emit(found)
            c.pos += len(found)

    def taken(self, c: Cursor) -> Reading[str]:
        """Consume the closing mark behind a value that ended by itself; what was wrong with it.

        Raises:
            Malformed: Neither it nor another mark of the call follows.
        """
        if not (yield from c.space()):
            return "missing_close"
        if (yield from c.take(self.close)):
            return ""
        for mark in (self.key, self.over, self.block):
            if (yield from c.is_next(mark)):
                return "missing_close"
        raise c.unexpected(repr(self.close))

    def _held(self, text: str, start: int) -> int:
        longest = max(len(self.close), len(self.key), len(self.over))
        held = 0
        for size in range(min(longest, len(text) - start), 0, -1):
            if text[len(text) - size :] in self._prefixes:
                held = size
                break
        if held > 1:
            return held
        unfinished = self._unfinished.search(text, max(start, len(text) - longest - _LONGER))
        return len(text) - unfinished.start() if unfinished else held

    def _goes_on(self, c: Cursor, size: int) -> Reading[bool]:
        """Whether the call goes on or ends behind a closing mark of that size."""
        first, bracket, rest = self.over.partition(">")
        marks = (self.key, self.over, self.block, self.close, *self.others)
        if bracket:  # with white space in the mark, or between its parts
            marks += (f"{first} ", f"{first}\n", *((f"{first}>",) if rest else ()))
        if self.key[0] == "<":
            marks += (f"< {self.key[1:]}", f"<\n{self.key[1:]}")
        return (yield from _follows(c, size, marks))

    def _is_over(self, c: Cursor, size: int) -> Reading[bool]:
        """Whether the call is over, and with it the text, or another call follows."""
        if self.block and (yield from _follows(c, size, (self.block,))):
            start = c.text.find(self.block, c.pos + size)
            size = (start if start >= 0 else len(c.text)) - c.pos + len(self.block)
        return (yield from _follows(c, size, self.others))

    def _is_key(self, c: Cursor, size: int, is_key: Callable[[str], bool]) -> Reading[bool]:
        limit = size + _KEY_LIMIT
        while (at := c.text.find(self.keyed, c.pos + size, c.pos + limit)) < 0:
            if c.closed or len(c.text) - c.pos > limit:
                return False
            yield
        key = key_of(attributes(c.text[c.pos + size : at]))
        return key is not None and is_key(key)


def _misspelt(close: str) -> str:
    """A pattern of closing tags that begin as one does and end otherwise, without their last
    character; ``""`` where there is none.

    >>> _misspelt("</parameter>")
    '</para\\\\w{0,12}[ \\\\n]{0,2}'
    """
    tag = re.fullmatch(r"(</(?:.*\W)?\w{3,4})\w*>", close)
    return rf"{re.escape(tag[1])}\w{{0,{_LONGER}}}[ \n]{{0,2}}" if tag else ""


def _follows(c: Cursor, size: int, marks: tuple[str, ...]) -> Reading[bool]:
    """Whether a mark, or the end of the text, comes behind the next `size` characters and
    space."""
    known = tuple(m for m in marks if m)
    longest = max(map(len, known), default=0)
    while True:
        space = _SPACE.match(c.text, c.pos + size)
        at = space.end() if space else len(c.text)
        if any(c.text.startswith(m, at) for m in known):
            return True
        if c.closed:
            return at >= len(c.text)
        rest = c.text[at : at + longest]
        undecided = not rest or rest == "\\" or any(m.startswith(rest) for m in known)
        if at + longest <= len(c.text) or not undecided:
            return False
        yield
