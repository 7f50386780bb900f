"""What a run has made so far, in lists that only grow; a `Trajectory` of it at any moment.

Nothing here decides or waits.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from antiphon.events import (
    Event,
    RunEnd,
    RunStopReason,
    Step,
    StepEnd,
    StepStart,
    Trajectory,
    body_of,
    is_json,
)
from antiphon.messages import (
    Conversation,
    JsonObject,
    JsonValue,
    Message,
    ToolSpec,
    Usage,
)


@dataclass(slots=True)
class Record:
    """The growing record of one run."""

    id: str
    """The run's id."""
    started_at: str
    """When it began: ISO 8601, UTC."""
    call_id: str = ""
    """The parent's call that this run answers."""
    system: str | None = None
    """The first instructions, which lead the conversation."""
    messages: list[Message] = field(default_factory=list[Message])
    """Everything said, without the leading system message."""
    steps: list[Step] = field(default_factory=list[Step])
    """Model calls so far."""
    events: list[Event] = field(default_factory=list[Event])
    """Events so far."""
    n_shown: int = 0
    """How many of them may be shown: what comes after is not safe in the journal yet."""
    specs: dict[str, ToolSpec] = field(default_factory=dict[str, ToolSpec])
    """Every tool that was on offer, by name, in the order of first offer."""
    agents: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Every agent that took part, by name."""
    children: list[Trajectory] = field(default_factory=list[Trajectory])
    """Finished runs of this run's tools."""
    metadata: JsonObject = field(default_factory=dict[str, JsonValue])
    """The caller's."""
    usage: Usage = field(default_factory=Usage)
    """What this run's own model calls cost together."""

    @classmethod
    def of(cls, trajectory: Trajectory) -> "Record":
        """The record of a run that goes on: all but its end.

        An unfinished step has said its reply and no more; its results are said when it is finished.
        """
        conversation = trajectory.conversation
        body = body_of(conversation)
        led = len(body) < len(conversation.messages)
        ended = bool(trajectory.events) and isinstance(trajectory.events[-1], RunEnd)
        events = list(trajectory.events[:-1] if ended else trajectory.events)
        unfinished = open_step(trajectory)
        if unfinished is not None:
            last = trajectory.steps[unfinished]
            body = body[: last.n_prompt_messages + is_said(last.completion.message)]
        return cls(
            id=trajectory.id,
            started_at=trajectory.started_at,
            call_id=trajectory.call_id,
            system=conversation.messages[0].text if led else None,
            messages=list(body),
            steps=list(trajectory.steps),
            events=events,
            n_shown=len(events),
            specs={spec.name: spec for spec in conversation.tools},
            agents={str(agent.get("name")): agent for agent in trajectory.agents},
            children=list(trajectory.children),
            metadata=trajectory.metadata,
            usage=trajectory.usage,
        )

    def adopt(self, child: Trajectory) -> None:
        """Take in the record of a run inside this one; one that was paused is replaced."""
        self.children[:] = [one for one in self.children if one.id != child.id]
        self.children.append(child)

    @property
    def total_usage(self) -> Usage:
        """What this run and its children cost so far."""
        return sum((child.total_usage for child in self.children), self.usage)

    def trajectory(
        self, stop_reason: RunStopReason, output: str, error: str, state: dict[str, Any]
    ) -> Trajectory:
        """The record as a value."""
        leading = () if self.system is None else (Message.system(self.system),)
        return Trajectory(
            conversation=Conversation((*leading, *self.messages), tuple(self.specs.values())),
            steps=tuple(self.steps),
            events=tuple(self.events),
            stop_reason=stop_reason,
            output=output,
            usage=self.usage,
            agents=tuple(self.agents.values()),
            id=self.id,
            started_at=self.started_at,
            error=error,
            metadata=self.metadata,
            state=json_state(state),
            children=tuple(self.children),
            call_id=self.call_id,
        )


def json_state(state: dict[str, Any]) -> JsonObject:
    """Context variables as far as they are JSON."""
    return {key: cast("JsonValue", value) for key, value in state.items() if is_json(value)}


def open_step(trajectory: Trajectory) -> int | None:
    """The last step, where the record does not show that the run got past it.

    What follows from its reply is worked out once more from what is known: a run that was killed
    right after its answer has no end, and still ends with that answer.
    """
    last = len(trajectory.steps) - 1
    if last < 0:
        return None
    ended = past = False
    for event in reversed(trajectory.events):
        past = past or (isinstance(event, RunEnd) and event.stop_reason != "pending")
        past = past or (isinstance(event, StepStart) and event.step > last)
        if isinstance(event, StepEnd) and event.step == last:
            ended = True
            break
    return None if ended and past else last


def is_said(message: Message) -> bool:
    """Whether a reply joins the conversation; an empty one does not."""
    return bool(message.parts or message.tool_calls or message.invalid_tool_calls)


def split_usage(trajectory: Trajectory, key: Callable[[Step], str]) -> dict[str, Usage]:
    """What a run and its children cost, by something that each step has."""
    split: dict[str, Usage] = {}
    for step in trajectory.steps:
        usage = step.completion.usage
        usage = usage if usage.n_requests else replace(usage, n_requests=1)
        split[key(step)] = split.get(key(step), Usage()) + usage
    for child in trajectory.children:
        for name, usage in split_usage(child, key).items():
            split[name] = split.get(name, Usage()) + usage
    return split
