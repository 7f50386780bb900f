"""A run inside a call that waits for a person: the runs around it wait, too, and go on with it.

A waiting call of an inner run is known outside by the call that holds it and its own id:
``c1/c9`` is call ``c9`` of the run inside call ``c1``.
"""

from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace

from antiphon.agent._start import Decision
from antiphon.events import ApprovalEvent, DecisionEvent, Trajectory
from antiphon.messages import ToolCall


@dataclass(frozen=True, slots=True)
class Paused:
    """The value of a call whose run waits for a person: the call has no answer yet."""

    pending: tuple[ToolCall, ...]
    """Calls of the inner run that wait."""


@dataclass(frozen=True, slots=True)
class Inside:
    """A paused inner run that its call goes on with."""

    call_id: str
    """The call that holds it."""
    trajectory: Trajectory
    """Its record so far."""
    decisions: Mapping[str, Decision]
    """What a person decided, by the ids of its own calls."""


INSIDE: ContextVar[Inside | None] = ContextVar("antiphon_inside", default=None)
"""What the call that is being executed goes on with, if it was paused."""


def undecided_calls(trajectory: Trajectory) -> tuple[ToolCall, ...]:
    """The calls of a paused run that wait for a person, those of inner runs included.

    Args:
        trajectory: The record of a run; of one that is not paused, none wait.
    """
    if trajectory.stop_reason != "pending":
        return ()
    last = len(trajectory.steps) - 1
    asked: dict[str, ToolCall] = {}
    for event in trajectory.events:
        if isinstance(event, ApprovalEvent) and last in (event.step, -1):
            asked[event.call.id] = event.call
        elif isinstance(event, DecisionEvent) and last in (event.step, -1):
            asked.pop(event.call_id, None)
    if last < 0:  # parts of a plan, whose waiting calls are told by their own records alone
        parts = (child.call_id for child in trajectory.children)
        asked |= {call.id: call for call in waiting_inside(trajectory.children, parts)}
    return tuple(asked.values())


def held(call_id: str, call: ToolCall) -> ToolCall:
    """A waiting call of an inner run, as the run around it knows it."""
    return replace(call, id=f"{call_id}/{call.id}")


def waiting_inside(children: Iterable[Trajectory], call_ids: Iterable[str]) -> list[ToolCall]:
    """What waits in the paused runs inside some calls."""
    ids = set(call_ids)
    return [
        held(child.call_id, call)
        for child in children
        if child.call_id in ids
        for call in undecided_calls(child)
    ]


def paused_inside(
    children: Iterable[Trajectory], call_id: str, decisions: Mapping[str, Decision]
) -> Inside | None:
    """The paused run inside a call, with the decisions that are for its calls."""
    for child in children:
        if child.call_id == call_id and child.stop_reason == "pending":
            return Inside(call_id, child, decisions_inside(call_id, decisions))
    return None


def decisions_inside(call_id: str, decisions: Mapping[str, Decision]) -> dict[str, Decision]:
    """What was decided about the calls of the run inside a call, by their own ids."""
    return {
        id.removeprefix(f"{call_id}/"): decision
        for id, decision in decisions.items()
        if id.startswith(f"{call_id}/")
    }
