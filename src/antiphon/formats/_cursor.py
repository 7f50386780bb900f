"""The text that a parser has not consumed yet, and how a reader waits for more of it.

Readers are generators: a bare ``yield`` asks for more text, so a grammar is written as straight
code and still takes its text in any chunks.  What is consumed is forgotten, except between `keep`
and `kept`, which give back the exact text in between.  The unconsumed rest stays short (a possible
mark), so that the cost of a chunk does not depend on what came before it.
"""

import re
from collections.abc import Generator, Iterable
from typing import TypeVar

T = TypeVar("T")
Reading = Generator[None, None, T]

_SPACE = re.compile(r"[ \t\r\n]*")


class Malformed(Exception):
    """What a model wrote does not follow the format; becomes an `InvalidToolCall`."""


class Cut(Malformed):
    """The text ended inside a call."""


class Cursor:
    """Text that arrives in chunks, with one position in it."""

    __slots__ = ("_kept", "_kept_from", "_origin", "closed", "pos", "text")

    def __init__(self, text: str = "", *, closed: bool = False) -> None:
        self.text = text
        self.pos = 0
        self.closed = closed
        self._origin = 0
        self._kept: list[str] | None = None
        self._kept_from = 0

    def feed(self, chunk: str) -> None:
        """Take more text and forget what was consumed."""
        if self._kept is not None:
            self._kept.append(self.text[self._kept_from : self.pos])
            self._kept_from = 0
        self._origin += self.pos
        self.text = self.text[self.pos :] + chunk if self.pos < len(self.text) else chunk
        self.pos = 0

    @property
    def offset(self) -> int:
        """The position in the whole text, in characters."""
        return self._origin + self.pos

    @property
    def keeping(self) -> bool:
        """Whether consumed text is being remembered."""
        return self._kept is not None

    def keep(self, start: int) -> None:
        """Remember the text from `start`, a position in `text`, on."""
        self._kept = []
        self._kept_from = start

    def kept(self) -> str:
        """The text since `keep` up to the position; ends the keeping."""
        if self._kept is None:
            return ""
        self._kept.append(self.text[self._kept_from : self.pos])
        text = "".join(self._kept)
        self._kept = None
        return text

    def rest(self) -> str:
        """All that has arrived and was not consumed; consumes it."""
        text = self.text[self.pos :]
        self.pos = len(self.text)
        return text

    def give_back(self, text: str) -> None:
        """Take back text that was consumed last."""
        if self.text.endswith(text, 0, self.pos):
            self.pos -= len(text)
            return
        self.text = text + self.text[self.pos :]
        self._origin += self.pos - len(text)
        self.pos = 0

    def peek(self, size: int = 1) -> Reading[str]:
        """The next `size` characters without consuming them; fewer at the end of the text."""
        while len(self.text) - self.pos < size and not self.closed:
            yield
        return self.text[self.pos : self.pos + size]

    def space(self) -> Reading[str]:
        """Consume white space; give back the character after it, ``""`` at the end of the text."""
        while True:
            match = _SPACE.match(self.text, self.pos)
            assert match is not None
            self.pos = match.end()
            if self.pos < len(self.text):
                return self.text[self.pos]
            if self.closed:
                return ""
            yield

    def take(self, mark: str) -> Reading[bool]:
        """Consume `mark` if it comes next."""
        while not self.text.startswith(mark, self.pos):
            here = self.text[self.pos : self.pos + len(mark)]
            if self.closed or not mark.startswith(here):
                return False
            yield
        self.pos += len(mark)
        return True

    def is_next(self, mark: str) -> Reading[bool]:
        """Whether `mark` comes next; no mark never does."""
        if not mark or not (yield from self.take(mark)):
            return False
        self.pos -= len(mark)
        return True

    def take_any(self, marks: Iterable[str]) -> Reading[str]:
        """Consume the first of `marks` that comes next; give it back, else ``""``."""
        for mark in marks:
            if (yield from self.take(mark)):
                return mark
        return ""

    def until(self, mark: str, *, limit: int = 512, before: tuple[str, ...] = ()) -> Reading[str]:
        """Consume text up to and with `mark`; give back the text before it.

        Args:
            mark: What ends the text.
            limit: The longest text, in characters.
            before: Marks that it must come before.

        Raises:
            Malformed: The mark does not come within `limit` characters, or behind another one.
        """
        start = 0
        while True:
            end = self.text.find(mark, self.pos + start, self.pos + limit + len(mark))
            if 0 <= end <= self.pos + limit:
                found = self.text[self.pos : end]
                for other in before:
                    if other in found:
                        raise self.malformed(f"{other!r} comes before {mark!r}")
                self.pos = end + len(mark)
                return found
            if end >= 0 or len(self.text) - self.pos > limit + len(mark):
                raise self.malformed(f"no {mark!r} within {limit} characters")
            if self.closed:
                raise Cut(f"the text ends before {mark!r}")
            start = max(0, len(self.text) - self.pos - len(mark) + 1)
            yield

    def malformed(self, what: str) -> Malformed:
        """An error that names the position, as a value to raise."""
        if self.closed and self.pos >= len(self.text):
            return Cut(f"the text ends at character {self.offset}: {what}")
        return Malformed(f"at character {self.offset}: {what}")

    def unexpected(self, wanted: str) -> Malformed:
        """An error for the character at the position, as a value to raise."""
        if self.pos >= len(self.text):
            return self.malformed(f"expected {wanted}")
        return self.malformed(f"expected {wanted}, found {self.text[self.pos]!r}")
