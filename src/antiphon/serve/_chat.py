"""OpenAI's Chat Completions, as a server speaks it.

Source: OpenAI API reference, ``POST /v1/chat/completions``; ``reasoning_content`` for reasoning is
DeepSeek's and vLLM's, and what clients read.
"""

import json
import math
import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from antiphon.errors import clip
from antiphon.messages import (
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
from antiphon.serve._fields import Fields
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
            stream=fields.flag("stream"),
            n=fields.integer("n", 1, limits.choices) or 1,
            logprobs=fields.flag("logprobs"),
            include_usage=options is not None and options.flag("include_usage"),
            id=f"chatcmpl-{secrets.token_hex(12)}",
        )

    def whole(self, ask: Ask, answers: Sequence[Answer]) -> JsonObject:
        """The body of an answer that is sent whole."""
        choices: list[JsonValue] = [
            {
                "index": index,
                "message": _answer_row(answer),
                "logprobs": _logprobs(answer) if ask.logprobs else None,
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


def openai_error(refusal: Refusal) -> JsonObject:
    """An error as OpenAI's APIs spell it."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.kind,
            "param": refusal.param or None,
            "code": refusal.code or None,
        }
    }


def _settings(fields: Fields, tools: Sequence[Any]) -> ModelSettings:
    limit = fields.integer("max_completion_tokens", 1, MAX_TOKENS)
    extra = {key: fields.get(key) for key in _PASSED_ON if fields.get(key) is not None}
    settings = ModelSettings(
        max_tokens=limit or fields.integer("max_tokens", 1, MAX_TOKENS),
        seed=fields.integer("seed", -(1 << 63), (1 << 63) - 1),
        stop=fields.texts("stop", 16),
        tool_choice=check_choice(_tool_choice(fields), tools),
        parallel_tool_calls=fields.flag("parallel_tool_calls", True),
        response_schema=_schema(fields),
        extra=extra,
    )
    return sampling(fields, settings)


def _tool_choice(fields: Fields) -> str:
    choice = fields.get("tool_choice")
    if choice is None or isinstance(choice, str):
        return fields.one_of("tool_choice", "auto", "none", "required", default="auto")
    named = fields.object("tool_choice")
    assert named is not None
    function = named.object("function")
    if named.get("type") != "function" or function is None:
        raise fields.refuse("tool_choice", "auto, none, required or a named function")
    return function.text("name")


def _schema(fields: Fields) -> "JsonObject | None":
    wanted = fields.object("response_format")
    if wanted is None:
        return None
    match wanted.text("type"):
        case "text":
            return None
        case "json_object":
            return {"type": "object"}
        case "json_schema":
            holder = wanted.object("json_schema") or wanted
            return schema_in(holder)
        case _:
            raise wanted.refuse("type", "text, json_object or json_schema")


def schema_in(holder: Fields) -> JsonObject:
    """The JSON Schema in a field ``schema``.

    Raises:
        Refusal: There is none.
    """
    schema = holder.object("schema")
    if schema is None:
        raise holder.refuse("schema", "a JSON Schema")
    return cast("JsonObject", dict(schema.row))


def _message(fields: Fields) -> Message:
    role = fields.text("role")
    match role:
        case "system" | "developer":
            return Message("system", _content(fields, images=False))
        case "user":
            return Message("user", _content(fields, images=True), name=fields.text("name", ""))
        case "assistant":
            return _assistant(fields)
        case "tool" | "function":
            return Message(
                "tool",
                _content(fields, images=True),
                tool_call_id=fields.text("tool_call_id", ""),
                name=fields.text("name", ""),
            )
        case _:
            raise fields.refuse("role", "system, developer, user, assistant or tool")


def _content(fields: Fields, *, images: bool) -> tuple[Part, ...]:
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
            case "image_url" if images:
                address = part.object("image_url")
                source = part.text("image_url") if address is None else address.text("url")
                parts.append(image(source, part.name("image_url")))
            case _:
                raise part.refuse("type", "text or image_url" if images else "text")
    return tuple(parts)


def _assistant(fields: Fields) -> Message:
    parts = _content(fields, images=False)
    for key in ("reasoning_content", "reasoning"):
        reasoning = fields.get(key)
        if isinstance(reasoning, str) and reasoning:
            parts = (ThinkingPart(reasoning), *parts)
            break
    calls: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for row in fields.rows("tool_calls"):
        function = row.object("function")
        if function is None:
            raise row.refuse("function", "an object with name and arguments")
        call = call_of(function.text("name"), function.text("arguments", ""), row.text("id", ""))
        if isinstance(call, ToolCall):
            calls.append(call)
        else:
            invalid.append(call)
    return Message("assistant", parts, tool_calls=tuple(calls), invalid_tool_calls=tuple(invalid))


def call_of(name: str, arguments: str, id: str) -> ToolCall | InvalidToolCall:
    """A call that comes back in a history.  Arguments that are no JSON object come back as text."""
    try:
        value: Any = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return InvalidToolCall(arguments, "the arguments are not a JSON object", name, id)
    return ToolCall(name, cast("JsonObject", value), id)


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


def finish_reason(stop_reason: str, has_calls: bool) -> str:
    """Why an answer ended, in OpenAI's words."""
    if stop_reason in ("length", "content_filter"):
        return stop_reason
    return "tool_calls" if has_calls else "stop"


def usage_row(usage: Usage) -> JsonObject:
    """What an answer cost, in OpenAI's words."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def sum_of(usages: Iterator[Usage]) -> Usage:
    """What several answers to one prompt cost: the prompt once."""
    total: Usage | None = None
    for usage in usages:
        if total is None:
            total = usage
        else:
            total = replace(total, output_tokens=total.output_tokens + usage.output_tokens)
    return total or Usage()


def _logprobs(answer: Answer) -> JsonValue:
    tokens = answer.completion.tokens
    return None if tokens is None else {"content": logprobs_of(tokens), "refusal": None}


def logprobs_of(tokens: Iterable[TokenLogprob]) -> list[JsonValue]:
    """Sampled tokens, as OpenAI's APIs show them."""
    return [
        {
            "token": token.text,
            "logprob": logprob_of(token),
            "bytes": list(token.text.encode("utf-8", "replace")),
            "top_logprobs": [],
        }
        for token in tokens
    ]


def logprob_of(token: TokenLogprob) -> float:
    """A number that JSON can say; OpenAI's own for "very unlikely" where there is none."""
    logprob = token.logprob
    return logprob if logprob is not None and math.isfinite(logprob) else -9999.0


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
        self._tail = b',"logprobs":null,"finish_reason":null}]'
        self._tail += b',"usage":null}\n\n' if ask.include_usage else b"}\n\n"
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
            case End(completion):
                return self._end(completion, choice)
            case _:
                raise bad(f"no piece of an answer: {clip(piece)}")

    def _delta(self, choice: int, fields: bytes, role_content: bytes = b"null") -> bytes:
        index = b'{"index":%d,"delta":{' % choice
        chunk = self._head + index + fields + b"}" + self._tail
        if choice in self._said:
            return chunk
        self._said.add(choice)
        role = b'"role":"assistant","content":' + role_content
        return self._head + index + role + b"}" + self._tail + chunk

    def _end(self, completion: Any, choice: int) -> bytes:
        self._usages.append(completion.usage)
        out = b""
        if choice not in self._said:
            out = self._delta(choice, b"", role_content=b'""')
            out = out[: out.index(b"\n\n") + 2]  # the role alone
        reason = finish_reason(completion.stop_reason, choice in self._called)
        logprobs = _logprobs(Answer((), completion)) if self._ask.logprobs else None
        last = b'{"index":%d,"delta":{},"logprobs":%b,"finish_reason":"%b"}]' % (
            choice,
            json_bytes(logprobs),
            reason.encode(),
        )
        usage = b',"usage":null}\n\n' if self._ask.include_usage else b"}\n\n"
        return out + self._head + last + usage

    def end(self) -> bytes:
        """What is sent behind the last piece."""
        if not self._ask.include_usage:
            return b"data: [DONE]\n\n"
        usage = json_bytes(usage_row(sum_of(iter(self._usages))))
        return self._head + b'],"usage":' + usage + b"}\n\ndata: [DONE]\n\n"

    def error(self, refusal: Refusal) -> bytes:
        """What is sent where the answer breaks off; no ``[DONE]`` follows."""
        return event(openai_error(refusal))
