"""What one agent may call in a run: its tools, and a tool for each handoff."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from antiphon.agent._output import Output
from antiphon.agent._select import Selection
from antiphon.errors import UsageError
from antiphon.messages import JsonObject, ToolSpec
from antiphon.tools import Tool, tool, valid_name

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent, Handoff, InputFilter
    from antiphon.agent._runnable import Runnable


@dataclass(slots=True)
class Offer:
    """An agent's tools by name, as a run uses them."""

    tools: dict[str, Tool[..., Any]] = field(default_factory=dict[str, Tool[..., Any]])
    """Every tool, in the order shown."""
    selection: Selection | None = None
    """Chooses what is shown, where the agent has more tools than that."""
    output: Output | None = None
    """The type of the answer, where it is not text."""
    handoffs: "dict[str, Runnable]" = field(default_factory=dict[str, Any])
    """By the name of the tool that only hands over: who takes over."""
    filters: "dict[str, InputFilter]" = field(default_factory=dict[str, Any])
    """By the handoff tool's name: what the next agent is shown."""
    _specs: tuple[ToolSpec, ...] = ()

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What the model sees of the tools, which may become more."""
        if len(self._specs) != len(self.tools):
            self._specs = tuple(item.spec for item in self.tools.values())
        return self._specs

    @classmethod
    def of(cls, agent: "Agent") -> "Offer":
        """An agent's offer.

        Raises:
            UsageError: A handoff has the name of a tool, or its function returns no agent.
        """
        own = {item.name: item for item in agent.own_tools}
        offer = cls()
        if agent.select is not None and len(own) > agent.select.threshold:
            index = agent.select.index or agent.tool_index
            offer.selection = Selection(agent.select, own, index, offer.tools)
        else:
            offer.tools.update(own)
        for handoff in agent.own_handoffs:
            offer.add(handoff, agent.name)
        if agent.output_type is not str:
            offer.output = Output(agent.output_type, agent.output_mode)
            if offer.output.tool is not None:
                offer.tools[offer.output.tool.name] = offer.output.tool
        return offer

    def text(self, value: Any) -> str:
        """An answer as text, for the record."""
        return str(value) if self.output is None else self.output.text(value)

    def add(self, handoff: "Handoff", agent: str) -> None:
        """Offer a handoff as a tool."""
        target = handoff.target()
        name = handoff.name or valid_name(f"transfer_to_{target.name}")
        if name in self.tools:
            raise UsageError(
                f"agent {agent!r} has a tool and a handoff, or two handoffs, named {name!r}; "
                "name one: Handoff(agent, name=...)"
            )
        about = handoff.description or (
            f"Hand the conversation over to {target.name}. {target.description}".strip()
        )

        def transfer() -> Any:
            return target

        # An agent goes on in this run; what a strategy has done is known when it is over.
        harmless = target.root is target or all(t.idempotent for t in target.root.own_tools)
        self.tools[name] = tool(
            transfer, name=name, description=about, threaded=False, idempotent=harmless
        )
        self.handoffs[name] = target
        if handoff.input_filter is not None:
            self.filters[name] = handoff.input_filter


def agent_row(agent: "Agent", model: str, offer: Offer) -> JsonObject:
    """What the record says of an agent that took part."""
    told = agent.instructions if isinstance(agent.instructions, str) else "(a function)"
    return {
        "name": agent.name,
        "instructions": told,
        "model": model,
        "tools": list(offer.tools),
        "description": agent.description,
    }
