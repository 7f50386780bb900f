"""Anthropic's Messages, as a server speaks it.

Source: Anthropic API reference, ``POST /v1/messages`` and "Streaming messages".

A call's input is sent when it is whole, in one piece: that API promises an object, and its clients
read what has come of one as if it were all.
"""

import secrets
from collections.abc import Sequence
from typing import Any, cast

from antiphon.errors import DataError
from antiphon.messages import (
    Conversation,
    ImagePart,
    JsonObject,
    JsonValue,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolSpec,
    Usage,
    json_bytes,
)
from antiphon.models import ModelSettings
from antiphon.serve._answer import (
    Answer,
    CallBegin,
    CallPiece,
    End,
    Piece,
    TextPiece,
    ThinkingPiece,
    TokensPiece,
)
from antiphon.serve._ask import MAX_TOKENS, Ask, Limits, check_choice, check_tools, image, sampling
from antiphon.serve._fields import Fields, read_json
from antiphon.serve._refusal import Refusal, bad
from antiphon.serve._wire import event


class MessagesServing:
    """Reads requests and writes answers of ``/v1/messages``."""

    def read(self, row: dict[str, Any], limits: Limits) -> Ask:
        """What a request asks.

        Raises:
            Refusal: It cannot be meant as it is written.
        """
        fields = Fields(row)
        if fields.integer("max_tokens", 1, MAX_TOKENS) is None:
            raise fields.refuse("max_tokens", "a whole number of at least 1")
        return self.shown(row, limits)

    def shown(self, row: dict[str, Any], limits: Limits) -> Ask:
        """As `read`, of a request whose tokens are counted: it has no limit of its answer.

        Raises:
            Refusal: It cannot be meant as it is written.
        """
        fields = Fields(row)
        tools = _tools(fields, limits)
        choice, parallel = _tool_choice(fields)
        top_k = fields.integer("top_k", 0, 1 << 20)
        settings = ModelSettings(
            max_tokens=fields.integer("max_tokens", 1, MAX_TOKENS),
            stop=fields.texts("stop_sequences", 16),
            tool_choice=check_choice(choice, tools),
            parallel_tool_calls=parallel,
            response_schema=_schema(fields),
            extra={} if top_k is None else {"top_k": top_k},
        )
        return Ask(
            fields.text("model"),
            Conversation(_conversation(fields, limits), tools),
            sampling(fields, settings),
            id=f"msg_{secrets.token_hex(12)}",
        )

    def whole(self, ask: Ask, answers: Sequence[Answer]) -> JsonObject:
        """The body of an answer that is sent whole."""
        answer = answers[0]
        return {
            **_head(ask),
            "content": [_block(answer, index) for index in range(len(answer.segments))],
            **_stop(_stop_reason(answer.completion.stop_reason, bool(answer.calls))),
            "usage": _usage(answer.completion.usage) | _UNTOLD_USAGE,
        }

    def stream(self, ask: Ask) -> "MessagesStream":
        """What writes a streamed answer."""
        return MessagesStream(ask)

    def error(self, refusal: Refusal) -> JsonObject:
        """The body of an error."""
        return anthropic_error(refusal)


def anthropic_error(refusal: Refusal, request_id: str | None = None) -> JsonObject:
    """An error as Anthropic's API spells it."""
    error: JsonObject = {"type": refusal.anthropic_kind, "message": refusal.message}
    return {"type": "error", "error": error, "request_id": request_id}


# --- Requests


def _tools(fields: Fields, limits: Limits) -> tuple[ToolSpec, ...]:
    rows = fields.rows("tools")
    if len(rows) > limits.tools:
        raise bad(f"{len(rows)} tools are more than this server takes ({limits.tools})", "tools")
    specs: list[ToolSpec] = []
    for row in rows:
        if row.text("type", "custom") != "custom":
            raise row.refuse("type", "'custom': this server has no tools of its own here")
        try:
            specs.append(ToolSpec.from_anthropic(row.row))
        except DataError as error:
            raise bad(f"{row.place}: {error}", row.place) from error
    return check_tools(specs, limits)


def _tool_choice(fields: Fields) -> tuple[str, bool]:
    choice = fields.object("tool_choice")
    if choice is None:
        return "auto", True
    parallel = not choice.flag("disable_parallel_tool_use")
    match choice.text("type"):
        case "auto" | "none" as word:
            return word, parallel
        case "any":
            return "required", parallel
        case "tool":
            return choice.text("name"), parallel
        case _:
            raise choice.refuse("type", "auto, any, tool or none")


def _schema(fields: Fields) -> "JsonObject | None":
    holder = fields.object("output_config") or fields
    key = "format" if holder is not fields else "output_format"
    wanted = holder.object(key)
    if wanted is None:
        return None
    schema = wanted.object("schema")
    if wanted.text("type") != "json_schema" or schema is None:
        raise holder.refuse(key, "a json_schema with its schema")
    return cast("JsonObject", dict(schema.row))


