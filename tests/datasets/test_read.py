"""Rows in every spelling of the unified format become the conversation that they mean."""

import json
from typing import Any

import pytest

from antiphon.datasets import read_row, read_row_all
from antiphon.errors import DataError
from antiphon.events import Step, Trajectory
from antiphon.messages import (
    AudioPart,
    Completion,
    Conversation,
    ImagePart,
    Message,
    TextPart,
    TokenLogprob,
    ToolCall,
    ToolSpec,
    VideoPart,
)

CALL = '{"name": "ferry_status", "arguments": {"route": "Holm"}}'
TOOL: dict[str, Any] = {"name": "ferry_status", "parameters": {"type": "object", "properties": {}}}

EXPECTED = [
    Message.user("Running?"),
    Message.assistant(
        "Let me see.", tool_calls=[ToolCall("ferry_status", {"route": "Holm"}, "c0")]
    ),
    Message.tool("yes", call_id="c0", name="ferry_status"),
    Message.assistant("It runs."),
]


def entries(*pairs: tuple[str, object], role: str = "role", content: str = "content") -> list[Any]:
    return [{role: who, content: what} for who, what in pairs]


SPELLINGS: dict[str, dict[str, Any]] = {
    "ms-swift": {
        "messages": entries(
            ("user", "Running?"),
            ("assistant", "Let me see."),
            ("tool_call", CALL),
            ("tool_response", "yes"),
            ("assistant", "It runs."),
        )
    },
    "ms-swift with tool": {
        "messages": entries(
            ("user", "Running?"),
            ("assistant", "Let me see."),
            ("tool-call", CALL),
            ("tool", "yes"),
            ("assistant", "It runs."),
        )
    },
    "ShareGPT": {
        "conversations": entries(
            ("human", "Running?"),
            ("gpt", "Let me see."),
            ("function_call", CALL),
            ("observation", "yes"),
            ("gpt", "It runs."),
            role="from",
            content="value",
        )
    },
    "a call as an object, with Python's notation inside": {
        "messages": entries(
            ("user", "Running?"),
            ("assistant", "Let me see."),
            ("function_call", {"name": "ferry_status", "parameters": "{'route': 'Holm'}"}),
            ("function", "yes"),
            ("assistant", "It runs."),
        )
    },
    "OpenAI's first function calls": {
        "messages": [
            {"role": "user", "content": "Running?"},
            {
                "role": "assistant",
                "content": "Let me see.",
                "function_call": {"name": "ferry_status", "arguments": '{"route": "Holm"}'},
            },
            {"role": "function", "name": "ferry_status", "content": "yes"},
            {"role": "assistant", "content": "It runs.", "tool_calls": None},
        ]
    },
    "a text of JSON": {
        "messages": json.dumps(
            entries(
                ("user", "Running?"),
                ("assistant", "Let me see."),
                ("tool_call", CALL),
                ("tool", "yes"),
                ("assistant", "It runs."),
            )
        )
    },
}


@pytest.mark.parametrize("row", SPELLINGS.values(), ids=SPELLINGS)
def test_a_spelling_means_the_same_conversation(row: dict[str, Any]) -> None:
    assert list(read_row(row).messages) == EXPECTED


def test_consecutive_calls_are_one_turn_and_results_follow_in_order() -> None:
    conversation = read_row(
        {
            "messages": entries(
                ("user", "both?"),
                ("tool_call", {"name": "a", "arguments": {}}),
                ("tool_call", {"name": "b", "arguments": {}}),
                ("tool_response", "1"),
                ("tool_response", "2"),
                ("assistant", "3"),
            )
        }
    )

    _, turn, first, second, _ = conversation.messages
    assert [(c.name, c.id) for c in turn.tool_calls] == [("a", "c0"), ("b", "c1")]
    assert [(m.name, m.tool_call_id, m.text) for m in (first, second)] == [
        ("a", "c0", "1"),
        ("b", "c1", "2"),
    ]


def test_results_with_ids_answer_their_calls_in_any_order() -> None:
    calls = [
        {"id": i, "function": {"name": n, "arguments": "{}"}} for i, n in (("x", "a"), ("y", "b"))
    ]
    conversation = read_row(
        {
            "messages": [
                {"role": "assistant", "tool_calls": calls},
                {"role": "tool", "tool_call_id": "y", "content": "2"},
                {"role": "tool", "tool_call_id": "x", "content": "1"},
            ]
        }
    )

    assert [(m.name, m.text) for m in conversation.messages[1:]] == [("b", "2"), ("a", "1")]


