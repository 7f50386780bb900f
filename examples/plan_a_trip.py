"""A plan whose tasks run side by side, one of which fails and is planned anew.

python examples/plan_a_trip.py
"""

import asyncio
import json
from typing import Any

from antiphon import Agent, Message, Plan, PlanAndExecute, ScriptedModel, tool
from antiphon.events import ReplanEvent, TaskEvent


@tool(idempotent=True)
async def trains(start: str, end: str) -> dict[str, Any]:
    """Trains between two cities.

    Args:
        start: Where to begin.
        end: Where to go.
    """
    await asyncio.sleep(0.01)
    if end == "Porto":
        raise ValueError("no trains today: strike")
    return {"leaves": "08:12", "arrives": "11:07", "price": 27}


@tool(idempotent=True)
async def buses(start: str, end: str) -> dict[str, Any]:
    """Buses between two cities.

    Args:
        start: Where to begin.
        end: Where to go.
    """
    await asyncio.sleep(0.01)
    return {"leaves": "08:30", "arrives": "12:00", "price": 19}


@tool(idempotent=True, threaded=False)
def total(prices: list[float]) -> float:
    """The sum of prices.

    Args:
        prices: What each part costs.
    """
    return sum(prices)


def task(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    """A task as a planner writes it."""
    return {"id": id, "tool": name, "arguments": arguments}


PLAN = [
    task("there", "trains", start="Lisbon", end="Porto"),
    task("back", "trains", start="Porto", end="Lisbon"),
    task("sum", "total", prices=["${there.price}", "${back.price}"]),
]
AGAIN = [
    task("bus", "buses", start="Lisbon", end="Porto"),
    task("sum", "total", prices=["${bus.price}", "${back.price}"]),
]


def main() -> None:
    """Run the plan and print what happens."""
    answers: list[str | Message] = [
        json.dumps({"tasks": PLAN}),
        json.dumps({"tasks": AGAIN}),
        "By bus to Porto and by train back: 46 euros.",
    ]
    agent = Agent(model=ScriptedModel(answers), tools=[trains, buses, total])

    async def run() -> None:
        steps = PlanAndExecute(agent).stream(
            "Lisbon to Porto and back tomorrow: how, and how much?"
        )
        async for event in steps:
            match event:
                case TaskEvent(task=id, status=status, reason=reason):
                    print(f"{id:6} {status:12} {reason}".rstrip())
                case ReplanEvent(reason=reason):
                    print(f"a new plan, because {reason}")
                case _:
                    pass
        result = await steps
        plan = Plan.of(result.trajectory)
        assert plan is not None
        print(result.output)
        print(plan.to_mermaid())

    asyncio.run(run())


if __name__ == "__main__":
    main()
