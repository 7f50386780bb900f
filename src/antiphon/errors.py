"""Every exception of Antiphon, in one tree.

    AntiphonError
    ├── UsageError (ValueError)                a name, spec or setting that cannot be used as given
    │   ├── UnknownNameError (LookupError)     no format, model or benchmark of that name
    │   ├── ToolDefinitionError (TypeError)    a function that cannot be described exactly
    │   └── PlanError                          a plan that cannot be run
    ├── MissingExtraError (ImportError)        an optional dependency is not installed
    ├── DataError (ValueError)                 a file or row that cannot be read; has path and line
    ├── RenderError (ValueError)               a message that a model family cannot express
    ├── EncodeError (ValueError)               text, pieces and tokenizer that do not fit together
    │   └── SpanError                          token spans out of order or out of range
    ├── ModelError (RuntimeError)              a model gave no completion
    │   ├── ModelNotFoundError (LookupError)   the server or the disk has no such model
    │   ├── ModelConnectionError (ConnectionError)  dead endpoint, broken or silent connection
    │   ├── ModelAuthError (PermissionError)   the key was refused or is missing
    │   ├── RateLimitError                     the server asks to wait; has retry_after in seconds
    │   ├── ContextLengthError                 the conversation is longer than the model's context
    │   └── ModelResponseError                 the server answered something that is no completion
    ├── ToolError (RuntimeError)               raised by a tool: the message is what the model reads
    └── RunError (RuntimeError)                a run that cannot start or go on

A message says what happened, what was given and what to do, in one line.  What a *model* did wrong
is never an exception: see `InvalidToolCall` and `ToolResult.is_error`.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

__all__ = [
    "AntiphonError",
    "ContextLengthError",
    "DataError",
    "EncodeError",
    "MissingExtraError",
    "ModelAuthError",
    "ModelConnectionError",
    "ModelError",
    "ModelNotFoundError",
    "ModelResponseError",
    "PlanError",
    "RateLimitError",
    "RenderError",
    "RunError",
    "SpanError",
    "ToolDefinitionError",
    "ToolError",
    "UnknownNameError",
    "UsageError",
    "clip",
    "first_error",
]


def clip(value: object, limit_chars: int = 120) -> str:
    """`repr` of a value for an error message, shortened in the middle.

    Args:
        value: Anything that was given.
        limit_chars: The longest text to return, in characters.

    >>> clip("a" * 20, 12)
    "'aaa...aaaa'"
    """
    text = repr(value)
    if len(text) <= limit_chars:
        return text
    head = (limit_chars - 3) // 2
    return f"{text[:head]}...{text[len(text) - (limit_chars - 3 - head) :]}"


class AntiphonError(Exception):
    """The root of every exception that Antiphon raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by message and fields, whatever the signature of ``__init__`` is."""
        return (_rebuild, (type(self), self.args, self.__dict__))


def _rebuild(kind: type[AntiphonError], args: tuple[Any, ...], fields: dict[str, Any]) -> object:
    # An OSError is laid out as one, wherever it stands among the bases.
    layout = OSError if issubclass(kind, OSError) else Exception
    error = cast("AntiphonError", layout.__new__(kind, *args))
    error.args = args
    error.__dict__.update(fields)
    return error


class UsageError(AntiphonError, ValueError):
    """A name, spec or setting that cannot be used as given."""


class UnknownNameError(UsageError, LookupError):
    """No format, model, benchmark or policy has that name."""


class ToolDefinitionError(UsageError, TypeError):
    """A function that cannot be described to a model exactly."""


class PlanError(UsageError):
    """A plan that cannot be run: a cycle, an unknown or duplicate id, or no plan at all."""


class MissingExtraError(AntiphonError, ImportError):
    """An optional dependency is not installed.

    Args:
        what: What was asked for, as the subject of the sentence.
        extra: The name of the extra that brings it.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(
            f"{what} needs the {extra!r} extra; install it with: pip install 'antiphon[{extra}]'"
        )
        self.extra = extra


class DataError(AntiphonError, ValueError):
    """A file or row that cannot be read.

    Args:
        message: What is wrong and how to mend it.
        path: The file, when there is one.
        line: The line in it, counted from 1.
    """

    def __init__(self, message: str, *, path: Path | str | None = None, line: int | None = None):
        where = "" if path is None else f"{path}:{line}: " if line is not None else f"{path}: "
        super().__init__(where + message)
        self.path = None if path is None else Path(path)
        self.line = line


class RenderError(AntiphonError, ValueError):
    """A message that a model family cannot express.

    Args:
        message: What cannot be expressed, and what to do.
        format: The family's name.
        index: The message's position in the conversation, when it is one message's fault.
    """

    def __init__(self, message: str, *, format: str, index: int | None = None) -> None:
        where = f"{format}: " if index is None else f"{format}: message {index}: "
        super().__init__(where + message)
        self.format = format
        self.index = index


class EncodeError(AntiphonError, ValueError):
    """Text, pieces and tokenizer that do not fit together."""


class SpanError(EncodeError):
    """Token spans that are out of order or out of range."""


class ModelError(AntiphonError, RuntimeError):
    """A model gave no completion."""


class ModelNotFoundError(ModelError, LookupError):
    """The server, the hub or the disk has no such model."""


class ModelConnectionError(ModelError, ConnectionError):
    """The endpoint is dead, silent, or broke off."""


class ModelAuthError(ModelError, PermissionError):
    """The key was refused, or there is none."""


class RateLimitError(ModelError):
    """The server asks to wait.

    Args:
        message: What the server said.
        retry_after: How long it asks to wait, in seconds, when it says so.
    """

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class ContextLengthError(ModelError):
    """The conversation is longer than the model's context."""


class ModelResponseError(ModelError):
    """The server answered something that is no completion."""


class ToolError(AntiphonError, RuntimeError):
    """Raised inside a tool to answer the model: the message is the answer, word for word."""


class RunError(AntiphonError, RuntimeError):
    """A run that cannot start or go on."""


@asynccontextmanager
async def first_error() -> AsyncGenerator[None]:
    """Raises the first exception of a TaskGroup by itself: there is one cause, the rest follows."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseException", error.exceptions[0])
        raise error from None
