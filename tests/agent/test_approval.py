"""Calls that need a person: decided at once, or later in another process."""

from dataclasses import replace
from typing import Any

import pytest

from antiphon.agent import Agent, Decision, run_sync
from antiphon.errors import UsageError
from antiphon.events import Trajectory
from antiphon.messages import Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.tools import tool

PAID: list[int] = []


@pytest.fixture(autouse=True)
def nothing_is_paid() -> None:
    PAID.clear()


@tool(approval=True)
def pay(amount: int) -> str:
    """Pays."""
    PAID.append(amount)
    return f"paid {amount}"


TWO = Message.assistant(
    tool_calls=[ToolCall("pay", {"amount": 5}, "c1"), ToolCall("pay", {"amount": 6}, "c2")]
)


def payer(*answers: Any) -> Agent:
    return Agent(name="payer", model=ScriptedModel(answers), tools=[pay])


def test_a_call_that_needs_a_person_pauses_the_run_as_a_value() -> None:
    result = payer(TWO).run_sync("pay")

    assert result.stop_reason == "pending"
    assert [call.id for call in result.pending] == ["c1", "c2"]
    assert PAID == []


def test_decisions_reach_their_own_calls_in_any_order() -> None:
    """langchain-ai/langgraph#6533."""
    paused = payer(TWO).run_sync("pay")
    record = Trajectory.from_json(paused.trajectory.to_json())

    result = (
        payer("ok")
        .resume(
            record,
            {"c2": Decision(False, reason="too much"), "c1": Decision(True, {"amount": 3})},
        )
        .wait()
    )

    first, second = (m for m in result.messages if m.role == "tool")
    assert (PAID, result.output) == ([3], "ok")
    assert "paid 3" in first.text
    assert "changed the arguments" in first.text
    assert "too much" in second.text
    assert (first.tool_call_id, second.tool_call_id) == ("c1", "c2")


def test_a_resumed_run_has_the_events_of_one_that_was_decided_at_once() -> None:
    paused = payer(TWO).run_sync("pay")
    resumed = payer("ok").resume(paused.trajectory, {"c1": True, "c2": False}).wait()
    at_once = run_sync(payer(TWO, "ok").run("pay", approve=lambda call: call.id == "c1"))

    assert [e.type for e in resumed.trajectory.events] == [
        e.type for e in at_once.trajectory.events
    ]
    assert resumed.trajectory.conversation == at_once.trajectory.conversation


def test_a_call_without_a_decision_still_waits() -> None:
    paused = payer(TWO).run_sync("pay")

    again = payer().resume(paused.trajectory, {"c1": True}).wait()

    assert (again.stop_reason, [c.id for c in again.pending], PAID) == ("pending", ["c2"], [])


def test_a_decision_for_another_call_is_refused() -> None:
    paused = payer(TWO).run_sync("pay")

    with pytest.raises(UsageError, match="no call 'c9' waits for a decision; waiting: c1, c2"):
        payer().resume(paused.trajectory, {"c9": True})


def test_an_asynchronous_function_may_decide() -> None:
    async def decide(call: ToolCall) -> Decision:
        return Decision(False, reason=f"not {call.arguments['amount']}")

    result = run_sync(payer(TWO, "ok").run("pay", approve=decide))

    assert "not 6" in result.messages[3].text


def test_a_resumed_run_finds_the_agent_that_was_speaking() -> None:
    def triage(*answers: Any, expert: Agent) -> Agent:
        return Agent(name="triage", model=ScriptedModel(answers), handoffs=[expert])

    hand_over = Message.assistant(tool_calls=[ToolCall("transfer_to_payer", {}, "c0")])
    paused = triage(hand_over, expert=payer(TWO)).run_sync("pay")

    result = triage(expert=payer("ok")).resume(paused.trajectory, {"c1": True, "c2": True}).wait()

    assert (result.output, result.agent.name, PAID) == ("ok", "payer", [5, 6])


def test_a_run_of_an_unknown_agent_is_not_resumed() -> None:
    paused = payer(TWO).run_sync("pay")

    with pytest.raises(UsageError, match="the run was with agent 'payer'"):
        Agent(name="other", model=ScriptedModel([])).resume(paused.trajectory, {"c1": True}).wait()


def test_a_call_under_way_when_the_process_died_is_not_repeated() -> None:
    """strands-agents/harness-sdk#859: the record of a run that was killed has no end."""
    at_once = run_sync(payer(TWO, "ok").run("pay", approve=lambda _: True)).trajectory
    cut = [e for e in at_once.events if e.type not in ("run_end", "tool_result")][:12]
    steps = (at_once.steps[0],)
    killed = Trajectory(
        type(at_once.conversation)(at_once.conversation.messages[:2], at_once.conversation.tools),
        (type(steps[0])("payer", 1, steps[0].completion, at_once.steps[0].results[:1]),),
        tuple(cut),
        stop_reason="cancelled",
    )
    PAID.clear()

    result = payer("ok").resume(killed).wait()

    first, second = (m for m in result.messages if m.role == "tool")
    assert PAID == []
    assert first.text == "paid 5"
    assert "outcome is unknown" in second.text


def test_a_handoff_that_was_broken_off_is_made_on_resume() -> None:
    expert = Agent(name="expert", model=ScriptedModel(["Here."]))
    hand_over = Message.assistant(tool_calls=[ToolCall("transfer_to_expert", {}, "c0")])

    def triage(*answers: Any) -> Agent:
        return Agent(name="triage", model=ScriptedModel(answers), handoffs=[expert])

    whole = triage(hand_over).run_sync("go").trajectory
    cut = next(n for n, e in enumerate(whole.events) if e.type == "handoff")
    broken = replace(
        whole,
        conversation=replace(whole.conversation, messages=whole.conversation.messages[:2]),
        steps=whole.steps[:1],
        events=whole.events[:cut],
        stop_reason="cancelled",
    )
    expert = Agent(name="expert", model=ScriptedModel(["Here."]))

    result = triage().resume(Trajectory.from_json(broken.to_json())).wait()

    assert (result.output, result.agent.name) == ("Here.", "expert")
    assert [e.type for e in result.trajectory.events] == [e.type for e in whole.events]
