"""A row holds what it was made from, or says by name what it lost."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon.datasets import adapter_named, adapter_of, read_row, write_row
from antiphon.datasets._publish import PUBLISHED
from antiphon.errors import DataError, UnknownNameError
from antiphon.messages import (
    AudioPart,
    Conversation,
    ImagePart,
    JsonObject,
    JsonValue,
    MediaPart,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolSpec,
    VideoPart,
)

words = st.one_of(
    st.sampled_from(["", "a", " <think>x</think> y", "<think>x</think>", "<image>", "\n", "北京"]),
    st.text(max_size=8),
)
values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)


media = st.sampled_from(
    (ImagePart("a.png"), AudioPart("a.wav"), VideoPart("a.mp4"), VideoPart(("1.png", "2.png")))
)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Turns with reasoning, calls in parallel, results, errors, weights and media."""
    messages = [Message.system(draw(words))] if draw(st.booleans()) else []
    count = 0
    for _ in range(draw(st.integers(0, 3))):
        asked = [TextPart(draw(words))]
        shown: list[Part] = [p for p in asked if p.text]
        shown += draw(st.lists(media, max_size=2))
        messages.append(Message("user", tuple(shown)))
        arguments = draw(st.lists(st.dictionaries(words, values, max_size=2), max_size=2))
        made = tuple(ToolCall(f"f{i}", a, f"id{count + i}") for i, a in enumerate(arguments))
        count += len(made)
        reasoning = draw(words)
        text = draw(words)
        parts = (
            *([ThinkingPart(reasoning)] if reasoning else []),
            *([TextPart(text)] if text else []),
        )
        loss = draw(st.sampled_from([None, 0.0, 1.0, 0.5]))
        messages.append(Message("assistant", parts, tool_calls=made, loss=loss))
        messages += [
            replace(
                Message.tool(draw(words), call_id=c.id, name=c.name), is_error=draw(st.booleans())
            )
            for c in made
        ]
    tools = (ToolSpec("f0", draw(words)),) if draw(st.booleans()) else ()
    metadata: JsonObject = {"source": draw(words)} if draw(st.booleans()) else {}
    return Conversation(tuple(messages), tools, metadata)


@given(conversation=conversations())
@settings(max_examples=50, deadline=None)
def test_our_own_row_holds_everything(conversation: Conversation) -> None:
    row, lost = write_row(conversation)

    assert lost == []
    assert read_row(json.loads(json.dumps(row))) == conversation


def plain(conversation: Conversation) -> list[tuple[object, ...]]:
    """What every kind of row holds."""
    return [
        (m.role, m.text.strip(), [(c.name, c.arguments) for c in m.tool_calls])
        for m in conversation.messages
    ]


@pytest.mark.parametrize("kind", ["openai", "ms-swift", "sharegpt"])
def test_other_kinds_hold_what_is_said_and_called(kind: str) -> None:
    calls = [ToolCall("f", {"p": 1.785, "q": 5.0, "r": 1e-07, "s": 12345678901234567890}, "x")]
    conversation = Conversation(
        (
            Message.system("Be brief."),
            Message("user", (ImagePart("a.png"), AudioPart("a.wav"), TextPart("What is it?"))),
            Message.assistant(
                "I look.", reasoning="Hm.", tool_calls=[*calls, ToolCall("g", {}, "y")]
            ),
            Message.tool("1", call_id="x", name="f"),
            replace(
                Message.tool("2", call_id="y", name="g"),
                parts=(TextPart("2"), VideoPart("a.mp4"), VideoPart(("1.png", "2.png"))),
            ),
            Message.assistant("A cat."),
        ),
        (ToolSpec("f", "d"), ToolSpec("g")),
    )

    row, lost = write_row(conversation, kind)
    read = read_row(json.loads(json.dumps(row)))

    assert plain(read) == plain(conversation)
    assert [m.reasoning for m in read.messages] == [m.reasoning for m in conversation.messages]
    assert [m.media for m in read.messages] == [m.media for m in conversation.messages]
    assert [t.to_openai() for t in read.tools] == [t.to_openai() for t in conversation.tools]
    assert lost == ([] if kind == "openai" else ["call ids"])


CASES = Path(__file__).parent / "cases" / "dataset_rows.jsonl"
PUBLISHED_ROWS = {
    row["format"]: row["row"]
    for line in CASES.read_text(encoding="utf-8").splitlines()
    if (row := json.loads(line))["format"] in PUBLISHED
}


@pytest.mark.parametrize("kind", PUBLISHED_ROWS)
def test_a_published_row_is_written_again_without_loss(kind: str) -> None:
    conversation = read_row(PUBLISHED_ROWS[kind])

    row, lost = write_row(conversation, kind)

    assert lost == []
    assert read_row(json.loads(json.dumps(row))) == conversation


@pytest.mark.parametrize(
    ("shape", "kind"),
    [
        ("agentinstruct", "agentinstruct"),
        ("nemotron-pt-v1", "nemotron"),
        ("swe-smith-xml", "swe-smith-xml"),
        ("nebius-swe-agent", "nebius-swe-agent"),
    ],
)
def test_a_published_row_is_written_as_it_was(shape: str, kind: str) -> None:
    rows = map(json.loads, CASES.read_text(encoding="utf-8").splitlines())
    row = next(case["row"] for case in rows if case["format"] == shape)

    written, lost = write_row(read_row(row), kind)

    assert lost == []
    assert _parsed(written) == _parsed(row)


