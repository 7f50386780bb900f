"""A run as a person reads it in a terminal: the answer on stdout, all else on stderr.

Text goes out as it arrives where stdout is a terminal; in a pipe stdout gets the last answer alone,
so that a script reads nothing else.  Markdown is shown as colours, and as it is where there are
none: in a pipe, with ``NO_COLOR``, or on a dumb terminal.  Control sequences that a model or tool
wrote are shown, never obeyed.
"""

import os
import re
import sys
from collections.abc import Iterator, Mapping
from typing import TextIO

from antiphon.cli._markdown import Markdown
from antiphon.events import (
    AttemptEvent,
    CallEvent,
    DecisionEvent,
    Event,
    FeedbackEvent,
    HandoffEvent,
    InvalidCallEvent,
    LimitEvent,
    PlanEvent,
    ReflectionEvent,
    ReplanEvent,
    ResultEvent,
    RetryEvent,
    RunEnd,
    TaskEvent,
    TextEvent,
    ThinkingEvent,
    dump_row,
)
from antiphon.messages import JsonValue, ToolCall, Usage

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_MAX_ARGUMENT_CHARS = 300
_MAX_RESULT_CHARS = 400

DIM, BOLD, RED, GREEN, CYAN, YELLOW = "2", "1", "31", "32", "36", "33"


class Terminal:
    """Writes events as they come."""

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        """Set up.

        Args:
            out: Where answers go; stdout by default.
            err: Where all else goes; stderr by default.
        """
        self._out = sys.stdout if out is None else out
        self._err = sys.stderr if err is None else err
        self.is_live = self._out.isatty()
        self._colours = has_colours(self._err)
        self._page = Markdown() if self.is_live and has_colours(self._out) else None
        self._thinking = False
        self._open_line: TextIO | None = None

    def show(self, event: Event) -> None:
        """Write one event."""
        match event:
            case TextEvent(text=text):
                self._text(text)
            case ThinkingEvent(text=text):
                self._think(text)
            case CallEvent(call=call):
                self._line(f"{self._paint('▸', CYAN)} {call_text(call)}")
            case InvalidCallEvent(call=call):
                self._line(self._paint(f"▸ a call that cannot be read: {call.reason}", RED))
            case ResultEvent(result=result, duration=duration):
                mark = self._paint("✗", RED) if result.is_error else self._paint("✓", GREEN)
                took = self._paint(f"  {duration:.2f} s", DIM)
                self._line(f"  {mark} {self._safe(clipped(result.text, _MAX_RESULT_CHARS))}{took}")
            case DecisionEvent(approved=approved):
                self._line(self._paint("  approved" if approved else "  refused", YELLOW))
            case HandoffEvent(source=source, target=target):
                self._line(self._paint(f"⇢ {source} hands over to {target}", CYAN))
            case RetryEvent(reason=reason, wait=wait, discard_chars=n):
                void = "; the text above does not count" if n else ""
                after = f"; asking again in {wait:.1f} s" if wait else ""
                self._line(self._paint(f"↻ {reason}{void}{after}", YELLOW))
            case FeedbackEvent(text=text):
                self._line(self._paint(f"↻ {text}", YELLOW))
            case LimitEvent(limit=limit, value=value):
                self._line(self._paint(f"! {limit} reached: {value:g}", YELLOW))
            case PlanEvent() | TaskEvent() | ReplanEvent() | AttemptEvent() | ReflectionEvent():
                for line, colour in strategy_lines(event):
                    self._line(self._paint(line, colour))
            case RunEnd():
                self._end(event)
            case _:
                pass

    def say(self, text: str) -> None:
        """Write a line that is no event."""
        self._line(self._paint(text, DIM))

    def _text(self, text: str) -> None:
        if not self.is_live:
            return
        self._stop_thinking()
        self._switch(self._out)
        safe = self._safe(text)
        self._out.write(safe if self._page is None else self._page.feed(safe))
        self._out.flush()
        self._open_line = self._out if self._page or not text.endswith("\n") else None

    def _think(self, text: str) -> None:
        self._switch(self._err)
        if self._colours and not self._thinking:
            self._err.write(f"\x1b[{DIM}m")
        self._thinking = True
        self._err.write(self._safe(text))
        self._err.flush()
        self._open_line = self._err if not text.endswith("\n") else None

    def _stop_thinking(self) -> None:
        if self._thinking:
            self._thinking = False
            if self._colours:
                self._err.write("\x1b[0m")
                self._err.flush()
            self._close_line()

    def _switch(self, stream: TextIO) -> None:
        if self._open_line is not None and self._open_line is not stream:
            self._close_line()

    def _close_line(self) -> None:
        if self._open_line is not None:
            if self._open_line is self._out and self._page is not None:
                self._out.write(self._page.finish())
            self._open_line.write("\n")
            self._open_line.flush()
            self._open_line = None

    def _line(self, text: str) -> None:
        self._stop_thinking()
        self._close_line()
        self._err.write(f"{text}\n")
        self._err.flush()

    def _end(self, event: RunEnd) -> None:
        self._stop_thinking()
        self._close_line()
        if not self.is_live and event.output:
            self._out.write(f"{event.output}\n")
            self._out.flush()
        if event.usage.n_requests:
            self.say(f"{usage_text(event.usage)}, {event.time:.1f} s")

    def _paint(self, text: str, colour: str) -> str:
        safe = self._safe(text)
        return f"\x1b[{colour}m{safe}\x1b[0m" if self._colours else safe

    def _safe(self, text: str) -> str:
        return printable(text)


