"""Where the record of a run ends, for a run that goes on from it."""

from antiphon.events import (
    CallDeltaEvent,
    Event,
    HandoffEvent,
    RetryEvent,
    RunEnd,
    StepStart,
    TextEvent,
    ThinkingEvent,
    Trajectory,
)

_DELTAS = (StepStart, TextEvent, ThinkingEvent, CallDeltaEvent, RetryEvent)


def told_again(earlier: Trajectory | None, step: int | None) -> list[Event]:
    """The events of a record that finishing its last step will make once more."""
    if earlier is None:
        return []
    events: list[Event] = [e for e in earlier.events if not isinstance(e, RunEnd)]
    index = len(earlier.steps) if step is None else step
    own = [e for e in events if getattr(e, "step", None) == index]
    if step is None:
        return [e for e in own if isinstance(e, StepStart)]
    deltas = (n for n, e in enumerate(events) if isinstance(e, _DELTAS) and e.step == index)
    begin = max(deltas, default=-1)
    return events[begin + 1 :]


def speaker(earlier: Trajectory, *, finished: bool) -> str:
    """The name of the agent whose turn it is."""
    last = len(earlier.steps) - 1
    for event in reversed(earlier.events):
        if finished and isinstance(event, HandoffEvent) and event.step == last:
            return event.target
    return earlier.steps[last].agent


def n_shown_chars(earlier: Trajectory, index: int) -> int:
    """How much of a reply that was broken off is still shown, in characters."""
    n = 0
    for event in earlier.events:
        if isinstance(event, TextEvent | ThinkingEvent) and event.step == index:
            n += len(event.text)
        elif isinstance(event, RetryEvent) and event.step == index:
            n -= event.discard_chars
    return n
