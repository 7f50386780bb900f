"""OpenAI's Chat Completions, as OpenAI and the many servers that speak it mean it.

Source: OpenAI API reference, ``POST /v1/chat/completions``, and what vLLM, SGLang, llama.cpp,
Ollama, DeepSeek and proxies add to it (``reasoning_content``, ``reasoning``, token ids).

Every request is valid for the strictest server: arguments are a JSON object, ids are there and
unique, each result follows its call, text can be encoded.  Reasoning goes back only to a server
that sent reasoning, in the field it used.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from antiphon.errors import ModelResponseError
from antiphon.messages import (
    Completion,
    Conversation,
    Delta,
    JsonObject,
    JsonValue,
    MediaPart,
    Message,
    Part,
    StopReason,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    TokenLogprob,
    ToolSpec,
    Usage,
    dump_json,
    json_bytes,
    part_to_row,
)
from antiphon.models._calls import CallCollector
from antiphon.models._deltas import deltas_of
from antiphon.models._dialect import Dialect, Once, Reader, Request, sampling_of
from antiphon.models._history import Prefix, Sent, sent_messages
from antiphon.models._model import ModelSettings, SampledTokens
from antiphon.models._text_calls import TextCalls
from antiphon.models._wire import count_of, fields_of, media_part, rows_of, text_of, token_of

_MAX_PREFIXES = 512  # conversations whose last request is kept
_REASONING_FIELDS = ("reasoning_content", "reasoning")
_STOPS: dict[str, StopReason] = {
    "stop": "stop",
    "end_turn": "stop",
    "eos": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "content_filter",
}


class ChatDialect:
    """Writes requests and reads answers of one model behind ``/chat/completions``."""

    def __init__(self, model: str, *, max_tokens_field: str = "max_tokens") -> None:
        """Set up the dialect.

        Args:
            model: The server's name of the model.
            max_tokens_field: What the server calls the limit of written tokens.
        """
        self._model = model
        self._max_tokens_field = max_tokens_field
        self._written = Once()
        self._prefixes: dict[int, Prefix] = {}
        self.reasoning_field = ""
        """The field in which the server sends reasoning; empty until it has."""

    def headers(self, key: str | None) -> Mapping[str, str]:
        """A bearer key, where there is one."""
        return {} if key is None else {"Authorization": f"Bearer {key}"}

    def request(self, conversation: Conversation, settings: ModelSettings) -> Request:
        """The request that asks for the next message."""
        head: JsonObject = {"model": self._model} | self._options(conversation, settings)
        parts = [json_bytes(head)[:-1], b',"messages":[']
        parts.append(self._history(conversation.messages))
        parts.append(b"]")
        if conversation.tools and settings.tool_choice != "none":
            written = b",".join(self._tool(spec, settings) for spec in conversation.tools)
            parts += [b',"tools":[', written, b"]"]
        parts.append(b"}")
        tools = conversation.tools if settings.tool_choice != "none" else ()
        return Request(
            "/chat/completions",
            b"".join(parts),
            lambda: ChatReader(self, self._model, settings, tools),
            whole=not settings.stream,
        )

    def learn_reasoning_field(self, field: str) -> None:
        """The server sends reasoning in this field, so it takes it back there."""
        if field != self.reasoning_field:
            self.reasoning_field = field
            self._written = Once()
            self._prefixes.clear()

    def _options(self, conversation: Conversation, settings: ModelSettings) -> JsonObject:
        options: JsonObject = {"stream": settings.stream}
        if settings.stream:
            options["stream_options"] = {"include_usage": True}
        for field, value in (
            ("temperature", settings.temperature),
            ("top_p", settings.top_p),
            (self._max_tokens_field, settings.max_tokens),
            ("seed", settings.seed),
        ):
            if value is not None:
                options[field] = value
        if settings.stop:
            options["stop"] = list(settings.stop)
        if conversation.tools and settings.tool_choice not in ("auto", "none"):
            options["tool_choice"] = _tool_choice(settings.tool_choice)
        if conversation.tools and not settings.parallel_tool_calls:
            options["parallel_tool_calls"] = False
        if settings.response_schema is not None:
            options["response_format"] = _response_format(settings.response_schema)
        if settings.logprobs is not None:
            options |= {"logprobs": True, "top_logprobs": settings.logprobs}
        return options | settings.extra

    def _tool(self, spec: ToolSpec, settings: ModelSettings) -> bytes:
        if settings.constrain:
            tool = spec.to_openai()
            return json_bytes(tool | {"function": tool["function"] | {"strict": True}})
        return self._written.get(spec) or self._written.put(spec, json_bytes(spec.to_openai()))

    def _history(self, messages: tuple[Message, ...]) -> bytes:
        """All messages, joined; what the step before sent is taken as it was written."""
        n_system = 0
        while n_system < len(messages) and messages[n_system].role == "system":
            n_system += 1
        parts = [json_bytes(self._row(Sent(message))) for message in messages[:n_system]]
        body = messages[n_system:]
        if not body:
            return b",".join(parts)
        known = self._prefixes.get(id(body[0]))
        if known is None or not known.begins(body):
            known = Prefix((), b"")
        start = len(known.messages)
        last = next((n for n in range(len(body) - 1, -1, -1) if body[n].role == "assistant"), 0)
        own = [known.written] if known.written else []
        for index, written in self._messages(body[start:], n_system + start):
            if index == n_system + last and last > start:
                self._remember(Prefix(body[:last], b",".join(own)))
            own.append(written)
        return b",".join(parts + own)

    def _remember(self, prefix: Prefix) -> None:
        if len(self._prefixes) >= _MAX_PREFIXES:
            del self._prefixes[next(iter(self._prefixes))]
        self._prefixes[id(prefix.messages[0])] = prefix  # which keeps that message, and its id

    def _messages(self, messages: tuple[Message, ...], first: int) -> Iterator[tuple[int, bytes]]:
        """Each message as it is sent, and its place; -1 for what stands between two messages."""
        media: list[MediaPart] = []  # of tools, whose messages hold text only
        for index, sent in enumerate(sent_messages(messages, first=first), start=first):
            if sent.message.role != "tool" and media:
                yield -1, json_bytes({"role": "user", "content": _content(media)})
                media = []
            made = self._written.get(sent.message) if sent.natural else None
            if made is None:
                made = json_bytes(self._row(sent))
                if sent.natural:
                    self._written.put(sent.message, made)
            yield index, made
            if sent.message.role == "tool":
                media.extend(sent.message.media)
        if media:
            yield -1, json_bytes({"role": "user", "content": _content(media)})

    def _row(self, sent: Sent) -> JsonObject:
        message = sent.message
        if message.role == "assistant":
            return self._assistant_row(sent)
        if message.role != "tool":
            return {"role": message.role, "content": _content(message.parts)}
        if sent.result_of is None:  # strict servers refuse a result without its call
            return {"role": "user", "content": sent.orphan_text}
        return {"role": "tool", "tool_call_id": sent.result_of, "content": message.text}

    def _assistant_row(self, sent: Sent) -> JsonObject:
        calls: list[JsonValue] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": dump_json(call.arguments)},
            }
            for call in sent.calls
        ]
        text = sent.text
        row: JsonObject = {"role": "assistant", "content": text if text or not calls else None}
        if sent.message.reasoning and self.reasoning_field:
            row[self.reasoning_field] = sent.message.reasoning
        if calls:
            row["tool_calls"] = calls
        return row


def _response_format(schema: JsonObject) -> JsonObject:
    if schema == {"type": "object"}:  # any object: more servers know this way to ask for it
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _tool_choice(choice: str) -> Any:
    if choice == "required":
        return choice
    return {"type": "function", "function": {"name": choice}}


def _content(parts: Iterable[Part]) -> Any:
    kept = [part for part in parts if not isinstance(part, ThinkingPart)]
    if not any(isinstance(part, MediaPart) for part in kept):
        return "".join(part.text for part in kept if isinstance(part, TextPart))
    return [part_to_row(p) if isinstance(p, TextPart) else media_part(p) for p in kept]


class ChatReader:
    """Reads one answer."""

    def __init__(
        self,
        dialect: ChatDialect,
        model: str,
        settings: ModelSettings,
        tools: Sequence[ToolSpec] = (),
    ) -> None:
        self._text_calls = TextCalls(tools)
        self._dialect = dialect
        self._model = model
        self._settings = settings
        self._calls = CallCollector()
        self._parts: list[tuple[type[TextPart] | type[ThinkingPart], list[str]]] = []
        self._refusal: list[str] = []
        self._finish: str | None = None
        self._usage: Mapping[str, Any] = {}
        self._tokens: list[TokenLogprob] = []
        self._logprobs: list[TokenLogprob] = []
        self._prompt_ids: tuple[int, ...] | None = None

    @property
    def complete(self) -> bool:
        """Whether a finish reason has come."""
        return self._finish is not None

    def event(self, data: Mapping[str, Any]) -> Iterable[Delta | SampledTokens]:
        """Take one chunk."""
        return self._take(data, "delta")

    def whole(self, data: Mapping[str, Any]) -> Iterable[Delta | SampledTokens]:
        """Take an answer in one piece; it is over even if it gives no reason."""
        deltas = list(self._take(data, "message"))
        if self._finish is None:
            self._finish = "stop"
        return deltas

    def _take(self, data: Mapping[str, Any], field: str) -> Iterator[Delta | SampledTokens]:
        model = data.get("model")
        if isinstance(model, str) and model:
            self._model = model
        usage = data.get("usage")
        if isinstance(usage, dict):
            self._usage = cast("dict[str, Any]", usage)
        choices: Any = data.get("choices")
        if not isinstance(choices, list) or not choices:
            return
        fields = next((c for c in cast("list[Any]", choices) if _is_first(c)), None)
        if fields is None:
            return
        sampled = self._take_tokens(data, fields)
        if sampled and self._settings.logprobs is not None:
            yield SampledTokens(sampled)
        delta = fields.get(field)
        if isinstance(delta, dict):
            yield from self._take_delta(cast("dict[str, Any]", delta))
        finish = fields.get("finish_reason")
        if isinstance(finish, str) and finish:
            self._finish = finish

    def _take_delta(self, delta: Mapping[str, Any]) -> Iterator[Delta]:
        for field in _REASONING_FIELDS:
            text = text_of(delta.get(field))
            if text:
                self._dialect.learn_reasoning_field(field)
                self._append(ThinkingPart, text)
                yield ThinkingDelta(text)
                break
        text = self._text_calls.feed(text_of(delta.get("content")))
        if text:
            self._append(TextPart, text)
            yield TextDelta(text)
        refusal = text_of(delta.get("refusal"))
        if refusal:
            self._refusal.append(refusal)
            yield TextDelta(refusal)
        calls: Any = delta.get("tool_calls")
        if not calls and isinstance(delta.get("function_call"), dict):  # what came before
            calls = [{"index": 0, "function": delta["function_call"]}]
        if isinstance(calls, list):
            for call in cast("list[Any]", calls):
                if isinstance(call, dict):
                    yield from self._take_call(cast("dict[str, Any]", call))

    def _take_call(self, call: Mapping[str, Any]) -> Iterator[Delta]:
        function: Any = call.get("function")
        fields = cast("dict[str, Any]", function if isinstance(function, dict) else {})
        return self._calls.add(
            index=call.get("index"),
            name=fields.get("name"),
            id=call.get("id"),
            arguments=fields.get("arguments"),
        )

    def _take_tokens(
        self, data: Mapping[str, Any], choice: Mapping[str, Any]
    ) -> tuple[TokenLogprob, ...]:
        """Token ids where a server gives them: vLLM's ``token_ids``, llama.cpp's ``id``."""
        prompt: Any = data.get("prompt_token_ids")
        if isinstance(prompt, list):
            self._prompt_ids = tuple(cast("list[int]", prompt))
        logprobs: Any = choice.get("logprobs")
        ids: Any = choice.get("token_ids")
        if logprobs is None and ids is None:
            return ()
        entries = rows_of(fields_of(logprobs).get("content"))
        if not isinstance(ids, list):
            ids = [entry.get("id") for entry in entries]
        sampled: list[TokenLogprob] = []
        for n, id in enumerate(cast("list[Any]", ids)):
            entry: Mapping[str, Any] = entries[n] if n < len(entries) else {}
            is_known = isinstance(id, int)
            sampled.append(token_of(entry, id) if is_known else token_of(entry))
            (self._tokens if is_known else self._logprobs).append(sampled[-1])
        return tuple(sampled)

    def _append(self, kind: type[TextPart] | type[ThinkingPart], text: str) -> None:
        if not self._parts or self._parts[-1][0] is not kind:
            self._parts.append((kind, []))
        self._parts[-1][1].append(text)

    def finish(self) -> tuple[Iterable[Delta], Completion]:
        """The answer.

        Raises:
            ModelResponseError: Nothing came that could be one.
        """
        if self._finish is None and not self._has_something():
            raise ModelResponseError(f"{self._model!r} sent a reply without any choice")
        if self._finish == "error":
            raise ModelResponseError(f"{self._model!r} broke off with finish reason 'error'")
        stop = _STOPS.get(self._finish or "stop", "stop")
        rest, in_text = self._settle_text(stop)
        parts = tuple(kind("".join(texts)) for kind, texts in self._parts)
        if self._refusal:
            parts = (*parts, TextPart("".join(self._refusal)))
        valid, invalid = self._calls.results(stop)
        valid, invalid = valid + in_text.tool_calls, invalid + in_text.invalid_tool_calls
        if stop in ("stop", "tool_calls"):
            stop = "tool_calls" if valid or invalid else "refusal" if self._refusal else "stop"
        completion = Completion(
            Message("assistant", parts, tool_calls=valid, invalid_tool_calls=invalid),
            stop,
            _usage(self._usage),
            self._model,
            prompt_ids=self._prompt_ids,
            tokens=tuple(self._tokens) or None,
            logprobs=tuple(self._logprobs) or None,
            sampling=sampling_of(self._settings),
        )
        return rest, completion

    def _has_something(self) -> bool:
        return bool(self._parts or self._refusal or len(self._calls) or self._text_calls.holds)

    def _settle_text(self, stop: StopReason) -> tuple[list[Delta], Message]:
        """What was held back of the text: a message of the calls in it, or text after all."""
        held = self._text_calls.finish()
        if not held:
            return [], Message.assistant()
        whole = stop in ("stop", "tool_calls") and not len(self._calls)
        read = self._text_calls.read(held) if whole else None
        text = held if read is None else read.text
        deltas: list[Delta] = []
        if text:
            self._append(TextPart, text)
            deltas.append(TextDelta(text))
        calls = Message.assistant() if read is None else replace(read, parts=())
        return [*deltas, *deltas_of(calls)], calls


def _is_first(choice: Any) -> bool:
    """Whether this is the answer, and not another one beside it."""
    return isinstance(choice, dict) and not cast("dict[str, Any]", choice).get("index")


def _usage(usage: Mapping[str, Any]) -> Usage:
    details: Any = usage.get("prompt_tokens_details")
    cached = cast("Any", details).get("cached_tokens") if isinstance(details, Mapping) else None
    return Usage(
        input_tokens=count_of(usage.get("prompt_tokens")),
        output_tokens=count_of(usage.get("completion_tokens")),
        cached_tokens=count_of(
            cached if cached is not None else usage.get("prompt_cache_hit_tokens")
        ),
        n_requests=1,
    )


if TYPE_CHECKING:
    _dialect: Dialect = ChatDialect("")
    _reader: Reader = ChatReader(ChatDialect(""), "", ModelSettings())
