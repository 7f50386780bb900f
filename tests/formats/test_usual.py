"""Messages that the walk writes itself are written as their families write them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon.errors import RenderError
from antiphon.formats import Format, Piece, Rendered, get_format
from antiphon.formats._readers import JsonCalls
from antiphon.formats._syntax import Block, Syntax, Thinking, meeting
from antiphon.messages import Conversation, Message, TextPart, ToolCall, ToolSpec, dump_json
from formats.format_cases import VARIANTS, variant
from formats.own_conversations import own_conversations


def _rendered(fmt: Format, conversation: Conversation) -> Rendered | str:
    try:
        return fmt.render(conversation, generate=True)
    except RenderError as error:
        return str(error)


def _joined(rendered: Rendered) -> list[Piece]:
    """The pieces, neighbours of one author joined."""
    joined: list[Piece] = []
    for piece in rendered.pieces:
        last = joined[-1] if joined else None
        if last and not last.special and last[1:] == piece[1:]:
            joined[-1] = last._replace(text=last.text + piece.text)
        elif piece.text:
            joined.append(piece)
    return joined


_OWN = [c for key, c in own_conversations().items() if not key.endswith("/system")][::2]


@pytest.mark.parametrize("name", VARIANTS)
def test_the_walk_writes_a_message_as_its_family_does(name: str) -> None:
    """With a part more that says nothing, no message is as most are."""
    fmt = variant(name)
    n_same = 0
    for conversation in _OWN:
        messages = [replace(m, parts=(*m.parts, TextPart(""))) for m in conversation.messages]

        by_walk = _rendered(fmt, conversation)
        by_family = _rendered(fmt, replace(conversation, messages=tuple(messages)))

        if isinstance(by_walk, str) or isinstance(by_family, str):
            assert by_walk == by_family
            continue
        assert _joined(by_walk) == _joined(by_family)
        assert set(by_walk.changed) <= set(by_family.changed)
        n_same += 1
    assert n_same >= 10


def _find(arguments: Any) -> tuple[ToolCall, ToolSpec]:
    schema = {"type": "object", "properties": {"day": {"type": "string"}}}
    return ToolCall("find", arguments, "c00000000"), ToolSpec("find", "", schema)


class _Printed(str):
    """A string that prints as something else."""

    __slots__ = ()

    def __str__(self) -> str:
        return "else"


@pytest.mark.parametrize(
    "name", ["qwen3_coder", "minimax_m3", "lfm2", "kimi_k25", "mistral_small_3_2", "command_a"]
)
def test_a_string_that_prints_as_something_else_is_written_as_it_is(name: str) -> None:
    call, spec = _find({"day": _Printed("today")})
    said = (Message.user(_Printed("today")), Message.assistant(tool_calls=[call]))
    result = Message.tool(_Printed("today"), call_id=call.id, name="find")

    rendered = variant(name).render(Conversation((*said, result), (spec,)))

    assert rendered.text.count("today") == 3
    assert "".join(piece.text for piece in rendered.pieces) == rendered.text


@pytest.mark.parametrize("name", VARIANTS)
def test_a_call_that_no_assistant_made_is_not_written_as_one(name: str) -> None:
    call, spec = _find({"day": "today"})

    conversation = Conversation((Message("user", tool_calls=(call,)),), (spec,))

    rendered = _rendered(variant(name), conversation)
    assert isinstance(rendered, Rendered)
    assert "today" not in rendered.text


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@settings(max_examples=80, deadline=None)
@given(st.dictionaries(st.text(max_size=6), _values, max_size=4))
@example({"100%": "%s", "%d": 5})
@example({"day": _Printed("today")})
@example({})
def test_a_call_is_written_as_its_json_whatever_its_arguments_hold(arguments: Any) -> None:
    messages = (Message.user("?"), Message.assistant(tool_calls=[ToolCall("find", arguments, "c")]))

    rendered = get_format("qwen2_5").render(Conversation(messages))

    call = f'{{"name": "find", "arguments": {dump_json(arguments)}}}'
    assert f"<tool_call>\n{call}\n</tool_call>" in rendered.text
    assert "".join(piece.text for piece in rendered.pieces) == rendered.text


def test_keys_that_are_no_strings_are_written_as_json_writes_them() -> None:
    for key in (1, True, None, 1.0):
        arguments: Any = {key: "a"}
        call = ToolCall("find", arguments, "c")

        conversation = Conversation((Message.user("?"), Message.assistant(tool_calls=[call])))

        assert dump_json(arguments) in get_format("qwen2_5").render(conversation).text


_SYNTAXES = [
    Syntax(),
    Syntax(thinking=(Thinking(),)),
    Syntax(blocks=(Block("[C]", JsonCalls("[/C]")),), bare=JsonCalls(bare_note="bare_json")),
    Syntax(blocks=(Block("[C]", JsonCalls("[/C]")),), bare=JsonCalls(), bare_is_native=True),
]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(_SYNTAXES),
    st.text(alphabet="a \n\u2003<>[]C{`/", max_size=5).map(lambda text: text.replace("a", "odd")),
)
def test_what_more_is_looked_for_in_an_answer_is_found_and_nothing_else(
    syntax: Syntax, text: str
) -> None:
    meets = syntax.meets(text)

    assert meeting(syntax, padded=True)(text) == (meets or text != text.strip())
    assert meeting(syntax, "dd<o")(text) == (meets or "dd<o" in text)
