"""OpenAI's Responses, as a server speaks it.

Source: OpenAI API reference, ``POST /v1/responses`` and "Streaming events".  Of its tools,
functions are served; answers are kept for `previous_response_id` in memory, within bounds.
"""

import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.messages import (
    Completion,
    Conversation,
    InvalidToolCall,
    JsonObject,
    JsonValue,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    Usage,
    dump_json,
    json_bytes,
)
from antiphon.models import ModelSettings
from antiphon.serve._answer import (
    Answer,
    CallBegin,
    CallPiece,
    End,
    Fold,
    Piece,
    Segment,
    TextPiece,
    ThinkingPiece,
)
from antiphon.serve._ask import (
    MAX_TOKENS,
    Ask,
    Limits,
    check_choice,
    image,
    openai_tools,
    sampling,
)
from antiphon.serve._chat import call_of, logprobs_of, openai_error, schema_in
from antiphon.serve._fields import Fields
from antiphon.serve._refusal import Refusal, bad
from antiphon.serve._wire import event


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that a later request may go on from."""

    owner: str
    """Whose it is."""
    row: JsonObject
    """Its body."""
    messages: tuple[Message, ...]
    """The conversation up to and with it, without instructions."""
    n_chars: int
    """How much there is of it."""


class KeptResponses:
    """The last answers, as many as bounds allow."""

    def __init__(self, most: int, most_chars: int = 64 << 20) -> None:
        """Set up.

        Args:
            most: How many to keep.
            most_chars: How many characters they may have together.
        """
        self._most = most
        self._most_chars = most_chars
        self._n_chars = 0
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def put(self, id: str, kept: Kept) -> None:
        """Keep an answer; the oldest go where there are too many."""
        self._kept[id] = kept
        self._n_chars += kept.n_chars
        while len(self._kept) > self._most or self._n_chars > self._most_chars:
            _, gone = self._kept.popitem(last=False)
            self._n_chars -= gone.n_chars

    def get(self, id: str, owner: str) -> Kept:
        """An answer of the same owner.

        Raises:
            Refusal: There is none.
        """
        kept = self._kept.get(id)
        if kept is None or kept.owner != owner:
            raise Refusal(404, f"there is no response {id[:80]!r}", "response_not_found")
        return kept

    def drop(self, id: str, owner: str) -> None:
        """Forget an answer.

        Raises:
            Refusal: There is none.
        """
        self._n_chars -= self.get(id, owner).n_chars
        del self._kept[id]


class ResponsesServing:
    """Reads requests and writes answers of ``/v1/responses``, for one owner."""

    def __init__(self, kept: KeptResponses, owner: str) -> None:
        """Set up.

        Args:
            kept: Earlier answers.
            owner: Whose request it is.
        """
        self._kept = kept
        self._owner = owner

    def read(self, row: dict[str, Any], limits: Limits) -> Ask:
        """What a request asks.

        Raises:
            Refusal: It cannot be meant as it is written.
        """
        fields = Fields(row)
        if fields.flag("background"):
            raise bad("background answers are not served", "background")
        tools = openai_tools(fields.rows("tools"), limits)
        messages = self._before(fields) + _input(fields, limits)
        if not messages:
            raise fields.refuse("input", "a text or a list of items")
        instructions = fields.text("instructions", "")
        system = (Message.system(instructions),) if instructions else ()
        settings = ModelSettings(
            max_tokens=fields.integer("max_output_tokens", 1, MAX_TOKENS),
            tool_choice=check_choice(_tool_choice(fields), tools),
            parallel_tool_calls=fields.flag("parallel_tool_calls", True),
            response_schema=_schema(fields),
        )
        include = fields.texts("include", 32)
        return Ask(
            fields.text("model"),
            Conversation((*system, *messages), tools),
            sampling(fields, settings),
            stream=fields.flag("stream"),
            logprobs="message.output_text.logprobs" in include,
            id=f"resp_{secrets.token_hex(24)}",
            echo=_echo(fields, row),
        )

    def _before(self, fields: Fields) -> tuple[Message, ...]:
        id = fields.text("previous_response_id", "")
        return self._kept.get(id, self._owner).messages if id else ()

    def whole(self, ask: Ask, answers: Sequence[Answer]) -> JsonObject:
        """The body of an answer that is sent whole."""
        answer = answers[0]
        row = finished(ask, answer, int(time.time()))
        self.keep(ask, answer, row)
        return row

    def keep(self, ask: Ask, answer: Answer, row: JsonObject) -> None:
        """Remember an answer, where the request lets us."""
        if ask.echo["store"]:
            said = [m for m in ask.conversation.messages if m.role != "system"]
            told = (*said, _message_of(answer))
            self._kept.put(ask.id, Kept(self._owner, row, told, sum(map(_n_chars, told))))

    def stream(self, ask: Ask) -> "ResponsesStream":
        """What writes a streamed answer."""
        return ResponsesStream(ask, self)

    def error(self, refusal: Refusal) -> JsonObject:
        """The body of an error."""
        return openai_error(refusal)


# --- Requests


def _echo(fields: Fields, row: dict[str, Any]) -> JsonObject:
    """What of a request its answer repeats."""
    text = fields.object("text")
    return {
        "instructions": fields.text("instructions", "") or None,
        "max_output_tokens": row.get("max_output_tokens"),
        "metadata": row.get("metadata") if isinstance(row.get("metadata"), dict) else {},
        "parallel_tool_calls": fields.flag("parallel_tool_calls", True),
        "previous_response_id": fields.text("previous_response_id", "") or None,
        "store": fields.flag("store", True),
        "temperature": row.get("temperature"),
        "text": {"format": {"type": "text"}} if text is None else dict(text.row),
        "tool_choice": row.get("tool_choice") or "auto",
        "tools": row.get("tools") or [],
        "top_p": row.get("top_p"),
        "truncation": "disabled",
        "reasoning": {"effort": None, "summary": None},
    }


def _tool_choice(fields: Fields) -> str:
    choice = fields.get("tool_choice")
    if choice is None or isinstance(choice, str):
        return fields.one_of("tool_choice", "auto", "none", "required", default="auto")
    named = fields.object("tool_choice")
    assert named is not None
    if named.text("type") != "function":
        raise named.refuse("type", "'function'")
    return named.text("name")


def _schema(fields: Fields) -> "JsonObject | None":
    text = fields.object("text")
    wanted = None if text is None else text.object("format")
    if wanted is None:
        return None
    match wanted.text("type"):
        case "text":
            return None
        case "json_object":
            return {"type": "object"}
        case "json_schema":
            return schema_in(wanted)
        case _:
            raise wanted.refuse("type", "text, json_object or json_schema")


def _input(fields: Fields, limits: Limits) -> tuple[Message, ...]:
    given = fields.get("input")
    if given is None:
        return ()
    if isinstance(given, str):
        return (Message.user(given),)
    rows = fields.rows("input")
    if len(rows) > limits.messages:
        raise bad(f"{len(rows)} items are more than this server takes", "input")
    turns = _Turns()
    for row in rows:
        turns.add(row)
    return turns.finish()


class _Turns:
    """Items as messages: what an assistant said, thought and called in a row is one turn."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._parts: list[Part] = []
        self._calls: list[ToolCall | InvalidToolCall] = []
        self._names: dict[str, str] = {}

    def add(self, row: Fields) -> None:
        match row.text("type", "message"):
            case "message":
                self._message(row)
            case "reasoning":
                self._begin_anew()
                texts = [part.text("text") for part in row.rows("content")]
                if texts:
                    self._parts.append(ThinkingPart("".join(texts)))
            case "function_call":
                id, name = row.text("call_id"), row.text("name")
                self._names[id] = name
                self._calls.append(call_of(name, row.text("arguments", ""), id))
            case "function_call_output":
                self._close()
                id = row.text("call_id")
                parts = _parts(row, "output")
                made = Message("tool", parts, tool_call_id=id, name=self._names.get(id, ""))
                self._messages.append(made)
            case _:
                raise row.refuse(
                    "type", "message, reasoning, function_call or function_call_output"
                )

    def _message(self, row: Fields) -> None:
        role = row.text("role")
        if role == "assistant":
            self._begin_anew()
            self._parts.extend(_parts(row, "content"))
            return
        self._close()
        match role:
            case "user":
                self._messages.append(Message("user", _parts(row, "content")))
            case "system" | "developer":
                self._messages.append(Message("system", _parts(row, "content")))
            case _:
                raise row.refuse("role", "user, assistant, system or developer")

    def _begin_anew(self) -> None:
        """Words behind calls are another turn."""
        if self._calls:
            self._close()

    def _close(self) -> None:
        if not self._parts and not self._calls:
            return
        self._messages.append(
            Message(
                "assistant",
                tuple(self._parts),
                tool_calls=tuple(c for c in self._calls if isinstance(c, ToolCall)),
                invalid_tool_calls=tuple(c for c in self._calls if not isinstance(c, ToolCall)),
            )
        )
        self._parts, self._calls = [], []

    def finish(self) -> tuple[Message, ...]:
        self._close()
        return tuple(self._messages)


