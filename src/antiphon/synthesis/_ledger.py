"""What a synthesis has spent, and when that is too much.

Rows say what they cost, so that what earlier runs spent is known again; a model call whose row was
never finished is not counted.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from antiphon.messages import Usage
from antiphon.models import Price
from antiphon.synthesis._config import LimitsConfig


@dataclass(slots=True)
class Ledger:
    """What was spent, of all stages and earlier runs together, and whether that is too much."""

    limits: LimitsConfig = field(default_factory=LimitsConfig)
    """The limits."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What models cost."""
    usage: dict[str, Usage] = field(default_factory=dict[str, Usage])
    """By the name that each model gives itself."""
    kinds: Counter[str] = field(default_factory=Counter[str])
    """How many rows there are of each kind and outcome."""
    began: float = field(default_factory=monotonic)
    """When this run began."""

    @property
    def total(self) -> Usage:
        """Everything together."""
        return sum(self.usage.values(), Usage())

    @property
    def cost(self) -> float:
        """What it cost, of the models that have a price."""
        return sum(self.prices[m].of(used) for m, used in self.usage.items() if m in self.prices)

    def add(self, usage: Mapping[str, Any]) -> None:
        """Count what a row says that it cost."""
        for model, row in usage.items():
            used = Usage(
                row["input_tokens"], row["output_tokens"], row["cached_tokens"], row["calls"]
            )
            self.usage[model] = self.usage.get(model, Usage()) + used

    def reason(self) -> str:
        """Which limit is reached; empty where none is."""
        total, limits = self.total, self.limits
        spent: list[tuple[str, float, float | None]] = [
            ("calls", total.n_requests, limits.calls),
            ("tokens", total.input_tokens + total.output_tokens, limits.tokens),
            ("cost", self.cost, limits.cost),
            ("seconds", monotonic() - self.began, limits.seconds),
        ]
        for name, amount, limit in spent:
            if limit is not None and amount >= limit:
                return f"limits.{name} is {limit:g}, and {amount:g} are spent"
        return ""
