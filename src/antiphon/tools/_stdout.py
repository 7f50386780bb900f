"""What a tool prints, kept apart from what the program prints.

``sys.stdout`` belongs to the whole process, so it is replaced once by a stream that asks a context
variable where to write: calls that run side by side do not see each other's text.
"""

import contextlib
import io
import sys
from collections.abc import Generator
from contextvars import ContextVar
from typing import Any, TextIO

_CAPTURED: ContextVar[io.StringIO | None] = ContextVar("antiphon_captured_stdout", default=None)


class _Split:
    """Writes to the call's buffer where there is one, else to the stream it stands for."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        buffer = _CAPTURED.get()
        return (self.stream if buffer is None else buffer).write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def capture() -> Generator[io.StringIO]:
    """Collect what is printed inside, in this thread or task only."""
    if not isinstance(sys.stdout, _Split):
        sys.stdout = _Split(sys.stdout)  # type: ignore[assignment]  # passes all else on
    buffer = io.StringIO()
    token = _CAPTURED.set(buffer)
    try:
        yield buffer
    finally:
        _CAPTURED.reset(token)
