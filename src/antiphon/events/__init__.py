"""What can happen in a Run, and the Trajectory that records it.

Start with `_event.py`: the closed set of events.  `_trajectory.py` is the record of a run: a row of
messages and tools plus what was measured; JSON, versioned, and enough to replay.  This room runs
nothing and draws nothing.
"""

from antiphon.events._event import (
    ApprovalEvent,
    AttemptEvent,
    CallDeltaEvent,
    CallEvent,
    CompactionEvent,
    DecisionEvent,
    Event,
    FeedbackEvent,
    HandoffEvent,
    InsertionEvent,
    InvalidCallEvent,
    LimitEvent,
    PlanEvent,
    ReflectionEvent,
    ReplanEvent,
    ResultEvent,
    RetryEvent,
    RunEnd,
    RunStart,
    RunStopReason,
    StepEnd,
    StepStart,
    TaskEvent,
    TextEvent,
    ThinkingEvent,
)
from antiphon.events._json import (
    dump_row,
    event_from_row,
    event_to_row,
    is_json,
    result_from_row,
    result_to_row,
)
from antiphon.events._trajectory import Step, Trajectory, body_of, step_from_row, step_to_row
from antiphon.events._whole import written_whole

__all__ = [
    "ApprovalEvent",
    "AttemptEvent",
    "CallDeltaEvent",
    "CallEvent",
    "CompactionEvent",
    "DecisionEvent",
    "Event",
    "FeedbackEvent",
    "HandoffEvent",
    "InsertionEvent",
    "InvalidCallEvent",
    "LimitEvent",
    "PlanEvent",
    "ReflectionEvent",
    "ReplanEvent",
    "ResultEvent",
    "RetryEvent",
    "RunEnd",
    "RunStart",
    "RunStopReason",
    "Step",
    "StepEnd",
    "StepStart",
    "TaskEvent",
    "TextEvent",
    "ThinkingEvent",
    "Trajectory",
    "body_of",
    "dump_row",
    "event_from_row",
    "event_to_row",
    "is_json",
    "result_from_row",
    "result_to_row",
    "step_from_row",
    "step_to_row",
    "written_whole",
]
