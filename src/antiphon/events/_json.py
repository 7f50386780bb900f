"""Events and what they hold as rows of JSON, and JSON text that every reader accepts.

Reading is strict about what it knows and says where a value is wrong; fields that it does not know
are passed over.  It knows no Trajectory: see `_trajectory.py`.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, cast, get_args

from antiphon.errors import DataError, clip
from antiphon.events._event import Event
from antiphon.messages import (
    ImagePart,
    InvalidToolCall,
    JsonObject,
    JsonValue,
    ToolCall,
    ToolResult,
    Usage,
)

_SURROGATES = re.compile("[\ud800-\udfff]")

Row = Mapping[str, Any]


def dump_row(value: JsonValue, *, indent: int | None = None) -> str:
    """JSON text of a value: UTF-8 safe and standard, with text of all scripts left readable.

    A lone surrogate is written as its escape and comes back as it was.  What JSON has no number for
    is written as the text ``"NaN"``, ``"Infinity"`` or ``"-Infinity"``.

    Args:
        value: Anything that JSON can hold.
        indent: Spaces a level; one line without.

    >>> dump_row({"city": "上海", "p": float("nan"), "name": "\\ud800"})
    '{"city": "上海", "p": "NaN", "name": "\\\\ud800"}'
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except ValueError:
        text = json.dumps(_finite(value), ensure_ascii=False, allow_nan=False, indent=indent)
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finite(value: JsonValue) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value


def as_json(value: object) -> JsonValue:
    """A value as JSON holds it; what JSON cannot hold becomes ``None``, the whole value with it."""
    try:
        return cast("JsonValue", json.loads(dump_row(cast("JsonValue", value))))
    except (TypeError, ValueError, RecursionError):
        return None


def is_json(value: object) -> bool:
    """Whether JSON can hold a value as it is."""
    return value is None or as_json(value) is not None


def take(row: Row, key: str, kind: type[Any], default: Any) -> Any:
    """A field of a row, checked.

    Raises:
        DataError: The field is there and has another type.
    """
    value = row.get(key, default)
    if kind is float:
        return _number(key, value, default)
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    if value is None and default is None:
        return None
    raise DataError(f"{key!r} must be {_KINDS[kind]}, got {clip(value)}")


_KINDS: dict[type[Any], str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    Mapping: "an object",
}


def _number(key: str, value: object, default: float | None) -> float | None:
    if value is None and default is None:
        return None
    if isinstance(value, str) and value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    raise DataError(f"{key!r} must be a number, got {clip(value)}")


def take_rows(row: Row, key: str) -> Sequence[Row]:
    """A field that is a list of objects; an absent one is empty.

    Raises:
        DataError: It is something else.
    """
    items = cast("list[Any]", take(row, key, list, []))
    for item in items:
        if not isinstance(item, Mapping):
            raise DataError(f"{key!r} must be a list of objects, got {clip(item)} in it")
    return cast("list[Row]", items)


def take_texts(row: Row, key: str) -> tuple[str, ...]:
    """A field that is a list of texts; an absent one is empty.

    Raises:
        DataError: It is something else.
    """
    items = cast("list[Any]", take(row, key, list, []))
    for item in items:
        if not isinstance(item, str):
            raise DataError(f"{key!r} must be a list of texts, got {clip(item)} in it")
    return tuple(items)


def call_to_row(call: ToolCall) -> JsonObject:
    """A call as one JSON object."""
    row: JsonObject = {"name": call.name, "arguments": call.arguments, "id": call.id}
    if call.raw:
        row["raw"] = call.raw
    if call.repairs:
        row["repairs"] = list(call.repairs)
    return row


def call_from_row(row: Row) -> ToolCall:
    """Read a call.

    Raises:
        DataError: A field has the wrong type.
    """
    return ToolCall(
        name=take(row, "name", str, ""),
        arguments=dict(take(row, "arguments", Mapping, {})),
        id=take(row, "id", str, ""),
        raw=take(row, "raw", str, ""),
        repairs=take_texts(row, "repairs"),
    )


def _invalid_to_row(call: InvalidToolCall) -> JsonObject:
    return {"raw": call.raw, "reason": call.reason, "name": call.name, "id": call.id}


def _invalid_from_row(row: Row) -> InvalidToolCall:
    return InvalidToolCall(
        raw=take(row, "raw", str, ""),
        reason=take(row, "reason", str, ""),
        name=take(row, "name", str, ""),
        id=take(row, "id", str, ""),
    )


