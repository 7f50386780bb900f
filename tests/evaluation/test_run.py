"""A case is judged step by step, on the calls that a model really made."""

import asyncio

from antiphon.evaluation import Case, Mode, Outcome, evaluate, judge, table
from antiphon.messages import Message, ToolCall, ToolSpec
from antiphon.models import ModelSettings, ScriptedModel

WEATHER = ToolSpec(
    "get_weather",
    "Weather.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "unit": {"enum": ["celsius", "fahrenheit"], "default": "celsius"},
        },
        "required": ["city"],
    },
)
ADDRESS = ToolSpec("get_address", "Address.", {"type": "object", "properties": {"name": {}}})
CHAIN = Case(
    "chain-01",
    "chain",
    "Weather where Ada lives?",
    (WEATHER, ADDRESS),
    (
        (ToolCall("get_address", {"name": "Ada"}),),
        (ToolCall("get_weather", {"city": "Lima"}),),
    ),
    (('{"city": "Lima"}',), ("sunny",)),
)
NO_TOOL = Case("no_tool-01", "no_tool", "Hello!", (WEATHER,))


def _judge(case: Case, *answers: Message | str) -> Outcome:
    model = ScriptedModel(answers)
    return asyncio.run(judge(case, Mode("free", model, ModelSettings())))


def _calls(*calls: ToolCall) -> Message:
    return Message.assistant(tool_calls=calls)


def test_two_right_steps_are_right_and_the_second_step_sees_the_first_result():
    model = ScriptedModel([_calls(CHAIN.steps[0][0]), _calls(CHAIN.steps[1][0])])

    outcome = asyncio.run(judge(CHAIN, Mode("free", model, ModelSettings())))

    assert outcome.right
    assert model.conversations[1].messages[-1].text == '{"city": "Lima"}'


def test_a_wrong_second_step_says_which_step_and_what_was_wrong():
    outcome = _judge(
        CHAIN, _calls(CHAIN.steps[0][0]), _calls(ToolCall("get_weather", {"city": "Ada"}))
    )

    assert (outcome.right, outcome.error, outcome.step) == (False, "wrong_arguments", 1)


def test_each_mistake_has_its_name():
    call = CHAIN.steps[0][0]

    assert _judge(CHAIN, "I do not know.").error == "no_call"
    assert _judge(CHAIN, _calls(ToolCall("get_weather", {"city": "Lima"}))).error == "wrong_tool"
    assert _judge(CHAIN, _calls(call, call)).error == "extra_call"
    assert _judge(NO_TOOL, _calls(call)).error == "needless_call"
    assert _judge(NO_TOOL, "").error == "empty"
    assert _judge(NO_TOOL, "Hello!").right


def test_an_argument_that_repeats_its_default_is_right():
    wanted = Case(
        "s", "single", "Weather in Lima?", (WEATHER,), ((CHAIN.steps[1][0],),), (("sunny",),)
    )

    assert _judge(
        wanted, _calls(ToolCall("get_weather", {"city": "Lima", "unit": "celsius"}))
    ).right
    assert not _judge(
        wanted, _calls(ToolCall("get_weather", {"city": "Lima", "unit": "fahrenheit"}))
    ).right


def test_cases_that_are_done_are_not_asked_again():
    model = ScriptedModel(["Hello!"])
    done = [Outcome("chain-01", "chain", right=True)]

    async def run() -> list[Outcome]:
        mode = Mode("free", model, ModelSettings())
        return [o async for o in evaluate([CHAIN, NO_TOOL], mode, done=done)]

    assert [o.case for o in asyncio.run(run())] == ["no_tool-01"]


def test_the_table_counts_kinds_by_mode_and_names_the_mistakes():
    outcomes = [
        Outcome("a", "single", right=True),
        Outcome("b", "single", right=False, error="wrong_tool"),
    ]

    text = table({"free": outcomes, "grammar": outcomes[:1]})

    assert "1/2 = 50%" in text
    assert "1/1 = 100%" in text
    assert "free: wrong_tool 1" in text
