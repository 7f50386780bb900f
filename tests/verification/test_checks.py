"""Each layer finds its kind of fault, and what is right passes all of them."""

import asyncio
import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent
from antiphon.evaluation import Library, held_out
from antiphon.evaluation._desk import first_state
from antiphon.events import Trajectory
from antiphon.formats import read_format
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec, conversation_to_row
from antiphon.models import ScriptedModel
from antiphon.synthesis import (
    ScriptCall,
    ScriptTurn,
    SynthConfig,
    Task,
    TaskTools,
    config_from,
    synthesize,
)
from antiphon.tools.builtin import get_weather
from antiphon.verification import (
    Checks,
    Judge,
    Sample,
    Verdict,
    check_answers,
    check_by_judge,
    check_by_tests,
    check_execution,
    check_format,
    decided,
    reward,
    verify_file,
)

Row = dict[str, Any]
REAL = ("get_address", "get_weather")
BUILTIN = "antiphon.tools.builtin:DEMO_TOOLS"


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> SynthConfig:
    """Real tools that answer the same every time."""
    tools = [f"antiphon.tools.builtin:{name}" for name in REAL]
    given = {
        "seed": 2,
        "out": str(tmp_path_factory.mktemp("made")),
        "toolset": [{"python": tools, "catalogs": ["demo"], "offered": [5, 5]}],
        "tasks": {"count": 60},
    }
    config = config_from(given)
    asyncio.run(synthesize(config))
    return config