def _parts(fields: Fields, key: str) -> tuple[Part, ...]:
    content = fields.get(key)
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    parts: list[Part] = []
    for part in fields.rows(key):
        match part.text("type"):
            case "input_text" | "output_text" | "text":
                parts.append(TextPart(part.text("text")))
            case "refusal":
                parts.append(TextPart(part.text("refusal")))
            case "input_image":
                parts.append(image(part.text("image_url"), part.name("image_url")))
            case _:
                raise part.refuse("type", "input_text, output_text or input_image")
    return tuple(parts)


# --- Answers


def _message_of(answer: Answer) -> Message:
    """An answer as the message that a later request goes on from."""
    calls = [call_of(call.name, call.arguments, call.id) for call in answer.calls]
    parts: list[Part] = []
    if answer.reasoning:
        parts.append(ThinkingPart(answer.reasoning))
    if answer.text:
        parts.append(TextPart(answer.text))
    return Message(
        "assistant",
        tuple(parts),
        tool_calls=tuple(c for c in calls if isinstance(c, ToolCall)),
        invalid_tool_calls=tuple(c for c in calls if not isinstance(c, ToolCall)),
    )


def _n_chars(message: Message) -> int:
    calls = sum(len(dump_json(call.arguments)) for call in message.tool_calls)
    images = sum(len(part.source) for part in message.images)
    return len(message.text) + len(message.reasoning) + calls + images


