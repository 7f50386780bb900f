"""Events and trajectories survive their JSON, and a broken file says what is wrong with it."""

import json
import math
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest

from antiphon.errors import DataError
from antiphon.events import (
    ApprovalEvent,
    AttemptEvent,
    CallDeltaEvent,
    CallEvent,
    CompactionEvent,
    DecisionEvent,
    Event,
    FeedbackEvent,
    HandoffEvent,
    InsertionEvent,
    InvalidCallEvent,
    LimitEvent,
    PlanEvent,
    ReflectionEvent,
    ReplanEvent,
    ResultEvent,
    RetryEvent,
    RunEnd,
    RunStart,
    Step,
    StepEnd,
    StepStart,
    TaskEvent,
    TextEvent,
    ThinkingEvent,
    Trajectory,
    dump_row,
    event_from_row,
    event_to_row,
    written_whole,
)
from antiphon.messages import (
    Completion,
    Conversation,
    ImagePart,
    InvalidToolCall,
    Message,
    TokenLogprob,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)

CALL = ToolCall("add", {"a": 1, "b": [None, "二"]}, id="c1", raw="<add>", repairs=("comma",))
RESULT = ToolResult(
    "c1", "add", "3", value=3, images=(ImagePart("x.png"),), repairs=("cast",), full_text="3.0"
)
EVENTS: list[Event] = [
    RunStart("clerk", "script", "1+2?"),
    StepStart(0, "clerk", time=0.1),
    ThinkingEvent(0, "hm"),
    TextEvent(0, "Let me \ud800 see"),
    CallDeltaEvent(0, 0, "add", '{"a"'),
    RetryEvent(0, "cut", wait=0.5, discard_chars=12),
    CallEvent(0, CALL),
    InvalidCallEvent(0, InvalidToolCall("<add", "no end", name="add", id="c2")),
    ApprovalEvent(0, CALL),
    DecisionEvent(0, "c1", False, {"a": 2}, "no"),
    ResultEvent(0, RESULT, duration=0.25),
    FeedbackEvent(0, "answer in JSON"),
    CompactionEvent(1, "truncate", 4),
    HandoffEvent(0, "clerk", "boss"),
    LimitEvent("max_steps", 20),
    InsertionEvent(2, "c1", found=False),
    PlanEvent("proposed", {"goal": "3", "tasks": [{"id": "a"}]}),
    PlanEvent("rejected", reason="no plan"),
    TaskEvent("a", "in_progress", CALL),
    TaskEvent("a", "failed", result=RESULT, reason="503", attempt=2),
    ReplanEvent("a failed", 1),
    AttemptEvent(1, "failed", "3", 0.5, "not 4"),
    ReflectionEvent(1, "add more"),
    StepEnd(0, "tool_calls", Usage(1, 2, 3, 4)),
    RunEnd("answer", "3", Usage(1, 2, 3, 4), error="", time=2.0),
]


