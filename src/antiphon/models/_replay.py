"""A model that answers as a recorded run's model did, delta for delta.

For tests of whatever stands around a model, for looking at a run again, and for resuming one: the
same conversation gets the same answer; a different one is refused, never answered by guess.  It
compares what was said; call ids and metadata are the loop's own and do not take part.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING

from antiphon.errors import ModelError, clip
from antiphon.events import (
    CallDeltaEvent,
    Event,
    RetryEvent,
    Step,
    TextEvent,
    ThinkingEvent,
    Trajectory,
)
from antiphon.messages import (
    Conversation,
    Delta,
    Message,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from antiphon.models._deltas import deltas_of
from antiphon.models._model import Model, ModelOutput, ModelSettings, Retry


class ReplayModel:
    """Gives back the completions of a Trajectory, one a step."""

    def __init__(self, trajectory: Trajectory, *, start: int = 0) -> None:
        """Set up a replay.

        Args:
            trajectory: The record.
            start: The first step to answer, counted from 0.
        """
        self._trajectory = trajectory
        self._body = _without_system(trajectory.conversation.messages)
        self._next = start
        self._outputs = _recorded_outputs(trajectory)

    @property
    def spec(self) -> str:
        """``replay/`` and the id of the recorded run."""
        return f"replay/{self._trajectory.id}"

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Answer as recorded.

        Raises:
            ModelError: The conversation is not the recorded one, or the record is over.
        """
        steps = self._trajectory.steps
        if self._next >= len(steps):
            raise ModelError(
                f"the recorded run has {len(steps)} steps and was asked for one more; "
                "the run around it has changed"
            )
        index, step = self._next, steps[self._next]
        self._check(conversation, step, index)
        self._next += 1
        for output in self._outputs.get(index, ()):
            yield output
        if index not in self._outputs:
            for output in deltas_of(step.completion.message):
                yield output
        yield step.completion

    async def close(self) -> None:
        """Nothing is held."""

    def _check(self, conversation: Conversation, step: Step, index: int) -> None:
        where = f"step {index} differs from the record"
        system = _system_text(conversation.messages)
        if system != step.system:
            raise ModelError(
                f"{where}: the instructions are {clip(system)}, recorded {clip(step.system)}"
            )
        given = _without_system(conversation.messages)
        expected = self._body[: step.n_prompt_messages] if step.shown is None else step.shown
        for n, (message, recorded) in enumerate(zip(given, expected, strict=False)):
            if message is not recorded and _said(message) != _said(recorded):
                raise ModelError(
                    f"{where}: message {n} is {_shown(message)}, recorded {_shown(recorded)}"
                )
        if len(given) != len(expected):
            raise ModelError(f"{where}: {len(given)} messages, recorded {len(expected)}")


def _recorded_outputs(trajectory: Trajectory) -> dict[int, list[ModelOutput]]:
    """What the model gave at each step, from what was shown of it."""
    events: dict[int, list[Event]] = {}
    for event in trajectory.events:
        if isinstance(event, TextEvent | ThinkingEvent | CallDeltaEvent | RetryEvent):
            events.setdefault(event.step, []).append(event)
    return {step: list(_outputs(of_step)) for step, of_step in events.items()}


def _outputs(events: Sequence[Event]) -> Iterator[ModelOutput]:
    """One step's outputs.  A reply that began anew said again what was not told again."""
    shown: list[Delta] = []
    before: Event | None = None
    for event, after in zip(events, (*events[1:], None), strict=True):
        delta = _delta(event)
        if delta is not None:
            shown.append(delta)
            yield delta
        elif isinstance(event, RetryEvent) and not _discards(event, after=before):
            yield Retry(event.reason, wait=0.0)
            if event.discard_chars or _discards(after, after=event) or _has_calls(shown):
                shown = []
            yield from shown
        before = event


def _delta(event: Event) -> Delta | None:
    match event:
        case TextEvent():
            return TextDelta(event.text)
        case ThinkingEvent():
            return ThinkingDelta(event.text)
        case CallDeltaEvent():
            return ToolCallDelta(event.index, name=event.name, arguments=event.arguments)
        case _:
            return None


def _discards(event: Event | None, *, after: Event | None) -> bool:
    """Whether an event says that the new reply differs, which a run finds out by itself."""
    return (
        isinstance(event, RetryEvent) and event.discard_chars > 0 and isinstance(after, RetryEvent)
    )


def _has_calls(shown: Sequence[Delta]) -> bool:
    return any(isinstance(delta, ToolCallDelta) for delta in shown)


def _system_text(messages: tuple[Message, ...]) -> str:
    return messages[0].text if messages and messages[0].role == "system" else ""


def _without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    return messages[1:] if messages and messages[0].role == "system" else messages


def _said(message: Message) -> tuple[object, ...]:
    calls = tuple((call.name, call.arguments) for call in message.tool_calls)
    broken = tuple((call.name, call.raw) for call in message.invalid_tool_calls)
    name = message.name if message.role == "tool" else ""
    return (message.role, message.parts, calls, broken, name, message.is_error)


def _shown(message: Message) -> str:
    calls = "".join(f" call {call.name}" for call in message.tool_calls)
    return f"{message.role}{calls} {clip(message.text)}"


if TYPE_CHECKING:
    _model: Model = ReplayModel(Trajectory(Conversation()))
