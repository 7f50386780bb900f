"""What a run may cost: steps, tokens, and money by a table of prices that the caller keeps."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from antiphon.agent._record import Record, split_usage
from antiphon.events import RunStopReason
from antiphon.messages import Usage
from antiphon.models import Price

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent


def cost_of(usage_by_model: Mapping[str, Usage], prices: Mapping[str, Price]) -> float:
    """What models cost together; one without a price costs nothing."""
    return sum(prices[m].of(usage) for m, usage in usage_by_model.items() if m in prices)


class Budget:
    """What the agent that began a run allows it."""

    def __init__(self, agent: "Agent", record: Record) -> None:
        self._agent = agent
        self._record = record
        self.n_before = len(record.steps)
        self._n_priced = 0
        self._own_cost = 0.0

    def reached(self) -> tuple[RunStopReason, str, float] | None:
        """The limit that is reached, if one is: stop reason, name and value."""
        agent, record = self._agent, self._record
        if len(record.steps) - self.n_before >= agent.max_steps:
            return "step_limit", "max_steps", agent.max_steps
        if agent.max_tokens is not None:
            usage = record.total_usage
            if usage.input_tokens + usage.output_tokens >= agent.max_tokens:
                return "token_limit", "max_tokens", agent.max_tokens
        if agent.max_cost is not None and self._cost() >= agent.max_cost:
            return "cost_limit", "max_cost", agent.max_cost
        return None

    def _cost(self) -> float:
        """What the run and its children cost so far; each step is counted once."""
        prices = self._agent.prices
        for step in self._record.steps[self._n_priced :]:
            completion = step.completion
            self._own_cost += cost_of({completion.model: completion.usage}, prices)
        self._n_priced = len(self._record.steps)
        children = (split_usage(c, lambda s: s.completion.model) for c in self._record.children)
        return self._own_cost + sum(cost_of(usage, prices) for usage in children)
