"""Messages that the walk writes itself are written as their families write them."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon.formats import get_format
from antiphon.formats._readers import JsonCalls
from antiphon.formats._syntax import Block, Syntax, Thinking, meeting
from antiphon.messages import Conversation, Message, ToolCall, dump_json


class _Printed(str):
    """A string that prints as something else."""

    __slots__ = ()

    def __str__(self) -> str:
        return "else"


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
