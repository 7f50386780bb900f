"""Messages and conversations as rows of JSON, in the canonical spelling of design §5.

Reading here is strict and knows only our own spelling and OpenAI's; the many spellings of published
datasets are read in `antiphon.datasets`, which brings them to this one.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from antiphon.errors import DataError, clip
from antiphon.messages._message import (
    AudioPart,
    Conversation,
    ImagePart,
    InvalidToolCall,
    JsonObject,
    JsonValue,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    VideoPart,
)
from antiphon.messages._spec import ToolSpec

_ROLES = ("system", "user", "assistant", "tool")
_MESSAGE_KEYS = {
    "role",
    "content",
    "reasoning_content",
    "parts",
    "tool_calls",
    "invalid_tool_calls",
    "tool_call_id",
    "name",
    "is_error",
    "loss",
}


def dump_json(value: JsonValue) -> str:
    """JSON text as templates write it: ``", "`` and ``": "``, no ASCII escapes, keys as given.

    >>> dump_json({"city": "上海", "days": [1, 2]})
    '{"city": "上海", "days": [1, 2]}'
    """
    try:
        return "".join(_chunks(value, 0))
    except RecursionError:
        return _encode(value)  # which says what is wrong with it


def indented_json(value: JsonValue, indent: int = 4, *, margin: str = "\n") -> str:
    """JSON text with a line for each member, as ``json.dumps(..., indent=4)`` writes it.

    Standard `json` has no fast way to write it, and templates ask for it.

    Args:
        value: What to write.
        indent: Spaces that a level stands further in.
        margin: A line feed and the spaces before the value's own lines.

    >>> print(indented_json({"days": [1, 2]}, 2))
    {
      "days": [
        1,
        2
      ]
    }
    """
    if not value or not isinstance(value, (dict, list, tuple)):
        return dump_json(value)
    inner = margin + " " * indent
    lines: list[str] = []
    if not isinstance(value, dict):
        for item in value:
            if type(item) is str:
                lines.append(quoted_json(item))
            else:
                lines.append(indented_json(item, indent, margin=inner))
        return f"[{inner}{f',{inner}'.join(lines)}{margin}]"
    for key, item in value.items():
        name = quoted_json(key) if type(key) is str else _quoted(key)
        if type(item) is str:
            lines.append(f"{name}: {quoted_json(item)}")
        else:
            lines.append(f"{name}: {indented_json(item, indent, margin=inner)}")
    return f"{{{inner}{f',{inner}'.join(lines)}{margin}}}"


def _quoted(key: Any) -> str:
    return dump_json(key if isinstance(key, str) else dump_json(key))


quoted_json: Callable[[str], str] = cast("Any", json.encoder).encode_basestring
"""A string as `dump_json` writes it, in a tenth of the time."""
_encoder = json.JSONEncoder(ensure_ascii=False)
_encode = _encoder.encode  # `json.dumps` would make an encoder at each call
_chunks: Callable[[Any, int], Iterable[str]] = cast("Any", _encoder.iterencode)
# `encode` makes C's encoder anew at each call; where there is one, it is made once.
if (_make := getattr(json.encoder, "c_make_encoder", None)) is not None:
    _chunks = _make(
        None, _encoder.default, json.encoder.encode_basestring, None, ": ", ", ", False, False, True
    )

_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def json_bytes(value: Any) -> bytes:
    """Compact JSON for a wire that must be UTF-8.

    A tool may return text with lone surrogates (an undecodable file name); such text cannot be
    sent, so each becomes U+FFFD here, on the way out, and stays what it was in the record.

    >>> json_bytes({"text": "caf\\u00e9 \\ud800"}).decode()
    '{"text":"café �"}'
    """
    text = _compact(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def message_to_row(message: Message) -> JsonObject:
    """A message as one JSON object; what is empty is left out."""
    row: JsonObject = {"role": message.role, "content": _content(message)}
    if message.reasoning:
        row["reasoning_content"] = message.reasoning
    if _parts_from_row(row) != message.parts:
        row["parts"] = [part_to_row(part) for part in message.parts]
    if message.tool_calls:
        row["tool_calls"] = [_call_to_row(call) for call in message.tool_calls]
    if message.invalid_tool_calls:
        row["invalid_tool_calls"] = [
            {"raw": c.raw, "reason": c.reason, "name": c.name, "id": c.id}
            for c in message.invalid_tool_calls
        ]
    if message.role == "tool":
        row["tool_call_id"] = message.tool_call_id
    if message.name:
        row["name"] = message.name
    if message.is_error:
        row["is_error"] = True
    if message.loss is not None:
        row["loss"] = message.loss
    return row | message.metadata


def _content(message: Message) -> JsonValue:
    if not message.media:
        return message.text
    return [part_to_row(part) for part in message.parts if not isinstance(part, ThinkingPart)]


def part_to_row(part: Part) -> JsonObject:
    """A part as content lists hold it: OpenAI's types, and ours for what it has none for.

    >>> part_to_row(AudioPart("data:audio/wav;base64,UklG"))
    {'type': 'input_audio', 'input_audio': {'data': 'UklG', 'format': 'wav'}}
    """
    match part:
        case TextPart(text):
            return {"type": "text", "text": text}
        case ThinkingPart(text, None):
            return {"type": "thinking", "text": text}
        case ThinkingPart(text, signature):
            return {"type": "thinking", "text": text, "signature": signature}
        case ImagePart(source):
            return {"type": "image_url", "image_url": {"url": source}}
        case AudioPart(source):
            if inline := _INLINE_AUDIO.fullmatch(source):
                heard: JsonObject = {"data": inline[2], "format": inline[1]}
                return {"type": "input_audio", "input_audio": heard}
            return {"type": "audio_url", "audio_url": {"url": source}}
        case VideoPart(str(source)):
            return {"type": "video_url", "video_url": {"url": source}}
        case VideoPart(frames):
            return {"type": "video", "video": list(frames)}


_INLINE_AUDIO = re.compile(r"data:audio/([^;,]+);base64,(.*)", re.DOTALL)


def _call_to_row(call: ToolCall) -> JsonObject:
    row: JsonObject = {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }
    if call.raw:
        row["raw"] = call.raw
    if call.repairs:
        row["repairs"] = list(call.repairs)
    return row


def message_from_row(row: Mapping[str, Any]) -> Message:
    """Read one message in our own or OpenAI's spelling.

    Raises:
        DataError: The role is unknown, or a field has the wrong type.
    """
    if not isinstance(row, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - from a file
        raise DataError(f"a message must be an object with a role, got {clip(row)}")
    role = row.get("role")
    if role not in _ROLES:
        raise DataError(f"unknown role {role!r} in message {clip(row)}; known: {', '.join(_ROLES)}")
    return Message(
        role=role,
        parts=_parts_from_row(row),
        tool_calls=tuple(_call_from_row(c) for c in _list(row, "tool_calls")),
        invalid_tool_calls=tuple(
            InvalidToolCall(
                raw=str(c.get("raw", "")),
                reason=str(c.get("reason", "")),
                name=str(c.get("name", "")),
                id=str(c.get("id", "")),
            )
            for c in _list(row, "invalid_tool_calls")
        ),
        tool_call_id=_text(row, "tool_call_id"),
        name=_text(row, "name"),
        is_error=bool(row.get("is_error", False)),
        loss=_loss(row),
        metadata={k: v for k, v in row.items() if k not in _MESSAGE_KEYS},
    )


def _list(row: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    value: Any = row.get(key)
    if value is None:
        return ()
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if all(isinstance(item, Mapping) for item in items):
            return items
    raise DataError(f"{key!r} must be a list of objects, got {clip(cast('object', value))}")


def _text(row: Mapping[str, Any], key: str) -> str:
    value: object = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise DataError(f"{key!r} must be text, got {clip(value)}")
    return value


def _loss(row: Mapping[str, Any]) -> float | None:
    """A message's own weight: a number, or a boolean for all of it or none."""
    value: object = row.get("loss")
    if value is None:
        return None
    if not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise DataError(f"'loss' must be true, false or a number from 0 up, got {clip(value)}")
    return float(value)


