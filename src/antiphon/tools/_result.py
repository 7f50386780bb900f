"""From what a tool returned to what the model reads.

Text stays text; everything structured becomes JSON text, never ``repr``.  What no JSON or UTF-8 can
carry (lone surrogates, NaN, bytes, objects) is made safe.  Long text keeps its head and tail.
"""

import base64
import dataclasses
import datetime
import json
import math
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from enum import Enum
from pathlib import PurePath
from typing import Any, Protocol, cast, runtime_checkable

from antiphon.messages import ImagePart, ToolResult

MAX_CHARS = 20_000
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_DEPTH = 60
_BYTES: Any = (bytes, bytearray, memoryview)


@runtime_checkable
class AgentLike(Protocol):
    """What tells an agent from other values: a tool that returns one hands over to it."""

    @property
    def name(self) -> str:
        """The agent's name."""
        ...

    @property
    def instructions(self) -> Any:
        """What the agent is told."""
        ...


@dataclass(frozen=True, slots=True)
class Shown:
    """A value as the model sees it."""

    text: str
    """The text."""
    images: tuple[ImagePart, ...] = ()
    """The images in it."""


def show(value: object) -> Shown:
    """A tool's return value as text and images."""
    if isinstance(value, str):
        return Shown(safe_text(value))
    if value is None:
        return Shown("done")
    if isinstance(value, ImagePart):
        return Shown("", (value,))
    if isinstance(value, _BYTES):
        return Shown(_bytes_text(bytes(cast("bytes", value))))
    if _has_images(value):
        return _mixed(cast("Sequence[object]", value))
    if is_agent(value):
        return Shown(f"handed over to {cast('AgentLike', value).name}")
    return Shown(json_text(value))


def _has_images(value: object) -> bool:
    return isinstance(value, list | tuple) and any(
        isinstance(item, ImagePart) for item in cast("Sequence[object]", value)
    )


def is_agent(value: object) -> bool:
    """Whether a value is an agent to hand over to."""
    return (
        not isinstance(value, type | Mapping)
        and not hasattr(value, "model_dump")
        and isinstance(value, AgentLike)
        and isinstance(cast("Any", value).name, str)
    )


def _mixed(items: Sequence[object]) -> Shown:
    images = tuple(item for item in items if isinstance(item, ImagePart))
    texts = [show(item).text for item in items if not isinstance(item, ImagePart)]
    return Shown("\n".join(texts), images)


def json_text(value: object) -> str:
    """A value as JSON text, or as plain text where the whole value is one word of it."""
    made = jsonable(value)
    if isinstance(made, str):
        return safe_text(made)
    return safe_text(json.dumps(made, ensure_ascii=False))


def jsonable(value: Any, depth: int = 0) -> Any:
    """A value made of what JSON has; what it has not becomes text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return jsonable(value.value, depth + 1)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value) if abs(value) < 10**300 else str(_big(value))
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else str(float(value))
    if depth > _MAX_DEPTH:
        return "..."
    if isinstance(value, _BYTES):
        return _bytes_text(bytes(value))
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return {_key(k): jsonable(v, depth + 1) for k, v in pairs}
    if isinstance(value, list | tuple | Set):
        return [jsonable(item, depth + 1) for item in cast("Sequence[Any]", value)]
    return _object(value, depth)


def _big(value: int) -> str:
    return f"an integer of {value.bit_length()} bits"


def _key(key: object) -> str:
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return key
    made = jsonable(key)
    return made if isinstance(made, str) else json.dumps(made, ensure_ascii=False)


def _object(value: Any, depth: int) -> Any:
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, PurePath):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            f.name: jsonable(getattr(value, f.name, None), depth + 1)
            for f in dataclasses.fields(value)
            if f.repr
        }
    for method, keywords in (("model_dump", {"mode": "json", "by_alias": True}), ("tolist", {})):
        convert = getattr(value, method, None)
        if callable(convert) and not isinstance(value, type):
            return jsonable(convert(**keywords), depth + 1)
    return _plain(value)


def _plain(value: Any) -> str:
    """``str(value)`` where its class says something by it; never an address in memory."""
    kind = cast("type[Any]", type(value))
    if kind.__str__ is object.__str__ and kind.__repr__ is object.__repr__:
        return f"<{kind.__name__}>"
    return re.sub(r" at 0x[0-9a-fA-F]+", "", str(value))


def _bytes_text(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" not in text:
        return text
    start = base64.b64encode(data[:48]).decode()
    return f"binary data, {len(data)} bytes, base64 of the first {min(48, len(data))}: {start}"


def safe_text(text: str) -> str:
    """The text with lone surrogates replaced, which no UTF-8 can carry."""
    if text.isascii():
        return text
    return _SURROGATE.sub("\ufffd", text)


def cap(text: str, max_chars: int) -> str:
    """A text with its middle left out where it is longer than `max_chars`.

    >>> cap("a" * 50 + "b" * 50, 40).startswith("a" * 30)
    True
    """
    if len(text) <= max_chars:
        return text
    tail = max_chars // 4
    head = max_chars - tail
    left_out = len(text) - head - tail
    return (
        f"{text[:head]}\n[{left_out} of {len(text)} characters left out here; "
        f"ask for less at a time to see them]\n{text[len(text) - tail :]}"
    )


def make_result(
    value: object,
    *,
    name: str,
    call_id: str,
    max_chars: int = MAX_CHARS,
    repairs: Sequence[str] = (),
) -> ToolResult:
    """The `ToolResult` of a call that went well."""
    if isinstance(value, ToolResult):
        text, images, is_error = safe_text(value.text), value.images, value.is_error
        value = value.value if value.value is not None else value.text
    else:
        shown = show(value)
        text, images, is_error = shown.text, shown.images, False
    capped = cap(text, max_chars)
    return ToolResult(
        call_id,
        name,
        capped,
        is_error,
        value,
        images,
        tuple(repairs),
        text if capped is not text else None,
    )