def _conversation(fields: Fields, limits: Limits) -> tuple[Message, ...]:
    messages: list[Message] = []
    system = _texts(fields, "system")
    if system:
        messages.append(Message("system", system))
    rows = fields.rows("messages")
    if not rows:
        raise fields.refuse("messages", "a list of at least one message")
    if len(rows) > limits.messages:
        raise bad(f"{len(rows)} messages are more than this server takes", "messages")
    names: dict[str, str] = {}
    for row in rows:
        match row.text("role"):
            case "user":
                messages.extend(_user(row, names))
            case "assistant":
                messages.append(_assistant(row, names))
            case "system":
                messages.append(Message("system", _texts(row, "content")))
            case _:
                raise row.refuse("role", "user or assistant")
    return tuple(messages)


def _texts(fields: Fields, key: str) -> tuple[Part, ...]:
    value = fields.get(key)
    if value is None:
        return ()
    if isinstance(value, str):
        return (TextPart(value),) if value else ()
    parts: list[Part] = []
    for block in fields.rows(key):
        if block.text("type") != "text":
            raise block.refuse("type", "text")
        parts.append(TextPart(block.text("text")))
    return tuple(parts)


def _user(fields: Fields, names: dict[str, str]) -> list[Message]:
    """A user's turn: results of tools first, as that API has them, each a message of its own."""
    if isinstance(fields.get("content"), str):
        return [Message("user", _texts(fields, "content"))]
    messages: list[Message] = []
    parts: list[Part] = []
    for block in fields.rows("content"):
        match block.text("type"):
            case "tool_result":
                if parts:
                    messages.append(Message("user", tuple(parts)))
                    parts = []
                id = block.text("tool_use_id")
                messages.append(
                    Message(
                        "tool",
                        _shown(block),
                        tool_call_id=id,
                        name=names.get(id, ""),
                        is_error=block.flag("is_error"),
                    )
                )
            case _:
                parts.append(_part(block))
    if parts or not messages:
        messages.append(Message("user", tuple(parts)))
    return messages


def _shown(block: Fields) -> tuple[Part, ...]:
    content = block.get("content")
    if content is None or isinstance(content, str):
        return _texts(block, "content")
    return tuple(_part(inner) for inner in block.rows("content"))


def _part(block: Fields) -> Part:
    match block.text("type"):
        case "text":
            return TextPart(block.text("text"))
        case "image":
            return _image(block)
        case _:
            raise block.refuse("type", "text, image or tool_result")


def _image(block: Fields) -> ImagePart:
    source = block.object("source")
    if source is None:
        raise block.refuse("source", "an object")
    match source.text("type"):
        case "base64":
            kind, data = source.text("media_type"), source.text("data")
            return image(f"data:{kind};base64,{data}", source.name("media_type"))
        case "url":
            return image(source.text("url"), source.name("url"))
        case _:
            raise source.refuse("type", "base64 or url")


def _assistant(fields: Fields, names: dict[str, str]) -> Message:
    if isinstance(fields.get("content"), str):
        return Message("assistant", _texts(fields, "content"))
    parts: list[Part] = []
    calls: list[ToolCall] = []
    for block in fields.rows("content"):
        match block.text("type"):
            case "text":
                parts.append(TextPart(block.text("text")))
            case "thinking":
                signature = block.text("signature", "")
                parts.append(ThinkingPart(block.text("thinking"), signature or None))
            case "redacted_thinking":
                continue  # nothing that a model of ours could read
            case "tool_use":
                given = block.object("input")
                call = ToolCall(
                    block.text("name"),
                    {} if given is None else cast("JsonObject", dict(given.row)),
                    block.text("id"),
                )
                names[call.id] = call.name
                calls.append(call)
            case _:
                raise block.refuse("type", "text, thinking or tool_use")
    return Message("assistant", tuple(parts), tool_calls=tuple(calls))


# --- Answers


def _head(ask: Ask) -> JsonObject:
    return {"id": ask.id, "type": "message", "role": "assistant", "model": ask.model}


def _stop(reason: str | None) -> JsonObject:
    """Why an answer ended, with all that this API says of it."""
    return {"stop_reason": reason, "stop_sequence": None, "stop_details": None, "container": None}


def _stop_reason(stop_reason: str, has_calls: bool) -> str:
    known = {"length": "max_tokens", "refusal": "refusal", "content_filter": "refusal"}
    return known.get(stop_reason) or ("tool_use" if has_calls else "end_turn")


