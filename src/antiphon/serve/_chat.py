"""OpenAI's Chat Completions, as a server speaks it.

Source: OpenAI API reference, ``POST /v1/chat/completions``; ``reasoning_content`` for reasoning is
DeepSeek's and vLLM's, and what clients read; ``audio_url`` and ``video_url`` are vLLM's.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from antiphon.errors import clip
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
    TokenLogprob,
    ToolCall,
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
from antiphon.serve._ask import (
    MAX_TOKENS,
    MAX_TOP,
    Ask,
    Limits,
    audio,
    image,
    input_audio,
    openai_tools,
    sampling,
    video,
)
from antiphon.serve._fields import Fields
from antiphon.serve._openai import (
    Shown,
    answer_schema,
    assistant,
    call_of,
    finish_reason,
    logprobs_of,
    openai_error,
    sum_of,
    tokens_of,
    tool_choice,
    usage_row,
)
from antiphon.serve._refusal import Refusal, bad
from antiphon.serve._wire import event

_PASSED_ON = ("presence_penalty", "frequency_penalty", "logit_bias", "top_k", "min_p")
"""Sampling fields that a model's server may know and that mean nothing to us."""


class ChatServing:
    """Reads requests and writes answers of ``/v1/chat/completions``."""

    def read(self, row: dict[str, Any], limits: Limits) -> Ask:
        """What a request asks.

        Raises:
            Refusal: It cannot be meant as it is written.
        """
        fields = Fields(row)
        tools = openai_tools(fields.rows("tools"), limits)
        messages = read_messages(fields, "messages", limits)
        if not messages:
            raise fields.refuse("messages", "a list of at least one message")
        options = fields.object("stream_options")
        return Ask(
            fields.text("model"),
            Conversation(messages, tools),
            _settings(fields, tools),
            n=fields.integer("n", 1, limits.choices) or 1,
            include_usage=options is not None and options.flag("include_usage"),
            id=f"chatcmpl-{secrets.token_hex(12)}",
        )

    def whole(self, ask: Ask, answers: Sequence[Answer]) -> JsonObject:
        """The body of an answer that is sent whole."""
        choices: list[JsonValue] = [
            {
                "index": index,
                "message": _answer_row(answer),
                "logprobs": _logprobs(ask, answer.completion),
                "finish_reason": finish_reason(answer.completion.stop_reason, bool(answer.calls)),
            }
            for index, answer in enumerate(answers)
        ]
        return {
            "id": ask.id,
            "object": "chat.completion",
            "created": int(time.time()),
            "model": ask.model,
            "choices": choices,
            "usage": usage_row(sum_of(answer.completion.usage for answer in answers)),
        }

    def stream(self, ask: Ask) -> "ChatStream":
        """What writes a streamed answer."""
        return ChatStream(ask)

    def error(self, refusal: Refusal) -> JsonObject:
        """The body of an error."""
        return openai_error(refusal)


def read_messages(fields: Fields, key: str, limits: Limits | None = None) -> tuple[Message, ...]:
    """Messages in the spelling of Chat Completions.

    Raises:
        Refusal: One of them cannot be read, or there are too many.
    """
    rows = fields.rows(key)
    if len(rows) > (limits or Limits()).messages:
        raise bad(f"{len(rows)} messages are more than this server takes", key)
    return tuple(_message(row) for row in rows)


def _settings(fields: Fields, tools: Sequence[Any]) -> ModelSettings:
    limit = fields.integer("max_completion_tokens", 1, MAX_TOKENS)
    extra = {key: fields.get(key) for key in _PASSED_ON if fields.get(key) is not None}
    settings = ModelSettings(
        max_tokens=limit or fields.integer("max_tokens", 1, MAX_TOKENS),
        seed=fields.integer("seed", -(1 << 63), (1 << 63) - 1),
        stop=fields.texts("stop", 16),
        tool_choice=tool_choice(fields, tools),
        parallel_tool_calls=fields.flag("parallel_tool_calls", True),
        response_schema=answer_schema(fields.object("response_format")),
        logprobs=_n_top(fields),
        extra=extra,
    )
    return sampling(fields, settings)


def _n_top(fields: Fields) -> int | None:
    """How many likely tokens are wanted beside each sampled one; ``None`` for nothing of all."""
    n_top = fields.integer("top_logprobs", 0, MAX_TOP)
    if fields.flag("logprobs"):
        return n_top or 0
    if n_top:
        raise fields.refuse("logprobs", "true where there are top_logprobs")
    return None


def _message(fields: Fields) -> Message:
    role = fields.text("role")
    match role:
        case "system" | "developer":
            return Message("system", _content(fields, media=False))
        case "user":
            return Message("user", _content(fields, media=True), name=fields.text("name", ""))
        case "assistant":
            return _assistant(fields)
        case "tool" | "function":
            return Message(
                "tool",
                _content(fields, media=True),
                tool_call_id=fields.text("tool_call_id", ""),
                name=fields.text("name", ""),
            )
        case _:
            raise fields.refuse("role", "system, developer, user, assistant or tool")


def _content(fields: Fields, *, media: bool) -> tuple[Part, ...]:
    content = fields.get("content")
    if content is None:
        return ()
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    parts: list[Part] = []
    for part in fields.rows("content"):
        match part.text("type"):
            case "text" | "refusal" as kind:
                parts.append(TextPart(part.text(kind)))
            case "image_url" | "audio_url" | "video_url" as kind if media:
                address = part.object(kind)
                source = part.text(kind) if address is None else address.text("url")
                parts.append(_READERS[kind](source, part.name(kind)))
            case "input_audio" if media:
                parts.append(input_audio(part))
            case _:
                known = "text, image_url, input_audio, audio_url or video_url"
                raise part.refuse("type", known if media else "text")
    return tuple(parts)


