"""Runs that went on from each other, as one record.

Each user message of a conversation is a run of its own; what is kept of them is one trajectory,
whose steps, events and times count on.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from antiphon.events import Event, Trajectory


def join_runs(runs: Sequence[Trajectory]) -> Trajectory:
    """One record of runs, each of which was given what the one before had said.

    Args:
        runs: In order, at least one.
    """
    whole = runs[0]
    for run in runs[1:]:
        n_steps, began = len(whole.steps), _end(whole)
        whole = replace(
            run,
            steps=whole.steps
            + tuple(
                replace(s, started=s.started + began, ended=s.ended + began) for s in run.steps
            ),
            events=whole.events + tuple(_moved(e, n_steps, began) for e in run.events),
            usage=whole.usage + run.usage,
            agents=whole.agents,
            children=whole.children + run.children,
            started_at=whole.started_at,
        )
    return whole


def _end(run: Trajectory) -> float:
    return max((event.time for event in run.events), default=0.0)


def _moved(event: Event, n_steps: int, began: float) -> Event:
    changes: dict[str, Any] = {"time": event.time + began}
    step = getattr(event, "step", None)
    if step is not None:
        changes["step"] = step + n_steps
    return replace(event, **changes)