def result_to_row(result: ToolResult) -> JsonObject:
    """A result as one JSON object; its value is kept where JSON can hold it."""
    row: JsonObject = {"call_id": result.call_id, "name": result.name, "text": result.text}
    if result.is_error:
        row["is_error"] = True
    value = as_json(result.value)
    if value is not None and value != result.text:
        row["value"] = value
    if result.images:
        row["images"] = [image.source for image in result.images]
    if result.repairs:
        row["repairs"] = list(result.repairs)
    if result.full_text is not None:
        row["full_text"] = result.full_text
    return row


def result_from_row(row: Row) -> ToolResult:
    """Read a result.

    Raises:
        DataError: A field has the wrong type.
    """
    text = take(row, "text", str, "")
    return ToolResult(
        call_id=take(row, "call_id", str, ""),
        name=take(row, "name", str, ""),
        text=text,
        is_error=take(row, "is_error", bool, False),
        value=row.get("value", text),
        images=tuple(ImagePart(source) for source in take_texts(row, "images")),
        repairs=take_texts(row, "repairs"),
        full_text=take(row, "full_text", str, None),
    )


def usage_to_row(usage: Usage) -> JsonObject:
    """A usage as one JSON object."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "n_requests": usage.n_requests,
    }


def usage_from_row(row: Row) -> Usage:
    """Read a usage.

    Raises:
        DataError: A field has the wrong type.
    """
    names = ("input_tokens", "output_tokens", "cached_tokens", "n_requests")
    return Usage(*(take(row, name, int, 0) for name in names))


_EVENTS: dict[str, type[Event]] = {
    cast("str", kind.__dataclass_fields__["type"].default): kind for kind in get_args(Event)
}
_FIELDS = {
    kind: tuple(field.name for field in fields(kind) if field.name != "type")
    for kind in _EVENTS.values()
}
_WRITE: dict[type[Any], Any] = {
    ToolCall: call_to_row,
    InvalidToolCall: _invalid_to_row,
    ToolResult: result_to_row,
    Usage: usage_to_row,
}
_READ: dict[Any, Any] = {
    ToolCall: call_from_row,
    InvalidToolCall: _invalid_from_row,
    ToolResult: result_from_row,
    Usage: usage_from_row,
}


def event_to_row(event: Event) -> JsonObject:
    """An event as one JSON object that begins with its `type`.

    >>> from antiphon.events import TextEvent
    >>> event_to_row(TextEvent(0, "Hi", time=0.5))
    {'type': 'text_delta', 'step': 0, 'text': 'Hi', 'time': 0.5}
    """
    row: JsonObject = {"type": event.type}
    for name in _FIELDS[type(event)]:
        value: Any = getattr(event, name)
        write = _WRITE.get(cast("type[Any]", type(value)))
        row[name] = value if write is None else write(value)
    return row


def event_from_row(row: Row) -> Event:
    """Read an event.

    Raises:
        DataError: There is no such event, or a field is missing or has the wrong type.
    """
    kind = _EVENTS.get(str(row.get("type")))
    if kind is None:
        raise DataError(
            f"unknown event {clip(row.get('type'))}; known: {', '.join(_EVENTS)}; "
            "a later antiphon may have written it"
        )
    given: dict[str, Any] = {}
    for field in fields(kind):
        if field.name != "type" and field.name in row:
            given[field.name] = _read_field(row, field.name, field.type)
    try:
        return kind(**given)
    except TypeError as error:
        raise DataError(f"event {clip(row)} is incomplete: {error}") from error


def _read_field(row: Row, name: str, kind: Any) -> Any:
    optional = next((k for k in get_args(kind) if k in _READ), None)
    if optional is not None:
        return None if row[name] is None else _READ[optional](take(row, name, Mapping, {}))
    if kind in _READ:
        return _READ[kind](take(row, name, Mapping, {}))
    if kind in (int, float, bool, str):
        return take(row, name, kind, kind())
    if "JsonObject" in str(kind):
        return take(row, name, Mapping, None)
    if str(kind).startswith("dict["):
        return dict(take(row, name, Mapping, {}))
    if get_args(kind) and row[name] in get_args(kind):
        return row[name]
    raise DataError(f"{name!r} must be one of {', '.join(get_args(kind))}, got {clip(row[name])}")
