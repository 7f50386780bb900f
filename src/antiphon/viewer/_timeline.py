"""Bars of time: what a run waited for, and what ran side by side.

Knows events and steps, and nothing of how they are drawn.  Times are seconds since the run began.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from antiphon.events import CallEvent, ResultEvent, Step, Trajectory
from antiphon.messages import JsonObject, JsonValue, dump_json


def finite(value: float | None) -> float | None:
    """A number that JSON can say, or nothing."""
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class _Bar:
    """Something that took time."""

    kind: str
    label: str
    start: float
    end: float
    step: int
    first: float | None = None
    is_error: bool = False
    detail: str = ""

    def row(self) -> JsonObject:
        return {
            "kind": self.kind,
            "label": self.label,
            "start": self.start,
            "end": self.end,
            "first": self.first,
            "step": self.step,
            "is_error": self.is_error,
            "detail": self.detail,
        }


def lanes(trajectory: Trajectory) -> list[JsonValue]:
    """Bars of time in lanes: a lane an agent, then as many as tools ran side by side."""
    models: dict[str, list[_Bar]] = {}
    for bar in _model_bars(trajectory.steps):
        models.setdefault(trajectory.steps[bar.step].agent, []).append(bar)
    packed: list[list[_Bar]] = []
    for bar in sorted(_tool_bars(trajectory), key=lambda bar: (bar.start, bar.end)):
        for lane in packed:
            if lane[-1].end <= bar.start:
                lane.append(bar)
                break
        else:
            packed.append([bar])
    rows: list[JsonValue] = [
        _lane(agent or "model", "model", bars) for agent, bars in models.items()
    ]
    rows += [_lane("tools" if i == 0 else "", "tool", bars) for i, bars in enumerate(packed)]
    return rows


def _lane(name: str, kind: str, bars: Sequence[_Bar]) -> JsonObject:
    return {"name": name, "kind": kind, "bars": [bar.row() for bar in bars]}


def _model_bars(steps: Sequence[Step]) -> Iterator[_Bar]:
    for index, step in enumerate(steps):
        completion = step.completion
        start = finite(step.started)
        if start is None:
            continue
        length = finite(completion.duration)
        end = start + length if length is not None else finite(step.ended)
        if end is None or end < start or end == 0:
            continue
        yield _Bar(
            kind="model",
            label=f"step {index}",
            start=start,
            end=end,
            first=finite(completion.time_to_first_token),
            step=index,
            is_error=completion.stop_reason == "error",
            detail=completion.stop_reason,
        )


def _tool_bars(trajectory: Trajectory) -> Iterator[_Bar]:
    begun = {(e.step, e.call.id): e for e in trajectory.events if isinstance(e, CallEvent)}
    for event in trajectory.events:
        if not isinstance(event, ResultEvent):
            continue
        call = begun.get((event.step, event.result.call_id))
        end, length = finite(event.time), finite(event.duration)
        if end is None or length is None:
            continue
        # Results are told in the calls' order, so a quick call may be told late: its own duration
        # from the moment it was told is what it took.
        start = end - length if call is None else min(call.time, end)
        yield _Bar(
            kind="tool",
            label=event.result.name,
            start=max(0.0, start),
            end=max(0.0, start) + length,
            step=event.step,
            is_error=event.result.is_error,
            detail="" if call is None else dump_json(call.call.arguments),
        )
