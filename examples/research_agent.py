"""A research agent with more than a hundred tools, of which the model is shown three.

The tools are in a `Toolbox`.  The model looks for what it needs with ``search_tools`` and calls
what it found with ``use_tool``; a calculator is always at hand.  So a prompt stays short however
many tools there are, and the same prefix is sent at each step.

The model's answers are scripted, the searches are not: change a description and see what is found.

    python examples/research_agent.py
"""

from typing import Any

from antiphon import Agent, Message, ScriptedModel, Tool, ToolCall, tool
from antiphon.agent import RunResult
from antiphon.tools import Toolbox
from antiphon.tools.builtin import calculator

METRES = {
    "metres": 1.0,
    "feet": 0.3048,
    "inches": 0.0254,
    "yards": 0.9144,
    "miles": 1609.344,
    "kilometres": 1000.0,
    "nautical_miles": 1852.0,
    "light_years": 9.4607e15,
}
KILOGRAMS = {
    "kilograms": 1.0,
    "grams": 0.001,
    "pounds": 0.45359237,
    "ounces": 0.028349523125,
    "stones": 6.35029318,
    "tonnes": 1000.0,
    "carats": 0.0002,
    "grains": 6.479891e-05,
}
DENSITIES = {"gold": 19_300, "iron": 7_870, "lead": 11_340, "silver": 10_490, "copper": 8_960}
MELTING = {"gold": 1064, "iron": 1538, "lead": 327, "silver": 962, "copper": 1085}


def converter(source: str, target: str, factor: float) -> Tool[..., Any]:
    """A tool that converts one unit into another."""

    def convert(amount: float) -> float:
        return amount * factor

    words = (source.replace("_", " "), target.replace("_", " "))
    return tool(
        convert,
        name=f"convert_{source}_to_{target}",
        description=f"Convert {words[0]} to {words[1]}.",
    )


@tool
def density_of_metal(metal: str) -> str:
    """Density of a metal in kilograms per cubic metre.

    Args:
        metal: Its English name, e.g. "copper".
    """
    return f"{DENSITIES[metal.lower()]} kg/m3"


@tool
def melting_point_of_metal(metal: str) -> str:
    """Temperature at which a metal melts, in degrees Celsius.

    Args:
        metal: Its English name, e.g. "copper".
    """
    return f"{MELTING[metal.lower()]} °C"


def all_tools() -> list[Tool[..., Any]]:
    """Every conversion there is, and two tables of metals."""
    converters = [
        converter(a, b, units[a] / units[b])
        for units in (METRES, KILOGRAMS)
        for a in units
        for b in units
        if a != b
    ]
    return [*converters, density_of_metal, melting_point_of_metal]


def find(words: str) -> Message:
    """What the scripted model writes to look for tools."""
    return Message.assistant(tool_calls=[ToolCall("search_tools", {"query": words})])


def use(name: str, **arguments: Any) -> Message:
    """What it writes to call one that it found."""
    call = ToolCall("use_tool", {"name": name, "arguments": arguments})
    return Message.assistant(tool_calls=[call])


REPLIES = [
    find("how dense is a metal"),
    use("density_of_metal", metal="gold"),
    find("feet to metres"),
    use("convert_feet_to_metres", amount=1),
    Message.assistant(tool_calls=[ToolCall("calculator", {"expression": "19300 * 0.3048^3"})]),
    find("kilograms to pounds"),
    use("convert_kilograms_to_pounds", amount=546.51),
    "A cube of gold with an edge of one foot weighs about 1,205 pounds.",
]


def main() -> RunResult:
    """Ask one question that needs four of them."""
    toolbox = Toolbox(all_tools())
    agent = Agent(
        name="researcher",
        instructions="Look for a tool before you answer from memory. Show your numbers.",
        model=ScriptedModel(REPLIES),
        tools=[*toolbox.search_tools(k=3), calculator],
    )
    result = agent.run_sync("How many pounds does a cube of gold with an edge of one foot weigh?")
    print(f"{len(toolbox)} tools, {len(agent.own_tools)} of them shown at each step")
    for step in result.trajectory.steps:
        for call, answer in zip(step.completion.message.tool_calls, step.results, strict=True):
            print(f"{call.name}({call.arguments}) -> {answer.text[:60]}")
    print(result.output)
    return result


if __name__ == "__main__":
    main()
