"""What can happen in a Run: a closed set of values.

A run yields nothing else, streamed or awaited, and in the same order.  Each event has a `type`, the
word that its JSON row begins with.  Times are seconds since the run began.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from antiphon.messages import InvalidToolCall, JsonObject, ToolCall, ToolResult, Usage

RunStopReason = Literal[
    "answer",
    "step_limit",
    "handoff_limit",
    "token_limit",
    "cost_limit",
    "time_limit",
    "stopped_by_tool",
    "stuck",
    "pending",
    "refused",
    "failed",
    "unverified",
    "evaluator_error",
    "cancelled",
    "error",
]
"""Why a run ended. ``answer``: the model answered without a call; ``stuck``: it made the same call
with the same result again and again; ``pending``: calls or a plan wait for a person; ``refused``:
the model, its provider, a guardrail or a person declined; ``failed``: a strategy has used up its
plans or attempts; ``unverified``: nothing was there to judge an attempt by; ``evaluator_error``:
the judgement itself broke; others say it themselves."""


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
class ApprovalEvent:
    """A call needs a person's consent before it is executed."""

    step: int
    """The step it belongs to."""
    call: ToolCall
    """What the model asks for."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["approval"] = "approval"


@dataclass(frozen=True, slots=True)
class DecisionEvent:
    """A person decided on a call."""

    step: int
    """The step it belongs to."""
    call_id: str
    """The call that was decided on."""
    approved: bool
    """Whether it is executed."""
    arguments: "JsonObject | None" = None
    """What to call it with, where the person changed the arguments."""
    reason: str = ""
    """Why not, as the model reads it."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["decision"] = "decision"


@dataclass(frozen=True, slots=True)
class FeedbackEvent:
    """The loop told the model what was wrong with its last answer, as a user message."""

    step: int
    """The step whose answer it was."""
    text: str
    """What the model was told."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["feedback"] = "feedback"


@dataclass(frozen=True, slots=True)
class CompactionEvent:
    """What the model is shown was made shorter; the record keeps everything."""

    step: int
    """The first step that is shown less."""
    method: str
    """How: ``tool_results``, ``truncate`` or ``summary``."""
    n_messages: int
    """How many messages are no longer shown as they were."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["compaction"] = "compaction"


@dataclass(frozen=True, slots=True)
class RetryEvent:
    """A model call broke and is made again, or what it writes now differs from what was shown.

    Text that the new reply repeats is not told again.  Pieces of calls are: forget those so far.
    """

    step: int
    """The step that starts over."""
    reason: str
    """What broke."""
    wait: float = 0.0
    """Seconds until the next try."""
    discard_chars: int = 0
    """How many characters of text and reasoning, all that were shown, no longer hold."""
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
    """A limit was reached: of the run, which ends with what it has, or of one tool's text.

    ``max_repeats`` (the same call with the same result), ``max_replans``, ``max_attempts``,
    ``max_steps``, ``max_handoffs``, ``max_tokens``, ``max_cost``, ``timeout``, ``max_mends`` and
    ``output_tokens`` (of one reply) end the run; ``output_chars`` only cuts what the model reads of
    one result.
    """

    limit: str
    """Which limit."""
    value: float
    """Its value."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["limit"] = "limit"


@dataclass(frozen=True, slots=True)
class InsertionEvent:
    """A placeholder in an answer was replaced by a tool's whole result, or names none."""

    step: int
    """The step whose answer it is."""
    call_id: str
    """The call that the placeholder names."""
    found: bool = True
    """Whether there is such a call; else the placeholder stays."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["insertion"] = "insertion"


@dataclass(frozen=True, slots=True)
class PlanEvent:
    """A plan was made, changed, or turned down."""

    state: Literal["proposed", "edited", "rejected", "refused"]
    """``proposed`` by the planner and valid, ``edited`` by a person, ``rejected`` because it is
    invalid, ``refused`` by a person."""
    plan: JsonObject = field(default_factory=lambda: {})
    """The whole plan as a row; empty where the text was no plan."""
    reason: str = ""
    """Why it was turned down."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["plan"] = "plan"


@dataclass(frozen=True, slots=True)
class TaskEvent:
    """A task of a plan changed its state."""

    task: str
    """The task's id."""
    status: Literal["pending", "in_progress", "completed", "failed", "skipped"]
    """Its state from now on; ``pending`` where it waits for a person."""
    call: ToolCall | None = None
    """What is called, with references replaced; the call's id is the task's own of this attempt."""
    result: ToolResult | None = None
    """What came of it, once it is over."""
    reason: str = ""
    """Why it failed or was skipped."""
    attempt: int = 1
    """Which attempt at a task of this id, counted from 1."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["task"] = "task"


@dataclass(frozen=True, slots=True)
class ReplanEvent:
    """The planner is asked for another plan."""

    reason: str
    """Why: what failed, or what is missing."""
    revision: int = 1
    """Which plan is asked for, counted from 0."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["replan"] = "replan"


@dataclass(frozen=True, slots=True)
class AttemptEvent:
    """An attempt was judged."""

    attempt: int
    """Which one, counted from 1."""
    verdict: Literal["passed", "failed", "unverified", "error"]
    """What the evaluator found: ``error`` where it broke."""
    output: str = ""
    """The attempt's answer, as text."""
    score: float = 0.0
    """How good it is, from 0 to 1."""
    feedback: str = ""
    """What the evaluator says of it."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["attempt"] = "attempt"


@dataclass(frozen=True, slots=True)
class ReflectionEvent:
    """What was learned from a failed attempt."""

    attempt: int
    """The attempt that failed, counted from 1."""
    text: str
    """The reflection, which later attempts are shown."""
    time: float = 0.0
    """Seconds since the run began."""
    type: Literal["reflection"] = "reflection"


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
    | ApprovalEvent
    | DecisionEvent
    | FeedbackEvent
    | CompactionEvent
    | RetryEvent
    | HandoffEvent
    | LimitEvent
    | InsertionEvent
    | PlanEvent
    | TaskEvent
    | ReplanEvent
    | AttemptEvent
    | ReflectionEvent
    | StepEnd
    | RunEnd
)
