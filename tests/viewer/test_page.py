"""The page's structure: one inert file.  What a browser makes of it is in `test_browser.py`."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest

from antiphon.events import CallEvent, ResultEvent, Trajectory
from antiphon.messages import (
    AudioPart,
    Conversation,
    ImagePart,
    Message,
    TextPart,
    ToolCall,
    ToolResult,
    VideoPart,
)
from antiphon.viewer import Record, render_page
from antiphon.viewer._data import page_data
from antiphon.viewer._steps import n_shared_chars
from sample_runs import HOSTILE, hostile_record, rich_encoding, rich_run


class _Tags(HTMLParser):
    """Every tag of a page, with its attributes and the text in it."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data


def _tags(page: str) -> _Tags:
    parser = _Tags()
    parser.feed(page)
    return parser


def _data(page: str) -> dict[str, Any]:
    parsed = _tags(page)
    at = next(i for i, (_, attrs) in enumerate(parsed.tags) if attrs.get("id") == "data")
    return json.loads(parsed.texts[at])


def _record(trajectory: Trajectory) -> Any:
    records: Any = page_data([Record(trajectory)])["records"]
    return records[0]


def test_the_page_has_two_scripts_one_style_and_loads_nothing() -> None:
    tags = _tags(render_page([Record(rich_run(), "run", (rich_encoding(),))])).tags
    names = [name for name, _ in tags]

    assert names.count("script") == 2
    assert names.count("style") == 1
    assert {"link", "img", "iframe", "object", "base", "form"}.isdisjoint(names)
    assert [a for _, attrs in tags for a in attrs if a in ("src", "href") or a[:2] == "on"] == []


def test_hostile_text_adds_no_tag_to_the_page() -> None:
    title = "".join(HOSTILE)
    harmless = _tags(render_page([Record(rich_run())])).tags

    page = render_page([hostile_record()], title=title)

    assert [name for name, _ in _tags(page).tags] == [name for name, _ in harmless]
    page.encode("utf-8")


def test_hostile_text_reaches_the_script_exactly() -> None:
    page = render_page([hostile_record()], title="x")
    assert _data(page)["records"][0]["summary"]["output"] == "\n".join(HOSTILE)


def test_the_data_holds_no_character_that_means_something_in_html() -> None:
    data = re.search(r'id="data">(.*?)</script>', render_page([hostile_record()]), re.DOTALL)
    assert data is not None
    assert set("<>&\u2028\u2029").isdisjoint(data[1])
    assert data[1].isascii()


def test_the_policy_allows_the_pages_own_script_and_style_by_hash_and_no_request() -> None:
    parsed = _tags(render_page([]))
    policy = next(a["content"] for n, a in parsed.tags if "http-equiv" in a and n == "meta")

    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "http" not in policy.replace("http-equiv", "")


def test_numbers_that_json_cannot_say_are_left_out() -> None:
    step = _record(hostile_record().trajectory)["steps"][0]
    assert (step["first"], step["duration"], step["started"]) == (None, None, None)
    assert step["tokens"][0][2] is None


def test_a_result_stands_beside_the_call_whose_id_it_has() -> None:
    calls = [ToolCall("f", {"n": i}, id=f"c{i}") for i in range(2)]
    results = [Message.tool(f"r{i}", call_id=f"c{i}") for i in (1, 0)]
    trajectory = Trajectory(Conversation((Message.assistant(tool_calls=calls), *results)))

    (turn,) = _record(trajectory)["items"]

    assert [call["result"]["text"] for call in turn["calls"]] == ["r0", "r1"]


def test_results_without_ids_stand_beside_calls_in_order() -> None:
    calls = [ToolCall("f", {}), ToolCall("g", {}), ToolCall("h", {})]
    results = [Message.tool("r0"), Message.tool("r1")]
    trajectory = Trajectory(Conversation((Message.assistant(tool_calls=calls), *results)))

    (turn,) = _record(trajectory)["items"]

    assert [c["result"] and c["result"]["text"] for c in turn["calls"]] == ["r0", "r1", None]


