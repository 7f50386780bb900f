"""What is shown of a reply while it is written, also where a broken stream begins anew.

A model that is asked again mostly writes the same text once more.  As far as it does, nothing is
told twice: whoever shows the text as it comes goes on where it stood.  Where the new text differs,
the reader is told to discard what was shown, and is shown the new text from its beginning.
"""

from collections.abc import Iterator
from typing import Final, TypeAlias

from antiphon.events import CallDeltaEvent, Event, RetryEvent, TextEvent, ThinkingEvent
from antiphon.messages import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from antiphon.models import Retry

DIFFERS: Final = "the reply differs from what was shown of the one that broke off"
"""The reason of the event that discards what was shown."""

_Kind: TypeAlias = type[TextDelta] | type[ThinkingDelta]
_KINDS: tuple[_Kind, _Kind] = (ThinkingDelta, TextDelta)


class Reply:
    """The events of one reply's pieces."""

    def __init__(self, step: int) -> None:
        """Set up.

        Args:
            step: The step that the reply belongs to.
        """
        self._step = step
        self._shown: dict[_Kind, list[str]] = {kind: [] for kind in _KINDS}
        self._has_calls = False
        self._expected: dict[_Kind, str] | None = None
        self._at: dict[_Kind, int] = {}

    def events(self, output: Delta | Retry, time: float) -> Iterator[Event]:
        """What to tell of one piece.

        Args:
            output: The piece, or that the reply begins anew.
            time: Seconds since the run began.
        """
        if self._expected is not None and not isinstance(output, Retry):
            yield from self._compared(output, self._expected, time)
            return
        match output:
            case TextDelta(text):
                self._shown[TextDelta].append(text)
                yield TextEvent(self._step, text, time)
            case ThinkingDelta(text):
                self._shown[ThinkingDelta].append(text)
                yield ThinkingEvent(self._step, text, time)
            case ToolCallDelta(number, name, _, arguments):
                self._has_calls = True
                yield CallDeltaEvent(self._step, number, name, arguments, time)
            case Retry(reason, wait):
                yield self._again(reason, wait, time)

    def end(self, time: float) -> Iterator[Event]:
        """What to tell when the reply is over: a new one may be shorter than what was shown."""
        if self._expected is not None:
            yield from self._differs(self._expected, time)

    def _again(self, reason: str, wait: float, time: float) -> RetryEvent:
        """Begin anew: keep what was shown for comparison; pieces of calls are always told again."""
        discarded = self._n_shown() if self._has_calls else 0
        if discarded or self._has_calls:
            self._shown = {kind: [] for kind in _KINDS}
        self._has_calls = False
        expected = {kind: "".join(self._shown[kind]) for kind in _KINDS}
        self._expected = expected if any(expected.values()) else None
        self._at = dict.fromkeys(_KINDS, 0)
        return RetryEvent(self._step, reason, wait, discarded, time)

    def _compared(self, output: Delta, expected: dict[_Kind, str], time: float) -> Iterator[Event]:
        if not isinstance(output, ToolCallDelta) and self._repeats(output, expected):
            kind, n_known = type(output), len(expected[type(output)]) - self._at[type(output)]
            self._at[kind] += min(n_known, len(output.text))
            if self._is_repeated(expected):
                self._expected = None
            if output.text[n_known:]:
                yield from self._new(kind, output.text[n_known:], time)
            return
        yield from self._differs(expected, time)
        yield from self.events(output, time)

    def _repeats(self, output: TextDelta | ThinkingDelta, expected: dict[_Kind, str]) -> bool:
        """Whether a piece says what was shown, or goes on where all that was shown is said."""
        kind, text = type(output), output.text
        n_known = len(expected[kind]) - self._at[kind]
        if not expected[kind].startswith(text[:n_known], self._at[kind]):
            return False
        other = TextDelta if kind is ThinkingDelta else ThinkingDelta
        return len(text) <= n_known or self._at[other] == len(expected[other])

    def _is_repeated(self, expected: dict[_Kind, str]) -> bool:
        return all(self._at[kind] == len(expected[kind]) for kind in _KINDS)

    def _differs(self, expected: dict[_Kind, str], time: float) -> Iterator[Event]:
        """Discard what was shown, and show what the new reply has said so far."""
        yield RetryEvent(self._step, DIFFERS, 0.0, self._n_shown(), time)
        self._expected = None
        self._shown = {kind: [] for kind in _KINDS}
        for kind in _KINDS:
            if self._at[kind]:
                yield from self._new(kind, expected[kind][: self._at[kind]], time)

    def _new(self, kind: _Kind, text: str, time: float) -> Iterator[Event]:
        self._shown[kind].append(text)
        event = TextEvent if kind is TextDelta else ThinkingEvent
        yield event(self._step, text, time)

    def _n_shown(self) -> int:
        return sum(len(text) for texts in self._shown.values() for text in texts)