def test_thinking_at_the_start_of_a_text_is_reasoning() -> None:
    row = {"messages": entries(("assistant", "<think>\nFirst look.\n</think>\n\nDone. <think>"))}

    message = read_row(row).messages[0]

    assert (message.reasoning, message.text) == ("First look.", "Done. <think>")


def test_text_after_a_call_is_another_message() -> None:
    row = {"messages": entries(("tool_call", CALL), ("assistant", "Never mind."))}

    assert [m.text for m in read_row(row).messages] == ["", "Never mind."]


@pytest.mark.parametrize(
    ("entry", "loss"),
    [
        ({"loss": False}, 0.0),
        ({"loss": True}, 1.0),
        ({"loss_scale": 2}, 2.0),
        ({"loss": True, "loss_scale": 0.5}, 0.5),
        ({"weight": 0}, 0.0),
        ({"train": False}, 0.0),
        ({"loss": None}, None),
    ],
)
def test_a_message_may_say_what_it_counts(entry: dict[str, Any], loss: float | None) -> None:
    row = {"messages": [{"role": "assistant", "content": "a", **entry}]}

    assert read_row(row).messages[0].loss == loss


def test_entries_of_one_turn_keep_their_own_losses() -> None:
    """ms-swift takes the first one's for all."""
    row = {
        "messages": [
            {"role": "assistant", "content": "wrong", "loss": False},
            {"role": "tool_call", "content": CALL},
        ]
    }

    message = read_row(row).messages[0]

    assert message.loss is None
    assert message.metadata["loss_entries"] == [
        {"n_parts": 1, "n_calls": 0, "loss": 0.0},
        {"n_parts": 0, "n_calls": 1, "loss": None},
    ]


@pytest.mark.parametrize(
    "tools",
    [
        [{"type": "function", "function": TOOL}],
        json.dumps([{"type": "function", "function": TOOL}]),
        [json.dumps({"type": "function", "function": TOOL})],
        [{"type": "function", "function": {**TOOL, "strict": None}}],
    ],
)
def test_tools_may_be_given_as_text_and_lose_only_added_nulls(tools: object) -> None:
    row = {"messages": entries(("user", "a")), "tools": tools}

    assert read_row(row).tools[0].to_openai() == {"type": "function", "function": TOOL}


def test_a_null_that_means_something_stays() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [None, 1], "default": None}}}
    row = {"messages": [], "tools": [{"name": "f", "parameters": schema}]}

    assert read_row(row).tools[0].parameters == schema


def test_images_take_the_places_of_their_tags() -> None:
    row = {
        "messages": entries(
            ("user", "<image>what?"), ("tool_call", CALL), ("tool", "see <image>.")
        ),
        "images": ["a.png", {"path": "b.png", "bytes": None}],
    }

    first, _, result = read_row(row).messages

    assert first.parts == (ImagePart("a.png"), TextPart("what?"))
    assert result.parts == (TextPart("see "), ImagePart("b.png"), TextPart("."))


def test_sounds_and_films_take_the_places_of_their_tags_in_any_order() -> None:
    row = {
        "messages": entries(
            ("user", "<video>and<audio>?"), ("tool_call", CALL), ("tool", "<audio><image>"),
            ("user", "<video>"),
        ),
        "images": "a.png",
        "audios": ["a.wav", {"path": "b.wav", "bytes": None}],
        "video": ["a.mp4", ["1.png", "2.png"]],
    }  # fmt: skip

    asked, _, result, again = read_row(row).messages

    assert asked.parts == (
        VideoPart("a.mp4"), TextPart("and"), AudioPart("a.wav"), TextPart("?"),
    )  # fmt: skip
    assert result.parts == (AudioPart("b.wav"), ImagePart("a.png"))
    assert again.parts == (VideoPart(("1.png", "2.png")),)
    assert not {"images", "audios", "video"} & read_row(row).metadata.keys()


@pytest.mark.parametrize("tag", ["audio", "video"])
def test_a_count_that_does_not_fit_is_named(tag: str) -> None:
    row = {"messages": entries(("user", f"<{tag}><{tag}>")), f"{tag}s": ["a"]}

    with pytest.raises(DataError, match=f"has 1 {tag}s and its messages 0 hold 2 <{tag}>"):
        read_row(row)


def test_without_images_the_tag_is_text() -> None:
    assert read_row({"messages": entries(("user", "<image>?"))}).messages[0].text == "<image>?"


