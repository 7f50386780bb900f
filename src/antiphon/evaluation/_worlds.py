"""Cases that end in a state: an agent talks through several turns, and its world is looked at.

What a case knows is in a `World` (its tools and its state) and in what the user says; this module
runs an agent through the turns and keeps what its tools answered.  It knows no benchmark.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from antiphon.agent import Agent
from antiphon.errors import ModelError
from antiphon.evaluation._cases import Outcome
from antiphon.evaluation._run import Mode
from antiphon.messages import Conversation, Message
from antiphon.models import Model, ModelOutput, ModelSettings
from antiphon.tools import Tool


class World(Protocol):
    """Tools that share a state."""

    def tools(self) -> Sequence[Tool[..., Any]]:
        """The tools; they change this world."""
        ...

    def state(self) -> Any:
        """The state, as something that can be compared."""
        ...


NextTurn = Callable[[Sequence[Message]], Awaitable[str]]
"""What the user says next; empty where the conversation is over."""


@dataclass(slots=True)
class Talk:
    """An agent and a user, under way."""

    mode: Mode
    """The model and how it is asked."""
    instructions: str = ""
    """The agent's system message."""
    max_steps: int = 20
    """The most model calls of a turn."""
    history: Sequence[Message] = ()
    """What was said so far."""
    answers: list[str] = field(default_factory=list[str])
    """What the agent said at the end of each turn."""
    seconds: float = 0.0
    """Time of all turns."""

    async def turn(
        self, text: str, tools: Sequence[Tool[..., Any]], *, hidden: Collection[str] = ()
    ) -> str:
        """One turn.

        Args:
            text: What the user says.
            tools: What may be called.
            hidden: Names of tools that the model is not shown, and that answer all the same.

        Returns:
            Why the turn came to no answer; empty where it did.

        Raises:
            ModelError: The model cannot be asked.
        """
        began = time.monotonic()
        agent = Agent(
            model=_Unshown(self.mode.model, hidden) if hidden else self.mode.model,
            instructions=self.instructions,
            settings=self.mode.settings,
            tools=tools,
            max_steps=self.max_steps,
        )
        result = await agent.run(text, history=self.history)
        self.seconds += time.monotonic() - began
        if isinstance(result.error, ModelError):
            raise result.error
        self.history = result.messages
        self.answers.append(result.text)
        return "" if result.stop_reason == "answer" else result.stop_reason

    def outcome(self, case: str, kind: str, *, turn: int = 0, error: str = "") -> Outcome:
        """How the case went, with what was said last."""
        wrote = self.answers[-1] if self.answers and error else ""
        return Outcome(case, kind, not error, error, turn, wrote, self.seconds)


@dataclass(frozen=True, slots=True)
class _Unshown:
    """A model that is not shown some of the tools; it belongs to others and stays open."""

    model: Model
    hidden: Collection[str]

    @property
    def spec(self) -> str:
        return self.model.spec

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        shown = tuple(spec for spec in conversation.tools if spec.name not in self.hidden)
        async for output in self.model.stream(replace(conversation, tools=shown), settings):
            yield output

    async def close(self) -> None:
        pass


if TYPE_CHECKING:
    _model: type[Model] = _Unshown


def state_error(got: Any, wanted: Any) -> str:
    """``wrong_state`` where two states differ; empty where they do not."""
    return "" if got == wanted else "wrong_state"


def missing_texts(wanted: Sequence[str], answers: Sequence[str]) -> list[str]:
    """The texts that no answer has, whatever their case."""
    said = "\n".join(answers).lower()
    return [text for text in wanted if text.lower() not in said]
