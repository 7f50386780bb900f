"""What a strategy may use: limits that hold over all its parts, at once and one after the other."""

import json
from typing import Any

import pytest

from antiphon.agent import Agent, RunResult
from antiphon.errors import UsageError
from antiphon.events import AttemptEvent, LimitEvent, TaskEvent, Trajectory
from antiphon.messages import Completion, Message, ToolCall, Usage
from antiphon.models import Price, ScriptedModel
from antiphon.strategies import PlanAndExecute, Reflexion, Verdict, exact, judge
from antiphon.tools import tool


def costing(text: str | Message, n_tokens: int = 10) -> Completion:
    message = text if isinstance(text, Message) else Message.assistant(text)
    stop = "tool_calls" if message.tool_calls else "stop"
    return Completion(message, stop, usage=Usage(n_tokens, 0), model="m")


def in_words(*ids: str) -> str:
    return json.dumps({"tasks": [{"id": id, "prompt": f"Find {id}."} for id in ids]})


def limits(record: Trajectory) -> list[tuple[str, float]]:
    return [(e.limit, e.value) for e in record.events if isinstance(e, LimitEvent)]


def used(result: RunResult) -> int:
    return result.usage.n_requests


def looks(n: int) -> Message:
    return Message.assistant(tool_calls=[ToolCall("look", {"q": str(n)}, f"c{n}")])


@tool(threaded=False, idempotent=True)
def look(q: str) -> str:
    """Looks something up."""
    return f"found {q}"


def clerk(answers: list[Any], **options: Any) -> Agent:
    return Agent(name="clerk", model=ScriptedModel(answers), tools=[look], **options)


def test_a_plan_makes_no_more_model_calls_than_it_may_however_many_run_at_once() -> None:
    answers = [in_words("a", "b", "c", "d"), *["found"] * 10]
    result = PlanAndExecute(clerk(answers), max_steps=3).run_sync("go")

    assert (result.stop_reason, used(result)) == ("step_limit", 3)
    assert limits(result.trajectory) == [("max_steps", 3)]
    ended = [e.status for e in result.trajectory.events if isinstance(e, TaskEvent)]
    assert (ended.count("completed"), ended.count("failed")) == (2, 2)


def test_a_plan_keeps_its_last_call_for_an_answer_where_that_is_asked_for() -> None:
    answers = [in_words("a"), looks(1), looks(2), looks(3), "From what is known: 3."]
    result = PlanAndExecute(clerk(answers), max_steps=5, on_limit="answer").run_sync("go")

    assert (result.stop_reason, result.output) == ("step_limit", "From what is known: 3.")
    assert used(result) == 5
    assert result.messages[-1].text == "From what is known: 3."


def test_a_last_call_that_gives_no_answer_ends_the_run_as_the_limit_does() -> None:
    cut = Completion(Message.assistant("From what"), "length", Usage(n_requests=1))
    answers = [in_words("a"), looks(1), looks(2), looks(3), cut]
    result = PlanAndExecute(clerk(answers), max_steps=5, on_limit="answer").run_sync("go")

    assert (result.stop_reason, result.output, used(result)) == ("step_limit", "", 5)
    assert limits(result.trajectory) == [("max_steps", 5)]


def test_a_budget_that_suffices_is_not_noticed() -> None:
    answers = [in_words("a"), "found", "Done."]
    result = PlanAndExecute(clerk(answers), max_steps=4, on_limit="answer").run_sync("go")

    assert (result.stop_reason, result.output, limits(result.trajectory)) == ("answer", "Done.", [])


def test_tokens_and_money_of_all_parts_count() -> None:
    price = {"m": Price(1.0, 1.0)}
    money: dict[str, Any] = {"max_cost": 20 * price["m"].of(Usage(1, 0)), "prices": price}
    tokens: dict[str, Any] = {"max_tokens": 20}
    for how, stop in ((tokens, "token_limit"), (money, "cost_limit")):
        answers = [costing(in_words("a")), costing("found"), costing("Done.")]
        result = PlanAndExecute(clerk(answers), **how).run_sync("go")

        assert (result.stop_reason, result.usage.input_tokens) == (stop, 20)


def test_reflexion_ends_with_its_best_attempt_when_the_budget_is_used_up() -> None:
    model = clerk(["Sydney", "Think of capitals.", "Perth", "Think again.", "Canberra"])
    result = Reflexion(model, exact("Canberra"), max_attempts=5, max_steps=3).run_sync("Capital?")

    assert (result.stop_reason, result.output, used(result)) == ("step_limit", "Perth", 3)


