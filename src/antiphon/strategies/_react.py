"""ReAct over any model: think, act, observe, to a final answer or a limit.

Source: Yao et al., ReAct (arXiv 2210.03629).  There is no second loop: this is an agent's run with
the settings that ReAct needs.  A model named by its spec writes its calls as ReAct text; where it
goes on to invent an observation it is cut off, and a call without its input is mended (both are the
work of the format).  A model that repeats itself is told so, then stopped.
"""

from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Literal

from antiphon.agent import Agent
from antiphon.agent._course import Course
from antiphon.agent._loop import Loop
from antiphon.agent._start import Start
from antiphon.agent._telling import Shown
from antiphon.errors import UsageError
from antiphon.strategies._strategy import Strategy


@dataclass(frozen=True)
class ReAct(Strategy):
    """An agent that reasons and acts in turn; its limits are the agent's.

    >>> from antiphon.models import ScriptedModel
    >>> text = "Thought: I know it.\\nFinal Answer: 4"
    >>> ReAct(Agent(model=ScriptedModel([text], format="react_en"))).run_sync("2 + 2?").output
    '4'
    """

    agent: Agent
    """Who acts."""
    _: KW_ONLY
    name: str = "react"
    """Who the record says it is, where it is asked as a tool."""
    description: str = ""
    """What it is for, as agents that may ask it read it."""
    format: str = "react_en"
    """How a model that is named by its spec writes calls; empty for its own way."""
    max_repeats: int = 5
    """How often in a row the same call may have the same result; told of it two times before."""
    on_limit: Literal["stop", "answer"] = "stop"
    """Whether a run at its step limit ends, or asks once more for an answer without tools."""
    _root: Agent = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.max_repeats < 3:
            raise UsageError(f"max_repeats of {self.name!r} is {self.max_repeats}; 3 or more")
        model = self.agent.model
        if isinstance(model, str) and self.format and "format=" not in model:
            model = f"{model}{'&' if '?' in model else '?'}format={self.format}"
        made = replace(
            self.agent, model=model, max_repeats=self.max_repeats, on_limit=self.on_limit
        )
        object.__setattr__(self, "_root", made)

    @property
    def root(self) -> Agent:
        """The agent with ReAct's settings."""
        return self._root

    def course(self, start: Start, shown: Shown) -> Course:
        """How a run of it goes: as any agent's."""
        return Loop(start, shown)