def _parts_from_row(row: Mapping[str, Any]) -> tuple[Part, ...]:
    parts: list[Part] = []
    if "parts" in row:
        return tuple(_part_from_row(part) for part in _list(row, "parts"))
    reasoning = row.get("reasoning_content")
    if reasoning:
        parts.append(ThinkingPart(str(reasoning)))
    content = row.get("content")
    if content is None or content == "":
        return tuple(parts)
    if isinstance(content, str):
        return (*parts, TextPart(content))
    if not isinstance(content, list):
        raise DataError(f"content must be text or a list of parts, got {clip(content)}")
    parts.extend(_part_from_row(item) for item in cast("list[Any]", content))
    return tuple(parts)


def _part_from_row(item: Any) -> Part:
    match item:
        case {"type": "text", "text": str(text)}:
            return TextPart(text)
        case {"type": "thinking", "text": str(text)}:
            return ThinkingPart(text, signature=_text(item, "signature") or None)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            return ImagePart(url)
        case {"type": "image", "image": str(url)}:
            return ImagePart(url)
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(kind)}}:
            return AudioPart(f"data:audio/{kind};base64,{data}")
        case {"type": "audio_url", "audio_url": {"url": str(url)}}:
            return AudioPart(url)
        case {"type": "audio", "audio": str(url)} | {"type": "audio", "audio_url": str(url)}:
            return AudioPart(url)
        case {"type": "video_url", "video_url": {"url": str(url)}}:
            return VideoPart(url)
        case {"type": "video", "video": str(url)}:
            return VideoPart(url)
        case {"type": "video", "video": [str(), *_] as frames} if _all_text(frames):
            return VideoPart(tuple(frames))
        case _:
            raise DataError(
                f"unknown content part {clip(item)}; known types: text, thinking, image_url, "
                "image, input_audio, audio_url, audio, video_url, video"
            )


