"""ReAct over a model that writes text: calls, invented observations, missing inputs, circles."""

from typing import Any

import pytest

from antiphon.agent import Agent, RunResult
from antiphon.errors import UsageError
from antiphon.events import FeedbackEvent, LimitEvent, Trajectory
from antiphon.models import ScriptedModel
from antiphon.strategies import ReAct
from antiphon.tools import Tool, tool


class Shelf:
    """A tool that remembers what was looked up."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def look(self, q: str = "all") -> str:
        """Looks something up."""
        self.asked.append(q)
        return f"found {q}"

    def tool(self, **options: Any) -> Tool[..., Any]:
        return tool(self.look, threaded=False, **options)


def react(*texts: str, **how: Any) -> tuple[RunResult, Shelf]:
    shelf = Shelf()
    model = ScriptedModel(texts, format="react_en")
    agent = Agent(model=model, tools=[shelf.tool()], max_steps=8)
    return ReAct(agent, **how).run_sync("go"), shelf


def act(q: str) -> str:
    return f'Thought: I look.\nAction: look\nAction Input: {{"q": "{q}"}}\n'


def test_steps_lead_to_the_final_answer() -> None:
    result, shelf = react(act("a"), act("b"), "Thought: I know it.\nFinal Answer: 42")

    assert (result.output, result.stop_reason) == ("42", "answer")
    assert shelf.asked == ["a", "b"]
    assert len(result.trajectory.steps) == 3


def test_what_a_model_invents_after_its_call_is_cut_off() -> None:
    invented = act("a") + "Observation: found gold\nThought: rich\nFinal Answer: gold"
    result, shelf = react(invented, "Final Answer: found a")

    assert (result.output, shelf.asked) == ("found a", ["a"])
    assert [r.text for r in result.trajectory.steps[0].results] == ["found a"]
    assert "gold" not in "".join(m.text for m in result.messages if m.role == "tool")


def test_a_call_without_its_input_is_mended_and_the_record_says_so() -> None:
    result, shelf = react("Thought: I look.\nAction: look", "Final Answer: done")

    assert (result.output, shelf.asked) == ("done", ["all"])
    [call] = result.trajectory.steps[0].completion.message.tool_calls
    assert call.repairs


def test_the_same_call_with_the_same_result_three_times_is_answered_with_a_note() -> None:
    result, shelf = react(act("a"), act("a"), act("a"), "Final Answer: a")

    notes = [e.text for e in result.trajectory.events if isinstance(e, FeedbackEvent)]
    assert (result.output, len(shelf.asked), len(notes)) == ("a", 3, 1)
    assert "3 times in a row" in notes[0]


def test_a_model_that_goes_on_in_a_circle_is_stopped() -> None:
    result, shelf = react(*[act("a")] * 8)

    assert (result.stop_reason, len(shelf.asked)) == ("stuck", 5)
    assert [e.limit for e in result.trajectory.events if isinstance(e, LimitEvent)] == [
        "max_repeats"
    ]


def test_a_limit_of_steps_ends_it_with_an_answer_where_that_is_asked_for() -> None:
    acts = [act(str(n)) for n in range(8)]
    stopped, _ = react(*acts)
    answered, _ = react(*acts, "Final Answer: enough", on_limit="answer")

    assert (stopped.stop_reason, answered.stop_reason) == ("step_limit", "step_limit")
    assert answered.output == "enough"


def test_it_waits_for_a_person_and_goes_on_in_another_process() -> None:
    def strategy(*texts: str) -> tuple[ReAct, Shelf]:
        shelf = Shelf()
        model = ScriptedModel(texts, format="react_en")
        return ReAct(Agent(model=model, tools=[shelf.tool(approval=True)])), shelf

    first, untouched = strategy(act("a"))
    paused = first.run_sync("go")
    assert (paused.stop_reason, untouched.asked) == ("pending", [])

    again, shelf = strategy("Final Answer: found a")
    record = Trajectory.from_json(paused.trajectory.to_json())
    result = again.resume(record, {paused.pending[0].id: True}).wait()

    assert (result.output, shelf.asked) == ("found a", ["a"])


def test_a_model_that_is_named_writes_react_unless_it_is_told_otherwise() -> None:
    def spec(named: str, **how: Any) -> str:
        model = ReAct(Agent(model=named), **how).root.model
        assert isinstance(model, str)
        return model

    assert spec("local") == "local?format=react_en"
    assert spec("local?n_ctx=4096") == "local?n_ctx=4096&format=react_en"
    assert spec("local?format=react_zh") == "local?format=react_zh"
    assert spec("openai/gpt-5-mini", format="") == "openai/gpt-5-mini"
    with pytest.raises(UsageError, match="3 or more"):
        ReAct(Agent(), max_repeats=2)
