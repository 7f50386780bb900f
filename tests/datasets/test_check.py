"""Checks name the row, the message, and what mends it."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.datasets import Checker, check_file, count, read_row
from antiphon.datasets._check import schema_faults
from antiphon.messages import JsonValue

TOOL = {
    "name": "f",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "n": {"type": "integer", "enum": [1, 2]}},
        "required": ["city"],
    },
}
GOOD: dict[str, Any] = {
    "tools": [TOOL],
    "messages": [
        {"role": "user", "content": "q"},
        {"role": "tool_call", "content": {"name": "f", "arguments": {"city": "Lima"}}},
        {"role": "tool", "content": "r"},
        {"role": "assistant", "content": "a"},
    ],
}


def call(**arguments: object) -> dict[str, Any]:
    return {"role": "tool_call", "content": {"name": "f", "arguments": arguments}}


def row(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"tools": [TOOL], "messages": list(messages)}


USER = {"role": "user", "content": "q"}
ANSWER = {"role": "assistant", "content": "a"}
RESULT = {"role": "tool", "content": "r"}


def test_a_sound_row_has_no_findings() -> None:
    assert Checker().check(GOOD) == []


@pytest.mark.parametrize(
    ("bad", "code", "message", "text"),
    [
        ({"messages": 3}, "unreadable", None, "'messages' must be a list"),
        (row(USER, RESULT), "unreadable", None, "a tool result, and no call before it"),
        (row(USER), "no_answer", None, "nothing to train"),
        (row(USER, USER, ANSWER), "user_twice", 1, "join them"),
        (row(USER, {"role": "system", "content": "s"}, ANSWER), "system_not_first", 1, "first"),
        (row(ANSWER), "assistant_first", 0, "begins the conversation"),
        (row(USER, {"role": "assistant", "content": ""}), "empty", 1, "an empty assistant"),
        (row(USER, call(city="a"), USER, ANSWER), "call_without_result", 1, "no result for 'f'"),
        (row(USER, call(city="a"), RESULT, USER, ANSWER), "answer_missing", 3, "is missing"),
        (row(USER, call()), "arguments", 1, "f lacks 'city', which is required"),
        (row(USER, call(city=1)), "arguments", 1, "f.city must be string, got 1"),
        (row(USER, call(city="a", n=3)), "arguments", 1, "f.n must be one of [1, 2], got 3"),
        (row(USER, call(city="a", x=3)), "arguments", 1, "f has 'x', but its schema knows"),
        (
            row(USER, {"role": "tool_call", "content": {"name": "g", "arguments": {}}}),
            "unknown_tool",
            1,
            "a call of 'g', but the tools on offer are 'f'",
        ),
        (row({"role": "user", "content": "<|im_end|>"}, ANSWER), "markup", 0, "'<|im_end|>'"),
    ],
)
def test_a_fault_is_found_with_its_place_and_mend(
    bad: dict[str, Any], code: str, message: int | None, text: str
) -> None:
    (finding,) = [f for f in Checker().check(bad, line=7) if f.code == code]

    assert (finding.line, finding.message) == (7, message)
    assert text in finding.text


def test_a_conversation_that_came_before_is_a_duplicate_whatever_stands_beside_it() -> None:
    checker = Checker()
    checker.check(GOOD)

    assert [f.code for f in checker.check(GOOD | {"source": "x"})] == ["duplicate"]


def test_a_file_is_checked_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{oops\n{"messages": [{"role": "user", "content": "a"}]}\n3\n')

    assert [(f.line, f.code) for f in check_file(path)] == [
        (1, "unreadable"),
        (2, "no_answer"),
        (3, "unreadable"),
    ]


@pytest.mark.parametrize(
    ("value", "schema", "faults"),
    [
        (1.0, {"type": "integer"}, 0),
        (1.5, {"type": "integer"}, 1),
        (True, {"type": "number"}, 1),
        (None, {"type": ["string", "null"]}, 0),
        ([1, "a"], {"type": "array", "items": {"type": "integer"}}, 1),
        ({"a": {"b": 1}}, {"properties": {"a": {"additionalProperties": False}}}, 1),
        ({"a": 1}, {"type": "object", "additionalProperties": True, "properties": {"b": {}}}, 0),
        ({"a": 1}, {"type": "object"}, 0),
        ("x", {"type": "strange"}, 0),
        ("x", True, 0),
    ],
)
def test_a_schema_is_held_where_it_speaks(value: JsonValue, schema: object, faults: int) -> None:
    assert len(list(schema_faults(value, schema, "x"))) == faults


def test_counts_are_of_one_pass() -> None:
    stats = count([read_row(GOOD), read_row(GOOD)])

    row = stats.to_row()
    assert row["n_rows"] == 2
    assert row["roles"] == {"assistant": 4, "user": 2, "tool": 2}
    assert row["called"] == {"f": 2}
    assert row["calls_per_message"] == {"0": 2, "1": 2}
    assert row["scripts"] == {"LATIN": 2}
