"""Anthropic's Messages API.

Source: Anthropic API reference, ``POST /v1/messages`` (version 2023-06-01), streaming included.

Results of tools are blocks of a user message, so neighbouring user and tool messages become one.
Thinking goes back with its signature, unchanged, as the API asks; thinking without one (another
model's) is left out.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from antiphon.errors import ModelResponseError
from antiphon.messages import (
    AudioPart,
    Completion,
    Conversation,
    Delta,
    ImagePart,
    JsonObject,
    JsonValue,
    Message,
    Part,
    StopReason,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolSpec,
    Usage,
    VideoPart,
    json_bytes,
)
from antiphon.models._calls import CallCollector
from antiphon.models._dialect import Dialect, Once, Reader, Request, sampling_of
from antiphon.models._history import Sent, sent_messages
from antiphon.models._model import ModelSettings
from antiphon.models._wire import count_of, image_url, refused_media

VERSION = "2023-06-01"
DEFAULT_MAX_TOKENS = 4096  # the API wants a limit
_STOPS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class AnthropicDialect:
    """Writes requests and reads answers of one model behind ``/messages``."""

    def __init__(self, model: str) -> None:
        """Set up the dialect.

        Args:
            model: The server's name of the model.
        """
        self._model = model
        self._written = Once()

    def headers(self, key: str | None) -> Mapping[str, str]:
        """The key, where there is one, and the API's version."""
        return {"anthropic-version": VERSION} | ({} if key is None else {"x-api-key": key})

    def request(self, conversation: Conversation, settings: ModelSettings) -> Request:
        """The request that asks for the next message."""
        head: JsonObject = {"model": self._model} | self._options(conversation, settings)
        system = [m.text for m in conversation.messages if m.role == "system" and m.text]
        if system:
            head["system"] = "\n\n".join(system)
        turns = b",".join(
            b'{"role":"%b","content":[%b]}' % (role.encode(), b",".join(blocks))
            for role, blocks in self._turns(conversation.messages)
        )
        parts = [json_bytes(head)[:-1], b',"messages":[', turns, b"]"]
        if conversation.tools:
            tools = b",".join(self._tool(spec) for spec in conversation.tools)
            parts += [b',"tools":[', tools, b"]"]
        parts.append(b"}")
        return Request("/messages", b"".join(parts), lambda: AnthropicReader(self._model, settings))

    def _options(self, conversation: Conversation, settings: ModelSettings) -> JsonObject:
        options: JsonObject = {
            "stream": True,
            "max_tokens": settings.max_tokens or DEFAULT_MAX_TOKENS,
        }
        if settings.temperature is not None:
            options["temperature"] = settings.temperature
        if settings.top_p is not None:
            options["top_p"] = settings.top_p
        if settings.stop:
            options["stop_sequences"] = list(settings.stop)
        if conversation.tools:
            choice = _tool_choice(settings)
            if choice is not None:
                options["tool_choice"] = choice
        if settings.response_schema is not None:
            shape: JsonObject = {"type": "json_schema", "schema": settings.response_schema}
            options["output_config"] = {"format": shape}
        return options | settings.extra

    def _tool(self, spec: ToolSpec) -> bytes:
        row: JsonObject = {
            "name": spec.name,
            "description": spec.description,
            "input_schema": spec.parameters,
        }
        return self._written.get(spec) or self._written.put(spec, json_bytes(row))

    def _turns(self, messages: tuple[Message, ...]) -> Iterator[tuple[str, list[bytes]]]:
        role, blocks = "", list[bytes]()
        for sent in sent_messages(messages):
            if sent.message.role == "system":
                continue
            made = self._blocks(sent)
            if not made:
                continue
            own = "assistant" if sent.message.role == "assistant" else "user"
            if own != role and blocks:
                yield role, blocks
                blocks = []
            role = own
            blocks.append(made)
        if blocks:
            yield role, blocks

    def _blocks(self, sent: Sent) -> bytes:
        made = self._written.get(sent.message) if sent.natural else None
        if made is None:
            made = b",".join(json_bytes(block) for block in _blocks_of(sent))
            if sent.natural:
                self._written.put(sent.message, made)
        return made


def _tool_choice(settings: ModelSettings) -> "JsonObject | None":
    serial: JsonObject = {} if settings.parallel_tool_calls else {"disable_parallel_tool_use": True}
    match settings.tool_choice:
        case "auto":
            return {"type": "auto"} | serial if serial else None
        case "none":
            return {"type": "none"}
        case "required":
            return {"type": "any"} | serial
        case name:
            return {"type": "tool", "name": name} | serial


def _blocks_of(sent: Sent) -> Iterator[JsonObject]:
    message = sent.message
    if message.role == "tool":
        if sent.result_of is None:
            yield {"type": "text", "text": sent.orphan_text}
            return
        content: list[JsonValue] = [*_content(message.parts)]
        block: JsonObject = {"type": "tool_result", "tool_use_id": sent.result_of}
        block["content"] = content
        yield block | ({"is_error": True} if message.is_error else {})
        return
    yield from _content(message.parts)
    for call in message.invalid_tool_calls:
        if not call.name and call.raw.strip():
            yield {"type": "text", "text": call.raw}
    for call in sent.calls:
        yield {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}


def _content(parts: Iterable[Part]) -> Iterator[JsonObject]:
    for part in parts:
        if isinstance(part, TextPart):
            if part.text.strip():  # the API refuses blank text
                yield {"type": "text", "text": part.text}
        elif isinstance(part, ImagePart):
            yield {"type": "image", "source": _image_source(part.source)}
        elif isinstance(part, AudioPart | VideoPart):
            raise refused_media(part, "Anthropic's API")
        elif part.signature is not None and part.text:
            yield {"type": "thinking", "thinking": part.text, "signature": part.signature}
        elif part.signature is not None:
            yield {"type": "redacted_thinking", "data": part.signature}


