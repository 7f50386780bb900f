"""What a tool may know of the run that calls it.

A parameter annotated `RunContext` is filled by the run, at any position and under any name.  It is
never part of what the model sees, and a model that sends its name is told that there is no such
parameter.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from typing_extensions import TypeVar

DepsT = TypeVar("DepsT", default=Any)


def _drop(_output: object) -> None:
    """Partial output that nobody asked for."""


@dataclass(slots=True)
class RunContext(Generic[DepsT]):
    """Handed to tools that ask for it by type.

    `deps` and `state` are the run's and shared by all its tools; the rest is of one call.
    """

    deps: DepsT = None  # type: ignore[assignment]  # a run without deps has None, whatever DepsT is
    """What the caller of the run passed in: a database, a user, settings."""
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """What tools of one run share: context variables."""
    agent: str = ""
    """The name of the agent whose call it is."""
    step: int = 0
    """Which step of the run, counted from 0."""
    tool: str = ""
    """The name of the tool that is called."""
    call_id: str = ""
    """The id of the call."""
    emit: Callable[[object], None] = _drop
    """Takes partial output while the tool runs; generator tools emit what they yield."""
    stop: threading.Event = field(default_factory=threading.Event, repr=False)
    """Set when the call timed out or was cancelled: the answer is no longer awaited."""

    @property
    def cancelled(self) -> bool:
        """Whether a long-running tool should give up: nobody waits for its answer any more."""
        return self.stop.is_set()

    def for_call(self, tool: str, call_id: str) -> "RunContext[DepsT]":
        """The same context for one call: own `stop`, shared `deps` and `state`."""
        return RunContext(
            deps=self.deps,
            state=self.state,
            agent=self.agent,
            step=self.step,
            tool=tool,
            call_id=call_id,
            emit=self.emit,
        )
