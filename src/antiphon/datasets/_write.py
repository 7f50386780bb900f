"""Conversations as rows that others read, and what a row of each kind cannot hold.

A writer gives the row and the names of what it lost; nothing is left out in silence.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import cast

from antiphon.datasets._publish import PUBLISHED, publisher
from antiphon.errors import UnknownNameError, clip
from antiphon.messages import (
    Conversation,
    JsonObject,
    JsonValue,
    Message,
    TextPart,
    ThinkingPart,
    ToolCall,
    conversation_to_row,
    dump_json,
    part_to_row,
)

Written = tuple[JsonObject, list[str]]
"""A row, and the names of what it could not hold."""


def write_row(conversation: Conversation, to: str = "antiphon") -> Written:
    """A conversation as a row.

    Args:
        conversation: The conversation.
        to: ``antiphon`` (design §5), ``openai``, ``ms-swift``, ``sharegpt`` (APIGen-MT's too), or a
            published data set's shape: see `WRITERS`.

    Returns:
        The row, and the names of what it could not hold, each once.

    Raises:
        UnknownNameError: There is no such kind of row.
    """
    writer = WRITERS.get(to)
    if writer is None:
        raise UnknownNameError(f"no kind of row named {clip(to)}; known: {', '.join(WRITERS)}")
    if to != "antiphon":
        conversation = replace(conversation, messages=tuple(map(_as_sent, conversation.messages)))
    row, lost = writer(conversation)
    return row, list(dict.fromkeys([*_always_lost(conversation), *lost]))


def _as_sent(message: Message) -> Message:
    """A turn whose calls could not all be read, as a server is shown it, and not trained.

    A call with a name stands as a call whose arguments hold its text, so that its answer has one;
    the text of others is content.
    """
    if not message.invalid_tool_calls:
        return message
    named = [call for call in message.invalid_tool_calls if call.name]
    text = "".join(call.raw for call in message.invalid_tool_calls if not call.name)
    calls = [ToolCall(c.name, {"invalid_arguments": c.raw}, c.id, c.raw) for c in named]
    return replace(
        message,
        parts=(*message.parts, TextPart(text)) if text else message.parts,
        tool_calls=(*message.tool_calls, *calls),
        loss=0.0,
    )


def _always_lost(conversation: Conversation) -> Iterator[str]:
    for a, b in pairwise(conversation.messages):
        if a.role == b.role == "assistant" and not a.tool_calls:
            yield "the border between two assistant messages"


def _antiphon(conversation: Conversation) -> Written:
    row = conversation_to_row(conversation)
    entries = cast("list[JsonObject]", row["messages"])
    for entry, message in zip(entries, conversation.messages, strict=True):
        if message.role == "assistant" and message.text.lstrip().startswith("<think>"):
            # As text it would be read as reasoning.
            entry["content"] = None
            entry["parts"] = [part_to_row(part) for part in message.parts]
    return row, []


def _openai(conversation: Conversation) -> Written:
    lost: list[str] = []
    entries: list[JsonValue] = []
    for message in conversation.messages:
        entry: JsonObject = {"role": message.role}
        parts = [part for part in message.parts if not isinstance(part, ThinkingPart)]
        entry["content"] = (
            [part_to_row(part) for part in parts] if message.media else (message.text or None)
        )
        if message.role != "assistant" and entry["content"] is None:
            entry["content"] = ""
        if message.reasoning:
            entry["reasoning_content"] = message.reasoning
        if message.tool_calls:
            entry["tool_calls"] = [_openai_call(call) for call in message.tool_calls]
        if message.role == "tool":
            entry["tool_call_id"] = message.tool_call_id
        if message.name:
            entry["name"] = message.name
        if message.loss is not None:
            entry["weight"] = 1 if message.loss else 0
            lost += ["a loss between 0 and 1 or above"] * (message.loss not in (0.0, 1.0))
        lost += _lost(message, "is_error", "invalid calls", "metadata of a message")
        entries.append(entry)
    return _with_tools({"messages": entries}, conversation) | conversation.metadata, lost


def _openai_call(call: ToolCall) -> JsonValue:
    function: JsonObject = {"name": call.name, "arguments": dump_json(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _with_tools(row: JsonObject, conversation: Conversation) -> JsonObject:
    if conversation.tools:
        row["tools"] = [cast("JsonValue", spec.to_openai()) for spec in conversation.tools]
    return row


def _swift(conversation: Conversation) -> Written:
    lost: list[str] = []
    entries: list[JsonValue] = []

    def add(role: str, content: str, loss: float | None) -> None:
        entry: JsonObject = {"role": role, "content": content}
        if loss in (0.0, 1.0):
            entry["loss"] = bool(loss)
        elif loss is not None:
            entry["loss_scale"] = loss
        entries.append(entry)

    for message in conversation.messages:
        text = _inline(message)
        if message.role == "assistant":
            if text or not message.tool_calls:
                add("assistant", text, message.loss)
            for call in message.tool_calls:
                add("tool_call", _call_text(call), message.loss)
            lost += ["call ids"] * any(call.id for call in message.tool_calls)
        else:
            add("tool_response" if message.role == "tool" else message.role, text, message.loss)
        lost += _lost(message, "is_error", "invalid calls", "metadata of a message")
    row: JsonObject = {"messages": entries}
    if conversation.tools:
        row["tools"] = dump_json([cast("JsonValue", s.to_openai()) for s in conversation.tools])
    columns, unwritten = _media(conversation)
    return row | columns | conversation.metadata, lost + unwritten


def _sharegpt(conversation: Conversation) -> Written:
    lost: list[str] = []
    entries: list[JsonValue] = []
    row: JsonObject = {"conversations": entries}
    names = {"user": "human", "assistant": "gpt", "tool": "observation", "system": "system"}
    for index, message in enumerate(conversation.messages):
        text = _inline(message)
        if message.role == "system" and index == 0:
            row["system"] = text
        elif text or not message.tool_calls:
            entries.append({"from": names[message.role], "value": text})
        if message.tool_calls:
            calls = [_call_text(call) for call in message.tool_calls]
            value = calls[0] if len(calls) == 1 else f"[{', '.join(calls)}]"
            entries.append({"from": "function_call", "value": value})
            lost += ["call ids"] * any(call.id for call in message.tool_calls)
        lost += _lost(message, "is_error", "invalid calls", "metadata of a message", "loss")
    if conversation.tools:
        specs = [cast("JsonValue", s.to_openai()["function"]) for s in conversation.tools]
        row["tools"] = dump_json(specs)
    columns, unwritten = _media(conversation)
    return row | columns | conversation.metadata, lost + unwritten


def _media(conversation: Conversation) -> Written:
    """The columns that media tags take from, in order; a tag that somebody wrote as text would
    take one, too."""
    columns: dict[str, list[JsonValue]] = {}
    for message in conversation.messages:
        for part in message.media:
            source: JsonValue = list(part.source) if isinstance(part.source, tuple) else part.source
            columns.setdefault(f"{part.kind}s", []).append(source)
    lost = [
        f"the text {tag!r} beside the row's own {column}"
        for column in columns
        for tag in [f"<{column[:-1]}>"]
        if any(tag in message.text for message in conversation.messages)
    ]
    return {column: list(sources) for column, sources in columns.items()}, lost


"""Where rows keep what their tags, which are singular, stand for."""


def _inline(message: Message) -> str:
    """Text with reasoning in its tags and media as theirs."""
    parts: list[str] = []
    for part in message.parts:
        if isinstance(part, ThinkingPart):
            parts.append(f"<think>\n{part.text}\n</think>\n\n")
        elif isinstance(part, TextPart):
            parts.append(part.text)
        else:
            parts.append(f"<{part.kind}>")
    return "".join(parts)


def _call_text(call: ToolCall) -> str:
    return dump_json({"name": call.name, "arguments": call.arguments})


def _lost(message: Message, *names: str) -> list[str]:
    has = {
        "is_error": message.is_error,
        "invalid calls": bool(message.invalid_tool_calls),
        "metadata of a message": bool(message.metadata),
        "loss": message.loss is not None,
    }
    return [name for name in names if has[name]]


WRITERS: dict[str, Callable[[Conversation], Written]] = {
    "antiphon": _antiphon,
    "openai": _openai,
    "ms-swift": _swift,
    "sharegpt": _sharegpt,
    **{name: publisher(name, make) for name, make in PUBLISHED.items()},
}
"""Kinds of rows that can be written."""