def _all_text(items: Sequence[Any]) -> bool:
    return all(isinstance(item, str) for item in items)


def _call_from_row(row: Mapping[str, Any]) -> ToolCall:
    function: Any = row.get("function", row)
    if not isinstance(function, Mapping):
        raise DataError(f"a tool call needs a function object, got {clip(row)}")
    fields = cast("Mapping[str, Any]", function)
    name: Any = fields.get("name")
    if not isinstance(name, str) or not name:
        raise DataError(f"a tool call needs a name, got {clip(row)}")
    return ToolCall(
        name=name,
        arguments=_arguments(name, fields.get("arguments")),
        id=_text(row, "id"),
        raw=_text(row, "raw"),
        repairs=tuple(row.get("repairs") or ()),
    )


def _arguments(name: str, value: Any) -> JsonObject:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else {}
        except json.JSONDecodeError as error:
            raise DataError(f"arguments of call {name!r} are not JSON: {clip(value)}") from error
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DataError(f"arguments of call {name!r} must be a JSON object, got {clip(value)}")
    return cast("JsonObject", value)


def conversation_to_row(conversation: Conversation) -> JsonObject:
    """A conversation as one row: messages, tools, and its metadata beside them."""
    row: JsonObject = {"messages": [message_to_row(m) for m in conversation.messages]}
    if conversation.tools:
        row["tools"] = [
            spec.to_openai() if spec.wrapped else spec.to_openai()["function"]
            for spec in conversation.tools
        ]
    return row | conversation.metadata


def conversation_from_row(row: Mapping[str, Any]) -> Conversation:
    """Read a row in the canonical spelling; other spellings are `antiphon.datasets`' work.

    Raises:
        DataError: Messages or tools are missing or malformed.
    """
    if not isinstance(row.get("messages"), list):
        raise DataError(f"a row needs a list of messages, got {clip(row)}")
    tools: Any = row.get("tools") or []
    if isinstance(tools, str):
        try:
            tools = json.loads(tools)
        except json.JSONDecodeError as error:
            raise DataError(f"tools are not JSON: {clip(tools)}") from error
    specs = _list({"tools": tools}, "tools")
    return Conversation(
        messages=tuple(message_from_row(m) for m in row["messages"]),
        tools=tuple(ToolSpec.from_openai(spec) for spec in specs),
        metadata={k: v for k, v in row.items() if k not in ("messages", "tools")},
    )
