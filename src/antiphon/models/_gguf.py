"""A GGUF file as a Model: our Format writes the prompt, llama.cpp continues it, our Format reads
it.

What was sampled is recorded as it was: the prompt's tokens, each sampled token with its log
probability, and the exact text.  Nothing is encoded a second time.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from antiphon.formats import Format
from antiphon.messages import Conversation, JsonObject
from antiphon.models._formatted import FormatReader, Prompt, marks_of, prompt_of
from antiphon.models._llama import Engine, EngineKey, acquire, release
from antiphon.models._model import Model, ModelOutput, ModelSettings
from antiphon.models._sampling import Emit, outputs_of


class GgufModel:
    """A model file in this process, through llama.cpp."""

    def __init__(
        self,
        spec: str,
        key: EngineKey | Callable[[], Awaitable[EngineKey]],
        format: Format,
        *,
        defaults: ModelSettings | None = None,
    ) -> None:
        """Set up a model; the file is loaded when it is first asked.

        Args:
            spec: How it was named.
            key: The file, its adapters and its context; or what finds them, for a file that may
                have to be fetched.
            format: The family that the file speaks.
            defaults: Temperature and token limit where a request gives none.
        """
        self._spec = spec
        self._key = key
        self._format = format
        self._defaults = defaults or ModelSettings(max_tokens=1024)
        self._engine: Engine | None = None
        self._lock = threading.Lock()

    @property
    def spec(self) -> str:
        """How the model was named."""
        return self._spec

    @property
    def format(self) -> Format:
        """The family that renders and parses."""
        return self._format

    @property
    def default_max_tokens(self) -> int:
        """How long an answer may be where a request does not say, in tokens."""
        return self._defaults.max_tokens or 1024

    async def load(self) -> None:
        """Load the file now instead of with the first request.

        Raises:
            ModelError: It cannot be loaded.
        """
        await self._loaded()

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Complete a conversation.  Closing the iterator, or cancelling, stops the sampling.

        Raises:
            RenderError: The family cannot express a message.
            ModelError: There is no completion.
        """
        settings = _with_defaults(settings or ModelSettings(), self._defaults)
        prompt = prompt_of(self._format, conversation, settings)
        started = perf_counter()
        engine = await self._loaded()
        reader = FormatReader(prompt, Path(engine.key.path).name)
        prompt_ids: list[int] = []

        def sample(emit: Emit) -> None:
            prompt_ids.extend(engine.tokenize(prompt.rendered))
            engine.generate(prompt_ids, _options(prompt, engine), emit)

        sampling = outputs_of(engine.threads, sample, reader, prompt_ids, started)
        async with aclosing(sampling) as outputs:
            async for output in outputs:
                yield output

    async def count_tokens(self, conversation: Conversation, settings: ModelSettings) -> int:
        """How many tokens a conversation's prompt has.

        Raises:
            RenderError: The family cannot express a message.
            ModelError: The file cannot be loaded.
        """
        prompt = prompt_of(self._format, conversation, settings)
        engine = await self._loaded()
        return len(await asyncio.to_thread(engine.tokenize, prompt.rendered))

    async def close(self) -> None:
        """Give the engine back; the last model of a file frees it."""
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(release, engine)

    async def _loaded(self) -> Engine:
        if self._engine is None:
            key = self._key if isinstance(self._key, EngineKey) else await self._key()
            await asyncio.to_thread(self._acquire, key)
        assert self._engine is not None
        return self._engine

    def _acquire(self, key: EngineKey) -> None:
        with self._lock:
            if self._engine is None:
                self._engine = acquire(key)


def _options(prompt: Prompt, engine: Engine) -> JsonObject:
    settings = prompt.settings
    stop = [*prompt.stop, *([engine.end_text] if engine.end_text else [])]
    options: JsonObject = {"stop": list(dict.fromkeys(stop))}
    options["logprobs"] = max(1, settings.logprobs or 0)
    for name, value in (
        ("temperature", settings.temperature),
        ("top_p", settings.top_p),
        ("max_tokens", settings.max_tokens),
        ("seed", settings.seed),
        ("grammar", _gbnf(prompt, engine)),
    ):
        if value is not None:
            options[name] = value
    return options | settings.extra


def _gbnf(prompt: Prompt, engine: Engine) -> str | None:
    grammar = prompt.grammar()
    if grammar is None:
        return None
    marks = frozenset(mark for mark in marks_of(grammar) if engine.is_token(mark))
    return grammar.to_gbnf(specials=marks)


def _with_defaults(settings: ModelSettings, defaults: ModelSettings) -> ModelSettings:
    return replace(
        settings,
        temperature=defaults.temperature if settings.temperature is None else settings.temperature,
        max_tokens=defaults.max_tokens if settings.max_tokens is None else settings.max_tokens,
    )


if TYPE_CHECKING:
    from antiphon.formats.smollm2 import FORMAT

    _model: Model = GgufModel("", EngineKey(""), FORMAT)