@pytest.fixture(scope="module")
def rows(config: SynthConfig) -> list[Row]:
    """Runs of that synthesis."""
    text = (Path(config.out) / "runs.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def of_kind(rows: list[Row], kind: str) -> Row:
    """The first run of a kind that calls a real tool first."""
    mine = (row for row in rows if row["metadata"]["kind"] == kind)
    return copy.deepcopy(
        next(r for r in mine if assistant(r)["tool_calls"][0]["function"]["name"] in REAL)
    )


def assistant(row: Row) -> Row:
    """The first message with calls."""
    return next(m for m in row["messages"] if m.get("tool_calls"))


def verdicts(row: Row, config: SynthConfig) -> list[Verdict]:
    sample = Sample.read(row)
    assert sample.task is not None
    replayed = check_execution(sample, TaskTools(config).of(sample.task))
    return [*check_format(sample), *asyncio.run(replayed), *check_answers(sample)]


def failed(row: Row, config: SynthConfig) -> set[str]:
    found = verdicts(row, config)
    return {f"{v.layer}/{v.check}" for v in found if v.outcome == "fail"}


def test_what_the_rule_based_teacher_does_passes(rows: list[Row], config: SynthConfig):
    for row in rows:
        if "simulated" not in row["metadata"] or "current_time" not in str(row["messages"]):
            assert failed(row, config) == set()


def _other_value(row: Row) -> None:
    call = assistant(row)["tool_calls"][0]["function"]
    call["arguments"] = dict.fromkeys(call["arguments"], "Atlantis")


def _unknown_argument(row: Row) -> None:
    assistant(row)["tool_calls"][0]["function"]["arguments"]["colour"] = "red"


def _unknown_tool(row: Row) -> None:
    assistant(row)["tool_calls"][0]["function"]["name"] = "get_wether"


def _other_result(row: Row) -> None:
    next(m for m in row["messages"] if m["role"] == "tool")["content"] = '{"made": "up"}'


def _cut_off(row: Row) -> None:
    row["stop_reason"] = "step_limit"


@pytest.mark.parametrize(
    ("harm", "check"),
    [
        (_other_value, "answer/calls"),
        (_other_value, "answer/needless_call"),
        (_other_value, "execution/replay"),
        (_unknown_argument, "format/arguments"),
        (_unknown_tool, "format/unknown_tool"),
        (_other_result, "execution/replay"),
        (_cut_off, "format/ended"),
    ],
)
def test_a_fault_is_found_by_its_layer(
    rows: list[Row], config: SynthConfig, harm: Callable[[Row], None], check: str
):
    row = of_kind(rows, "single")

    harm(row)

    assert check in failed(row, config)


def test_a_dependent_call_with_another_value_than_was_found_is_wrong(
    rows: list[Row], config: SynthConfig
):
    row = of_kind(rows, "dependent")
    second = [m for m in row["messages"] if m.get("tool_calls")][1]["tool_calls"][0]["function"]
    second["arguments"] = dict.fromkeys(second["arguments"], "Paris")

    assert "answer/calls" in failed(row, config)


def test_a_call_that_a_tool_refused_is_a_wrong_message_and_the_row_stays():
    messages = (
        Message.user("Weather in Rome?"),
        Message.assistant(tool_calls=[ToolCall("get_weather", {"city": "Rom"}, "a")]),
        Message.tool("there is no weather for 'Rom'", call_id="a", is_error=True),
        Message.assistant(tool_calls=[ToolCall("get_weather", {"city": "Rome"}, "b")]),
        Message.tool("sunny", call_id="b"),
        Message.assistant("Sunny."),
    )
    spec = ToolSpec("get_weather", "", {"type": "object", "properties": {"city": {}}})
    sample = Sample.read(conversation_to_row(Conversation(messages, (spec,))))

    found = asyncio.run(check_execution(sample, {}))
    row, reason = decided(sample, found)

    assert [(v.check, v.message) for v in found] == [("refused", 1)]
    assert reason == ""
    assert [m.get("loss") for m in row["messages"]][1:4:2] == [0.0, None]  # type: ignore[union-attr]


def test_a_row_of_which_nothing_is_right_is_dropped():
    sample = Sample.read(
        {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}
    )

    row, reason = decided(sample, [Verdict("tests", "t", "fail", "no", 1)])

    assert reason == "no message is left that is right"
    assert row["outcome"]["status"] == "dropped"  # type: ignore[index, call-overload]


def test_a_tool_that_tells_the_time_makes_nobody_sure():
    from antiphon.tools.builtin import current_time

    row: Row = {
        "messages": [
            {"role": "user", "content": "Time?"},
            {
                "role": "assistant",
                "tool_calls": [{"id": "a", "function": {"name": "current_time", "arguments": {}}}],
            },
            {
                "role": "tool",
                "tool_call_id": "a",
                "content": '{"timezone": "UTC", "time": "2020-01-01T00:00:00", "weekday": "x"}',
            },
            {"role": "assistant", "content": "Midnight."},
        ]
    }

    found = asyncio.run(check_execution(Sample.read(row), {"current_time": current_time}))

    assert [(v.check, v.outcome) for v in found] == [("replay", "unsure")]


def test_a_number_that_nobody_said_is_pointed_at():
    messages = (
        Message.user("How warm?"),
        Message.assistant(tool_calls=[ToolCall("w", {}, "a")]),
        Message.tool('{"t": 17}', call_id="a"),
        Message.assistant("It is 17 degrees, and 1,234 people are outside."),
    )

    found = list(check_answers(Sample.read(conversation_to_row(Conversation(messages)))))

    assert [(v.outcome, v.reason) for v in found] == [("unsure", "1,234 stands nowhere before")]


@pytest.mark.parametrize("format", ["hermes", "smollm2(compact=True)", "qwen3"])
def test_the_text_of_a_step_is_read_again_by_its_format(format: str):
    made = ToolCall("get_weather", {"city": "Lima"})
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Lima"}}\n</tool_call>'
    if format.startswith("smollm2"):
        text = '<tool_call>[{"name": "get_weather", "arguments": {"city": "Lima"}}]</tool_call>'
    model = ScriptedModel([text, "Sunny."], format=read_format(format))
    run = Agent(model=model, tools=[get_weather]).run_sync("Weather in Lima?").trajectory
    row = json.loads(run.to_json())
    other = copy.deepcopy(row)
    other["messages"][1]["tool_calls"][0]["function"]["arguments"] = {"city": "Rome"}

    right, wrong = (list(check_format(Sample.read(r))) for r in (row, other))

    assert run.steps[0].completion.message.without_ids().tool_calls == (made,)
    assert [v.outcome for v in right if v.check == "parse"] == ["pass"]
    assert [v.outcome for v in wrong if v.check == "parse"] == ["fail"]


# ---- tests of the user's -----------------------------------------------------------------------

ROW: Row = {
    "messages": [
        {"role": "user", "content": "Say hello."},
        {"role": "assistant", "content": "Hello there."},
    ]
}


def _asserts(record: Any) -> None:
    assert record.conversation.messages[-1].text == "Bye.", "it should say bye"


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (lambda r: None, ""),  # pyright: ignore
        (lambda r: True, ""),  # pyright: ignore
        (lambda r: False, "the test says no"),  # pyright: ignore
        (lambda r: "too short", "too short"),  # pyright: ignore
        (lambda r: r.steps[3], "IndexError: tuple index out of range"),  # pyright: ignore
        (_asserts, "it should say bye"),
    ],
)
def test_a_test_says_in_its_own_way_that_a_row_is_wrong(test: Any, reason: str):
    (verdict,) = asyncio.run(check_by_tests(Sample.read(ROW), [("t", test)]))

    assert (verdict.outcome, verdict.reason) == ("fail" if reason else "pass", reason)


