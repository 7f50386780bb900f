"""A row of messages in any of its spellings (design §5), as a Conversation.

Roles and keys of OpenAI, ms-swift and ShareGPT are spellings of one shape: a list of entries that
say who speaks and what.  They are brought to the canonical one entry by entry; then turns are
joined, results tied to calls, and media put in their places.

Sources: OpenAI's Chat Completions; ms-swift 4.6 ``dataset/preprocessor``; LLaMA-Factory's
``data/converter.py``.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from antiphon.datasets._literal import parse_literal, parse_object, without_added_nulls
from antiphon.datasets._turns import join_turns, tie_results
from antiphon.errors import DataError, clip
from antiphon.messages import (
    AudioPart,
    Conversation,
    ImagePart,
    JsonObject,
    JsonValue,
    MediaPart,
    Message,
    Part,
    TextPart,
    ToolSpec,
    VideoPart,
    dump_json,
    message_from_row,
)

Row = Mapping[str, Any]

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "gpt": "assistant",
    "bot": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "tool": "tool",
    "tool_response": "tool",
    "function": "tool",
    "function_response": "tool",
    "observation": "tool",
    "observations": "tool",
    "ipython": "tool",
    "environment": "tool",
    "tool_call": "call",
    "function_call": "call",
}
_WEIGHTS = ("loss", "loss_scale", "weight", "train")
_REASONING = ("reasoning_content", "reasoning", "thinking")
_KNOWN = {"role", "from", "content", "value", "function_call", *_WEIGHTS, *_REASONING}
_MESSAGES = ("messages", "conversations", "conversation", "trajectory", "traj")
_MEDIA = {"image": "images", "audio": "audios", "video": "videos"}
_PART_KEYS = {"text", "input_audio"} | {key for tag in _MEDIA for key in (tag, f"{tag}_url")}
_THINKING = re.compile(r"\s*<think>(.*?)</think>\s*", re.DOTALL)


def read_unified(row: Row, *, report: Callable[[str], None] | None = None) -> Conversation:
    """Read a row of messages.

    Args:
        row: The row.
        report: Takes what does not fit between messages, in place of a raise.

    Raises:
        DataError: The row has no messages, or one of them is malformed.
    """
    key, entries = _entries(row)
    messages = [_message(index, entry) for index, entry in enumerate(entries)]
    used = {key, "tools"}
    for name in ("system", "system_prompt"):
        if isinstance(row.get(name), str) and not (messages and messages[0].role == "system"):
            messages.insert(0, Message("system", (TextPart(row[name]),) if row[name] else ()))
            used.add(name)
    tied = tie_results(join_turns(messages), report=report)
    tied, media = _with_media(row, tied)
    return Conversation(
        messages=tied,
        tools=read_tools(row.get("tools")),
        metadata={k: v for k, v in row.items() if k not in used | media},
    )


def read_tools(value: object) -> tuple[ToolSpec, ...]:
    """Tool specs: a list, the text of one, or a list of texts.

    Raises:
        DataError: They are something else.
    """
    if isinstance(value, str):
        value = parse_literal(value, "tools") if value.strip() else None
    if value is None:
        return ()
    if isinstance(value, Mapping):
        return (ToolSpec.from_openai(without_added_nulls(dict(cast("Row", value)))),)
    if not isinstance(value, list):
        raise DataError(f"tools must be a list of tool specs, got {clip(value)}")
    specs = (parse_object(item, "a tool spec") for item in cast("list[object]", value))
    return tuple(ToolSpec.from_openai(without_added_nulls(spec)) for spec in specs)


# ---- entries ----------------------------------------------------------------------------------


def _entries(row: Row) -> tuple[str, list[dict[str, Any]]]:
    """The key of the messages, and the messages as objects."""
    key = next((k for k in _MESSAGES if row.get(k) is not None), None)
    if key is None:
        raise DataError(f"a row needs 'messages', and this one has: {clip(list(row))}")
    value: Any = row[key]
    if isinstance(value, str):
        value = parse_literal(value, key)
    if not isinstance(value, list):
        raise DataError(f"{key!r} must be a list of messages, got {clip(value)}")
    entries: list[dict[str, Any]] = []
    for index, item in enumerate(cast("list[Any]", value)):
        if not isinstance(item, Mapping):
            raise DataError(f"message {index}: must be an object, got {clip(item)}")
        entry = dict(cast("Mapping[str, Any]", item))
        if not {"role", "from"} & entry.keys() and {"human", "assistant"} <= entry.keys():
            entries.append({"role": "user", "content": entry["human"]})
            entries.append({"role": "assistant", "content": entry["assistant"]})
        else:
            entries.append(entry)
    return key, entries


def _message(index: int, entry: Row) -> Message:
    try:
        return message_from_row(_canonical(entry))
    except DataError as error:
        raise DataError(f"message {index}: {error}") from error


def _canonical(entry: Row) -> Row:
    """One entry in the canonical spelling."""
    spoken = entry.get("role", entry.get("from"))
    role = _ROLES.get(str(spoken).lower().replace("-", "_"))
    if role is None:
        known = ", ".join(_ROLES)
        raise DataError(f"unknown role {clip(spoken)}; known: {known}")
    content: Any = entry.get("content", entry.get("value"))
    row: dict[str, Any] = {
        k: v for k, v in entry.items() if k not in _KNOWN and v is not None and v != []
    }
    row |= _weight(entry)
    if role == "call":
        return row | {"role": "assistant", "content": "", "tool_calls": read_calls(content)}
    row |= {"role": role, "content": content}
    if role == "assistant":
        return row | _assistant(entry, content)
    if role == "tool" and not _is_content(content):
        row["content"] = dump_json(content)
    return row


def _weight(entry: Row) -> Row:
    given = [entry[key] for key in _WEIGHTS if entry.get(key) is not None]
    if not given:
        return {}
    if len(given) == 1 or not all(isinstance(v, int | float) for v in given):
        return {"loss": given[0]}
    product = 1.0
    for value in given:
        product *= float(value)
    return {"loss": product}


def _assistant(entry: Row, content: Any) -> dict[str, Any]:
    """What only an assistant's entry has: reasoning apart from the text, and calls."""
    row: dict[str, Any] = {}
    reasoning = next((entry[key] for key in _REASONING if entry.get(key)), None)
    if reasoning is not None:
        row["reasoning_content"] = reasoning
    elif isinstance(content, str) and (match := _THINKING.match(content)):
        row["reasoning_content"] = match[1].strip("\n")
        row["content"] = content[match.end() :]
    legacy = entry.get("function_call")
    if legacy:
        row["tool_calls"] = [*(entry.get("tool_calls") or ()), *read_calls(legacy)]
    return row


