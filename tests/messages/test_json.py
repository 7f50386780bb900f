"""Messages and conversations as rows, and rows that are none."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import DataError
from antiphon.messages import (
    Conversation,
    ImagePart,
    InvalidToolCall,
    Message,
    TextPart,
    ToolCall,
    ToolSpec,
    conversation_from_row,
    conversation_to_row,
    dump_json,
    indented_json,
    message_from_row,
)

TALK = Conversation(
    messages=(
        Message.system("Be brief."),
        Message.user([TextPart("What is in "), ImagePart("a.png"), TextPart("?")]),
        Message.assistant(
            "Let me look.",
            reasoning="A picture.",
            tool_calls=[ToolCall("look", {"path": "a.png", "deep": True}, id="c1")],
            invalid_tool_calls=[InvalidToolCall("<tool_call>{", "not JSON", name="look")],
        ),
        Message.tool("a cat", call_id="c1", name="look", is_error=True),
        Message.assistant("A cat."),
    ),
    tools=(ToolSpec("look", "Look at a picture."),),
    metadata={"source": "here", "n": [1, {"x": None}]},
)


def test_a_conversation_survives_its_row() -> None:
    assert conversation_from_row(conversation_to_row(TALK)) == TALK


def test_a_calls_raw_text_and_repairs_survive_its_row() -> None:
    call = ToolCall("f", {}, id="c", raw="<tool_call>...", repairs=("comma",))
    row = conversation_to_row(Conversation((Message.assistant(tool_calls=[call]),)))

    (read,) = conversation_from_row(row).messages[0].tool_calls

    assert (read.raw, read.repairs) == (call.raw, call.repairs)


@pytest.mark.parametrize(("loss", "weight"), [(True, 1.0), (False, 0.0), (0.5, 0.5), (None, None)])
def test_a_messages_loss_is_a_weight(loss: object, weight: float | None) -> None:
    assert message_from_row({"role": "assistant", "content": "", "loss": loss}).loss == weight


BROKEN: list[dict[str, Any]] = [
    {},
    {"messages": "hello"},
    {"messages": [7]},
    {"messages": [{"role": "narrator", "content": "x"}]},
    {"messages": [{"role": ["user"], "content": "x"}]},
    {"messages": [{"role": "user", "content": 7}]},
    {"messages": [{"role": "user", "content": [{"type": "smell"}]}]},
    {"messages": [{"role": "user", "content": "x", "name": 7}]},
    {"messages": [{"role": "assistant", "content": "", "loss": "much"}]},
    {"messages": [{"role": "assistant", "content": "", "loss": -1}]},
    {"messages": [{"role": "assistant", "content": "", "tool_calls": {}}]},
    {"messages": [{"role": "assistant", "content": "", "tool_calls": [{"function": 1}]}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{"}]}]},
    {"messages": [{"role": "assistant", "tool_calls": [{"name": "f", "arguments": [1]}]}]},
    {"messages": [], "tools": "[{"},
    {"messages": [], "tools": 5},
    {"messages": [], "tools": [5]},
    {"messages": [], "tools": [{"function": {"description": "no name"}}]},
    {"messages": [], "tools": [{"name": "f", "parameters": "{}"}]},
]


@pytest.mark.parametrize("row", BROKEN, ids=repr)
def test_a_row_that_is_none_is_a_data_error_in_one_line(row: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        conversation_from_row(row)
    assert "\n" not in str(caught.value)


_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(_values, st.sampled_from([1, 2, 4]))
def test_json_is_written_as_the_standard_library_writes_it(value: Any, indent: int) -> None:
    assert dump_json(value) == json.dumps(value, ensure_ascii=False)
    assert indented_json(value, indent) == json.dumps(value, indent=indent, ensure_ascii=False)


def test_keys_that_are_no_strings_are_written_as_strings() -> None:
    value: Any = {1: "a", False: "b", None: ["c"], 0.5: {}}

    assert indented_json(value) == json.dumps(value, indent=4)


def test_a_value_inside_itself_is_no_json() -> None:
    value: list[Any] = []
    value.append(value)

    with pytest.raises(ValueError, match="Circular reference"):
        dump_json(value)