def make_trajectory(**changes: Any) -> Trajectory:
    answer = Message.assistant("Let me see", reasoning="hm", tool_calls=[CALL])
    conversation = Conversation(
        (
            Message.system("Be brief."),
            Message.user("1+2?"),
            answer,
            Message.from_result(RESULT),
            Message.assistant("3"),
        ),
        (ToolSpec("add", "Adds."),),
        {"source": "here", "later": {"x": [1]}, "id": "row 7"},
    )
    likely = (TokenLogprob(5, -0.5, "3"), TokenLogprob(8, -1.5, "4"))
    tokens = (TokenLogprob(5, -0.5, "3", likely), TokenLogprob(6, None, ""))
    steps = (
        Step(
            "clerk",
            1,
            Completion(answer, "tool_calls", prompt="<s>1+2?<a>", prompt_ids=(1, 2, 3)),
            (RESULT,),
            "Be brief.",
            tools=("add",),
        ),
        Step(
            "clerk",
            3,
            Completion(
                Message.assistant("3"),
                "stop",
                Usage(3, 2, 1, 1),
                "script",
                "qwen3",
                "<s>1+2?<a>call<r>3<a>",
                "3",
                (1, 2, 3, 4, 9),
                tokens,
                {"temperature": 0},
                0.1,
                0.2,
                (TokenLogprob(-1, -0.5, "3", (TokenLogprob(-1, -1.5, "4"),)),),
            ),
            (),
            "Be brief.",
            1.0,
            1.5,
            ("add",),
        ),
    )
    fields: dict[str, Any] = {
        "steps": steps,
        "events": tuple(EVENTS),
        "stop_reason": "step_limit",
        "output": "3",
        "usage": Usage(3, 2, 1, 1),
        "agents": ({"name": "clerk", "tools": ["add"]},),
        "id": "r1",
        "started_at": "2026-01-01T00:00:00+00:00",
        "error": "none",
        "metadata": {"tags": ["a"]},
        "state": {"user": "Ada"},
        "children": (Trajectory(Conversation((Message.user("sub"),)), call_id="c1"),),
    }
    return Trajectory(conversation, **(fields | changes))


def test_every_kind_of_event_is_tried_here() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: e.type)
def test_an_event_survives_its_row(event: Event) -> None:
    text = dump_row(event_to_row(event))

    assert event_from_row(json.loads(text)) == event


def test_a_result_event_keeps_what_comparison_leaves_out() -> None:
    back = event_from_row(json.loads(dump_row(event_to_row(ResultEvent(0, RESULT)))))

    assert isinstance(back, ResultEvent)
    assert (back.result.value, back.result.repairs) == (3, ("cast",))


def test_a_value_that_json_cannot_hold_is_left_out_of_a_result() -> None:
    result = ToolResult("c1", "f", "<obj>", value=object())

    assert "value" not in event_to_row(ResultEvent(0, result))["result"]  # pyright: ignore[reportOperatorIssue]


def test_an_unknown_event_is_refused_by_name() -> None:
    with pytest.raises(DataError, match="unknown event 'dance'"):
        event_from_row({"type": "dance"})


def test_an_event_without_its_fields_is_refused() -> None:
    with pytest.raises(DataError, match="incomplete"):
        event_from_row({"type": "text_delta", "step": 0})


def test_a_trajectory_survives_json() -> None:
    trajectory = make_trajectory()

    assert Trajectory.from_json(trajectory.to_json()) == trajectory


def test_a_trajectory_is_a_row_that_others_can_read() -> None:
    row = json.loads(make_trajectory().to_json())

    assert row["antiphon"] == 1
    assert [m["role"] for m in row["messages"]][:2] == ["system", "user"]
    assert row["tools"][0]["function"]["name"] == "add"
    assert (row["source"], row["models"], row["format"]) == ("here", ["", "script"], "qwen3")


def test_a_prompt_is_told_by_what_it_adds_to_the_one_before() -> None:
    steps = json.loads(make_trajectory().to_json())["steps"]

    assert steps[1]["completion"]["prompt"] == {"shared": 10, "rest": "call<r>3<a>"}
    assert steps[1]["completion"]["prompt_ids"] == {"shared": 3, "rest": [4, 9]}


def test_a_result_is_told_once() -> None:
    row = json.loads(make_trajectory().to_json())

    assert [e["result"] for e in row["events"] if e["type"] == "tool_result"] == ["c1"]


def test_a_step_whose_answer_is_not_in_the_conversation_keeps_it() -> None:
    step = Step("a", 7, Completion(Message.assistant("gone"), "stop"))
    trajectory = make_trajectory(steps=(step,), events=())

    assert Trajectory.from_json(trajectory.to_json()) == trajectory


def test_a_plain_row_of_messages_is_a_trajectory_without_steps() -> None:
    trajectory = Trajectory.from_json('{"messages": [{"role": "user", "content": "Hi"}]}')

    assert trajectory == Trajectory(Conversation((Message.user("Hi"),)))


