"""Calls that arrive in pieces over a wire: which piece belongs to which call, and what each became.

Servers disagree: an index may be missing or always 0, an id may be missing, empty or repeated, the
name may come once or with every piece.  What is read here is what was meant; what cannot be read as
a call becomes an `InvalidToolCall` with its text and the reason, and is never run.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from antiphon.messages import (
    InvalidToolCall,
    JsonObject,
    StopReason,
    ToolCall,
    ToolCallDelta,
    dump_json,
)
from antiphon.models._wire import new_call_id

_CUT: dict[str, str] = {
    "length": "the answer was cut at the token limit before the call was finished; "
    "the call was not run",
    "content_filter": "the answer was stopped by the content filter; the call was not run",
}


@dataclass(slots=True)
class _Building:
    index: int
    name: str = ""
    id: str = ""
    parts: list[str] = field(default_factory=list[str])

    @property
    def arguments(self) -> str:
        return "".join(self.parts)


class CallCollector:
    """Puts the calls of one answer together."""

    def __init__(self) -> None:
        self._calls: list[_Building] = []
        self._by_index: dict[int, _Building] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, *, index: Any, name: Any, id: Any, arguments: Any) -> Iterator[ToolCallDelta]:
        """Take one piece of a call, each field as the server gave it or ``None``."""
        name = name if isinstance(name, str) else ""
        id = id if isinstance(id, str) else ""
        text = arguments if isinstance(arguments, str) else ""
        if isinstance(arguments, dict):
            text = dump_json(cast("JsonObject", arguments))
        begun = self._by_index.get(index) if isinstance(index, int) else None
        if begun is not None and name and not (id or text or begun.parts) and name != begun.name:
            begun.name += name  # a name may come in pieces, too
            yield ToolCallDelta(begun.index, name=name)
            return
        call = self._find(index, name, id)
        if call is None:
            call = self._begin(index, name, id)
            yield ToolCallDelta(call.index, name=name, id=call.id)
        elif name and not call.name:
            call.name = name
            yield ToolCallDelta(call.index, name=name)
        if text:
            call.parts.append(text)
            yield ToolCallDelta(call.index, arguments=text)

    def _find(self, index: Any, name: str, id: str) -> _Building | None:
        known = self._by_index.get(index) if isinstance(index, int) else None
        if known is None and isinstance(index, int):
            return None
        call = known or (self._calls[-1] if self._calls else None)
        if call is None or not name:
            return call
        # A name in a later piece: the same call named again, or another under a reused index?
        if id and call.id and id != call.id:
            return None
        if call.name and (name != call.name or _is_whole(call.arguments)):
            return None
        return call

    def _begin(self, index: Any, name: str, id: str) -> _Building:
        taken = {call.id for call in self._calls}
        call = _Building(len(self._calls), name, id if id and id not in taken else new_call_id())
        self._calls.append(call)
        if isinstance(index, int):
            self._by_index[index] = call
        return call

    def results(
        self, stop_reason: StopReason
    ) -> tuple[tuple[ToolCall, ...], tuple[InvalidToolCall, ...]]:
        """The calls that can be run, and those that cannot.

        Args:
            stop_reason: Why the answer ended; calls of a cut answer are invalid even if they parse.
        """
        valid: list[ToolCall] = []
        invalid: list[InvalidToolCall] = []
        for call in self._calls:
            raw = call.arguments
            if stop_reason in _CUT:
                invalid.append(InvalidToolCall(raw, _CUT[stop_reason], call.name, call.id))
                continue
            arguments, reason = read_arguments(raw)
            if not call.name:
                reason = reason or "the call has no name"
            if arguments is None or reason:
                invalid.append(InvalidToolCall(raw, reason, call.name, call.id))
            else:
                valid.append(ToolCall(call.name, arguments, id=call.id, raw=raw))
        return tuple(valid), tuple(invalid)


def read_arguments(text: str) -> "tuple[JsonObject | None, str]":
    """Arguments out of JSON text, or why it has none.

    No text at all is no arguments: servers send it for tools without parameters.

    >>> read_arguments('{"a": 1}')
    ({'a': 1}, '')
    >>> read_arguments('{"a": ')[1]
    'the arguments are not valid JSON: Expecting value at character 6'
    """
    if not text.strip():
        return {}, ""
    try:
        value: Any = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        return None, f"the arguments are not valid JSON: {error.msg} at character {error.pos}"
    except (ValueError, RecursionError) as error:
        return None, f"the arguments are not valid JSON: {error}"
    if not isinstance(value, dict):
        return None, f"the arguments must be a JSON object, not {_kind(value)}"
    return cast("JsonObject", value), ""


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")  # pyright: ignore[reportUnknownArgumentType]


def _is_whole(text: str) -> bool:
    return text.rstrip().endswith("}") and read_arguments(text)[0] is not None