def test_what_is_not_known_survives() -> None:
    row = {
        "messages": [{"role": "user", "content": "a", "timestamp": 3}],
        "source": "own",
        "outcome": {"status": "solved", "score": 1.0},
    }

    conversation = read_row(row)

    assert conversation.metadata == {"source": "own", "outcome": {"status": "solved", "score": 1.0}}
    assert conversation.messages[0].metadata == {"timestamp": 3}


def test_a_system_text_beside_the_messages_comes_first() -> None:
    row = {"conversations": [{"human": "q", "assistant": "a"}], "system": "Be brief."}

    assert [m.role for m in read_row(row).messages] == ["system", "user", "assistant"]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"text": "a"}, "a row needs 'messages', and this one has: ['text']"),
        ({"messages": 3}, "'messages' must be a list of messages, got 3"),
        ({"messages": ["a"]}, "message 0: must be an object, got 'a'"),
        ({"messages": [{"role": "robot"}]}, "message 0: unknown role 'robot'; known: system,"),
        ({"messages": entries(("tool_call", "f()"))}, "a tool call must be JSON, got 'f()'"),
        ({"messages": entries(("tool_call", "{}"))}, "message 0: a tool call needs a name"),
        (
            {"messages": entries(("tool_call", '{"name": "f", "arguments": "oops"}'))},
            "arguments of call 'f' must be JSON, got 'oops'",
        ),
        (
            {"messages": entries(("user", "a"), ("tool", "b"))},
            "message 1: a tool result, and no call before it",
        ),
        (
            {"messages": entries(("tool_call", CALL), ("tool", "1"), ("tool", "2"))},
            "message 2: tool result, but the calls before it are 'ferry_status' and all are",
        ),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "tool_calls": [{"id": "c5", "function": {"name": "f"}}],
                    },
                    {"role": "tool", "tool_call_id": "c7", "content": ""},
                ]
            },
            "message 1: tool result for call 'c7', but the calls before it are 'c5'",
        ),
        ({"messages": [], "tools": "nope"}, "tools must be JSON, got 'nope'"),
        ({"messages": [], "tools": 3}, "tools must be a list of tool specs, got 3"),
        (
            {"messages": entries(("user", "<image>")), "images": ["a", "b"]},
            "the row has 2 images and its messages 0 hold 1 <image>; each tag takes the next",
        ),
    ],
)
def test_a_malformed_row_says_what_is_wrong(row: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError) as caught:
        read_row(row)

    assert message in str(caught.value)


# ---- recorded runs ----------------------------------------------------------------------------


def answer(message: Message, *ids: int) -> Completion:
    tokens = tuple(TokenLogprob(i) for i in ids) or None
    return Completion(message, "stop", tokens=tokens)


def test_a_run_gives_its_conversation_with_the_sampled_ids() -> None:
    call = Message.assistant(tool_calls=[ToolCall("f", {}, "c0")])
    messages = (
        Message.system("s"),
        Message.user("q"),
        call,
        Message.tool("r", call_id="c0", name="f"),
        Message.assistant("a"),
    )
    run = Trajectory(
        Conversation(messages, (ToolSpec("f"),)),
        steps=(
            Step("x", 1, answer(call, 7, 8), system="s", tools=("f",)),
            Step("x", 3, answer(messages[4], 9), system="s", tools=("f",)),
        ),
    )

    conversation = read_row(json.loads(run.to_json()))

    assert [m.metadata.get("token_ids") for m in conversation.messages] == [
        *[None, None, [7, 8]],
        *[None, [9]],
    ]
    assert [m.text for m in conversation.messages] == ["s", "q", "", "r", "a"]


def test_a_run_of_two_agents_is_two_conversations_that_count_each_answer_once() -> None:
    messages = (Message.system("s"), Message.user("q"), Message.assistant("a"), Message.user("p"))
    run = Trajectory(
        Conversation((*messages, Message.assistant("b"))),
        steps=(
            Step("x", 1, answer(messages[2], 7), system="s"),
            Step("y", 3, answer(Message.assistant("b"), 8), system="other"),
        ),
    )

    first, second = read_row_all(json.loads(run.to_json()))

    assert [m.text for m in first.messages] == ["s", "q", "a"]
    assert [m.text for m in second.messages] == ["other", "q", "a", "p", "b"]
    assert [m.loss for m in second.messages] == [None, None, 0.0, None, None]
    with pytest.raises(DataError, match="the run holds 2 conversations"):
        read_row(json.loads(run.to_json()))