def test_text_stays_readable_and_lone_surrogates_survive() -> None:
    trajectory = Trajectory(Conversation((Message.user("上海 \ud83d"),)))

    text = trajectory.to_json()

    text.encode("utf-8")
    assert "上海" in text
    assert Trajectory.from_json(text) == trajectory


def test_a_number_that_json_has_not_is_written_as_text() -> None:
    tokens = (TokenLogprob(1, -math.inf), TokenLogprob(2, math.nan))
    completion = Completion(Message.assistant("x"), "stop", tokens=tokens)
    trajectory = Trajectory(Conversation((Message.assistant("x"),)), (Step("a", 0, completion),))

    text = trajectory.to_json()
    back = Trajectory.from_json(text).steps[0].completion.tokens

    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert back is not None
    assert back[0].logprob == -math.inf
    assert math.isnan(back[1].logprob or 0.0)


def test_a_file_is_written_whole_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    trajectory = make_trajectory()

    trajectory.save(path)

    assert Trajectory.load(path) == trajectory
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"run.json: cannot be written: No such file"):
        make_trajectory().save(tmp_path / "no" / "run.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"run.json: cannot be read: No such file") as caught:
        Trajectory.load(tmp_path / "run.json")

    assert caught.value.path == tmp_path / "run.json"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not JSON"),
        ('{"messages": [', "not JSON"),
        ("[1, 2]", "expected one JSON object"),
        ('{"a": 1}', "expected one JSON object"),
        ('{"messages": 5}', "needs a list of messages"),
        ('{"messages": [], "antiphon": 2}', "upgrade antiphon"),
        ('{"messages": [], "stop_reason": "tired"}', "unknown stop_reason"),
        ('{"messages": [], "steps": [1]}', "list of objects"),
        ('{"messages": [], "steps": [{}]}', "step 0: its answer should be message 0"),
        ('{"messages": [], "usage": {"input_tokens": "x"}}', "whole number"),
        ('{"messages": [], "events": [{"type": "dance"}]}', "event 0: unknown event"),
        (
            '{"messages": [], "events": [{"type": "tool_result", "step": 0, "result": "c9"}]}',
            "no step has a result for call 'c9'",
        ),
        (
            '{"messages": [{"role": "assistant", "content": ""}], "steps": '
            '[{"completion": {"prompt": {"shared": 4, "rest": ""}}}]}',
            "does not fit the step before",
        ),
    ],
)
def test_a_broken_or_foreign_file_says_what_is_wrong(
    tmp_path: Path, text: str, reason: str
) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)

    with pytest.raises(DataError, match=reason) as caught:
        Trajectory.load(path)

    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_no_trajectory(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"\x89PNG\xff\xfe")

    with pytest.raises(DataError, match="not a trajectory"):
        Trajectory.load(path)


def test_children_cost_is_part_of_the_whole() -> None:
    child = Trajectory(Conversation(), usage=Usage(1, 1, 0, 1))

    assert make_trajectory(children=(child, child)).total_usage == Usage(5, 4, 1, 3)


def test_a_file_takes_its_place_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    with written_whole(path) as beside:
        beside.write_text("old")

    with suppress(KeyError), written_whole(path) as beside:
        beside.write_text("ne")
        raise KeyError

    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_link_leads_to_is_written_and_the_link_stays(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    link = tmp_path / "latest.json"
    link.symlink_to(tmp_path / "runs" / "1.json")

    with written_whole(link) as beside:
        beside.write_text("new")

    assert link.is_symlink()
    assert (tmp_path / "runs" / "1.json").read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
def test_a_pipe_or_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "rows"
    os.mkfifo(pipe)

    with written_whole(pipe) as path:
        assert path == pipe

    assert pipe.is_fifo()
    with written_whole(Path(os.devnull)) as path:
        path.write_text("gone")
    assert not Path(os.devnull).is_file()