_READERS: dict[str, Callable[[str, str], Part]] = {
    "image_url": image,
    "audio_url": audio,
    "video_url": video,
}
"""What OpenAI's and vLLM's content lists hold by address."""


def _assistant(fields: Fields) -> Message:
    parts = _content(fields, media=False)
    for key in ("reasoning_content", "reasoning"):
        reasoning = fields.get(key)
        if isinstance(reasoning, str) and reasoning:
            parts = (ThinkingPart(reasoning), *parts)
            break
    calls: list[ToolCall | InvalidToolCall] = []
    for row in fields.rows("tool_calls"):
        function = row.object("function")
        if function is None:
            raise row.refuse("function", "an object with name and arguments")
        arguments = function.text("arguments", "")
        calls.append(call_of(function.text("name"), arguments, row.text("id", "")))
    return assistant(parts, calls)


# --- Answers


def _answer_row(answer: Answer) -> JsonObject:
    text, reasoning, calls = answer.text, answer.reasoning, answer.calls
    has_more = bool(calls or reasoning)
    row: JsonObject = {
        "role": "assistant",
        "content": text if text or not has_more else None,
        "refusal": None,
    }
    if reasoning:
        row["reasoning_content"] = reasoning
    if calls:
        row["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in calls
        ]
    return row


def _logprobs(ask: Ask, completion: Completion) -> JsonValue:
    tokens = tokens_of(ask, completion)
    return None if tokens is None else _logprobs_row(tokens)


def _logprobs_row(tokens: Iterable[TokenLogprob]) -> JsonObject:
    return {"content": logprobs_of(tokens), "refusal": None}


class ChatStream:
    """Writes one streamed answer, or several side by side."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        head: JsonObject = {
            "id": ask.id,
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": ask.model,
        }
        self._head = b"data: " + json_bytes(head)[:-1] + b',"choices":['
        self._tail = b',"usage":null}\n\n' if ask.include_usage else b"}\n\n"
        self._plain = b',"logprobs":null,"finish_reason":null}]' + self._tail
        self._shown = [Shown(ask) for _ in range(ask.n)]
        self._said: set[int] = set()
        self._called: set[int] = set()
        self._usages: list[Usage] = []

    def begin(self) -> bytes:
        """What is sent before the first piece."""
        return b""

    def piece(self, piece: Piece, choice: int = 0) -> bytes:
        """What is sent for a piece."""
        match piece:
            case TextPiece(text):
                return self._delta(choice, b'"content":' + json_bytes(text), role_content=b'""')
            case ThinkingPiece(text):
                return self._delta(choice, b'"reasoning_content":' + json_bytes(text))
            case CallPiece(index, text):
                head = b'"tool_calls":[{"index":%d,"function":{"arguments":' % index
                return self._delta(choice, head + json_bytes(text) + b"}}]")
            case CallBegin(index, id, name):
                self._called.add(choice)
                function: JsonObject = {"name": name, "arguments": ""}
                call: JsonObject = {
                    "index": index,
                    "id": id,
                    "type": "function",
                    "function": function,
                }
                return self._delta(choice, b'"tool_calls":[' + json_bytes(call) + b"]")
            case TokensPiece(tokens):
                self._shown[choice].take(tokens)
                return b""
            case End(completion):
                return self._end(completion, choice)
            case _:
                raise bad(f"no piece of an answer: {clip(piece)}")

    def _delta(self, choice: int, fields: bytes, role_content: bytes = b"null") -> bytes:
        due = self._shown[choice].due()
        plain = self._plain
        if due:
            told = json_bytes(_logprobs_row(due))
            plain = b',"logprobs":%b,"finish_reason":null}]' % told + self._tail
        index = b'{"index":%d,"delta":{' % choice
        chunk = self._head + index + fields + b"}" + plain
        if choice in self._said:
            return chunk
        return self._role(choice, role_content) + chunk

    def _role(self, choice: int, content: bytes) -> bytes:
        self._said.add(choice)
        delta = b'{"index":%d,"delta":{"role":"assistant","content":%b}' % (choice, content)
        return self._head + delta + self._plain

    def _end(self, completion: Completion, choice: int) -> bytes:
        self._usages.append(completion.usage)
        role = b"" if choice in self._said else self._role(choice, b'""')
        reason = finish_reason(completion.stop_reason, choice in self._called)
        rest = self._shown[choice].rest(self._ask, completion)
        last = b'{"index":%d,"delta":{},"logprobs":%b,"finish_reason":"%b"}]' % (
            choice,
            json_bytes(_logprobs_row(rest) if rest else None),
            reason.encode(),
        )
        return role + self._head + last + self._tail

    def end(self) -> bytes:
        """What is sent behind the last piece."""
        if not self._ask.include_usage:
            return b"data: [DONE]\n\n"
        usage = json_bytes(usage_row(sum_of(iter(self._usages))))
        return self._head + b'],"usage":' + usage + b"}\n\ndata: [DONE]\n\n"

    def error(self, refusal: Refusal) -> bytes:
        """What is sent where the answer breaks off; no ``[DONE]`` follows."""
        return event(openai_error(refusal))
