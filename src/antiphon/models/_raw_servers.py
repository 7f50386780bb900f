"""The completion APIs of the servers that continue text: what each is sent and how it answers.

Sources: llama.cpp ``tools/server/README.md`` (``POST /completion``); vLLM, "OpenAI-Compatible
Server", extra parameters of the Completions API; SGLang, "Sampling Parameters"; Ollama
``docs/api.md`` (``POST /api/generate``, ``raw``); OpenAI API reference, ``POST /v1/completions``.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, cast

from antiphon.messages import Completion, Delta, JsonObject, TokenLogprob, Usage
from antiphon.models._dialect import Reader
from antiphon.models._formatted import FormatReader, Prompt
from antiphon.models._model import SampledTokens
from antiphon.models._wire import count_of, fields_of, number_of, rows_of, token_of

ServerKind = Literal["llamacpp", "vllm", "sglang", "ollama", "openai"]

DEFAULT_MAX_TOKENS = 1024  # OpenAI's own default is 16


def options(
    prompt: Prompt, kind: ServerKind, *, model: str, marks: frozenset[str], grammar: str | None
) -> JsonObject:
    """The fields of a request, the prompt itself left out.

    Args:
        prompt: What is asked.
        kind: Which server.
        model: Its name of the model.
        marks: The family's marks, to be kept in the text.
        grammar: A grammar in the server's spelling.
    """
    settings = prompt.settings
    common: JsonObject = {
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "seed": settings.seed,
    }
    sampled: JsonObject = {name: value for name, value in common.items() if value is not None}
    max_tokens = settings.max_tokens or DEFAULT_MAX_TOKENS
    stop: list[Any] = list(prompt.stop)
    made: JsonObject = {"model": model, "stream": True}
    match kind:
        case "llamacpp":
            made |= sampled
            made |= {"n_predict": max_tokens, "stop": stop, "cache_prompt": True}
            made["n_probs"] = max(1, settings.logprobs or 0)
            kept: list[Any] = sorted(marks)
            made |= {"return_tokens": True, "preserved_tokens": kept}
            made |= {} if grammar is None else {"grammar": grammar}
        case "ollama":
            made["raw"] = True
            made["options"] = {**sampled, "num_predict": max_tokens, "stop": stop}
            free = not prompt.conversation.tools and prompt.rendered.start == "content"
            if settings.response_schema is not None and free:
                made["format"] = settings.response_schema
        case _:
            made |= sampled | {"max_tokens": max_tokens, "stop": stop}
            made["logprobs"] = max(1, settings.logprobs or 0)
            made |= {"stream_options": {"include_usage": True}}
            if kind in ("vllm", "sglang"):
                made |= {"skip_special_tokens": False, "spaces_between_special_tokens": False}
            if kind == "vllm":
                made |= {"return_token_ids": True, "add_special_tokens": False}
            if grammar is not None:
                made |= _constraint(kind, grammar)
    return made | settings.extra


def _constraint(kind: ServerKind, grammar: str) -> JsonObject:
    return {"ebnf": grammar} if kind == "sglang" else {"structured_outputs": {"grammar": grammar}}


def path(kind: ServerKind, base_url: str) -> str:
    """Where a completion is asked for."""
    match kind:
        case "llamacpp":
            return f"{root_of(base_url)}/completion"
        case "ollama":
            return f"{root_of(base_url)}/api/generate"
        case _:
            return "/completions"


def root_of(base_url: str) -> str:
    """A server's address without the ``/v1`` of its OpenAI-compatible part."""
    return base_url.rstrip("/").removesuffix("/v1")


def reader(kind: ServerKind, prompt: Prompt, model: str, ids: tuple[int, ...] | None) -> Reader:
    """What reads the answer."""
    return {"llamacpp": LlamaReader, "ollama": OllamaReader}.get(kind, CompletionsReader)(
        prompt, model, ids
    )


