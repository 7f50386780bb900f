"""Rows that compare answers are read in every spelling, and what does not compare is refused."""

from typing import Any

import pytest

from antiphon.datasets import is_preference, prompt_of, read_judged, read_preference, read_row
from antiphon.errors import DataError

USER = {"role": "user", "content": "2+2?"}
GOOD = {"role": "assistant", "content": "4"}
BAD = {"role": "assistant", "content": "5"}
CALL = {"role": "tool_call", "content": '{"name": "add", "arguments": {}}'}
RESULT = {"role": "tool", "content": "4"}


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [USER, GOOD], "rejected_response": "5"},
        {"messages": [USER, GOOD], "rejected_response": [BAD]},
        {"messages": [USER, GOOD], "rejected_messages": [USER, BAD]},
        {"prompt": [USER], "chosen": [GOOD], "rejected": [BAD]},
        {"prompt": "2+2?", "chosen": "4", "rejected": "5"},
        {"chosen": [USER, GOOD], "rejected": [USER, BAD]},
        {"input": {"messages": [USER]}, "preferred_output": [GOOD], "non_preferred_output": [BAD]},
    ],
)
def test_a_pair_is_read_in_every_spelling(row: dict[str, Any]) -> None:
    pair = read_preference(row)

    assert is_preference(row)
    assert [m.text for m in pair.chosen.messages] == ["2+2?", "4"]
    assert [m.text for m in pair.rejected.messages] == ["2+2?", "5"]
    assert pair.n_shared == 1


def test_a_worse_call_parts_where_the_call_begins() -> None:
    row: dict[str, Any] = {
        "messages": [USER, CALL, RESULT, GOOD],
        "rejected_response": [BAD],
        "tools": [{"name": "add", "parameters": {}}],
        "margin": 2,
        "topic": "sums",
    }

    pair = read_preference(row)

    assert pair.n_shared == 1
    assert [len(side.messages) for side in (pair.chosen, pair.rejected)] == [4, 2]
    assert pair.margin == 2.0
    assert pair.chosen.metadata == {"topic": "sums"}
    assert [t.name for t in pair.rejected.tools] == ["add"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"messages": [USER, GOOD], "rejected_response": "4"}, "no answer of its own"),
        ({"chosen": [USER, GOOD], "rejected": [BAD]}, "no answer of its own behind 0"),
        ({"messages": [USER, GOOD], "rejected_response": 5}, "'rejected_response' must be a text"),
        ({"chosen": [GOOD]}, "'rejected' must be a text or a list of messages, got None"),
    ],
)
def test_what_does_not_compare_is_refused(row: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_preference(row)


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [USER, CALL, RESULT, GOOD], "label": True},
        {"prompt": [USER], "completion": [CALL, RESULT, GOOD], "label": 1},
    ],
)
def test_a_judged_answer_is_all_behind_the_last_question(row: dict[str, Any]) -> None:
    judged = read_judged(row)

    assert judged.is_good
    assert judged.n_prompt == 1
    assert len(judged.conversation.messages) == 4


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"messages": [USER, GOOD]}, "'label' must be true or false, got None"),
        ({"messages": [USER, GOOD], "label": 7}, "got 7"),
        ({"messages": [USER], "label": True}, "nothing is judged"),
    ],
)
def test_a_row_that_judges_nothing_is_refused(row: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_judged(row)


def test_a_prompt_ends_with_what_a_model_answers() -> None:
    conversation = read_row({"messages": [USER, CALL, RESULT, GOOD]})

    assert [m.role for m in prompt_of(conversation).messages] == ["user", "assistant", "tool"]
    with pytest.raises(DataError, match="nothing to ask"):
        prompt_of(read_row({"messages": [{"role": "system", "content": "Be brief."}]}))
