"""What a run has made so far, in lists that only grow; a `Trajectory` of it at any moment.

Nothing here decides or waits.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from antiphon.events import Event, RunEnd, RunStopReason, Step, Trajectory, body_of, is_json
from antiphon.messages import (
    Conversation,
    JsonObject,
    JsonValue,
    Message,
    ToolResult,
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
        """The record of a run that goes on: all but its end."""
        conversation = trajectory.conversation
        body = body_of(conversation)
        led = len(body) < len(conversation.messages)
        ended = bool(trajectory.events) and isinstance(trajectory.events[-1], RunEnd)
        return cls(
            id=trajectory.id,
            started_at=trajectory.started_at,
            call_id=trajectory.call_id,
            system=conversation.messages[0].text if led else None,
            messages=list(body),
            steps=list(trajectory.steps),
            events=list(trajectory.events[:-1] if ended else trajectory.events),
            specs={spec.name: spec for spec in conversation.tools},
            agents={str(agent.get("name")): agent for agent in trajectory.agents},
            children=list(trajectory.children),
            metadata=trajectory.metadata,
            usage=trajectory.usage,
        )

    @property
    def total_usage(self) -> Usage:
        """What this run and its children cost so far."""
        return sum((child.total_usage for child in self.children), self.usage)

    def answer_step(self, index: int, results: Sequence[ToolResult]) -> None:
        """Keep the results of a step's calls, and show them to the next step."""
        self.steps[index] = replace(self.steps[index], results=tuple(results))
        self.messages.extend(Message.from_result(result) for result in results)

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
            state={key: cast("JsonValue", v) for key, v in state.items() if is_json(v)},
            children=tuple(self.children),
            call_id=self.call_id,
        )
