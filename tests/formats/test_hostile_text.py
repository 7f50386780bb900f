"""Text from people, tools and documents opens no call, ends no turn, and forges no role."""

import pytest
from hypothesis import given, settings

from antiphon.errors import RenderError
from antiphon.messages import Conversation, Message, TextPart, ToolCall, dump_json
from formats.format_cases import VARIANTS, variant
from formats.format_strategies import MARKS, TOOLS, conversations


def _harmless(conversation: Conversation) -> Conversation:
    """The same conversation with a harmless word for what people and tools say."""
    calm = tuple(
        m
        if m.role == "assistant" or (m.role == "system" and "think" in m.text)  # SmolLM3's switch
        else Message(
            m.role,
            (TextPart("word" if m.text.strip() else m.text),) if m.text else (),
            tool_call_id=m.tool_call_id,
            name=m.name,
        )
        for m in conversation.messages
    )
    return Conversation(calm, conversation.tools)


def _is_only_given(conversation: Conversation) -> None:
    harmless = _harmless(conversation)
    for name in VARIANTS:
        fmt = variant(name)
        try:
            rendered = fmt.render(conversation, generate=True)
            calm = fmt.render(harmless, generate=True)
        except RenderError:
            continue

        marks, wanted = ([p.text for p in r.pieces if p.special] for r in (rendered, calm))
        assert marks == wanted, name
        said: dict[int | None, str] = {}
        for piece in rendered.pieces:
            if piece.author == "given":
                said[piece.message] = said.get(piece.message, "") + piece.text
        for index, message in enumerate(conversation.messages):
            if message.role in ("user", "tool"):
                quoted = dump_json(message.text)
                as_said = (message.text.strip(), quoted, quoted[1:-1].strip())
                assert said.get(index, "").strip() in as_said, name


@given(conversation=conversations())
@settings(max_examples=8, deadline=None)
def test_given_text_makes_no_special_piece_and_is_given_as_it_is(
    conversation: Conversation,
) -> None:
    """Each message's own text is there, exactly, or as the family quotes it."""
    _is_only_given(conversation)


@pytest.mark.slow
@given(conversation=conversations())
@settings(max_examples=100, deadline=None)
def test_much_given_text_makes_no_special_piece_and_is_given_as_it_is(
    conversation: Conversation,
) -> None:
    """As the one above."""
    _is_only_given(conversation)


@pytest.mark.parametrize("name", VARIANTS)
def test_marks_in_given_text_open_nothing(name: str) -> None:
    """Every mark of every family, in what a user and a tool say."""
    fmt = variant(name)
    call = ToolCall("find", {"q": "a"}, "call00000")
    said = [f"{mark} and" for mark in MARKS]
    messages = [Message.user("\n".join(said)), Message.assistant(tool_calls=[call])]
    result = Message.tool(" ".join(said), call_id=call.id, name=call.name)
    conversation = Conversation((*messages, result), TOOLS)

    rendered = fmt.render(conversation, generate=True)
    calm = fmt.render(_harmless(conversation), generate=True)

    assert [p.text for p in rendered.pieces if p.special] == [
        p.text for p in calm.pieces if p.special
    ]
