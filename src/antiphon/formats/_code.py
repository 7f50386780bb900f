"""Where code stands in an answer's text, as Markdown has it: markup in it is shown, not meant.

    The mark `<tool_call>` opens a call:

    ```
    <tool_call>{"name": "get_weather", "arguments": {"city": "Lima"}}</tool_call>
    ```

    That is all.

It knows no family; `_scan.py` asks it where a mark of calls stands.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

_FENCES = ("```", "~~~")
_KEPT, _LONG = 16, 256  # characters of a line's ends, and of a line that is kept whole


class Place(NamedTuple):
    """A place in a text."""

    in_fence: bool
    """Whether a fence is open there."""
    in_span: bool = False
    """Whether a span of code is."""
    begins_span: bool = False
    """Whether that begins right there, behind other words of its line."""


@dataclass(slots=True)
class Code:
    """The code in a text, read line by line, when it is asked for."""

    is_shown: bool | None = None
    """Whether a call in a fence is shown to the reader; ``None`` until one was met."""
    _unread: list[str] = field(default_factory=list[str])
    _line: str = ""
    _in_fence: bool = False

    def add(self, text: str) -> None:
        """More of the text."""
        self._unread.append(text)

    def read(self, space: str) -> Place:
        """What stands at the end of the text.

        Args:
            space: White space behind the text.
        """
        *lines, line = (self._line + "".join(self._unread)).split("\n")
        self._line = _shortened(line)
        self._unread.clear()
        for line in lines:
            self._in_fence ^= _is_fence(line)
        if "\n" in space:
            return Place(self._in_fence ^ _is_fence(self._line))
        in_span = self._line.count("`") % 2 == 1
        before = self._line.removesuffix("`")
        opens = before != self._line and before[-1:] != "`" and bool(before.strip())
        return Place(self._in_fence, in_span, in_span and opens)


def _shortened(line: str) -> str:
    """A line with as much of it as tells where its code is, so that a long one is read once."""
    if len(line) <= _LONG:
        return line
    is_odd = line[_KEPT:-_KEPT].count("`") % 2
    return line[:_KEPT] + "`" * is_odd + line[-_KEPT:]


def _is_fence(line: str) -> bool:
    return line.lstrip().startswith(_FENCES)


def goes_on(text: str) -> bool:
    """Whether a text that stands behind a call closes a fence and goes on behind it.

    >>> goes_on("\\n```\\n\\nThat is all."), goes_on("\\n```\\n"), goes_on("That is all.")
    (True, False, False)
    """
    fence, _, rest = text.lstrip().partition("\n")
    return fence.startswith(_FENCES) and bool(rest.strip())
