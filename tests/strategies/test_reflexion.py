"""Attempts, verdicts and reflections: what passes, what does not, and what the record keeps."""

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, RunResult
from antiphon.errors import ModelError, UsageError
from antiphon.events import AttemptEvent, ReflectionEvent, Trajectory
from antiphon.messages import Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.store import SqliteStore
from antiphon.strategies import (
    Evaluator,
    PlanAndExecute,
    Reflexion,
    Verdict,
    all_of,
    contains,
    exact,
    heuristic,
    judge,
    model_calls,
    predicate,
    unit_tests,
)
from antiphon.tools import tool


def tried(answers: list[Any], evaluator: Evaluator, **how: Any) -> tuple[RunResult, ScriptedModel]:
    model = ScriptedModel(answers)
    return Reflexion(Agent(model=model), evaluator, **how).run_sync("q"), model


def verdict(evaluator: Evaluator, answer: str) -> Verdict:
    result = Agent(model=ScriptedModel([answer])).run_sync("q")

    async def main() -> Verdict:
        made = evaluator(result)
        return made if isinstance(made, Verdict) else await made

    return asyncio.run(main())


def verdicts(record: Trajectory) -> list[str]:
    return [e.verdict for e in record.events if isinstance(e, AttemptEvent)]


def by_length(result: RunResult) -> Verdict:
    return Verdict(False, min(1.0, len(result.text) / 10), "longer")


def is_long(result: RunResult) -> bool:
    return len(result.text) > 2


def breaks(result: RunResult) -> Verdict:
    raise ZeroDivisionError("division by zero")


def test_the_best_attempt_is_given_where_none_passes_the_later_of_equal_ones() -> None:
    result, _ = tried(["aa", "r", "bbbb", "r", "cccc"], by_length)

    assert (result.output, result.stop_reason) == ("cccc", "failed")
    assert verdicts(result.trajectory) == ["failed"] * 3


def test_there_is_no_reflection_after_the_last_attempt_and_none_in_plain_retrying() -> None:
    reflected, _ = tried(["a", "think", "b"], exact("z"), max_attempts=2)
    retried, model = tried(["a", "b", "c"], exact("z"), reflect=False)

    told = [e for e in reflected.trajectory.events if isinstance(e, ReflectionEvent)]
    assert [(e.attempt, e.text) for e in told] == [(1, "think")]
    assert verdicts(retried.trajectory) == ["failed"] * 3
    assert {c.messages[-1].text for c in model.conversations} == {"q"}


def test_the_last_answer_is_shown_only_where_that_is_asked_for() -> None:
    _, hidden = tried(["Sydney", "think", "b"], exact("b"))
    _, shown = tried(["Sydney", "think", "b"], exact("b"), show_last_attempt=True)

    assert "Sydney" not in hidden.conversations[-1].messages[-1].text
    assert "Sydney" in shown.conversations[-1].messages[-1].text
    assert shown.conversations[-1].messages[-1].text.endswith("[End]\n\nq")


def test_nothing_to_judge_by_is_no_pass() -> None:
    result, _ = tried(["a"], unit_tests([]))

    assert (result.output, result.stop_reason) == ("a", "unverified")
    assert verdicts(result.trajectory) == ["unverified"]


@pytest.mark.parametrize(
    ("evaluator", "said"),
    [
        (breaks, "division by zero"),
        (judge(ScriptedModel([ModelError("judge offline")])), "judge offline"),
        (judge(ScriptedModel(["nonsense"])), "the judge gave no score"),
        (judge(ScriptedModel(['{"score": 7}'])), "the judge gave no score"),
    ],
)
def test_an_evaluator_that_breaks_is_no_verdict(evaluator: Evaluator, said: str) -> None:
    result, _ = tried(["a"], evaluator)

    assert (result.stop_reason, result.text) == ("evaluator_error", "")
    assert verdicts(result.trajectory) == ["error"]
    assert said in result.trajectory.error


def test_a_judge_scores_with_its_rubric_and_is_a_part_of_the_record() -> None:
    model = ScriptedModel(['Well: {"score": 0.9, "feedback": "fine"}'])

    result, _ = tried(["a"], judge(model, "be kind", threshold=0.8))

    assert result.stop_reason == "answer"
    assert "Rubric: be kind" in model.conversations[0].messages[0].text
    roles = [(call.role, call.reward) for call in model_calls(result.trajectory)]
    assert roles == [("actor", 0.9), ("judge", None)]


