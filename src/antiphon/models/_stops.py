"""Stop texts in text that arrives in pieces: what is safe to show, and when it is over."""

from collections.abc import Sequence


class StopScanner:
    """Holds back what may be the beginning of a stop text; each character is looked at once.

    >>> scanner = StopScanner(["END"])
    >>> [scanner.feed(piece) for piece in ("a E", "N", "Q EN", "D b")]
    ['a ', '', 'ENQ ', '']
    >>> scanner.stopped
    True
    """

    def __init__(self, stops: Sequence[str]) -> None:
        """Set up a scanner; without stop texts everything is safe."""
        self._stops = tuple(stop for stop in stops if stop)
        self._held: str = ""
        self.stopped = False
        """Whether a stop text has come; nothing after it is taken."""

    def feed(self, text: str) -> str:
        """Take more text; give what can no longer be part of a stop text."""
        if self.stopped:
            return ""
        text = self._held + text
        found = [place for stop in self._stops if (place := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)]
        keep = max((_overlap(text, stop) for stop in self._stops), default=0)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """What was held back and is no stop text after all."""
        held, self._held = self._held, ""
        return held


def _overlap(text: str, stop: str) -> int:
    """How many characters at the text's end begin the stop text, short of all."""
    for n in range(min(len(stop) - 1, len(text)), 0, -1):
        if text.endswith(stop[:n]):
            return n
    return 0
