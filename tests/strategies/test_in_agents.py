"""A strategy inside an agent's run: it takes over a conversation, or answers as a tool."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, Handoff, RunResult
from antiphon.events import (
    ApprovalEvent,
    AttemptEvent,
    DecisionEvent,
    HandoffEvent,
    TaskEvent,
    TextEvent,
    Trajectory,
)
from antiphon.messages import Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.store import SqliteStore
from antiphon.strategies import (
    PlanAndExecute,
    ReAct,
    Reflexion,
    Runnable,
    exact,
    model_calls,
)
from antiphon.tools import Tool, tool

PLAN = json.dumps({"tasks": [{"id": "a", "tool": "pay", "arguments": {"n": 4}}]})


class Till:
    """A tool that remembers what was paid."""

    def __init__(self) -> None:
        self.paid: list[int] = []

    def tool(self, **options: Any) -> Tool[..., Any]:
        def pay(n: int) -> str:
            """Pays."""
            self.paid.append(n)
            return f"paid {n}"

        return tool(pay, threaded=False, **options)


def of(result: RunResult, kind: type[Any]) -> list[Any]:
    return [event for event in result.trajectory.events if isinstance(event, kind)]


def planner(till: Till, *answers: Any, **options: Any) -> PlanAndExecute:
    model = ScriptedModel(answers or [PLAN, "It is paid."])
    agent = Agent(name="payer", model=model, tools=[till.tool(**options)])
    return PlanAndExecute(agent, name="payments", description="Pays bills.")


def triage(who: Runnable | Handoff, *answers: Any, **options: Any) -> Agent:
    name = who.target().name if isinstance(who, Handoff) else who.name
    asks = Message.assistant(tool_calls=[ToolCall(f"transfer_to_{name}", {}, "c0")])
    model = ScriptedModel([asks, *answers])
    return Agent(name="triage", model=model, handoffs=[who], **options)


def shown(strategy: PlanAndExecute, n: int) -> str:
    model = strategy.agent.model
    assert isinstance(model, ScriptedModel)
    return "\n".join(m.text for m in model.conversations[n].messages)


def test_a_plan_takes_a_conversation_over_and_its_answer_ends_the_run() -> None:
    till = Till()
    payments = planner(till)
    agent = triage(payments)

    result = agent.run_sync("Pay 4.", history=[Message.user("Hi"), Message.assistant("Hello")])

    assert (result.output, result.stop_reason, till.paid) == ("It is paid.", "answer", [4])
    assert result.messages[-1] == Message.assistant("It is paid.")
    assert [(e.source, e.target) for e in of(result, HandoffEvent)] == [("triage", "payments")]
    assert [e.status for e in of(result, TaskEvent)] == ["in_progress", "completed"]
    assert "".join(e.text for e in of(result, TextEvent)) == "It is paid."
    model = agent.model
    assert isinstance(model, ScriptedModel)
    assert [tool.description for tool in model.conversations[0].tools] == [
        "Hand the conversation over to payments. Pays bills."
    ]
    assert "Hello" in shown(payments, 0)  # the planner knows what was said before
    assert [c.role for c in model_calls(result.trajectory)] == ["actor", "planner", "joiner"]


@pytest.mark.parametrize("streamed", [False, True])
def test_reflexion_and_react_take_over_streamed_or_awaited(streamed: bool) -> None:
    actor = Agent(model=ScriptedModel(["Sydney", "Think of capitals.", "Canberra"]))
    thinker = ReAct(Agent(model=ScriptedModel(["Final Answer: 4"], format="react_en")))
    for strategy, output, n_attempts in (
        (Reflexion(actor, exact("Canberra")), "Canberra", 2),
        (thinker, "4", 0),
    ):
        run = triage(strategy).run("Capital of Australia?")

        async def ended(run: Any = run) -> RunResult:
            if streamed:
                async for _ in run:
                    pass
            return await run

        result = asyncio.run(ended())

        assert (result.output, result.stop_reason) == (output, "answer")
        assert len(of(result, AttemptEvent)) == n_attempts


def test_what_the_strategy_is_shown_may_be_filtered() -> None:
    payments = planner(Till())

    def last(messages: tuple[Message, ...]) -> list[Message]:
        return [m for m in messages if m.role == "user"][-1:]

    agent = triage(Handoff(payments, input_filter=last))
    agent.run_sync("Pay 4.", history=[Message.user("Hi"), Message.assistant("Hello")])

    assert "Hello" not in shown(payments, 0)
    assert "Goal: Pay 4." in shown(payments, 0)


def test_a_plan_that_took_over_waits_for_a_person_and_goes_on_in_another_process() -> None:
    till = Till()
    paused = triage(planner(till, approval=True)).run_sync("Pay 4.")

    assert (paused.stop_reason, till.paid) == ("pending", [])
    [waits] = paused.pending
    assert waits.arguments == {"n": 4}
    record = Trajectory.from_json(paused.trajectory.to_json())
    again = triage(planner(till, "It is paid.", approval=True))
    result = again.resume(record, {waits.id: True}).wait()

    assert (result.output, till.paid) == ("It is paid.", [4])
    assert len(of(result, ApprovalEvent)) == len(of(result, DecisionEvent)) == 1
    assert len(of(result, HandoffEvent)) == 1
    assert [child.call_id for child in result.trajectory.children] == ["c0"]


def test_a_person_is_asked_about_the_calls_of_a_plan_that_took_over_once() -> None:
    till, asked = Till(), list[str]()

    def approve(call: ToolCall) -> bool:
        asked.append(call.name)
        return True

    result = triage(planner(till, approval=True)).run_sync("Pay 4.", approve=approve)

    assert (result.output, asked, till.paid) == ("It is paid.", ["pay"], [4])


def test_a_plan_that_is_a_tool_waits_for_a_person_and_goes_on_in_another_process() -> None:
    till = Till()
    call = Message.assistant(tool_calls=[ToolCall("payments", {"question": "Pay 4."}, "c0")])
    first = Agent(
        model=ScriptedModel([call]), tools=[planner(till, approval=True).as_tool()]
    ).run_sync("Pay 4, please.")

    assert (first.stop_reason, till.paid) == ("pending", [])
    [waits] = first.pending
    tools = [planner(till, "It is paid.", approval=True).as_tool()]
    agent = Agent(model=ScriptedModel(["All paid."]), tools=tools)
    record = Trajectory.from_json(first.trajectory.to_json())
    result = agent.resume(record, {waits.id: True}).wait()

    assert (result.output, till.paid) == ("All paid.", [4])
    assert result.trajectory.steps[0].results[0].text == "It is paid."


def test_a_session_goes_on_with_what_a_strategy_answered(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "runs.db")
    first = triage(planner(Till())).run_sync("Pay 4.", store=store, session="s")
    model = ScriptedModel(["You paid 4."])
    Agent(model=model).run_sync("What did I pay?", store=store, session="s")

    assert store.load(first.trajectory.id).conversation == first.trajectory.conversation
    assert "It is paid." in [m.text for m in model.conversations[0].messages]


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_plan_under_way_when_the_process_died_is_begun_again_only_if_that_is_harmless(
    idempotent: bool,
) -> None:
    till = Till()
    done = triage(planner(till, idempotent=idempotent)).run_sync("Pay 4.").trajectory
    handed = next(n for n, e in enumerate(done.events) if isinstance(e, HandoffEvent))
    cut = replace(done, events=done.events[: handed + 2], children=(), stop_reason="cancelled")

    again = triage(planner(till, idempotent=idempotent))
    told = replace(again, model=ScriptedModel(["Please check it."]))
    result = told.resume(Trajectory.from_json(cut.to_json())).wait()

    assert till.paid == ([4, 4] if idempotent else [4])
    assert result.output == ("It is paid." if idempotent else "Please check it.")


def test_a_plan_that_took_over_and_was_left_goes_on_with_what_is_done() -> None:
    till = Till()

    async def leave() -> Trajectory:
        run = triage(Handoff(lambda: planner(till))).run("Pay 4.")
        async for event in run:
            if isinstance(event, TaskEvent) and event.status == "completed":
                break
        return (await run).trajectory

    left = asyncio.run(leave())
    assert left.stop_reason == "cancelled"

    result = triage(Handoff(lambda: planner(till, "It is paid."))).resume(left).wait()

    assert (result.output, till.paid) == ("It is paid.", [4])
    assert len(of(result, HandoffEvent)) == 1


def test_an_agent_of_a_class_of_ones_own_hands_over_to_any_agent() -> None:
    class Clerk(Agent):
        """An agent with a name of its own."""

    other = Agent(name="other", model=ScriptedModel(["Done."]))
    asks = Message.assistant(tool_calls=[ToolCall("transfer_to_other", {}, "c0")])
    clerk = Clerk(name="clerk", model=ScriptedModel([asks]), handoffs=[other])

    result = clerk.run_sync("Go.")

    assert (result.output, result.agent) == ("Done.", other)
    assert [step.agent for step in result.trajectory.steps] == ["clerk", "other"]
