"""Text from people, tools and documents opens no call, ends no turn, and forges no role."""

import pytest
from hypothesis import given, settings

from antiphon.errors import RenderError
from antiphon.formats import Format
from antiphon.messages import (
    Conversation,
    JsonValue,
    Message,
    TextPart,
    ToolCall,
    ToolSpec,
    dump_json,
)
from formats.format_cases import VARIANTS, variant, written
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


def _marks_of(fmt: Format) -> set[str]:
    syntax = getattr(fmt, "syntax", None)
    opening = {block.open for block in syntax.blocks} if syntax else set[str]()
    return {*getattr(fmt, "specials", ()), *fmt.stop, *opening}


ALL_MARKS = sorted({*MARKS}.union(*(_marks_of(variant(name)) for name in VARIANTS)))
_QUOTES = {'<|"|>', "<escape>"}  # what Gemma's families write around every string


def _shown(said: str, *, key: str, name: str) -> Conversation:
    """A conversation with a text wherever people who write tools may put one."""
    inner: JsonValue = {"type": "string", "description": said, "enum": [said, "a"], "title": said}
    schema: dict[str, JsonValue] = {
        "type": "object",
        "description": said,
        "properties": {
            "q": {"type": "string", "description": said, "default": said, "examples": [said]},
            key: {"type": "object", "properties": {key: inner}, "description": said},
        },
        "required": ["q"],
    }
    tools = (ToolSpec("find", said, schema), ToolSpec(name, said))
    call = ToolCall("find", {"q": "a"}, "call00000")
    messages = (Message.user("Go."), Message.assistant(tool_calls=[call]))
    return Conversation((*messages, Message.tool("1", call_id=call.id, name="find")), tools)


def _specials(fmt: Format, conversation: Conversation) -> list[str]:
    return [p.text for p in fmt.render(conversation, generate=True).pieces if p.special]


@pytest.mark.parametrize("name", VARIANTS)
def test_marks_in_what_a_tool_s_author_wrote_open_nothing(name: str) -> None:
    """Descriptions, values and names of parameters, and of tools: every mark of every family."""
    fmt = variant(name)
    said = " and ".join(mark for mark in ALL_MARKS if mark not in _QUOTES)
    hostile = _shown(said, key=said, name=said)

    assert _specials(fmt, hostile) == _specials(fmt, _shown("word", key="key", name="ping"))


@pytest.mark.parametrize("quote", sorted(_QUOTES))
def test_a_mark_around_strings_inside_a_tool_s_text_is_refused_or_is_text(quote: str) -> None:
    for name in VARIANTS:
        fmt = variant(name)
        calm = _specials(fmt, _shown("word", key="key", name="ping"))
        try:
            found = _specials(fmt, _shown(f"a{quote}b", key="key", name="ping"))
        except RenderError:
            continue

        assert found == calm, name


@pytest.mark.parametrize("name", VARIANTS)
def test_a_call_whose_parts_hold_marks_is_read_back_or_refused(name: str) -> None:
    """In a name that no tool on offer has, in a key, in a value, and in an id."""
    fmt = variant(name)
    marks = sorted({*_marks_of(fmt), *MARKS[:6], "a<b", "a{b}", "a b", "a`b", 'a"b', ""})
    for mark in marks:
        for call in (
            ToolCall(mark, {"q": "a"}, "call00000"),
            ToolCall("find", {"q": mark}, "call00000"),
            ToolCall("find", {"q": "a", mark: "b"}, "call00000"),
            ToolCall("find", {"q": "a"}, mark),
        ):
            messages = (Message.user("Go."), Message.assistant(tool_calls=[call]))
            try:
                text, start = written(fmt.render(Conversation(messages, TOOLS)), 1, fmt)
            except RenderError:
                continue

            (read,) = fmt.parse(text, tools=TOOLS, start=start).tool_calls
            assert (read.name, read.arguments) == (call.name, call.arguments)