def _head(ask: Ask, created: int, status: str) -> JsonObject:
    return {
        **ask.echo,
        "id": ask.id,
        "object": "response",
        "created_at": created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": ask.model,
        "output": [],
        "usage": None,
    }


def finished(ask: Ask, answer: Answer, created: int) -> JsonObject:
    """The body of an answer that is over."""
    completion = answer.completion
    cut = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = cut.get(completion.stop_reason)
    status = "completed" if reason is None else "incomplete"
    row = _head(ask, created, status)
    last = len(answer.segments) - 1  # where a cut answer was cut
    row["output"] = [
        _item(
            ask,
            index,
            segment,
            status if index == last else "completed",
            _logprobs(ask, completion) if index == last else [],
        )
        for index, segment in enumerate(answer.segments)
    ]
    row["usage"] = _usage(completion.usage)
    if reason is not None:
        row["incomplete_details"] = {"reason": reason}
    return row


def _usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _logprobs(ask: Ask, completion: Completion) -> list[JsonValue]:
    if not ask.logprobs or completion.tokens is None:
        return []
    return logprobs_of(completion.tokens)


def _item_id(ask: Ask, index: int, kind: str) -> str:
    heads = {"text": "msg", "thinking": "rs", "call": "fc"}
    return f"{heads[kind]}_{ask.id.removeprefix('resp_')}{index:04x}"


def _item(
    ask: Ask, index: int, segment: Segment, status: str, logprobs: list[JsonValue]
) -> JsonObject:
    id = _item_id(ask, index, segment.kind)
    if segment.call is not None:
        return {
            "type": "function_call",
            "id": id,
            "call_id": segment.call.id,
            "name": segment.call.name,
            "arguments": segment.call.arguments,
            "status": status,
        }
    if segment.kind == "thinking":
        content: JsonObject = {"type": "reasoning_text", "text": segment.text}
        return {
            "type": "reasoning",
            "id": id,
            "summary": [],
            "content": [content],
            "status": status,
        }
    return {
        "type": "message",
        "id": id,
        "role": "assistant",
        "status": status,
        "content": [_text_part(segment.text, logprobs)],
    }


def _text_part(text: str, logprobs: list[JsonValue]) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


