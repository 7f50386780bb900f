"""A routine with a handoff in its smallest form: a tool that returns an Agent.

The first agent's routine says when to pass on; the function is the handoff.  Answers are scripted,
so that it runs anywhere; put ``model="local"`` or another spec in their place to ask a model.

    python examples/handoff.py
"""

from antiphon import Agent, Message, ScriptedModel, ToolCall
from antiphon.agent import RunResult


def execute_refund(item: str) -> str:
    """Refund an item.

    Args:
        item: What was bought.
    """
    return f"refunded: {item}"


refunds = Agent(
    name="refunds",
    instructions="Ask what was bought where it is not clear, then refund it.",
    tools=[execute_refund],
    model=ScriptedModel(
        [
            Message.assistant(tool_calls=[ToolCall("execute_refund", {"item": "the kettle"})]),
            "Your kettle is refunded.",
        ]
    ),
)


def transfer_to_refunds() -> Agent:
    """Pass on everyone who wants money back."""
    return refunds


triage = Agent(
    name="triage",
    instructions="Find out what the customer needs and pass them on.",
    tools=[transfer_to_refunds],
    model=ScriptedModel([Message.assistant(tool_calls=[ToolCall("transfer_to_refunds", {})])]),
)


def main() -> RunResult:
    """One question; the run ends with another agent than it began with."""
    result = triage.run_sync("My kettle leaks, I want my money back.")
    print(f"{result.agent.name}: {result.output}")
    return result


if __name__ == "__main__":
    main()
