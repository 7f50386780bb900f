"""What an Agent is: instructions, a model, tools, and whom it may hand over to.

An Agent is a value: it opens nothing and remembers nothing.  What one execution needs and makes is
a `Run` (`_run.py`).  This module does not know how a run goes; see `_loop.py`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias, cast

from antiphon.agent._course import Course
from antiphon.agent._hooks import Guardrail, Hooks
from antiphon.agent._loop import Loop
from antiphon.agent._output import FINAL_TOOL, OutputMode
from antiphon.agent._recall import Recall
from antiphon.agent._runnable import Runnable
from antiphon.agent._select import Retrieve
from antiphon.agent._start import Start
from antiphon.agent._telemetry import Telemetry
from antiphon.agent._telling import Shown
from antiphon.errors import UsageError, clip
from antiphon.memory import Compaction, Observations
from antiphon.messages import Message
from antiphon.models import Model, ModelSettings, Price
from antiphon.tools import RunContext, Tool, ToolIndex, tool

Instructions: TypeAlias = str | Callable[[RunContext[Any]], str | Awaitable[str]]
"""What an agent is told: text, or a function of the run's context, asked before each step."""

InputFilter: TypeAlias = Callable[[tuple[Message, ...]], Sequence[Message]]
"""What the next agent is shown of the conversation so far, without system messages."""


@dataclass(frozen=True, slots=True)
class Handoff:
    """Another agent, or a strategy, that may take over, with options."""

    agent: "Runnable | Callable[[], Runnable]"
    """Who takes over; a function where two agents name each other."""
    name: str = ""
    """The tool's name; ``transfer_to_<agent>`` where empty."""
    description: str = ""
    """What the model reads; made from the agent's own description where empty."""
    input_filter: InputFilter | None = None
    """What the next agent is shown; everything without one."""

    def target(self) -> Runnable:
        """Who takes over.

        Raises:
            UsageError: The function returned something else.
        """
        agent = self.agent if isinstance(self.agent, Runnable) else self.agent()
        if not isinstance(agent, Runnable):  # pyright: ignore[reportUnnecessaryIsInstance] - a caller's function
            raise UsageError(f"a handoff needs an agent or a strategy, got {clip(agent)}")
        return agent