def _parsed(row: JsonObject) -> JsonObject:
    """A row with metadata that is JSON text as its value."""
    kept = row.get("metadata")
    return row | {"metadata": json.loads(kept)} if isinstance(kept, str) else row


@pytest.mark.parametrize("kind", ["agentinstruct", "nebius-swe-agent"])
def test_a_shape_of_text_alone_names_calls_and_tools_as_lost(kind: str) -> None:
    called = Message.assistant("I look.", tool_calls=[ToolCall("f", {"p": 1}, "x")])
    conversation = Conversation(
        (Message.user("?"), called, Message.tool("1", call_id="x", name="f")), (ToolSpec("f"),)
    )

    _, lost = write_row(conversation, kind)

    assert {"calls", "messages", "tool schemas"} <= {*lost}


@pytest.mark.parametrize("kind", PUBLISHED)
@given(conversation=conversations())
@example(
    Conversation((Message.user("\x1d"), Message.assistant("\n", reasoning="a")), (ToolSpec("f0"),))
)
@settings(max_examples=15, deadline=None)
def test_what_a_shape_does_not_name_as_lost_is_there(kind: str, conversation: Conversation) -> None:
    row, lost = write_row(conversation, kind)
    if any("read again" in name for name in lost):
        with pytest.raises(DataError):
            read_row(json.loads(json.dumps(row)))
        return
    read = adapter_named(kind).read(json.loads(json.dumps(row)))

    if not {"messages", "text", "calls", "the system message"} & {*lost}:
        assert plain(read) == plain(conversation)
    if "call ids" not in lost:
        ids, found = (
            [c.id for m in c.messages for c in m.tool_calls] for c in (conversation, read)
        )
        assert ids in ([], found)
    if "loss" not in lost:
        losses, kept = ([m.loss for m in c.messages] for c in (conversation, read))
        assert [x for x in losses if x is not None] in ([], [x for x in kept if x is not None])


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("hermes-fc-v1", {"text", "reasoning", "call ids"}),
        ("glaive-v2", {"messages", "text", "reasoning", "calls", "call ids"}),
        (
            "xlam-60k",
            {
                "messages",
                "text",
                "reasoning",
                "call ids",
                "names of results",
                "the system message",
            },
        ),
        ("toolace", {"text", "reasoning", "call ids", "the system message"}),
        ("toolbench-sft", {"messages", "text", "calls", "call ids", "the system message"}),
    ],
)
def test_a_shape_names_what_it_cannot_hold(kind: str, named: set[str]) -> None:
    conversation = Conversation(
        (
            Message.system("Be brief."),
            Message.user("What is it?"),
            Message.assistant(
                "I look.",
                reasoning="It's a\ncat.",
                tool_calls=[ToolCall("f", {"p": "it's"}, "x"), ToolCall("g", {}, "y")],
            ),
            Message.tool("1", call_id="x", name="f"),
            Message.tool("2", call_id="y", name="g"),
            Message.assistant("A cat."),
        ),
        (ToolSpec("f", "d"), ToolSpec("g", "e")),
    )

    row, lost = write_row(conversation, kind)

    assert set(lost) == named
    assert adapter_of(row).name == kind


@pytest.mark.parametrize(
    ("message", "kind", "lost"),
    [
        (Message("tool", is_error=True), "ms-swift", ["is_error"]),
        (Message("assistant", metadata={"a": 1}), "openai", ["metadata of a message"]),
        (Message("assistant", loss=0.5), "openai", ["a loss between 0 and 1 or above"]),
        (Message("assistant", loss=0.5), "sharegpt", ["loss"]),
        (Message("assistant", loss=0.5), "ms-swift", []),
    ],
)
def test_what_is_lost_is_told_by_name(message: Message, kind: str, lost: list[str]) -> None:
    assert write_row(Conversation((message,)), kind)[1] == lost


def test_two_assistant_messages_in_a_row_are_told() -> None:
    twice = Conversation((Message.assistant("a"), Message.assistant("b")))

    assert write_row(twice)[1] == ["the border between two assistant messages"]


def test_an_unknown_kind_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match="known: antiphon, openai, ms-swift, sharegpt, "):
        write_row(Conversation(), "x")


@pytest.mark.parametrize("kind", ["ms-swift", "sharegpt"])
@pytest.mark.parametrize("part", [ImagePart("a"), AudioPart("a"), VideoPart("a")])
def test_a_tag_that_somebody_wrote_beside_media_is_named_as_lost(
    kind: str, part: MediaPart
) -> None:
    tag = {ImagePart: "<image>", AudioPart: "<audio>", VideoPart: "<video>"}[type(part)]
    asked = Message("user", (TextPart(f"What is {tag} in "), part, TextPart("?")))

    _, lost = write_row(Conversation((asked, Message.assistant("A tag."))), kind)

    assert any(tag in name for name in lost)
