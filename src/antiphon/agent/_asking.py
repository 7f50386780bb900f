"""A model's stream as a run sees it: read to its end, or closed where the reader stops."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

from antiphon.events import CallDeltaEvent, Event, RetryEvent, TextEvent, ThinkingEvent
from antiphon.messages import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from antiphon.models import ModelOutput, Retry


@asynccontextmanager
async def closed_after(
    outputs: AsyncIterator[ModelOutput],
) -> AsyncGenerator[AsyncIterator[ModelOutput]]:
    """Ends a model's stream with the block, also when its reader was stopped."""
    try:
        yield outputs
    finally:
        close = getattr(outputs, "aclose", None)
        if close is not None:
            await close()


def delta_event(index: int, output: Delta | Retry, n_shown: int, time: float) -> Event:
    """The event of one piece of a reply.

    Args:
        index: The step.
        output: The piece.
        n_shown: How many characters were shown since the reply began.
        time: Seconds since the run began.
    """
    match output:
        case TextDelta(text):
            return TextEvent(index, text, time)
        case ThinkingDelta(text):
            return ThinkingEvent(index, text, time)
        case ToolCallDelta(number, name, _, arguments):
            return CallDeltaEvent(index, number, name, arguments, time)
        case Retry(reason, wait):
            return RetryEvent(index, reason, wait, n_shown, time)