def _is_content(value: Any) -> bool:
    """Whether a tool's content is text or a list of parts, not a value that is to be written
    out."""
    if value is None or isinstance(value, str):
        return True
    return isinstance(value, list) and all(
        isinstance(item, Mapping) and "type" in item and _PART_KEYS & item.keys()
        for item in cast("list[Any]", value)
    )


def read_calls(content: object) -> list[JsonValue]:
    """Calls as ms-swift and ShareGPT write them: one object or a list, as values or as text.

    Raises:
        DataError: There is no call in it.
    """
    value: Any = parse_literal(content, "a tool call") if isinstance(content, str) else content
    calls = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [_call(call) for call in calls]


def _call(value: Any) -> JsonObject:
    call = parse_object(value, "a tool call")
    if "function" in call:
        return call
    given = call.get("arguments", call.get("parameters"))
    if isinstance(given, str) and given.strip():
        given = parse_object(given, f"arguments of call {call.get('name')!r}")
    row: JsonObject = {"function": {"name": call.get("name"), "arguments": given}}
    if isinstance(call.get("id"), str):
        row["id"] = call["id"]
    return row


# ---- media ------------------------------------------------------------------------------------


def _with_media(row: Row, messages: Sequence[Message]) -> tuple[tuple[Message, ...], set[str]]:
    """Messages with the row's media in the places of their tags, and the keys that this used."""
    supply: dict[str, Iterator[MediaPart]] = {}
    used: set[str] = set()
    for tag, key in _MEDIA.items():
        name = next((k for k in (key, tag) if row.get(k) is not None), None)
        if name is None:
            continue
        value: Any = row[name]
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        places = [i for i, m in enumerate(messages) for _ in range(m.text.count(f"<{tag}>"))]
        if len(places) != len(items):
            where = f"messages {', '.join(map(str, sorted(set(places))))}" if places else "messages"
            raise DataError(
                f"the row has {len(items)} {key} and its {where} hold {len(places)} <{tag}>; "
                "each tag takes the next one"
            )
        supply[tag] = iter([_medium(item, tag, name) for item in items])
        used.add(name)
    if not supply:
        return tuple(messages), used
    tags = re.compile(f"<({'|'.join(supply)})>")
    return tuple(_placed(message, tags, supply) for message in messages), used


def _medium(item: Any, tag: str, name: str) -> MediaPart:
    source: object = item
    if isinstance(item, Mapping):
        fields = cast("Mapping[str, object]", item)
        source = next((fields[k] for k in ("path", "url", tag) if fields.get(k)), None)
    if isinstance(source, str):
        make = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}[tag]
        return make(source)
    if tag == "video" and isinstance(source, list):
        frames = cast("list[object]", source)
        if frames and all(isinstance(frame, str) for frame in frames):
            return VideoPart(tuple(cast("list[str]", frames)))
    raise DataError(
        f"{name!r} must hold paths, URLs or data URIs, got {clip(cast('object', item))}"
    )


def _placed(
    message: Message, tags: re.Pattern[str], supply: Mapping[str, Iterator[MediaPart]]
) -> Message:
    """A message with the next medium in the place of each tag."""
    if not tags.search(message.text):
        return message
    parts: list[Part] = []
    for part in message.parts:
        if not isinstance(part, TextPart):
            parts.append(part)
            continue
        for i, text in enumerate(tags.split(part.text)):
            if i % 2:
                parts.append(next(supply[text]))
            elif text:
                parts.append(TextPart(text))
    return replace(message, parts=tuple(parts))
