"""Sampling in this process, whatever does it: from the engine's thread to what a Model yields.

An engine samples in a thread of its own and hands each step over as a `Sampled`.  Here the steps
reach the event loop as they come and become text deltas and, at the end, the completion with its
tokens.  This module knows no engine.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass, replace
from time import perf_counter

from antiphon.messages import TokenLogprob, Usage
from antiphon.models._formatted import FormatReader
from antiphon.models._model import ModelOutput, SampledTokens


@dataclass(frozen=True, slots=True)
class Sampled:
    """One event of a generation."""

    text: str
    """New text; may be empty while a character or a stop text is incomplete."""
    tokens: tuple[TokenLogprob, ...] = ()
    """The tokens sampled since the last event."""
    finish: str = ""
    """``stop`` or ``length`` with the last event."""
    n_cached: int = 0
    """Tokens of the prompt that were not computed again, with the last event."""


Emit = Callable[[Sampled], bool]
"""Takes an event; says whether to stop."""


async def _events(
    threads: Executor, sample: Callable[[Emit], None]
) -> AsyncGenerator[Sampled, None]:
    """What is sampled, as it comes; closing this tells the thread to stop."""
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[Sampled | None] = asyncio.Queue()
    stopped = threading.Event()

    def emit(event: Sampled) -> bool:
        if not stopped.is_set():
            loop.call_soon_threadsafe(events.put_nowait, event)
        return stopped.is_set()

    def run() -> None:
        if not stopped.is_set():  # it may have waited for its turn
            sample(emit)

    def end(done: "asyncio.Future[None]") -> None:
        if not done.cancelled():
            done.exception()  # seen, also where nobody waits any more
        events.put_nowait(None)

    done = loop.run_in_executor(threads, run)
    done.add_done_callback(end)
    try:
        while (event := await events.get()) is not None:
            yield event
        await done
    finally:
        stopped.set()


async def outputs_of(
    threads: Executor,
    sample: Callable[[Emit], None],
    reader: FormatReader,
    prompt_ids: Sequence[int],
    started: float,
) -> AsyncGenerator[ModelOutput, None]:
    """The deltas of what is sampled, and the completion; closing this ends the sampling.

    Args:
        threads: Where to sample.
        sample: Emits its events until it is done, or is told to stop.  What it raises is raised.
        reader: Reads the text.
        prompt_ids: The prompt's tokens, there with the first event.
        started: When the model was asked, by `perf_counter`.
    """
    first: float | None = None
    tokens: list[TokenLogprob] = []
    last = Sampled("")
    async with aclosing(_events(threads, sample)) as events:
        async for last in events:
            tokens.extend(last.tokens)
            if last.tokens and reader.prompt.settings.logprobs is not None:
                yield SampledTokens(last.tokens)
            for delta in reader.feed(last.text):
                if first is None:
                    first = perf_counter() - started
                yield delta
    rest, completion = reader.finish(
        "length" if last.finish == "length" else "stop",
        Usage(len(prompt_ids), len(tokens), last.n_cached, n_requests=1),
        prompt_ids=tuple(prompt_ids),
        tokens=tuple(tokens),
    )
    for delta in rest:
        yield delta
    yield replace(completion, time_to_first_token=first, duration=perf_counter() - started)
