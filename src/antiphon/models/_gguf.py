"""A GGUF file as a Model: our Format writes the prompt, llama.cpp continues it, our Format reads
it.

What was sampled is recorded as it was: the prompt's tokens, each sampled token with its log
probability, and the exact text.  Nothing is encoded a second time.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from antiphon.formats import Format
from antiphon.messages import Conversation, JsonObject, TokenLogprob, Usage
from antiphon.models._formatted import FormatReader, Prompt, marks_of, prompt_of
from antiphon.models._llama import Engine, EngineKey, Sampled, acquire, release
from antiphon.models._model import Model, ModelOutput, ModelSettings


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
        generation = _Generation(engine, prompt)
        first: float | None = None
        last = Sampled("")
        tokens: list[TokenLogprob] = []
        try:
            async with aclosing(generation.events()) as events:
                async for last in events:
                    tokens.extend(last.tokens)
                    for delta in reader.feed(last.text):
                        if first is None:
                            first = perf_counter() - started
                        yield delta
        finally:
            generation.stop()
        usage = Usage(last.n_prompt, last.n_written, last.n_cached, n_requests=1)
        rest, completion = reader.finish(
            "length" if last.finish == "length" else "stop",
            usage,
            prompt_ids=tuple(generation.prompt_ids),
            tokens=tuple(tokens),
        )
        for delta in rest:
            yield delta
        yield replace(completion, time_to_first_token=first, duration=perf_counter() - started)

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


class _Generation:
    """One call of `Engine.generate` in a thread, seen from the event loop."""

    def __init__(self, engine: Engine, prompt: Prompt) -> None:
        self._engine = engine
        self._prompt = prompt
        self._stopped = threading.Event()
        self._events: asyncio.Queue[Sampled | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self.prompt_ids: list[int] = []

    async def events(self) -> AsyncGenerator[Sampled, None]:
        """The events as they are sampled; raises what the engine raised."""
        done = self._loop.run_in_executor(self._engine.threads, self._run)
        done.add_done_callback(self._end)
        while (event := await self._events.get()) is not None:
            yield event
        await done

    def _end(self, done: "asyncio.Future[None]") -> None:
        if not done.cancelled():
            done.exception()  # seen, also where nobody waits any more
        self._events.put_nowait(None)

    def stop(self) -> None:
        """Sample no more; the thread ends with its current token."""
        self._stopped.set()

    def _run(self) -> None:
        if self._stopped.is_set():
            return
        self.prompt_ids = self._engine.tokenize(self._prompt.rendered)
        self._engine.generate(self.prompt_ids, _options(self._prompt, self._engine), self._emit)

    def _emit(self, event: Sampled) -> bool:
        if not self._stopped.is_set():
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
        return self._stopped.is_set()


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
