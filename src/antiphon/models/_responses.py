"""OpenAI's Responses API.

Source: OpenAI API reference, ``POST /v1/responses`` and its streaming events.

Nothing is stored at the server: the whole conversation goes with every request, and reasoning
goes back as the encrypted item that the server sent (`ThinkingPart.signature`).
"""

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
    dump_json,
    json_bytes,
)
from antiphon.models._calls import CallCollector
from antiphon.models._dialect import Dialect, Once, Reader, Request, sampling_of
from antiphon.models._history import Sent, sent_messages
from antiphon.models._model import ModelSettings
from antiphon.models._refusals import error_of_event
from antiphon.models._wire import count_of, image_url, refused_media

_THINKING_EVENTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


class ResponsesDialect:
    """Writes requests and reads answers of one model behind ``/responses``."""

    def __init__(self, model: str) -> None:
        """Set up the dialect.

        Args:
            model: The server's name of the model.
        """
        self._model = model
        self._written = Once()

    def headers(self, key: str | None) -> Mapping[str, str]:
        """A bearer key, where there is one."""
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def request(self, conversation: Conversation, settings: ModelSettings) -> Request:
        """The request that asks for the next message."""
        head: JsonObject = {"model": self._model} | _options(conversation, settings)
        items = b",".join(
            made for sent in sent_messages(conversation.messages) if (made := self._items(sent))
        )
        parts = [json_bytes(head)[:-1], b',"input":[', items, b"]"]
        if conversation.tools and settings.tool_choice != "none":
            tools = b",".join(self._tool(spec, settings) for spec in conversation.tools)
            parts += [b',"tools":[', tools, b"]"]
        parts.append(b"}")
        return Request(
            "/responses", b"".join(parts), lambda: ResponsesReader(self._model, settings)
        )

    def _tool(self, spec: ToolSpec, settings: ModelSettings) -> bytes:
        row: JsonObject = {
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
            "strict": bool(settings.constrain),
        }
        return json_bytes(row)

    def _items(self, sent: Sent) -> bytes:
        made = self._written.get(sent.message) if sent.natural else None
        if made is None:
            made = b",".join(json_bytes(item) for item in _items_of(sent))
            if sent.natural:
                self._written.put(sent.message, made)
        return made


def _options(conversation: Conversation, settings: ModelSettings) -> JsonObject:
    options: JsonObject = {
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    for field, value in (
        ("temperature", settings.temperature),
        ("top_p", settings.top_p),
        ("max_output_tokens", settings.max_tokens),
    ):
        if value is not None:
            options[field] = value
    if conversation.tools and settings.tool_choice not in ("auto", "none"):
        choice = settings.tool_choice
        named: JsonObject = {"type": "function", "name": choice}
        options["tool_choice"] = choice if choice == "required" else named
    if conversation.tools and not settings.parallel_tool_calls:
        options["parallel_tool_calls"] = False
    if settings.response_schema is not None:
        shape: JsonObject = {"type": "json_schema", "name": "answer"}
        options["text"] = {"format": {**shape, "schema": settings.response_schema}}
    return options | settings.extra


def _items_of(sent: Sent) -> Iterator[JsonObject]:
    message = sent.message
    if message.role == "tool":
        if sent.result_of is None:
            yield _message("user", [{"type": "input_text", "text": sent.orphan_text}])
            return
        yield {
            "type": "function_call_output",
            "call_id": sent.result_of,
            "output": message.text,
        }
        if message.media:
            yield _message("user", list(_content(message.media)))
        return
    if message.role != "assistant":
        yield _message(message.role, list(_content(message.parts)))
        return
    for part in message.parts:
        if isinstance(part, ThinkingPart) and part.signature:
            yield _reasoning(part)
    if sent.text:
        yield _message("assistant", [{"type": "output_text", "text": sent.text}])
    for call in sent.calls:
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": dump_json(call.arguments),
        }


def _message(role: str, content: list[JsonValue]) -> JsonObject:
    return {"type": "message", "role": role, "content": content}


def _content(parts: Iterable[Part]) -> Iterator[JsonObject]:
    for part in parts:
        if isinstance(part, TextPart):
            yield {"type": "input_text", "text": part.text}
        elif isinstance(part, ImagePart):
            yield {"type": "input_image", "image_url": image_url(part.source)}
        elif isinstance(part, AudioPart | VideoPart):
            raise refused_media(part, "OpenAI's Responses API")


def _reasoning(part: ThinkingPart) -> JsonObject:
    """The item as the server sent it; the signature holds its id and its encrypted content."""
    id, _, encrypted = (part.signature or "").partition(":")
    summary: list[JsonValue] = [{"type": "summary_text", "text": part.text}] if part.text else []
    return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": encrypted}