class RawReader:
    """What the readers share: the format's parser, the tokens, and how it ended."""

    def __init__(self, prompt: Prompt, model: str, prompt_ids: tuple[int, ...] | None) -> None:
        self._format = FormatReader(prompt, model)
        self._prompt_ids = prompt_ids
        self._tokens: list[TokenLogprob] = []
        self._finish = ""
        self._usage = Usage(n_requests=1)

    @property
    def complete(self) -> bool:
        """Whether the server has said why it stopped."""
        return bool(self._finish)

    def whole(self, data: Mapping[str, Any]) -> Iterable[Delta | SampledTokens]:
        """Take an answer in one piece."""
        deltas = list(self.event(data))
        self._finish = self._finish or "stop"
        return deltas

    def event(self, data: Mapping[str, Any]) -> Iterator[Delta | SampledTokens]:
        """Take one event."""
        n_before = len(self._tokens)
        text = self._text(data)
        if len(self._tokens) > n_before and self._format.prompt.settings.logprobs is not None:
            yield SampledTokens(tuple(self._tokens[n_before:]))
        yield from self._format.feed(text)

    def _text(self, data: Mapping[str, Any]) -> str:
        """The text of an event; its tokens and how it ended are kept."""
        raise NotImplementedError

    def finish(self) -> tuple[Iterable[Delta], Completion]:
        """The answer."""
        cut = self._finish in ("length", "limit")
        return self._format.finish(
            "length" if cut else "stop",
            self._usage,
            prompt_ids=self._prompt_ids,
            tokens=tuple(self._tokens) or None,
        )


class LlamaReader(RawReader):
    """llama.cpp's own completion events."""

    def _text(self, data: Mapping[str, Any]) -> str:
        entries = rows_of(data.get("completion_probabilities"))
        for entry in entries:
            self._tokens.append(token_of(entry))
        if not entries:
            self._tokens.extend(map(TokenLogprob, _ids_of(data.get("tokens"))))
        if data.get("stop"):
            self._finish = str(data.get("stop_type") or "eos")
            timings = fields_of(data.get("timings"))
            self._usage = Usage(
                count_of(data.get("tokens_evaluated")),
                count_of(data.get("tokens_predicted")),
                count_of(timings.get("cache_n")),
                n_requests=1,
            )
        return str(data.get("content") or "")


class OllamaReader(RawReader):
    """Ollama's JSON lines."""

    def _text(self, data: Mapping[str, Any]) -> str:
        if data.get("done"):
            self._finish = str(data.get("done_reason") or "stop")
            self._usage = Usage(
                count_of(data.get("prompt_eval_count")),
                count_of(data.get("eval_count")),
                n_requests=1,
            )
        return str(data.get("response") or "")


class CompletionsReader(RawReader):
    """Events of the OpenAI-style Completions API."""

    def _text(self, data: Mapping[str, Any]) -> str:
        usage: Any = data.get("usage")
        if isinstance(usage, Mapping):
            self._usage = completions_usage(cast("Mapping[str, Any]", usage))
        choices = rows_of(data.get("choices"))
        if not choices:
            return ""
        choice = choices[0]
        self._take_tokens(choice)
        self._finish = str(choice.get("finish_reason") or self._finish)
        return str(choice.get("text") or "")

    def _take_tokens(self, choice: Mapping[str, Any]) -> None:
        prompt_ids: Any = choice.get("prompt_token_ids")
        if isinstance(prompt_ids, list):
            self._prompt_ids = tuple(cast("list[int]", prompt_ids))
        logprobs = fields_of(choice.get("logprobs"))
        values, texts, tops = (
            _list_of(logprobs.get(key)) for key in ("token_logprobs", "tokens", "top_logprobs")
        )
        for n, id in enumerate(_ids_of(choice.get("token_ids"))):
            value = number_of(values[n]) if n < len(values) else None
            text = str(texts[n]) if n < len(texts) else ""
            top = fields_of(tops[n] if n < len(tops) else None)
            others = tuple(TokenLogprob(-1, number_of(p), t) for t, p in top.items())
            self._tokens.append(TokenLogprob(id, value, text, others))


def _list_of(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _ids_of(value: Any) -> list[int]:
    """Token ids; what is none becomes -1, so that the others keep their places."""
    return [id if isinstance(id, int) else -1 for id in _list_of(value)]


def completions_usage(usage: Mapping[str, Any]) -> Usage:
    """The usage field of OpenAI's APIs."""
    details = fields_of(usage.get("prompt_tokens_details"))
    return Usage(
        count_of(usage.get("prompt_tokens")),
        count_of(usage.get("completion_tokens")),
        count_of(details.get("cached_tokens")),
        n_requests=1,
    )


if TYPE_CHECKING:

    def _reader(prompt: Prompt) -> Reader:  # pyright: ignore[reportUnusedFunction]
        return LlamaReader(prompt, "", None)
