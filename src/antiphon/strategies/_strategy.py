"""What every strategy is: a way of reaching a goal with agents, which may be run as an agent is.

Wherever this library takes "an agent or a strategy" (a plan's task, an attempt, a tool, a handoff)
it takes a `Runnable`.  What a strategy adds to that are limits that hold over all its parts.
"""

from collections.abc import Mapping

from antiphon.agent import Runnable
from antiphon.agent._cost import Budget
from antiphon.errors import UsageError
from antiphon.models import Price


class Strategy(Runnable):
    """A way of reaching a goal with agents."""

    max_steps: int | None = None
    """The most model calls of all parts together; no further one begins beyond it."""
    max_tokens: int | None = None
    """The most tokens, read and written, of all parts together; likewise."""
    max_cost: float | None = None
    """The most that all parts together may cost by `prices`; likewise."""
    prices: Mapping[str, Price] = {}
    """What models cost, by the name that a completion gives its model."""
    timeout: float | None = None
    """Seconds until the run is stopped."""

    def budget(self) -> Budget:
        """What a run of it may use."""
        return Budget(self.max_steps, self.max_tokens, self.max_cost, self.prices)

    def check_limits(self) -> None:
        """Refuse limits that let nothing happen.

        Raises:
            UsageError: One does.
        """
        for limit in ("max_steps", "max_tokens", "max_cost"):
            value = getattr(self, limit)
            if value is not None and value <= 0:
                raise UsageError(f"{limit} of {self.name!r} is {value}; more than 0, or None")
