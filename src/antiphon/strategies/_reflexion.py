"""Reflexion: try, be judged, reflect on what went wrong, and try again with that in mind.

Source: Shinn et al., Reflexion (arXiv 2303.11366).  An attempt begins with nothing of the one
before but what was learned from it; the attempts themselves are kept in the record.  How a run of
it goes is in `_reflexion_course.py`.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import TypeAlias

from antiphon.agent import Agent, Runnable
from antiphon.agent._course import Course
from antiphon.agent._start import Start
from antiphon.agent._telling import Shown
from antiphon.errors import UsageError
from antiphon.models import Model, Price
from antiphon.strategies._evaluators import Evaluator
from antiphon.strategies._reflexion_course import ReflexionCourse
from antiphon.strategies._strategy import Strategy

Reset: TypeAlias = Callable[[], object | Awaitable[object]]
"""Puts the world back as it was before an attempt."""


@dataclass(frozen=True)
class Reflexion(Strategy):
    """An actor that is judged and learns from its failed attempts.

    >>> from antiphon.models import ScriptedModel
    >>> from antiphon.strategies import exact
    >>> model = ScriptedModel(["Sydney", "The largest city need not be the capital.", "Canberra"])
    >>> result = Reflexion(Agent(model=model), exact("Canberra")).run_sync("Capital of Australia?")
    >>> result.output
    'Canberra'
    """

    actor: Runnable
    """Who tries: an agent, or another strategy."""
    evaluator: Evaluator
    """Who judges an attempt."""
    _: KW_ONLY
    name: str = "reflexion"
    """Who the record says it is."""
    description: str = ""
    """What it is for, as agents that may ask it read it."""
    max_attempts: int = 3
    """The most attempts."""
    max_reflections: int = 3
    """How many reflections an attempt is shown; the oldest are forgotten first."""
    reflection_tokens: int = 400
    """The most that is kept of one reflection, in tokens."""
    reflector: Agent | Model | str | None = None
    """Who reflects, where it is not the actor's model."""
    reflect: bool = True
    """Whether there is reflection at all; without it this is plain retrying, to compare with."""
    show_last_attempt: bool = False
    """Whether an attempt is shown the answer of the one before, too."""
    reset: Reset | None = None
    """Undoes what an attempt did outside, before the next one; needed where a tool may do anything
    there, that is where one is not marked ``idempotent``."""
    max_steps: int | None = None
    """The most model calls of all parts together; no further one begins beyond it."""
    max_tokens: int | None = None
    """The most tokens, read and written, of all parts together; likewise."""
    max_cost: float | None = None
    """The most that all parts together may cost by `prices`; likewise."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What models cost, by the name that a completion gives its model."""
    timeout: float | None = None
    """Seconds until the run is stopped."""

    def __post_init__(self) -> None:
        self.check_limits()
        if self.max_attempts < 1 or self.max_reflections < 1:
            raise UsageError(
                f"max_attempts and max_reflections of {self.name!r} must be 1 or more, got "
                f"{self.max_attempts} and {self.max_reflections}"
            )
        if self.reset is None and self.max_attempts > 1:
            acting = [item.name for item in self.root.own_tools if not item.idempotent]
            if acting:
                raise UsageError(
                    f"{self.name!r} tries again, and tool {acting[0]!r} may have done something "
                    "outside; mark it idempotent, or give reset=..."
                )

    @property
    def root(self) -> Agent:
        """The agent that the strategy is built around."""
        return self.actor.root

    def course(self, start: Start, shown: Shown) -> Course:
        """How a run of it goes."""
        return ReflexionCourse(self, start, shown)
