"""Answers as values of a type."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from antiphon.agent import Agent, RunResult
from antiphon.errors import RunError, UsageError
from antiphon.messages import Message, ToolCall
from antiphon.models import ScriptedModel


class Invoice(BaseModel):
    number: str
    total: float


@dataclass
class Point:
    x: int
    y: int


def ask(answers: list[Any], output_type: Any = Invoice, **options: Any) -> RunResult:
    model = ScriptedModel(answers)
    return Agent(model=model, output_type=output_type, **options).run_sync("go")


def final(**arguments: Any) -> Message:
    return Message.assistant(tool_calls=[ToolCall("final_answer", arguments, "c1")])


def test_an_answer_in_a_fence_with_a_sentence_before_it_is_taken_out() -> None:
    """openai/openai-agents-python#280."""
    result = ask(['Here you are:\n```json\n{"number": "A1", "total": 9.5}\n```'])

    assert result.output == Invoice(number="A1", total=9.5)
    assert result.trajectory.output == '{"number":"A1","total":9.5}'


def test_an_answer_of_the_wrong_type_is_sent_back_with_the_reason() -> None:
    result = ask(['{"number": "A1"}', '{"number": "A1", "total": 9.5}'])

    assert result.output == Invoice(number="A1", total=9.5)
    assert "total: field required" in result.messages[2].text


def test_prose_is_sent_back_and_endless_prose_is_an_error() -> None:
    result = ask(["It is nine."] * 3, max_mends=1)

    assert result.stop_reason == "error"
    with pytest.raises(RunError, match="no JSON"):
        _ = result.output


def test_a_final_tool_gives_the_answer() -> None:
    result = ask([final(answer={"number": "A1", "total": 9.5})])

    assert (result.output, result.stop_reason) == (Invoice(number="A1", total=9.5), "answer")


def test_a_wrong_final_answer_is_answered_and_mended() -> None:
    result = ask([final(answer={"number": "A1"}), final(answer={"number": "A1", "total": 1})])

    assert result.output == Invoice(number="A1", total=1.0)
    assert "total" in result.messages[2].text


@pytest.mark.parametrize(
    ("output_type", "text", "value"),
    [
        (Point, '{"x": 1, "y": 2}', Point(1, 2)),
        (list[int], "The numbers are [1, 2].", [1, 2]),
        (int, "42", 42),
        (bool, "true", True),
        (Literal["yes", "no"], '"yes"', "yes"),
        (dict[str, float], '{"a": 1}', {"a": 1.0}),
        (Point | None, "null", None),
    ],
)
def test_any_type_that_pydantic_knows_will_do(output_type: Any, text: str, value: Any) -> None:
    assert ask([text], output_type).output == value


def test_the_schema_may_stand_in_the_instructions() -> None:
    model = ScriptedModel(['{"x": 1, "y": 2}'])

    result = Agent(
        model=model, instructions="Be exact.", output_type=Point, output_mode="text"
    ).run_sync("go")

    assert result.output == Point(1, 2)
    assert model.conversations[0].tools == ()
    assert model.conversations[0].messages[0].text.startswith("Be exact.\n\nAnswer with JSON alone")


def test_the_schema_may_be_asked_of_the_server() -> None:
    model = ScriptedModel(['{"x": 1, "y": 2}'])

    Agent(model=model, output_type=Point, output_mode="native").run_sync("go")

    asked: Any = model.settings[0].extra["response_format"]
    assert asked["json_schema"]["schema"]["required"] == ["x", "y"]


def test_a_type_that_cannot_be_described_is_refused() -> None:
    with pytest.raises(UsageError, match="output_type"):
        ask(["x"], output_type=object().__class__.__subclasshook__)