def test_an_attempt_that_the_budget_ends_is_judged_by_what_it_has() -> None:
    actor = clerk([looks(1), looks(2), looks(3), "Canberra"])
    result = Reflexion(actor, exact("Canberra"), max_steps=2).run_sync("Capital?")

    assert (result.stop_reason, used(result)) == ("step_limit", 2)


def test_an_attempt_that_there_is_no_judge_left_for_is_the_answer_at_the_limit() -> None:
    scores = judge(ScriptedModel(['{"score": 1}']), "Is it right?")
    result = Reflexion(clerk(["Sydney"]), scores, max_steps=1).run_sync("Capital?")

    assert (result.stop_reason, result.output, used(result)) == ("step_limit", "Sydney", 1)
    [attempt] = [e for e in result.trajectory.events if isinstance(e, AttemptEvent)]
    assert attempt.verdict == "unverified"
    assert attempt.feedback == "the judge gave no verdict: step limit"


def test_an_evaluator_that_breaks_at_the_limit_is_told_of() -> None:
    def breaks(_result: RunResult) -> Verdict:
        raise ZeroDivisionError("division by zero")

    result = Reflexion(clerk(["Sydney"]), breaks, max_steps=1).run_sync("Capital?")

    assert result.stop_reason == "evaluator_error"
    assert "division by zero" in result.trajectory.error


def test_the_budget_of_a_strategy_holds_for_a_strategy_inside_it() -> None:
    plan = PlanAndExecute(clerk([in_words("a"), "found", "Sydney", "Think.", in_words("a"), "x"]))
    result = Reflexion(plan, exact("Canberra"), max_steps=5).run_sync("Capital?")

    assert (result.stop_reason, result.output, used(result)) == ("step_limit", "Sydney", 5)


def test_a_budget_goes_on_where_a_run_that_was_paused_goes_on() -> None:
    def agent(answers: list[Any]) -> Agent:
        paying = tool(look.function, name="pay", approval=True, threaded=False)
        return Agent(name="clerk", model=ScriptedModel(answers), tools=[paying])

    pays = Message.assistant(tool_calls=[ToolCall("pay", {"q": "a"}, "c1")])
    paused = PlanAndExecute(agent([in_words("a"), pays]), max_steps=3).run_sync("go")
    assert paused.stop_reason == "pending"

    strategy = PlanAndExecute(agent(["paid", "Done."]), max_steps=3)
    result = strategy.resume(paused.trajectory, {paused.pending[0].id: True}).wait()

    assert (result.stop_reason, used(result)) == ("step_limit", 3)


def test_an_agent_counts_the_tokens_of_agents_that_are_its_tools_while_they_run() -> None:
    inner = clerk([costing(looks(n)) for n in range(9)], max_steps=9)
    asks = Message.assistant(tool_calls=[ToolCall("clerk", {"question": "?"}, "c1")])
    outer = Agent(model=ScriptedModel([costing(asks)]), tools=[inner.as_tool()], max_tokens=40)
    result = outer.run_sync("go")

    assert (result.stop_reason, result.usage.input_tokens) == ("token_limit", 40)


@pytest.mark.parametrize("how", [{"max_steps": 0}, {"max_tokens": -1}, {"max_cost": 0.0}])
def test_limits_that_let_nothing_happen_are_refused(how: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="more than 0"):
        PlanAndExecute(clerk([]), **how)
    with pytest.raises(UsageError, match="more than 0"):
        Reflexion(clerk([]), exact("x"), **how)


def test_a_joiner_that_waits_for_a_person_goes_on_where_it_waited() -> None:
    def joiner(answers: list[Any]) -> Agent:
        asks = tool(look.function, name="ask", approval=True, threaded=False)
        return Agent(name="joiner", model=ScriptedModel(answers), tools=[asks])

    asking = Message.assistant(tool_calls=[ToolCall("ask", {"q": "a"}, "c1")])
    plan = clerk([in_words("a"), "found"])
    paused = PlanAndExecute(plan, joiner=joiner([asking])).run_sync("go")
    assert (paused.stop_reason, [call.id for call in paused.pending]) == (
        "pending",
        ["joiner:1/c1"],
    )

    strategy = PlanAndExecute(clerk([]), joiner=joiner(["Done."]))
    result = strategy.resume(paused.trajectory, {"joiner:1/c1": True}).wait()

    assert (result.output, used(result)) == ("Done.", 4)