class ResponsesStream:
    """Writes one streamed answer: items that are added, grow, and are done, one at a time."""

    def __init__(self, ask: Ask, serving: ResponsesServing) -> None:
        self._ask = ask
        self._serving = serving
        self._created = int(time.time())
        self._n_events = 0
        self._n_items = 0
        self._kind = ""
        self._fold = Fold()
        self._texts: list[str] = []
        self._call: JsonObject = {}
        self._ended: Completion | None = None

    def _event(self, kind: str, **fields: JsonValue) -> bytes:
        row: JsonObject = {"type": kind, "sequence_number": self._n_events, **fields}
        self._n_events += 1
        return event(row, kind)

    def begin(self) -> bytes:
        """What is sent before the first piece."""
        head = _head(self._ask, self._created, "in_progress")
        return self._event("response.created", response=head) + self._event(
            "response.in_progress", response=head
        )

    def piece(self, piece: Piece, choice: int = 0) -> bytes:
        """What is sent for a piece."""
        self._fold.take(piece)
        match piece:
            case TextPiece(text):
                return self._in("text") + self._grow("response.output_text.delta", text)
            case ThinkingPiece(text):
                return self._in("thinking") + self._grow("response.reasoning_text.delta", text)
            case CallBegin(_, id, name):
                return self._close() + self._begin_call(id, name)
            case CallPiece(_, text):
                return self._grow("response.function_call_arguments.delta", text)
            case End(completion):
                self._ended = completion
                return self._close()
            case _:
                raise AssertionError(piece)

    @property
    def _id(self) -> str:
        return _item_id(self._ask, self._n_items, self._kind)

    def _grow(self, kind: str, text: str) -> bytes:
        self._texts.append(text)
        head = b'event: %b\ndata: {"type":"%b","sequence_number":%d,' % (
            kind.encode(),
            kind.encode(),
            self._n_events,
        )
        self._n_events += 1
        place = b'"item_id":"%b","output_index":%d,' % (self._id.encode(), self._n_items)
        inner = b"" if self._kind == "call" else b'"content_index":0,'
        logprobs = b',"logprobs":[]' if self._kind == "text" else b""
        return head + place + inner + b'"delta":' + json_bytes(text) + logprobs + b"}\n\n"

    def _in(self, kind: str) -> bytes:
        if self._kind == kind:
            return b""
        out = self._close()
        self._kind = kind
        item = _item(self._ask, self._n_items, Segment(kind), "in_progress", [])
        item["content"] = []
        part: JsonObject = (
            _text_part("", []) if kind == "text" else {"type": "reasoning_text", "text": ""}
        )
        out += self._event("response.output_item.added", output_index=self._n_items, item=item)
        return out + self._event(
            "response.content_part.added",
            item_id=self._id,
            output_index=self._n_items,
            content_index=0,
            part=part,
        )

    def _begin_call(self, id: str, name: str) -> bytes:
        self._kind = "call"
        self._call = {
            "type": "function_call",
            "id": self._id,
            "call_id": id,
            "name": name,
            "arguments": "",
            "status": "in_progress",
        }
        return self._event(
            "response.output_item.added", output_index=self._n_items, item=self._call
        )

    def _close(self) -> bytes:
        if not self._kind:
            return b""
        text = "".join(self._texts)
        self._texts.clear()
        status = "completed"
        if self._ended is not None and self._ended.stop_reason in ("length", "content_filter"):
            status = "incomplete"
        place: JsonObject = {"item_id": self._id, "output_index": self._n_items}
        if self._kind == "call":
            name = self._call["name"]
            kind = "response.function_call_arguments.done"
            out = self._event(kind, **place, name=name, arguments=text)
            item: JsonObject = {**self._call, "arguments": text, "status": status}
        else:
            out, item = self._close_text(place, text, status)
        out += self._event("response.output_item.done", output_index=self._n_items, item=item)
        self._kind = ""
        self._n_items += 1
        return out

    def _close_text(self, place: JsonObject, text: str, status: str) -> tuple[bytes, JsonObject]:
        is_text = self._kind == "text"
        logprobs: list[JsonValue] = []
        if is_text and self._ended is not None:
            logprobs = _logprobs(self._ask, self._ended)
        item = _item(self._ask, self._n_items, Segment(self._kind, text), status, logprobs)
        part: JsonObject = (
            _text_part(text, logprobs) if is_text else {"type": "reasoning_text", "text": text}
        )
        place = {**place, "content_index": 0}
        kind = "response.output_text.done" if is_text else "response.reasoning_text.done"
        more: JsonObject = {"logprobs": logprobs} if is_text else {}
        out = self._event(kind, **place, text=text, **more)
        return out + self._event("response.content_part.done", **place, part=part), item

    def end(self) -> bytes:
        """What is sent behind the last piece."""
        answer = self._fold.answer()
        row = finished(self._ask, answer, self._created)
        self._serving.keep(self._ask, answer, row)
        return self._event(f"response.{row['status']}", response=row)

    def error(self, refusal: Refusal) -> bytes:
        """What is sent where the answer breaks off."""
        row = _head(self._ask, self._created, "failed")
        row["error"] = {"code": "server_error", "message": refusal.message}
        return self._event("response.failed", response=row)
