"""Calls that need a person: decided at once, or later in another process."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, Decision, run_sync, undecided_calls
from antiphon.errors import UsageError
from antiphon.events import DecisionEvent, ResultEvent, Trajectory
from antiphon.messages import Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.store import SqliteStore
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


# Runs inside calls


def office(inner: Agent, *answers: Any, tools: Any = ()) -> Agent:
    return Agent(name="boss", model=ScriptedModel(answers), tools=[inner.as_tool(), *tools])


def asks(*calls: ToolCall) -> Message:
    return Message.assistant(tool_calls=calls)


ASK = ToolCall("payer", {"question": "pay 5 and 6"}, "c1")


def through_json(result: Any) -> Trajectory:
    return Trajectory.from_json(result.trajectory.to_json())


def test_a_call_inside_an_agent_that_is_a_tool_pauses_the_run_around_it() -> None:
    paused = office(payer(TWO), asks(ASK)).run_sync("go")

    assert paused.stop_reason == "pending"
    assert [(call.id, call.name) for call in paused.pending] == [("c1/c1", "pay"), ("c1/c2", "pay")]
    assert undecided_calls(through_json(paused)) == paused.pending
    assert PAID == []


def test_the_run_inside_goes_on_where_it_paused() -> None:
    paused = office(payer(TWO), asks(ASK)).run_sync("go")

    agent = office(payer("Paid one."), "All done.")
    decisions = {"c1/c1": Decision(True, {"amount": 3}), "c1/c2": Decision(False, reason="no")}
    result = agent.resume(through_json(paused), decisions).wait()

    assert (result.output, PAID) == ("All done.", [3])
    assert [m.text for m in result.messages if m.role == "tool"] == ["Paid one."]
    (child,) = result.trajectory.children
    assert (child.call_id, child.stop_reason, len(child.steps)) == ("c1", "answer", 2)
    assert result.usage.n_requests == 4


def test_calls_may_be_decided_one_after_another() -> None:
    paused = payer(TWO).run_sync("pay")
    first = payer().resume(through_json(paused), {"c2": Decision(True, {"amount": 7})}).wait()

    result = payer("ok").resume(through_json(first), {"c1": Decision(False, reason="no")}).wait()

    assert [call.id for call in first.pending] == ["c1"]
    assert PAID == [7]
    tools = [m.text for m in result.messages if m.role == "tool"]
    assert ["no" in tools[0], "paid 7" in tools[1]] == [True, True]


def test_runs_inside_may_be_decided_one_after_another() -> None:
    paused = office(payer(TWO), asks(ASK)).run_sync("go")
    first = office(payer()).resume(through_json(paused), {"c1/c1": True}).wait()

    result = office(payer("ok"), "done").resume(through_json(first), {"c1/c2": False}).wait()

    assert (PAID, result.output) == ([5], "done")


def test_nobody_is_asked_about_a_call_that_its_tool_would_refuse() -> None:
    bad = Message.assistant(tool_calls=[ToolCall("pay", {"amount": "five"}, "c1")])

    result = payer(bad, "ok").run_sync("pay")

    assert (result.output, PAID) == ("ok", [])
    assert "should be a valid integer" in result.trajectory.steps[0].results[0].text


def test_what_is_not_decided_still_waits_and_what_was_answered_stays() -> None:
    ran: list[str] = []

    def look() -> str:
        ran.append("look")
        return "seen"

    both = asks(ToolCall("look", {}, "c0"), ASK, ToolCall("look", {}, "c2"))
    paused = office(payer(TWO), both, tools=[look]).run_sync("go")
    again = office(payer(), tools=[look]).resume(through_json(paused), {"c1/c1": True}).wait()

    result = (
        office(payer("ok"), "done", tools=[look])
        .resume(through_json(again), {"c1/c1": True, "c1/c2": True})
        .wait()
    )

    assert [call.id for call in again.pending] == ["c1/c2"]
    assert (PAID, ran, result.output) == ([5, 6], ["look", "look"], "done")
    tools = [(m.tool_call_id, m.text) for m in result.messages if m.role == "tool"]
    assert tools == [("c0", "seen"), ("c1", "ok"), ("c2", "seen")]
    told = [e.result.call_id for e in result.trajectory.events if isinstance(e, ResultEvent)]
    assert told == ["c0", "c1", "c2"]


def test_a_run_two_calls_deep_is_decided_from_outside() -> None:
    middle = office(payer(TWO), asks(ASK))
    outer = Agent(
        name="top",
        model=ScriptedModel([asks(ToolCall("boss", {"question": "go"}, "c7"))]),
        tools=[middle.as_tool()],
    )
    paused = outer.run_sync("go")

    middle = office(payer("ok"), "Fine.")
    outer = Agent(name="top", model=ScriptedModel(["Thanks."]), tools=[middle.as_tool()])
    result = outer.resume(through_json(paused), {call.id: True for call in paused.pending}).wait()

    assert [call.id for call in paused.pending] == ["c7/c1/c1", "c7/c1/c2"]
    assert (PAID, result.output) == ([5, 6], "Thanks.")


def test_a_paused_run_with_a_run_inside_waits_in_a_store(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "runs.db")) as store:
        paused = run_sync(office(payer(TWO), asks(ASK)).run("go", store=store))
        agent = office(payer("ok"), "done")
        decisions = {call.id: True for call in undecided_calls(store.load(paused.trajectory.id))}
        result = run_sync(agent.resume(paused.trajectory.id, decisions, store=store))

        kept = store.load(paused.trajectory.id)
    assert (result.output, PAID) == ("done", [5, 6])
    assert [child.stop_reason for child in kept.children] == ["answer"]
    assert kept.events == result.trajectory.events


def test_a_decided_run_inside_that_was_cut_off_is_not_run_again() -> None:
    """Its calls may have taken effect: the outcome is unknown."""
    paused = through_json(office(payer(TWO), asks(ASK)).run_sync("go"))
    decided = tuple(DecisionEvent(0, f"c1/{id}", True) for id in ("c1", "c2"))
    killed = replace(paused, events=(*paused.events[:-1], *decided), stop_reason="cancelled")

    result = office(payer(), "I will look.").resume(killed).wait()

    assert (PAID, result.output) == ([], "I will look.")
    assert "outcome is unknown" in result.messages[2].text


def test_whoever_decides_for_the_run_around_decides_inside_it() -> None:
    asked: list[str] = []

    def approve(call: ToolCall) -> bool:
        asked.append(call.id)
        return True

    paused = office(payer(TWO), asks(ASK)).run_sync("go")
    result = office(payer("ok"), "done").resume(paused.trajectory, approve=approve).wait()

    assert (PAID, asked, result.output) == ([5, 6], ["c1/c1", "c1/c2"], "done")
