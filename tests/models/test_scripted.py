"""Scripted and replayed models answer as written, and refuse what was not."""

import asyncio
import json
from pathlib import Path

import pytest

from antiphon.errors import DataError, ModelConnectionError, ModelError, UsageError
from antiphon.events import CallDeltaEvent, RetryEvent, Step, TextEvent, Trajectory
from antiphon.messages import (
    Completion,
    Conversation,
    Message,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
)
from antiphon.models import (
    Model,
    ModelOutput,
    ReplayModel,
    Retry,
    ScriptedModel,
    read_script,
)

ASKED = Conversation((Message.user("Weather in Lima?"),))
CALL = Message.assistant(
    "Let me look.",
    reasoning="Lima is a city.",
    tool_calls=[ToolCall("get_weather", {"city": "Lima"}, id="c1")],
)


def complete(model: Model, conversation: Conversation = ASKED) -> list[ModelOutput]:
    async def collect() -> list[ModelOutput]:
        return [output async for output in model.stream(conversation)]

    return asyncio.run(collect())


def last(outputs: list[ModelOutput]) -> Completion:
    assert isinstance(outputs[-1], Completion)
    return outputs[-1]


def test_a_message_is_streamed_in_order_and_comes_back_whole() -> None:
    outputs = complete(ScriptedModel([CALL], chunk_chars=5))

    thinking = "".join(o.text for o in outputs if isinstance(o, ThinkingDelta))
    text = "".join(o.text for o in outputs if isinstance(o, TextDelta))
    calls = [o for o in outputs if isinstance(o, ToolCallDelta)]
    assert (thinking, text) == ("Lima is a city.", "Let me look.")
    assert calls[0] == ToolCallDelta(0, name="get_weather", id="c1")
    assert json.loads("".join(c.arguments for c in calls)) == {"city": "Lima"}
    assert last(outputs).message == CALL
    assert last(outputs).stop_reason == "tool_calls"


def test_a_callable_is_asked_with_the_conversation() -> None:
    model = ScriptedModel([lambda c: f"You said {c.messages[-1].text}"])

    assert last(complete(model)).message.text == "You said Weather in Lima?"


def test_one_callable_answers_every_request() -> None:
    model = ScriptedModel(lambda c: str(len(c.messages)))

    complete(model)
    assert last(complete(model, ASKED.append(CALL))).message.text == "2"


def test_asking_past_the_end_of_the_script_says_how_long_it_is() -> None:
    model = ScriptedModel(["one"])
    complete(model)

    with pytest.raises(ModelError, match="script has 1 answers"):
        complete(model)


def test_an_error_in_the_script_is_raised() -> None:
    with pytest.raises(ModelConnectionError, match="gone"):
        complete(ScriptedModel([ModelConnectionError("gone")]))


def test_a_script_that_is_one_string_is_refused() -> None:
    with pytest.raises(UsageError, match="brackets"):
        ScriptedModel("hello")


def test_what_was_asked_is_kept() -> None:
    model = ScriptedModel(["one"])
    complete(model)

    assert model.conversations == [ASKED]


@pytest.mark.parametrize("spelling", ["list", "lines", "messages", "answers"])
def test_a_script_file_is_read_in_every_spelling(tmp_path: Path, spelling: str) -> None:
    row = {
        "content": "",
        "tool_calls": [{"function": {"name": "add", "arguments": '{"a": 1}'}}],
    }
    user = {"role": "user", "content": "hi"}
    text = {
        "list": json.dumps(["hello", row]),
        "lines": '"hello"\n\n' + json.dumps(row) + "\n",
        "messages": json.dumps({"messages": [user, "hello", row]}),
        "answers": json.dumps({"answers": ["hello", row]}),
    }[spelling]
    path = tmp_path / "script.json"
    path.write_text(text)

    answers = read_script(path)

    assert answers[0] == "hello"
    assert answers[1] == Message.assistant(tool_calls=[ToolCall("add", {"a": 1})])
    assert len(answers) == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [('"a"\n{oops', "2: not JSON"), ("[1]", "got 1"), ('[{"role": "x"}]', "unknown role")],
)
def test_a_broken_script_file_names_the_place(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "script.jsonl"
    path.write_text(text)

    with pytest.raises(DataError, match=said):
        read_script(path)


def test_a_missing_script_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot read the script: No such file"):
        read_script(tmp_path / "none.json")


def recorded() -> Trajectory:
    answer = Message.assistant("Sunny.")
    result = Message.tool("sun", call_id="c1", name="get_weather")
    return Trajectory(
        Conversation((Message.system("Be brief."), *ASKED.messages, CALL, result, answer)),
        steps=(
            Step("a", 1, Completion(CALL, "tool_calls"), system="Be brief."),
            Step("a", 3, Completion(answer, "stop"), system="Be brief."),
        ),
        events=(
            TextEvent(0, "Let"),
            RetryEvent(0, "cut"),
            TextEvent(0, " me look."),
            CallDeltaEvent(0, 0, "get_weather", '{"city": "Lima"}'),
        ),
        id="r1",
    )


def test_a_replay_gives_the_recorded_deltas_and_completions() -> None:
    run = recorded()
    model = ReplayModel(run)
    shown = Conversation((Message.system("Be brief."), *ASKED.messages))

    first = complete(model, shown)
    call = Message.assistant(
        "Let me look.",
        reasoning="Lima is a city.",
        tool_calls=[ToolCall("get_weather", {"city": "Lima"}, id="another id")],
    )
    result = Message.tool("sun", call_id="another id", name="get_weather")
    second = complete(model, shown.append(call, result))

    assert first == [
        TextDelta("Let"),
        Retry("cut"),
        TextDelta("Let"),
        TextDelta(" me look."),
        ToolCallDelta(0, name="get_weather", arguments='{"city": "Lima"}'),
        run.steps[0].completion,
    ]
    assert second == [TextDelta("Sunny."), run.steps[1].completion]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ((Message.user("Weather in Lima?"),), "instructions"),
        (
            (Message.system("Be brief."), Message.user("Weather in Rome?")),
            "message 0 is user 'W.*Rome",
        ),
        ((Message.system("Be brief."), *ASKED.messages, CALL), "2 messages, recorded 1"),
    ],
)
def test_a_replay_refuses_another_conversation(messages: tuple[Message, ...], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        complete(ReplayModel(recorded()), Conversation(messages))


def test_a_replay_past_its_record_is_refused() -> None:
    with pytest.raises(ModelError, match="2 steps and was asked for one more"):
        complete(ReplayModel(recorded(), start=2))