def test_a_test_of_two_parameters_looks_at_the_state_that_the_calls_left():
    library = Library(first_state())
    tools = {one.name: one for one in library.tools()}
    made = ToolCall("waive_fee", {"member_id": "M3"}, "a")
    messages = (
        Message.user("Drop my fee."),
        Message.assistant(tool_calls=[made]),
        Message.tool('{"owes": 0}', call_id="a"),
        Message.assistant("It is gone."),
    )
    sample = Sample.read(conversation_to_row(Conversation(messages)))

    def owes_nothing(record: Any, tools: Any) -> bool:
        found = asyncio.run(tools["find_member"].call({"name_or_id": "M3"}))
        return found.value["owes"] == 0

    before = asyncio.run(check_by_tests(sample, [("t", owes_nothing)], tools))
    replayed = asyncio.run(check_execution(sample, tools))
    after = asyncio.run(check_by_tests(sample, [("t", owes_nothing)], tools))

    assert [v.outcome for v in (*before, *replayed, *after)] == ["fail", "pass", "pass"]


# ---- the judge ----------------------------------------------------------------------------------


def vote(verdict: str, quote: str = "Hello there.", **more: Any) -> str:
    return json.dumps({"verdict": verdict, "quote": quote, "why": "because"} | more)


def judged(*answers: str) -> list[Verdict]:
    judge = Judge(ScriptedModel(answers), votes=len(answers))
    return asyncio.run(check_by_judge(Sample.read(ROW), judge))


def test_the_majority_of_votes_decides_and_is_recorded():
    assert judged(vote("good"), vote("bad"), vote("good"))[0].reason == "2 of 3 votes are good"
    assert judged(vote("bad"), vote("bad"), vote("good"))[0].outcome == "fail"
    assert judged(vote("bad"), vote("good"))[0].outcome == "unsure"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("Looks fine to me!", "gave no verdict, but 'Looks fine"),
        ('{"verdict": "great", "quote": "Hello there."}', "gave no verdict"),
        (vote("good", quote="Good day."), "quotes 'Good day.', which is not in the transcript"),
        (vote("good", quote=""), "quotes ''"),
    ],
)
def test_what_a_judge_says_otherwise_is_no_vote(answer: str, reason: str):
    (verdict,) = judged(answer)

    assert verdict.outcome == "unsure"
    assert reason in verdict.reason
    assert judged(answer, vote("bad"))[0].outcome == "fail"


def test_messages_that_most_votes_call_wrong_are_named_and_no_other():
    found = judged(vote("good", wrong_messages=[1, 0]), vote("good", wrong_messages=[1, 7, "x"]))

    assert [(v.check, v.message) for v in found] == [("rubric", None), ("message", 1)]


def test_the_judge_reads_the_transcript_and_not_who_made_it(rows: list[Row]):
    model = ScriptedModel([vote("good", quote="user")])
    sample = Sample.read(rows[0])

    asyncio.run(check_by_judge(sample, Judge(model)))

    shown = "".join(m.text for m in model.conversations[0].messages)
    assert sample.question in shown
    assert "rules" not in shown.replace("rubric", "")


def test_calls_are_made_again_on_tools_that_know_what_was_held_out(tmp_path: Path):
    given = config_from(
        {
            "out": str(tmp_path),
            "toolset": [{"python": [BUILTIN], "catalogs": ["demo"], "simulate": True}],
            "tasks": {"count": 40, "hold_out": ["demo"], "kinds": {"single": 1}},
        }
    )
    kept_out = held_out(["demo"])
    asyncio.run(synthesize(given, held_out=kept_out))

    report = asyncio.run(verify_file(tmp_path / "runs.jsonl", tmp_path, Checks(synthesis=given)))

    assert "Osaka" in kept_out
    assert report.checks["execution/replay"] == {"pass": 40}


# ---- a run's worth ----------------------------------------------------------------------------


def worth(*answers: Message | str, task: Task | None = None, **options: Any) -> float:
    agent = Agent(name="a", model=ScriptedModel(answers), tools=[get_weather])
    run = agent.run_sync("Weather in Lima?").trajectory
    return asyncio.run(reward(run, task=task, tools=[get_weather], **options))


def no(run: Trajectory) -> bool:
    return not run.steps


def weather(city: str) -> Message:
    return Message.assistant(tool_calls=[ToolCall("get_weather", {"city": city})])


LIMA = ScriptTurn([[ScriptCall("get_weather", {"city": "Lima"})]])


def test_a_run_is_worth_one_where_all_is_right_and_nothing_where_it_is_wrong():
    task = Task("t", "single", ["Weather in Lima?"], [], script=[LIMA])

    assert worth(weather("Lima"), "It is fine.", task=task) == 1.0
    assert worth("It is fine.", task=task) == 0.0
    assert worth(weather("Lima"), "It is fine.", tests=[("no", no)]) == 0.0


def test_a_wrong_message_costs_its_share():
    task = Task("t", "single", ["Weather in Lima?"], [], script=[LIMA])

    assert worth(weather("Oslo"), weather("Lima"), "Fine.", task=task) == pytest.approx(2 / 3)