def _usage(usage: Usage) -> JsonObject:
    """What an answer cost; that API counts tokens that were reused apart."""
    return {
        "input_tokens": max(0, usage.input_tokens - usage.cached_tokens),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "output_tokens_details": None,
        "server_tool_use": None,
    }


_UNTOLD_USAGE: JsonObject = {"cache_creation": None, "inference_geo": None, "service_tier": None}
"""What a whole message says besides; nothing of it is known here."""


def _block(answer: Answer, index: int) -> JsonValue:
    segment = answer.segments[index]
    if segment.call is not None:
        call = segment.call
        row = _call_row(call.id, call.name)
        return {**row, "input": input_of(call.arguments)}
    if segment.kind == "thinking":
        return {"type": "thinking", "thinking": segment.text, "signature": ""}
    return {"type": "text", "text": segment.text, "citations": None}


def _call_row(id: str, name: str) -> JsonObject:
    return {"type": "tool_use", "id": id, "name": name, "caller": {"type": "direct"}}


def input_of(arguments: str) -> JsonObject:
    """The input of a call: an object, also where the model wrote none; then its text is inside.

    >>> input_of('{"a": 1'), input_of("")
    ({'invalid_arguments': '{"a": 1'}, {})
    """
    try:
        value: Any = read_json(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict):
        return cast("JsonObject", value)
    return {"invalid_arguments": arguments}


class MessagesStream:
    """Writes one streamed answer: blocks that open, grow and close, one at a time."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._n_blocks = 0
        self._open = ""
        self._arguments: list[str] = []
        self._has_calls = False
        self._prefix = b""

    def begin(self) -> bytes:
        """What is sent before the first piece."""
        message: JsonObject = {
            **_head(self._ask),
            "content": [],
            **_stop(None),
            "usage": _usage(Usage()) | _UNTOLD_USAGE,
        }
        return event({"type": "message_start", "message": message}, "message_start")

    def piece(self, piece: Piece, choice: int = 0) -> bytes:
        """What is sent for a piece."""
        match piece:
            case TextPiece(text):
                return self._in("text") + self._prefix + json_bytes(text) + b"}}\n\n"
            case ThinkingPiece(text):
                return self._in("thinking") + self._prefix + json_bytes(text) + b"}}\n\n"
            case CallBegin(_, id, name):
                self._has_calls = True
                closed = self._close()
                return closed + self._begin("call", {**_call_row(id, name), "input": {}})
            case CallPiece(_, text):
                self._arguments.append(text)
                return b""
            case TokensPiece():
                return b""  # Anthropic's API tells no log probabilities
            case End(completion):
                return self._close() + self._end(completion.stop_reason, completion.usage)
            case _:
                raise AssertionError(piece)

    def _in(self, kind: str) -> bytes:
        """Be in a block of a kind: the one that is open, or a new one."""
        if self._open == kind:
            return b""
        row: JsonObject = {"type": kind, kind: ""}
        row |= {"signature": ""} if kind == "thinking" else {"citations": None}
        out = self._close() + self._begin(kind, row)
        delta = f'"index":{self._n_blocks},"delta":{{"type":"{kind}_delta","{kind}":'
        self._prefix = (
            b'event: content_block_delta\ndata: {"type":"content_block_delta",' + delta.encode()
        )
        return out

    def _begin(self, kind: str, block: JsonObject) -> bytes:
        self._open = kind
        row: JsonObject = {"index": self._n_blocks, "content_block": block}
        return event({"type": "content_block_start", **row}, "content_block_start")

    def _delta(self, delta: JsonObject) -> bytes:
        row: JsonObject = {"index": self._n_blocks, "delta": delta}
        return event({"type": "content_block_delta", **row}, "content_block_delta")

    def _close(self) -> bytes:
        if not self._open:
            return b""
        out = b""
        if self._open == "call":
            whole = json_bytes(input_of("".join(self._arguments))).decode()
            self._arguments.clear()
            out = self._delta({"type": "input_json_delta", "partial_json": whole})
        elif self._open == "thinking":
            out = self._delta({"type": "signature_delta", "signature": ""})
        self._open = ""
        index = self._n_blocks
        self._n_blocks += 1
        row: JsonObject = {"type": "content_block_stop", "index": index}
        return out + event(row, "content_block_stop")

    def _end(self, stop_reason: str, usage: Usage) -> bytes:
        reason = _stop_reason(stop_reason, self._has_calls)
        delta = _stop(reason)
        row: JsonObject = {"type": "message_delta", "delta": delta, "usage": _usage(usage)}
        return event(row, "message_delta")

    def end(self) -> bytes:
        """What is sent behind the last piece."""
        return event({"type": "message_stop"}, "message_stop")

    def error(self, refusal: Refusal) -> bytes:
        """What is sent where the answer breaks off."""
        return event(anthropic_error(refusal), "error")
