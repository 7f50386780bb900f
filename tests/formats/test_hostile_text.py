"""Text from people, tools and documents opens no call, ends no turn, and forges no role."""

import pytest
from hypothesis import given, settings

from antiphon.errors import RenderError
from antiphon.messages import Conversation, Message, TextPart, dump_json
from formats.format_cases import VARIANTS, variant
from formats.format_strategies import conversations


def _harmless(conversation: Conversation) -> Conversation:
    """The same conversation with a harmless word for what people and tools say."""
    calm = tuple(
        m
        if m.role == "assistant"
        else Message(
            m.role,
            (TextPart("word"),) if m.text.strip() else (),
            tool_call_id=m.tool_call_id,
            name=m.name,
        )
        for m in conversation.messages
    )
    return Conversation(calm, conversation.tools)


@pytest.mark.parametrize("name", VARIANTS)
@given(conversation=conversations())
@settings(max_examples=15, deadline=None)
def test_given_text_makes_no_special_piece(name: str, conversation: Conversation) -> None:
    fmt = variant(name)
    try:
        rendered = fmt.render(conversation, generate=True)
        calm = fmt.render(_harmless(conversation), generate=True)
    except RenderError:
        return

    assert [p.text for p in rendered.pieces if p.special] == [
        p.text for p in calm.pieces if p.special
    ]


@pytest.mark.parametrize("name", VARIANTS)
@given(conversation=conversations())
@settings(max_examples=15, deadline=None)
def test_given_text_is_given_as_it_is(name: str, conversation: Conversation) -> None:
    """Each message's own text is there, exactly, or as the family quotes it."""
    fmt = variant(name)
    try:
        rendered = fmt.render(conversation)
    except RenderError:
        return

    for index, message in enumerate(conversation.messages):
        given_text = "".join(
            p.text for p in rendered.pieces if p.message == index and p.author == "given"
        )
        if message.role in ("user", "tool"):
            quoted = dump_json(message.text)
            as_said = (message.text.strip(), quoted, quoted[1:-1].strip())
            assert given_text.strip() in as_said