class ResponsesReader:
    """Reads one answer."""

    def __init__(self, model: str, settings: ModelSettings) -> None:
        self._model = model
        self._settings = settings
        self._calls = CallCollector()
        self._kinds: dict[int, str] = {}
        self._pieces: dict[int, list[str]] = {}
        self._signatures: dict[int, str] = {}
        self._refused = False
        self._finish: StopReason | None = None
        self._usage: Mapping[str, Any] = {}

    @property
    def complete(self) -> bool:
        """Whether the server has said that it is over."""
        return self._finish is not None

    def event(self, data: Mapping[str, Any]) -> Iterable[Delta]:
        """Take one event.

        Raises:
            ModelError: The server gave up.
        """
        kind = str(data.get("type") or "")
        index = cast("int", data.get("output_index") or 0)
        match kind:
            case "response.output_text.delta":
                return self._text(index, "message", data.get("delta"))
            case "response.refusal.delta":
                self._refused = True
                return self._text(index, "message", data.get("delta"))
            case "response.function_call_arguments.delta":
                return self._calls.add(index=index, name=None, id=None, arguments=data.get("delta"))
            case "response.output_item.added" | "response.output_item.done":
                item = cast("dict[str, Any]", data.get("item") or {})
                return self._item(index, item, done=kind.endswith("done"))
            case "response.completed" | "response.incomplete":
                self._end(cast("dict[str, Any]", data.get("response") or {}))
            case "response.failed" | "error":
                failed = cast("dict[str, Any]", data.get("response") or data)
                raise error_of_event(
                    failed.get("error") or failed.get("message"),
                    url="the server",
                    model=self._model,
                )
            case _ if kind in _THINKING_EVENTS:
                return self._text(index, "reasoning", data.get("delta"))
            case _:
                pass
        return ()

    def whole(self, data: Mapping[str, Any]) -> Iterable[Delta]:
        """Take an answer in one piece."""
        deltas: list[Delta] = []
        for index, item in enumerate(cast("list[dict[str, Any]]", data.get("output") or [])):
            deltas += self._item(index, item, done=False)
            for part in cast("list[dict[str, Any]]", item.get("content") or []):
                self._refused = self._refused or part.get("type") == "refusal"
                text = part.get("text") or part.get("refusal")
                deltas += self._text(index, str(item.get("type")), text)
            for part in cast("list[dict[str, Any]]", item.get("summary") or []):
                deltas += self._text(index, "reasoning", part.get("text"))
            if item.get("type") == "function_call":
                deltas += self._calls.add(
                    index=index, name=None, id=None, arguments=item.get("arguments")
                )
        self._end(data)
        return deltas

    def _item(self, index: int, item: Mapping[str, Any], *, done: bool) -> Iterable[Delta]:
        kind = str(item.get("type") or "")
        if kind == "reasoning":
            self._kinds[index] = kind
            encrypted = item.get("encrypted_content")
            if encrypted:
                self._signatures[index] = f"{item.get('id') or ''}:{encrypted}"
        elif kind == "function_call" and not done:
            return self._calls.add(
                index=index, name=item.get("name"), id=item.get("call_id"), arguments=None
            )
        return ()

    def _text(self, index: int, kind: str, text: Any) -> Iterable[Delta]:
        if not isinstance(text, str) or not text:
            return ()
        self._kinds[index] = kind
        self._pieces.setdefault(index, []).append(text)
        return (ThinkingDelta(text) if kind == "reasoning" else TextDelta(text),)

    def _end(self, response: Mapping[str, Any]) -> None:
        self._model = response.get("model") or self._model
        self._usage = cast("dict[str, Any]", response.get("usage") or {})
        details = cast("dict[str, Any]", response.get("incomplete_details") or {})
        if response.get("status") == "incomplete" or details:
            filtered = details.get("reason") == "content_filter"
            self._finish = "content_filter" if filtered else "length"
        else:
            self._finish = "stop"

    def finish(self) -> tuple[Iterable[Delta], Completion]:
        """The answer.

        Raises:
            ModelResponseError: Nothing came that could be one.
        """
        if self._finish is None:
            raise ModelResponseError(f"{self._model!r} sent a reply that never ended")
        stop = self._finish
        valid, invalid = self._calls.results(stop)
        if stop == "stop":
            stop = "tool_calls" if valid or invalid else "refusal" if self._refused else "stop"
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
        for index in sorted(self._kinds):
            text = "".join(self._pieces.get(index, ()))
            if self._kinds[index] == "reasoning":
                yield ThinkingPart(text, self._signatures.get(index))
            elif text:
                yield TextPart(text)


def _usage(usage: Mapping[str, Any]) -> Usage:
    details = cast("dict[str, Any]", usage.get("input_tokens_details") or {})
    return Usage(
        count_of(usage.get("input_tokens")),
        count_of(usage.get("output_tokens")),
        count_of(details.get("cached_tokens")),
        n_requests=1,
    )


if TYPE_CHECKING:
    _dialect: Dialect = ResponsesDialect("")
    _reader: Reader = ResponsesReader("", ModelSettings())