def _image_source(source: str) -> JsonObject:
    url = image_url(source)
    if not url.startswith("data:"):
        return {"type": "url", "url": url}
    kind, _, data = url.removeprefix("data:").partition(",")
    return {"type": "base64", "media_type": kind.removesuffix(";base64"), "data": data}


class AnthropicReader:
    """Reads one answer."""

    def __init__(self, model: str, settings: ModelSettings) -> None:
        self._model = model
        self._settings = settings
        self._calls = CallCollector()
        self._blocks: dict[int, JsonObject] = {}
        self._pieces: dict[int, list[str]] = {}
        self._signatures: dict[int, str] = {}
        self._finish: str | None = None
        self._usage: dict[str, Any] = {}

    @property
    def complete(self) -> bool:
        """Whether a stop reason has come."""
        return self._finish is not None

    def event(self, data: Mapping[str, Any]) -> Iterable[Delta]:
        """Take one event."""
        match data.get("type"):
            case "message_start":
                self._take_message(cast("dict[str, Any]", data.get("message") or {}))
            case "content_block_start":
                block = cast("JsonObject", data.get("content_block") or {})
                return self._start(cast("int", data.get("index", 0)), block)
            case "content_block_delta":
                delta = cast("dict[str, Any]", data.get("delta") or {})
                return self._add(cast("int", data.get("index", 0)), delta)
            case "message_delta":
                delta = cast("dict[str, Any]", data.get("delta") or {})
                self._finish = delta.get("stop_reason") or self._finish
                self._usage |= cast("dict[str, Any]", data.get("usage") or {})
            case _:
                pass  # ping, content_block_stop, message_stop, and what is to come
        return ()

    def whole(self, data: Mapping[str, Any]) -> Iterable[Delta]:
        """Take an answer in one piece."""
        self._take_message(data)
        self._finish = data.get("stop_reason") or "end_turn"
        deltas: list[Delta] = []
        for index, block in enumerate(cast("list[JsonObject]", data.get("content") or [])):
            deltas += self._start(index, block)
            if block.get("type") == "tool_use":
                text = json.dumps(block.get("input") or {}, ensure_ascii=False)
                deltas += self._calls.add(index=index, name=None, id=None, arguments=text)
        return deltas

    def _take_message(self, message: Mapping[str, Any]) -> None:
        self._model = message.get("model") or self._model
        self._usage |= cast("dict[str, Any]", message.get("usage") or {})

    def _start(self, index: int, block: JsonObject) -> Iterable[Delta]:
        self._blocks[index] = block
        match block.get("type"):
            case "tool_use":
                return self._calls.add(
                    index=index, name=block.get("name"), id=block.get("id"), arguments=None
                )
            case "text":
                return self._text(index, block.get("text"))
            case "thinking":
                self._signatures[index] = str(block.get("signature") or "")
                return self._thinking(index, block.get("thinking"))
            case "redacted_thinking":
                self._signatures[index] = str(block.get("data") or "")
            case _:
                pass
        return ()

    def _add(self, index: int, delta: Mapping[str, Any]) -> Iterable[Delta]:
        match delta.get("type"):
            case "text_delta":
                return self._text(index, delta.get("text"))
            case "thinking_delta":
                return self._thinking(index, delta.get("thinking"))
            case "signature_delta":
                held = self._signatures.get(index, "")
                self._signatures[index] = held + str(delta.get("signature") or "")
            case "input_json_delta":
                piece = delta.get("partial_json")
                return self._calls.add(index=index, name=None, id=None, arguments=piece)
            case _:
                pass
        return ()

    def _text(self, index: int, text: Any) -> Iterable[Delta]:
        if not isinstance(text, str) or not text:
            return ()
        self._pieces.setdefault(index, []).append(text)
        return (TextDelta(text),)

    def _thinking(self, index: int, text: Any) -> Iterable[Delta]:
        if not isinstance(text, str) or not text:
            return ()
        self._pieces.setdefault(index, []).append(text)
        return (ThinkingDelta(text),)

    def finish(self) -> tuple[Iterable[Delta], Completion]:
        """The answer.

        Raises:
            ModelResponseError: Nothing came that could be one.
        """
        if self._finish is None:
            raise ModelResponseError(f"{self._model!r} sent a reply without a stop reason")
        stop = _STOPS.get(self._finish, "stop")
        valid, invalid = self._calls.results(stop)
        if stop == "stop" and (valid or invalid):
            stop = "tool_calls"
        message = Message(
            "assistant", tuple(self._parts()), tool_calls=valid, invalid_tool_calls=invalid
        )
        return (), Completion(
            message,
            stop,
            _usage(self._usage),
            self._model,
            sampling=sampling_of(self._settings),
        )

    def _parts(self) -> Iterator[Part]:
        for index in sorted(self._blocks):
            text = "".join(self._pieces.get(index, ()))
            match self._blocks[index].get("type"):
                case "text" if text:
                    yield TextPart(text)
                case "thinking" | "redacted_thinking":
                    yield ThinkingPart(text, self._signatures.get(index) or None)
                case _:
                    pass


def _usage(usage: Mapping[str, Any]) -> Usage:
    """Cached tokens count as input: the API lists them apart."""
    cached = count_of(usage.get("cache_read_input_tokens"))
    written = count_of(usage.get("cache_creation_input_tokens"))
    return Usage(
        count_of(usage.get("input_tokens")) + cached + written,
        count_of(usage.get("output_tokens")),
        cached,
        n_requests=1,
    )


if TYPE_CHECKING:
    _dialect: Dialect = AnthropicDialect("")
    _reader: Reader = AnthropicReader("", ModelSettings())