GOOD = "def f(n):\n    return n * n"


@pytest.mark.parametrize(
    ("code", "ok"),
    [
        (f"Here:\n```python\n{GOOD}\n```\nDone.", True),
        ("def f(n):\n    return n", False),
        ("import os\nos._exit(0)", False),
        ("def f(n):\n    return helper(n)", False),
        ("def f(n):\n    while True: pass", False),
    ],
)
def test_unit_tests_pass_what_is_right_and_nothing_else(code: str, ok: bool) -> None:
    """A candidate that exits, loops, or calls what only another one defined does not pass."""
    tests = ["assert f(3) == 9\ndef helper(n): return n * n"]

    assert verdict(unit_tests(tests, timeout=1.0 if "while" in code else 20.0), code).ok is ok


def test_unit_tests_say_which_failed_and_count_the_rest() -> None:
    made = verdict(unit_tests(["assert f(3) == 8, 'three'", "assert f(0) == 0"]), GOOD)

    assert (made.ok, made.score) == (False, 0.5)
    assert "1 of 2 tests failed" in made.feedback
    assert "AssertionError: three" in made.feedback


@pytest.mark.parametrize(
    ("evaluator", "answer", "ok"),
    [
        (exact("The Answer"), " answer. ", True),
        (exact("a", "b"), "c", False),
        (exact(), "c", None),
        (contains("Lima", "peru"), "lima in Peru", True),
        (contains("Lima", "Oslo"), "Lima", False),
        (predicate(is_long), "abc", True),
        (heuristic(), "abc", True),
        (all_of(contains("a"), exact("ab")), "ab", True),
        (all_of(contains("a"), exact("ab")), "ac", False),
        (all_of(contains("a"), exact()), "ac", None),
        (all_of(), "x", None),
    ],
)
def test_what_an_evaluator_says(evaluator: Evaluator, answer: str, ok: bool | None) -> None:
    assert verdict(evaluator, answer).ok is ok


def test_a_tool_that_may_act_outside_needs_a_way_back() -> None:
    undone: list[int] = []

    @tool
    def send(text: str) -> str:
        """Sends."""
        return "sent"

    model = ScriptedModel(["a", "think", "b"])
    with pytest.raises(UsageError, match="tool 'send' may have done something outside"):
        Reflexion(Agent(model=model, tools=[send]), exact("b"))

    how = Reflexion(Agent(model=model, tools=[send]), exact("b"), reset=lambda: undone.append(1))

    assert (how.run_sync("q").output, undone) == ("b", [1])


def test_an_attempt_may_be_a_plan_and_its_calls_have_the_attempts_score() -> None:
    answers = ['{"tasks": []}', "Sydney", "think", '{"tasks": []}', "Canberra"]
    plan = PlanAndExecute(Agent(model=ScriptedModel(answers)))

    result = Reflexion(plan, exact("Canberra")).run_sync("capital?")

    calls = model_calls(result.trajectory)
    assert result.output == "Canberra"
    assert [(c.role, c.reward) for c in calls] == [
        ("planner", 0.0),
        ("joiner", 0.0),
        ("reflector", None),
        ("planner", 1.0),
        ("joiner", 1.0),
    ]
    assert calls[0].path == ("attempt:1", "planner:0")


def test_an_attempt_waits_for_a_person_and_goes_on_in_another_process() -> None:
    store = SqliteStore("")

    def made(answers: list[Any]) -> Reflexion:
        @tool(approval=True, idempotent=True)
        def pay(n: int) -> str:
            """Pays."""
            return f"paid {n}"

        agent = Agent(model=ScriptedModel(answers), tools=[pay])
        return Reflexion(agent, contains("paid"))

    asks = Message.assistant(tool_calls=[ToolCall("pay", {"n": 3}, "c1")])
    first = made(["no", "pay!", asks]).run("q", store=store)
    paused = first.wait()
    assert (paused.stop_reason, [c.id for c in paused.pending]) == ("pending", ["attempt:2/c1"])

    result = made(["paid 3"]).resume(first.id, {"attempt:2/c1": True}, store=store).wait()

    assert (result.output, verdicts(result.trajectory)) == ("paid 3", ["failed", "passed"])
    store.close()


def test_an_attempt_whose_model_is_gone_ends_the_run_with_the_record() -> None:
    result, _ = tried([ModelError("offline")], exact("a"))

    assert (result.stop_reason, str(result.error)) == ("error", "offline")
    assert len(result.trajectory.children) == 1
