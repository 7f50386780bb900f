"""The seam between an HTTP API's JSON and the transport that all of them share.

A Dialect turns a Conversation into one `Request` and reads the answer's events back; it opens no
connection, waits for nothing and repeats nothing.  `_remote.py` does that, once, for every dialect.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from antiphon.messages import (
    Completion,
    Conversation,
    Delta,
    JsonObject,
    Message,
    ToolSpec,
)
from antiphon.models._model import ModelSettings, SampledTokens


class Reader(Protocol):
    """Reads one answer, event by event."""

    def event(self, data: Mapping[str, Any]) -> Iterable[Delta | SampledTokens]:
        """Take one streamed event; give what it adds."""
        ...

    def whole(self, data: Mapping[str, Any]) -> Iterable[Delta | SampledTokens]:
        """Take an answer that came as one JSON body."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the server has said that the answer is over."""
        ...

    def finish(self) -> tuple[Iterable[Delta], Completion]:
        """What was held back, and the answer. Called once, at the end.

        Raises:
            ModelResponseError: What came is no answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """What to send, and how to read what comes back."""

    path: str
    """Below the endpoint's base URL, or a whole URL."""
    body: bytes
    """JSON."""
    reader: Callable[[], Reader]
    """Makes a fresh reader; once for each try."""
    lines: bool = False
    """Whether the stream is one JSON object a line instead of server-sent events."""
    whole: bool = False
    """Whether nothing comes before all of it: the server may be silent for as long as it writes."""


class Dialect(Protocol):
    """The JSON of one HTTP API."""

    def request(self, conversation: Conversation, settings: ModelSettings) -> Request:
        """The request that asks for the next message."""
        ...

    def headers(self, key: str | None) -> Mapping[str, str]:
        """The headers that carry the key."""
        ...


class Once:
    """Remembers what was made of a value, by identity, while it is in use.

    A conversation keeps its messages from step to step, so each is written as JSON once.  Entries
    not asked for while as many others were added are dropped; a remembered value is kept alive, so
    its identity cannot be reused.
    """

    def __init__(self, limit: int = 4096) -> None:
        """Remember at least the last `limit` values."""
        self._limit = limit
        self._new: dict[int, tuple[object, bytes]] = {}
        self._old: dict[int, tuple[object, bytes]] = {}

    def get(self, value: Message | ToolSpec) -> bytes | None:
        """What was made of this very object."""
        entry = self._new.get(id(value))
        if entry is None:
            entry = self._old.get(id(value))
            if entry is None:
                return None
            self._put(id(value), entry)
        return entry[1]

    def put(self, value: Message | ToolSpec, made: bytes) -> bytes:
        """Remember what was made of a value, and give it back."""
        self._put(id(value), (value, made))
        return made

    def _put(self, key: int, entry: tuple[object, bytes]) -> None:
        if len(self._new) >= self._limit:
            self._old, self._new = self._new, {}
        self._new[key] = entry


def sampling_of(settings: ModelSettings) -> JsonObject:
    """The sampling parameters that were asked for, for the record."""
    asked: JsonObject = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "max_tokens": settings.max_tokens,
        "seed": settings.seed,
        "stop": list(settings.stop) or None,
        "tool_choice": None if settings.tool_choice == "auto" else settings.tool_choice,
        "constrain": settings.constrain,
        "response_schema": settings.response_schema,
        "response_pattern": settings.response_pattern,
    }
    return {k: v for k, v in asked.items() if v is not None} | settings.extra
