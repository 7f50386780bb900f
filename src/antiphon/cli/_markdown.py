"""Markdown on a terminal while it is still being written: headings, emphasis, code, bullets.

What cannot be decided yet is held back: a few characters at the beginning of a line, a run of marks
inside one.  Everything that is no markup goes out as it came; so does all of a table or a link.
Emphasis ends with its line at the latest, so that a lone asterisk cannot colour the rest.

>>> page = Markdown()
>>> page.feed("## Sum\\nIt is **42**, not `41 * 1`.\\n") + page.finish()
'\\x1b[1mSum\\x1b[0m\\nIt is \\x1b[1m42\\x1b[0m, not \\x1b[36m41 * 1\\x1b[0m.\\n'
"""

import re

_UNDECIDED = re.compile(r"[ \t]*(?:#{1,6}|`{1,3}|[-*+]|\*{1,3})?")
_FENCE = re.compile(r"[ \t]*```")
_MAYBE_FENCE = re.compile(r"[ \t]*`{0,3}[ \t]*")
_HEADING = re.compile(r"#{1,6} ")
_BULLET = re.compile(r"([ \t]*)[-*+] ")
_CODES = {"heading": "1", "bold": "1", "italic": "3", "code": "36", "fence": "2"}


class Markdown:
    """Turns a text that arrives in pieces into what a terminal with colours shows."""

    def __init__(self) -> None:
        self._styles: list[str] = []
        self._held = ""
        self._begun = False  # whether the kind of the line is known
        self._in_block = False
        self._is_escaped = False
        self._before = "\n"

    def feed(self, text: str) -> str:
        """What can be shown after this piece."""
        return "".join(self._take(char) for char in text)

    def finish(self) -> str:
        """What was held back, and the end of every colour; the next text begins anew."""
        rest = ""
        if not self._begun:
            held, self._held = self._held, ""
            rest = held if self._in_block or _FENCE.match(held) else self._inline(held)
        end = rest + self._marks("\n") + self._cleared()
        self.__init__()
        return end

    def _take(self, char: str) -> str:
        if not self._begun:
            self._held += char
            return self._begin()
        if char == "\n":
            shown = self._marks("\n") + self._cleared() + "\n"
            self._begun, self._before, self._is_escaped = False, "\n", False
            return shown
        return char if self._in_block else self._mark(char)

    def _begin(self) -> str:
        """Decide what kind of line this is, as soon as its first characters tell."""
        held, ends = self._held.removesuffix("\n"), self._held.endswith("\n")
        if _FENCE.match(held):
            if not ends:
                return ""
            self._held, self._in_block = "", not self._in_block
            return f"\x1b[{_CODES['fence']}m{held}\x1b[0m\n"
        undecided = _MAYBE_FENCE if self._in_block else _UNDECIDED
        if not ends and undecided.fullmatch(held):
            return ""
        self._held, self._begun = "", True
        if self._in_block:
            return self._on("code") + held + (self._take("\n") if ends else "")
        shown = ""
        if found := _HEADING.match(held):
            shown, held = self._on("heading"), held[found.end() :]
        elif found := _BULLET.match(held):
            shown, held = f"{found[1]}• ", held[found.end() :]
        return shown + self._inline(held) + (self._take("\n") if ends else "")

    def _inline(self, text: str) -> str:
        return "".join(self._mark(char) for char in text)

    def _mark(self, char: str) -> str:
        """One character inside a line; runs of marks are held until what follows is known."""
        if self._is_escaped:
            self._is_escaped = False
            self._before = char
            return char if char in "\\`*_#[]()!<>" else f"\\{char}"
        if self._held and char == self._held[0]:
            self._held += char
            return ""
        shown = self._marks(char)
        if char == "\\" and "code" not in self._styles:
            self._is_escaped = True
            return shown
        if char == "`" or (char == "*" and "code" not in self._styles):
            self._held = char
            return shown
        self._before = char
        return shown + char

    def _marks(self, after: str) -> str:
        """What a run of marks does, now that the character behind it is known."""
        run, self._held = self._held, ""
        if not run:
            return ""
        if run[0] == "`":
            return self._toggle("code") if len(run) == 1 else run
        style = {1: "italic", 2: "bold"}.get(len(run))
        if style is None:
            return run
        closes = style in self._styles and not self._before.isspace()
        opens = style not in self._styles and not after.isspace()
        return self._toggle(style) if closes or opens else run

    def _toggle(self, style: str) -> str:
        if style in self._styles:
            self._styles.remove(style)
            return "\x1b[0m" + "".join(f"\x1b[{_CODES[one]}m" for one in self._styles)
        return self._on(style)

    def _on(self, style: str) -> str:
        self._styles.append(style)
        return f"\x1b[{_CODES[style]}m"

    def _cleared(self) -> str:
        shown = "\x1b[0m" if self._styles else ""
        self._styles.clear()
        return shown
