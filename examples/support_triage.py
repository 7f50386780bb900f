"""ACME's support desk: routines, handoffs there and back, state that no model sees, consent.

Each agent's instructions are a routine: numbered steps and when to pass on.  Triage hands over to
sales or repairs; both may hand back.  What the customer has bought is `RunContext.state`: tools
read and change it, models never see it.  Money goes back only when a person agrees.

Answers are scripted, so that it runs anywhere; put ``model="local"`` or another spec in their
place.

    python examples/support_triage.py
"""

from typing import Any

from antiphon import Agent, Message, ScriptedModel, ToolCall, tool
from antiphon.agent import RunResult
from antiphon.tools import RunContext

PRICES = {"rocket skates": 120, "portable hole": 90, "iron bird seed": 15}


@tool
def look_up_item(context: RunContext[Any], words: str) -> str:
    """Find an item of the customer's orders or of the catalog.

    Args:
        words: What the customer calls it.
    """
    known = [*context.state["bought"], *PRICES]
    found = next((name for name in known if set(words.lower().split()) & set(name.split())), "")
    return f"{found}, ${PRICES[found]}" if found else f"nothing is called {words!r}"


@tool(approval=True)
def execute_refund(context: RunContext[Any], item: str, reason: str) -> str:
    """Give back what an item cost.

    Args:
        item: The item, as look_up_item names it.
        reason: Why.
    """
    context.state["bought"].remove(item)
    return f"refunded ${PRICES[item]} for {item}"


@tool
def execute_order(context: RunContext[Any], item: str) -> str:
    """Order an item of the catalog.

    Args:
        item: The item, as look_up_item names it.
    """
    context.state["bought"].append(item)
    return f"ordered {item} for ${PRICES[item]}"


def calls(text: str = "", **arguments: Any) -> Message:
    """What a scripted model writes to call a tool."""
    name = arguments.pop("tool")
    return Message.assistant(text, tool_calls=[ToolCall(name, arguments)])


def desk() -> Agent:
    """The desk; a customer meets triage first."""
    triage = Agent(
        name="triage",
        description="Finds out what a customer needs.",
        instructions="You are the first voice of ACME. 1. Greet, in one sentence. 2. Find out "
        "whether it is about buying or about something that is broken. 3. Hand over. Never "
        "promise anything.",
        handoffs=[lambda: sales, lambda: repairs],
        model=ScriptedModel(
            [calls(tool="transfer_to_repairs"), calls(tool="transfer_to_sales")],
        ),
    )
    sales = Agent(
        name="sales",
        description="Sells what is in the catalog.",
        instructions="1. Find the item. 2. Name its price. 3. Order it only after the customer has "
        "agreed to the price. 4. Anything else: hand back to triage.",
        tools=[look_up_item, execute_order],
        handoffs=[triage],
        model=ScriptedModel(
            [
                calls(tool="look_up_item", words="hole"),
                "A portable hole is $90. Shall I order it?",
                calls(tool="execute_order", item="portable hole"),
                "Your portable hole is on its way.",
            ]
        ),
    )
    repairs = Agent(
        name="repairs",
        description="Mends or refunds what is broken.",
        instructions="1. Find the item. 2. Offer a repair first. 3. Where the customer wants the "
        "money, refund it. 4. Anything else: hand back to triage.",
        tools=[look_up_item, execute_refund],
        handoffs=[triage],
        model=ScriptedModel(
            [
                calls(tool="look_up_item", words="skates"),
                "I am sorry about the skates. Shall we mend them, or do you want your money back?",
                calls(tool="execute_refund", item="rocket skates", reason="they never stop"),
                "You have $120 back.",
                calls(tool="transfer_to_triage"),
            ]
        ),
    )
    return triage


QUESTIONS = (
    "My rocket skates never stop!",
    "I want my money back.",
    "Good. And I could use a hole.",
    "Yes, please.",
)


def main() -> list[RunResult]:
    """Four questions; whoever spoke last is asked next, and hands over where it must."""
    agent, history = desk(), ()
    state: dict[str, Any] = {"bought": ["rocket skates"]}
    results: list[RunResult] = []
    for question in QUESTIONS:
        print(f"customer: {question}")
        result = agent.run(question, history=history, state=state, approve=consent).wait()
        print(f"{result.agent.name}: {result.output}")
        agent, history = result.agent, result.messages
        results.append(result)
    print(f"bought: {state['bought']}")
    return results


def consent(call: ToolCall) -> bool:
    """Stands for a person who looks at each refund: small ones pass."""
    print(f"  (a person agrees to {call.name} of {call.arguments['item']})")
    return PRICES[str(call.arguments["item"])] <= 150


if __name__ == "__main__":
    main()
