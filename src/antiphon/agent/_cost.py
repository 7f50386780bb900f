"""What a run may use: model calls, tokens, and money by a table of prices that the caller keeps.

Runs inside a run use up what the runs around them may use, from the moment that they use it: a
budget holds over a strategy's parts, those that go on at the same time included.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from antiphon.agent._record import split_usage
from antiphon.events import RunStopReason, Trajectory
from antiphon.messages import Completion, Usage
from antiphon.models import Price


def cost_of(usage_by_model: Mapping[str, Usage], prices: Mapping[str, Price]) -> float:
    """What models cost together; one without a price costs nothing."""
    return sum(prices[m].of(usage) for m, usage in usage_by_model.items() if m in prices)


@dataclass(frozen=True, slots=True)
class Reached:
    """A limit that is reached."""

    stop: RunStopReason
    """How a run ends that goes no further."""
    limit: str
    """Which limit."""
    value: float
    """Its value."""


@dataclass(slots=True)
class Budget:
    """What a run and those inside it may use together, and have used."""

    max_steps: int | None = None
    """The most model calls."""
    max_tokens: int | None = None
    """The most tokens, read and written; no call begins beyond it."""
    max_cost: float | None = None
    """The most that they may cost; no call begins beyond it."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What models cost, by the name that a completion gives its model."""
    around: "Budget | None" = None
    """That of the run around this one."""
    n_kept: int = 0
    """Model calls of `max_steps` that are kept back."""
    _n_steps: int = 0
    _n_tokens: int = 0
    _cost: float = 0.0

    def take_up(self, earlier: Trajectory) -> None:
        """Count what a run that goes on has used before."""
        self._n_steps += _n_steps(earlier)
        usage = earlier.total_usage
        self._n_tokens += usage.input_tokens + usage.output_tokens
        self._cost += cost_of(split_usage(earlier, lambda s: s.completion.model), self.prices)

    def begin_step(self) -> None:
        """A model call begins."""
        self._n_steps += 1
        if self.around is not None:
            self.around.begin_step()

    def end_step(self, completion: Completion) -> None:
        """A model call is over and has used this."""
        usage = completion.usage
        self._n_tokens += usage.input_tokens + usage.output_tokens
        self._cost += cost_of({completion.model: usage}, self.prices)
        if self.around is not None:
            self.around.end_step(completion)

    def reached(self) -> Reached | None:
        """The limit that no further call may begin beyond, of this run or one around it."""
        if self.max_steps is not None and self._n_steps >= self.max_steps - self.n_kept:
            return Reached("step_limit", "max_steps", self.max_steps)
        if self.max_tokens is not None and self._n_tokens >= self.max_tokens:
            return Reached("token_limit", "max_tokens", self.max_tokens)
        if self.max_cost is not None and self._cost >= self.max_cost:
            return Reached("cost_limit", "max_cost", self.max_cost)
        return None if self.around is None else self.around.reached()


def _n_steps(trajectory: Trajectory) -> int:
    return len(trajectory.steps) + sum(_n_steps(child) for child in trajectory.children)
