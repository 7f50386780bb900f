"""Plan and execute: a planner writes tasks, they run as soon as they can, a joiner answers.

Sources: Plan-and-Solve (arXiv 2305.04091), ReWOO (arXiv 2305.18323), LLMCompiler (arXiv
2312.04511).  The last two are settings here, not classes: how the planner writes, whether tasks
start while it still does, and how often it may plan anew.

How a run of it goes is in `_plan_course.py`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias

from antiphon.agent import Agent, Runnable
from antiphon.agent._course import Course
from antiphon.agent._start import Start
from antiphon.agent._telling import Shown
from antiphon.errors import UsageError
from antiphon.models import Model, Price
from antiphon.strategies._dialects import Dialect
from antiphon.strategies._plan import Plan
from antiphon.strategies._plan_course import PlanCourse
from antiphon.strategies._schedule import OnFailure
from antiphon.strategies._strategy import Strategy

Opinion: TypeAlias = bool | str | Plan
"""What a person says of a plan: True runs it, a Plan runs that instead, a text says why not and has
the planner plan anew, False ends the run."""

Review: TypeAlias = Callable[[Plan], Opinion | Awaitable[Opinion]]
"""Asked about each plan before it runs."""

Watch: TypeAlias = Callable[[Plan], Opinion | Awaitable[Opinion | None] | None]
"""Shown the plan after each task; ``None`` lets it go on."""


@dataclass(frozen=True)
class PlanAndExecute(Strategy):
    """A planner, executors and a joiner around one agent.

    >>> from antiphon.models import ScriptedModel
    >>> from antiphon.tools import tool
    >>> @tool(threaded=False)
    ... def double(n: int) -> int:
    ...     "Twice a number."
    ...     return 2 * n
    >>> plan = '{"tasks": [{"id": "a", "tool": "double", "arguments": {"n": 4}}]}'
    >>> agent = Agent(model=ScriptedModel([plan, "8 it is."]), tools=[double])
    >>> PlanAndExecute(agent).run_sync("Twice 4?").output
    '8 it is.'
    """

    agent: Agent
    """Whose tools tasks call, and who does tasks in words; its model plans and joins, too."""
    _: KW_ONLY
    name: str = "plan"
    """Who the record says it is."""
    description: str = ""
    """What it is for, as agents that may ask it read it."""
    planner: Agent | Model | str | None = None
    """Who plans, where it is not the agent's model."""
    joiner: Agent | Model | str | None = None
    """Who answers from the results, where it is not the agent's model."""
    agents: Sequence[Runnable] = ()
    """Others that a task in words may be given to, by name."""
    dialect: Dialect = "json"
    """How the planner writes: ``json``, ``rewoo`` or ``llmcompiler``."""
    streaming: bool = False
    """Whether tasks start while the planner still writes."""
    max_parallel: int = 8
    """How many tasks may run at once."""
    max_replans: int = 2
    """How often the planner may plan anew after a failure, or when the joiner asks for it."""
    max_plan_repairs: int = 1
    """How often the planner may mend a plan that is none."""
    max_tasks: int = 20
    """The most tasks of one plan."""
    max_attempts: int = 1
    """How often a call that failed is made, before its task has failed."""
    task_timeout: float | None = None
    """Seconds until a task has failed."""
    on_failure: OnFailure = "continue"
    """Whether what does not need a failed task goes on before the planner is asked again."""
    replan: Literal["on_failure", "each_task"] = "on_failure"
    """When the planner plans anew: after failures, or after each task."""
    review: Review | None = None
    """A person, asked about each plan before it runs."""
    watch: Watch | None = None
    """A person, shown the plan after each task."""
    result_tokens: int = 1000
    """The most that planner, joiner and executors are shown of one result, in tokens."""
    max_steps: int | None = None
    """The most model calls of all parts together; no further one begins beyond it."""
    max_tokens: int | None = None
    """The most tokens, read and written, of all parts together; likewise."""
    max_cost: float | None = None
    """The most that all parts together may cost by `prices`; likewise."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What models cost, by the name that a completion gives its model."""
    on_limit: Literal["stop", "answer"] = "stop"
    """Whether a run at `max_steps` ends, or keeps its last model call for an answer from what was
    found."""
    timeout: float | None = None
    """Seconds until the run is stopped."""

    def __post_init__(self) -> None:
        self.check_limits()
        for limit in ("max_parallel", "max_tasks", "max_attempts"):
            if getattr(self, limit) < 1:
                raise UsageError(f"{limit} of {self.name!r} is {getattr(self, limit)}; 1 or more")
        for limit in ("max_replans", "max_plan_repairs"):
            if getattr(self, limit) < 0:
                raise UsageError(f"{limit} of {self.name!r} is {getattr(self, limit)}; 0 or more")
        object.__setattr__(self, "agents", tuple(self.agents))
        names = [one.name for one in self.agents]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"{self.name!r} has two agents named {twice!r}; rename one")

    @classmethod
    def rewoo(cls, agent: Agent, **options: Any) -> "PlanAndExecute":
        """ReWOO: one plan, no model between the calls, one answer.

        Args:
            agent: Whose tools are called.
            options: Further settings.
        """
        settings: dict[str, Any] = {"dialect": "rewoo", "max_replans": 0}
        return cls(agent, **(settings | options))

    @classmethod
    def compiler(cls, agent: Agent, **options: Any) -> "PlanAndExecute":
        """LLMCompiler: calls start while the plan is still being written.

        Args:
            agent: Whose tools are called.
            options: Further settings.
        """
        settings: dict[str, Any] = {"dialect": "llmcompiler", "streaming": True}
        return cls(agent, **(settings | options))

    @property
    def root(self) -> Agent:
        """The agent that the strategy is built around."""
        return self.agent

    def course(self, start: Start, shown: Shown) -> Course:
        """How a run of it goes."""
        return PlanCourse(self, start, shown)
