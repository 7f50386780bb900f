"""A plan is drawn with the states of its tasks, below what they need, whatever their texts hold."""

import json
from typing import Any

from antiphon.agent import Agent
from antiphon.events import Trajectory
from antiphon.models import ScriptedModel
from antiphon.strategies import PlanAndExecute
from antiphon.tools import tool
from antiphon.viewer import Record
from antiphon.viewer._data import page_data


@tool(threaded=False)
def look(q: str) -> str:
    """Looks."""
    if q == "bad":
        raise ValueError("</script> nothing")
    return f"found {q}"


def record(*tasks: dict[str, Any], answers: list[str]) -> Trajectory:
    model = ScriptedModel([json.dumps({"tasks": tasks}), *answers])
    return PlanAndExecute(Agent(model=model, tools=[look]), max_replans=1).run_sync("go").trajectory


def drawn(run: Trajectory) -> dict[str, Any]:
    rows: Any = page_data([Record(run, "run")])["records"]
    plan: Any = rows[0]["plan"]
    return {task["id"]: task for task in plan["tasks"]}


def step(id: str, q: str) -> dict[str, Any]:
    return {"id": id, "tool": "look", "arguments": {"q": q}}


def test_each_task_stands_below_what_it_needs_with_what_came_of_it() -> None:
    run = record(step("c", "${a} and ${b}"), step("a", "1"), step("b", "${a}"), answers=["done"])

    tasks = drawn(run)

    assert {id: task["row"] for id, task in tasks.items()} == {"a": 0, "b": 1, "c": 2}
    assert tasks["c"]["needs"] == ["a", "b"]
    assert tasks["b"]["call"] == 'look({"q": "found 1"})'
    assert {task["status"] for task in tasks.values()} == {"completed"}


def test_what_failed_stays_beside_the_plan_that_took_its_place() -> None:
    second = json.dumps({"tasks": [step("b2", "2")]})
    run = record(step("a", "1"), step("b", "bad"), answers=[second, "done"])

    tasks = drawn(run)

    assert {id: task["status"] for id, task in tasks.items()} == {
        "a": "completed",
        "b": "failed",
        "b2": "completed",
    }
    assert "nothing" in tasks["b"]["reason"]


def test_a_run_without_a_plan_has_no_graph() -> None:
    run = Agent(model=ScriptedModel(["Hi."])).run_sync("Hello").trajectory

    rows: Any = page_data([Record(run, "run")])["records"]

    assert rows[0]["plan"] is None
