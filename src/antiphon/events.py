"""What can happen in a Run, and the Trajectory that records it.

Events are a closed set: a run yields nothing else, streamed or awaited.  A Trajectory is a row of
messages and tools (design §5) plus what was measured: each model call with its exact text and
tokens, each event, agents, models, outcome.  It is JSON, versioned, and can be replayed.

This module runs nothing and draws nothing.  Times are seconds since the run began.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from antiphon.messages import (
    Completion,
    Conversation,
    InvalidToolCall,
    JsonObject,
    ToolCall,
    ToolResult,
    Usage,
)

__all__ = [
    "CallDeltaEvent",
    "CallEvent",
    "Event",
    "HandoffEvent",
    "InvalidCallEvent",
    "LimitEvent",
    "ResultEvent",
    "RetryEvent",
    "RunEnd",
    "RunStart",
    "RunStopReason",
    "Step",
    "StepEnd",
    "StepStart",
    "TextEvent",
    "ThinkingEvent",
    "Trajectory",
]

RunStopReason = Literal[
    "answer",
    "step_limit",
    "handoff_limit",
    "token_limit",
    "time_limit",
    "stopped_by_tool",
    "refused",
    "cancelled",
    "error",
]


@dataclass(frozen=True, slots=True)
class RunStart:
    """A run began."""

    agent: str
    """The agent that begins."""
    model: str
    """Its model's spec."""
    input: str
    """What the run was asked, as text."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["run_start"] = "run_start"


@dataclass(frozen=True, slots=True)
class StepStart:
    """A model call begins."""

    step: int
    """Which step of the run, counted from 0."""
    agent: str
    """The agent whose step it is."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["step_start"] = "step_start"


@dataclass(frozen=True, slots=True)
class TextEvent:
    """The model wrote more text."""

    step: int
    """The step it belongs to."""
    text: str
    """The new characters."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["text_delta"] = "text_delta"


@dataclass(frozen=True, slots=True)
class ThinkingEvent:
    """The model wrote more reasoning."""

    step: int
    """The step it belongs to."""
    text: str
    """The new characters."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["thinking_delta"] = "thinking_delta"


@dataclass(frozen=True, slots=True)
class CallDeltaEvent:
    """The model wrote more of a call."""

    step: int
    """The step it belongs to."""
    index: int
    """Which call of the step, counted from 0."""
    name: str
    """The tool's name, with the first delta of a call."""
    arguments: str
    """The next characters of the arguments' JSON text."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["tool_call_delta"] = "tool_call_delta"


@dataclass(frozen=True, slots=True)
class CallEvent:
    """A call is whole and is about to be executed."""

    step: int
    """The step it belongs to."""
    call: ToolCall
    """The call, with its id."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["tool_call"] = "tool_call"


@dataclass(frozen=True, slots=True)
class InvalidCallEvent:
    """The model meant to call a tool and failed."""

    step: int
    """The step it belongs to."""
    call: InvalidToolCall
    """The text and the reason."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["invalid_tool_call"] = "invalid_tool_call"


@dataclass(frozen=True, slots=True)
class ResultEvent:
    """A tool answered."""

    step: int
    """The step it belongs to."""
    result: ToolResult
    """The answer."""
    duration: float = 0.0
    """Seconds that the call took."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["tool_result"] = "tool_result"


@dataclass(frozen=True, slots=True)
class RetryEvent:
    """A model call broke and is made again; what it had streamed is to be discarded."""

    step: int
    """The step that starts over."""
    reason: str
    """What broke."""
    wait: float = 0.0
    """Seconds until the next try."""
    discard_chars: int = 0
    """How many characters of text and reasoning were shown and no longer hold."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["retry"] = "retry"


@dataclass(frozen=True, slots=True)
class HandoffEvent:
    """Another agent takes over."""

    step: int
    """The step whose call handed over."""
    source: str
    """The agent that hands over."""
    target: str
    """The agent that takes over."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["handoff"] = "handoff"


@dataclass(frozen=True, slots=True)
class LimitEvent:
    """A limit was reached; the run ends with what it has."""

    limit: str
    """Which limit: ``max_steps``, ``max_handoffs``, ``timeout``, ..."""
    value: float
    """Its value."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["limit"] = "limit"


@dataclass(frozen=True, slots=True)
class StepEnd:
    """A model call is over and its calls are answered."""

    step: int
    """Which step of the run, counted from 0."""
    stop_reason: str
    """Why the model stopped writing."""
    usage: Usage = field(default_factory=Usage)
    """What the model call cost."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["step_end"] = "step_end"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The run is over."""

    stop_reason: RunStopReason
    """Why it ended."""
    output: str
    """The last answer, as text."""
    usage: Usage = field(default_factory=Usage)
    """What all model calls cost together."""
    error: str = ""
    """What went wrong, when `stop_reason` is ``error``."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["run_end"] = "run_end"


Event: TypeAlias = (
    RunStart
    | StepStart
    | TextEvent
    | ThinkingEvent
    | CallDeltaEvent
    | CallEvent
    | InvalidCallEvent
    | ResultEvent
    | RetryEvent
    | HandoffEvent
    | LimitEvent
    | StepEnd
    | RunEnd
)


@dataclass(frozen=True, slots=True)
class Step:
    """One model call and the results of its calls."""

    agent: str
    """Whose step it was."""
    n_prompt_messages: int
    """The model was shown the first so many messages of the conversation (after `system`)."""
    completion: Completion
    """What came back, with its exact text and tokens where known."""
    results: tuple[ToolResult, ...] = ()
    """The answers of its calls, in the calls' order."""
    system: str = ""
    """The instructions shown in this step, which are the agent's and not the conversation's."""
    started: float = 0.0
    """Seconds since the run began."""
    ended: float = 0.0
    """Seconds since the run began."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The record of a run: everything that happened, enough to show, replay and train on."""

    conversation: Conversation
    """All messages in order and the tools on offer. The first message is the first agent's system
    message, where it has instructions."""
    steps: tuple[Step, ...] = ()
    """The model calls, in order."""
    events: tuple[Event, ...] = ()
    """Everything that was streamed, in order."""
    stop_reason: RunStopReason = "answer"
    """Why the run ended."""
    output: str = ""
    """The last answer, as text."""
    usage: Usage = field(default_factory=Usage)
    """What all model calls cost together."""
    agents: tuple[JsonObject, ...] = ()
    """Each agent that took part: name, instructions, model spec, tool names."""
    id: str = ""
    """The run's id."""
    started_at: str = ""
    """When it began: ISO 8601, UTC."""
    error: str = ""
    """What went wrong, when `stop_reason` is ``error``."""
    metadata: JsonObject = field(default_factory=lambda: {})
    """Anything else; survives a round trip."""