def test_the_same_id_in_a_later_turn_finds_its_own_result() -> None:
    call = ToolCall("f", {}, id="call_0")
    turn = (Message.assistant(tool_calls=[call]), Message.tool("first", call_id="call_0"))
    again = (Message.assistant(tool_calls=[call]), Message.tool("second", call_id="call_0"))

    items = _record(Trajectory(Conversation(turn + again)))["items"]

    assert [item["calls"][0]["result"]["text"] for item in items] == ["first", "second"]


def test_a_result_that_answers_nothing_is_a_card_of_its_own() -> None:
    trajectory = Trajectory(
        Conversation((Message.assistant("hello"), Message.tool("stray", call_id="c9")))
    )
    assert [item["role"] for item in _record(trajectory)["items"]] == ["assistant", "tool"]


def test_calls_that_overlap_are_in_lanes_of_their_own_and_a_free_lane_is_used_again() -> None:
    calls = [ToolCall("f", {}, id=f"c{i}") for i in range(3)]
    times = [(1.0, 2.0), (1.5, 1.0), (3.2, 0.5)]
    trajectory = Trajectory(
        Conversation(),
        events=(
            *(CallEvent(0, c, start) for c, (start, _) in zip(calls, times, strict=True)),
            *(
                ResultEvent(0, ToolResult(c.id, "f", ""), length, start + length)
                for c, (start, length) in zip(calls, times, strict=True)
            ),
        ),
    )

    lanes = _record(trajectory)["lanes"]

    spans = [[(bar["start"], bar["end"]) for bar in lane["bars"]] for lane in lanes]
    assert spans == [[(1.0, 3.0), (3.2, 3.7)], [(1.5, 2.5)]]


def test_a_retry_stands_before_the_answer_it_led_to_and_a_handoff_after_it() -> None:
    items = _record(rich_run())["items"]
    order = [item.get("what") or item.get("step") for item in items]

    assert order[order.index("retry") + 1] == 2
    assert order[order.index("handoff") - 1] == 1


def test_children_follow_their_parent() -> None:
    run = replace(rich_run(), children=(replace(rich_run(), call_id="c1"),))

    records: Any = page_data([Record(run, "run.json")])["records"]

    assert [(r["name"], r["depth"]) for r in records] == [
        ("run.json", 0),
        ("clerk for call c1", 1),
    ]


def test_what_is_seen_and_heard_is_told_with_its_kind_a_film_of_frames_frame_by_frame() -> None:
    film = VideoPart(("1.png", "2.png"))
    shown = Message.user([ImagePart("a.png"), TextPart("and"), AudioPart("b.wav"), film])
    record = _record(Trajectory(Conversation((shown, Message.assistant("hello")))))

    pairs = [(item["kind"], item["source"]) for item in record["items"][0]["media"]]
    frames = [("video", "1.png"), ("video", "2.png")]
    assert pairs == [("image", "a.png"), ("audio", "b.wav"), *frames]


def test_a_row_without_steps_is_shown_as_a_conversation() -> None:
    record = _record(Trajectory(Conversation((Message.user("hi"), Message.assistant("hello")))))
    assert [item["text"] for item in record["items"]] == ["hi", "hello"]
    assert (record["steps"], record["lanes"], record["summary"]["stop_reason"]) == ([], [], "")


def test_prompts_that_grow_are_told_by_what_they_add() -> None:
    first, second, *_ = _record(rich_run())["steps"]
    assert first["n_shared"] == 0
    assert second["n_shared"] == len(first["prompt"])
    assert second["prompt"].startswith("<tool_call>")


@pytest.mark.parametrize(
    ("before", "after", "n"),
    [("", "a", 0), ("a\n", "a\n", 2), ("a\nb", "a\nbc", 2), ("x", "y", 0), ("a\nb\n", "a\n", 2)],
)
def test_prompts_share_whole_lines(before: str, after: str, n: int) -> None:
    assert n_shared_chars(before, after) == n


def test_the_events_of_a_stream_are_one_line() -> None:
    events = _record(rich_run())["events"]
    (thinking,) = [e for e in events if e["type"] == "thinking_delta"]
    assert (thinking["text"], thinking["count"]) == ("Two people, two cities.", 2)


def test_long_integers_arrive_as_they_were_written() -> None:
    items = _record(rich_run())["items"]
    (call,) = [c for i in items for c in i.get("calls", []) if c["id"] == "c2"]
    assert "12345678901234567890" in call["arguments"]
