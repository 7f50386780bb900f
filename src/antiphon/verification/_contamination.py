"""Decontamination: rows that a benchmark asks, too.

A row is contaminated when it shares a long run of words with a question, is a short question word
for word, or makes the very calls that a case wants, with values that say something.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from antiphon.messages import JsonValue, ToolCall, dump_json

_WORD = re.compile(r"\w+")
N_WORDS = 8
"""A run of so many words is no chance."""
_FEW_CHARS = 12
"""Calls whose values are shorter together can be equal by chance."""


@dataclass(slots=True)
class Benchmarks:
    """What benchmarks ask and want."""

    runs: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """Runs of words -> the case."""
    questions: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """Short questions -> the case."""
    calls: dict[str, str] = field(default_factory=dict[str, str])
    """Calls -> the case."""

    def add(self, name: str, question: str, calls: Sequence[ToolCall] = ()) -> None:
        """Take a case.

        Args:
            name: How it is called.
            question: What it asks.
            calls: What it wants.
        """
        words = _words(question)
        if len(words) < N_WORDS:
            self.questions[words] = name
        for run in _runs(words):
            self.runs[run] = name
        key = _calls_key(calls)
        if key:
            self.calls[key] = name

    def found_in(self, turns: Iterable[str], calls: Sequence[ToolCall]) -> str:
        """Why a row is contaminated; empty where it is not.

        Args:
            turns: What its user says.
            calls: All its calls.
        """
        for text in turns:
            words = _words(text)
            if words in self.questions:
                return f"asks what {self.questions[words]} asks"
            for run in _runs(words):
                if run in self.runs:
                    return f"shares {' '.join(run)!r} with {self.runs[run]}"
        key = _calls_key(calls)
        return f"makes the calls of {self.calls[key]}" if key in self.calls else ""


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.lower()))


def _runs(words: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    return (words[i : i + N_WORDS] for i in range(len(words) - N_WORDS + 1))


def _calls_key(calls: Sequence[ToolCall]) -> str:
    """Calls as one text, in any order; empty where they say too little."""
    values = "".join(dump_json(v) for call in calls for v in call.arguments.values())
    if len(values) < _FEW_CHARS:
        return ""
    spelled: list[JsonValue] = [[c.name, dict(sorted(c.arguments.items()))] for c in calls]
    return "\n".join(sorted(dump_json(one) for one in spelled))