@dataclass(frozen=True, kw_only=True)
class Agent(Runnable):
    """Instructions, a model, tools and handoffs.

    >>> from antiphon.models import ScriptedModel
    >>> clerk = Agent(name="clerk", model=ScriptedModel(["Good morning."]))
    >>> clerk.run_sync("Hello").output
    'Good morning.'
    """

    name: str = "agent"
    """Who speaks; handoffs and records call it by this."""
    instructions: Instructions = ""
    """What it is told before everything else."""
    model: str | Model = "local"
    """A model's spec, opened by each run for itself; or a Model, which the caller closes."""
    tools: Sequence[Tool[..., Any] | Callable[..., Any]] = ()
    """What it may call: tools or plain functions. One that returns an Agent hands over to it."""
    handoffs: "Sequence[Runnable | Handoff | Callable[[], Runnable]]" = ()
    """Agents that may take over, and strategies, whose answer ends the run; each becomes a tool
    ``transfer_to_<name>``."""
    description: str = ""
    """What it is for, as agents that may hand over to it read it."""
    settings: ModelSettings = field(default_factory=ModelSettings)
    """How completions are sampled."""
    final_tools: Sequence[str] = ()
    """Names of tools whose result ends the run and is its output."""
    output_type: Any = str
    """What the answer must be, as any type that pydantic knows."""
    output_mode: OutputMode = "tool"
    """How the model is told of `output_type`."""
    hooks: Sequence[Hooks] = ()
    """Functions called around models, tools and handoffs."""
    guardrails: Sequence[Guardrail] = ()
    """Checks of the question and of the answer."""
    max_steps: int = 20
    """The most model calls of a run that begins with this agent."""
    on_limit: Literal["stop", "answer"] = "stop"
    """Whether a run at `max_steps` ends, or asks once more for an answer without tools."""
    max_handoffs: int = 10
    """The most handoffs of such a run."""
    max_tokens: int | None = None
    """The most tokens, read and written, of such a run; no further step begins beyond it."""
    max_cost: float | None = None
    """The most such a run may cost by `prices`; no further step begins beyond it."""
    prices: Mapping[str, Price] = field(default_factory=dict[str, Price])
    """What models cost, by the name that a completion gives its model."""
    telemetry: Telemetry | None = None
    """Where spans and metrics of its runs go, and of those inside them; nowhere by default."""
    compaction: Compaction | None = None
    """When and how to show the model less of a long conversation."""
    memory: Recall | None = None
    """What it recalls of earlier conversations, and what it may remember for later ones."""
    select: Retrieve | None = None
    """How the tools that the model is shown are chosen, where there are many."""
    observations: Observations | None = None
    """How much the model is shown of what tools return; the rest it reads by ``read_result``."""
    insert_results: bool = False
    """Whether ``{{result:CALL_ID}}`` in an answer is replaced by that call's whole result."""
    max_repeats: int | None = None
    """How often in a row the same call may have the same result before the run ends as ``stuck``;
    the model is told so two times before.  ``None`` for any number, as tools that poll need."""
    max_mends: int = 3
    """How often in a row a reply that was cut, empty or of the wrong type is asked for again."""
    timeout: float | None = 600.0
    """Seconds until such a run is stopped; ``None`` waits for ever."""

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("an agent needs a name, got ''; for example Agent(name='clerk')")
        for limit in ("max_steps", "max_handoffs", "max_mends"):
            if getattr(self, limit) < (1 if limit == "max_steps" else 0):
                raise UsageError(f"{limit} of agent {self.name!r} is {getattr(self, limit)}")
        if self.max_repeats is not None and self.max_repeats < 3:
            raise UsageError(f"max_repeats of agent {self.name!r} is {self.max_repeats}; 3 or more")
        made = tuple(as_tool(item) for item in self.tools)
        object.__setattr__(self, "tools", made)
        given = tuple(h if isinstance(h, Handoff) else Handoff(h) for h in self.handoffs)
        object.__setattr__(self, "handoffs", given)
        for field_name in ("final_tools", "hooks", "guardrails"):
            object.__setattr__(self, field_name, tuple(getattr(self, field_name)))
        self._check_names(made)
        for name in () if self.select is None else self.select.always:
            if all(item.name != name for item in made):
                raise UsageError(
                    f"select of agent {self.name!r} shows {name!r} always, which is no tool of it"
                )

    def _check_names(self, tools: tuple[Tool[..., Any], ...]) -> None:
        names = [item.name for item in tools]
        if self.output_type is not str and self.output_mode == "tool":
            names.append(FINAL_TOOL)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(
                f"agent {self.name!r} has two tools named {twice!r}; "
                "rename one: tool(function, name=...)"
            )
        for name in self.final_tools:
            if name not in names:
                raise UsageError(
                    f"final_tools of agent {self.name!r} names {name!r}; its tools: "
                    f"{', '.join(names) or 'none'}"
                )

    @property
    def own_tools(self) -> tuple[Tool[..., Any], ...]:
        """`tools`, each as a Tool."""
        return cast("tuple[Tool[..., Any], ...]", self.tools)

    @cached_property
    def tool_index(self) -> ToolIndex:
        """An index over `tools`, made when it is first used."""
        return ToolIndex(self.own_tools)

    @property
    def own_handoffs(self) -> tuple[Handoff, ...]:
        """`handoffs`, each as a Handoff."""
        return cast("tuple[Handoff, ...]", self.handoffs)

    @property
    def root(self) -> "Agent":
        """The agent itself."""
        return self

    def course(self, start: Start, shown: Shown) -> Course:
        """How a run of it goes."""
        return Loop(start, shown)


def as_tool(item: Tool[..., Any] | Callable[..., Any]) -> Tool[..., Any]:
    """A tool, or a function made one."""
    return cast("Tool[..., Any]", item) if isinstance(item, Tool) else tool(item)