_MARKS = {
    "in_progress": ("◐", CYAN),
    "completed": ("●", GREEN),
    "failed": ("✗", RED),
    "skipped": ("◌", DIM),
    "pending": ("?", YELLOW),
    "passed": ("✓", GREEN),
    "unverified": ("?", YELLOW),
    "error": ("!", RED),
}


def strategy_lines(
    event: PlanEvent | TaskEvent | ReplanEvent | AttemptEvent | ReflectionEvent,
) -> Iterator[tuple[str, str]]:
    """What a strategy's event says, as lines with their colours."""
    match event:
        case PlanEvent(state=state, plan=plan, reason=reason):
            yield f"plan {state}{': ' if reason else ''}{clipped(reason, 200)}", BOLD
            tasks = plan.get("tasks")
            for row in tasks if isinstance(tasks, list) and state != "refused" else ():
                if isinstance(row, dict) and row.get("status") != "completed":
                    yield f"  ○ {task_text(row)}", DIM
        case TaskEvent(task=id, status=status, call=call, result=result, reason=reason):
            mark, colour = _MARKS[status]
            said = reason or (call_text(call) if call is not None else "")
            if result is not None and not result.is_error:
                said = result.text
            yield f"{mark} {id} {clipped(said, 200)}".rstrip(), colour
        case ReplanEvent(reason=reason):
            yield f"↻ a new plan: {clipped(reason, 200)}", YELLOW
        case AttemptEvent(attempt=n, verdict=verdict, score=score, feedback=feedback):
            mark, colour = _MARKS[verdict]
            yield f"{mark} attempt {n} {verdict}, score {score:g} {clipped(feedback, 200)}", colour
        case ReflectionEvent(text=text):
            yield f"  learned: {clipped(text, 300)}", DIM


def task_text(row: Mapping[str, JsonValue]) -> str:
    """A task of a plan as one line.

    >>> task_text({"id": "b", "tool": "add", "arguments": {"n": 1}, "depends_on": ["a"]})
    'b add(n=1) after a'
    """
    arguments = row.get("arguments")
    tool = row.get("tool")
    what = str(row.get("prompt") or row.get("title") or "")
    if isinstance(tool, str) and tool:
        what = call_text(ToolCall(tool, arguments if isinstance(arguments, dict) else {}))
    needs = row.get("depends_on")
    after = f" after {', '.join(map(str, needs))}" if isinstance(needs, list) and needs else ""
    return f"{row.get('id')} {clipped(what, 160)}{after}"


def has_colours(stream: TextIO) -> bool:
    """Whether to colour what is written to a stream (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def printable(text: str) -> str:
    """Text whose control characters a terminal shows and does not obey."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def call_text(call: ToolCall) -> str:
    """A call as one line.

    >>> call_text(ToolCall("add", {"a": 1, "b": "two"}))
    'add(a=1, b="two")'
    """
    given = ", ".join(f"{key}={dump_row(value)}" for key, value in call.arguments.items())
    return printable(f"{call.name}({clipped(given, _MAX_ARGUMENT_CHARS)})")


def clipped(text: str, limit_chars: int) -> str:
    """A text as one line of limited length.

    >>> clipped("one\\ntwo three", 9)
    'one two …'
    """
    line = " ".join(text[: 2 * limit_chars].split())
    return line if len(line) <= limit_chars else line[: limit_chars - 1] + "…"


def usage_text(usage: Usage) -> str:
    """What a run cost, in words.

    >>> usage_text(Usage(310, 42, 200, 2))
    '2 steps, 310 tokens read (200 cached), 42 written'
    """
    steps = "1 step" if usage.n_requests == 1 else f"{usage.n_requests} steps"
    if not usage.input_tokens and not usage.output_tokens:
        return steps
    cached = f" ({usage.cached_tokens} cached)" if usage.cached_tokens else ""
    return f"{steps}, {usage.input_tokens} tokens read{cached}, {usage.output_tokens} written"
