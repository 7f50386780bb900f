"""Tools that others describe keep the promises of our own: checked, mended, answered."""

import asyncio
from typing import Any

import pytest

from antiphon.errors import RenderError
from antiphon.messages import ToolResult, ToolSpec
from antiphon.tools import Tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "flag": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
        "prices": {"type": "object", "additionalProperties": {"type": "number"}},
    },
    "required": ["city"],
    "additionalProperties": False,
}


def echo(values: dict[str, Any]) -> dict[str, Any]:
    return values


def call(arguments: Any, schema: dict[str, Any] = SCHEMA) -> ToolResult:
    made = Tool.from_spec(ToolSpec("t", "Does it.", schema), echo)
    return asyncio.run(made.call(arguments))


def test_what_is_right_passes_unchanged() -> None:
    sent = {"city": "Lima", "days": 2, "tags": ["a"], "flag": None}

    result = call(sent)

    assert result.value == sent
    assert result.repairs == ()


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        ('{"city": "5", "days": "5"}', {"city": "5", "days": 5}),
        ({"city": "x", "tags": '["a", "b"]'}, {"city": "x", "tags": ["a", "b"]}),
        ({"city": "x", "flag": "true"}, {"city": "x", "flag": True}),
        ({"city": "x", "days": None}, {"city": "x"}),
        (
            {"city": "x", "prices": [{"key": "a", "value": "1.5"}]},
            {"city": "x", "prices": {"a": 1.5}},
        ),
        ('"{\\"city\\": \\"x\\"}"', {"city": "x"}),
    ],
)
def test_a_harmless_slip_is_mended(sent: Any, value: Any) -> None:
    assert call(sent).value == value


def test_what_was_mended_is_recorded() -> None:
    assert call({"city": "x", "days": "5"}).repairs == ("days: text read as integer",)


@pytest.mark.parametrize(
    ("sent", "part"),
    [
        ({}, "'city' is missing"),
        ({"city": 5}, "'city' should be string, got 5"),
        ({"city": "x", "days": 0}, "'days' should be 1 or more, got 0"),
        ({"city": "x", "town": "y"}, "'town' is not a parameter"),
        ({"city": "x", "flag": [1]}, "'flag' should be boolean | null, got [1]"),
        ("[1]", "one JSON object, not an array"),
        ('{"city": ', "not valid JSON"),
        ('{"city": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "not valid JSON"),
        ({"city": float("nan")}, "cannot be written as JSON"),
    ],
)
def test_what_cannot_be_used_is_answered(sent: Any, part: str) -> None:
    result = call(sent)

    assert result.is_error
    assert part in result.text


def test_the_record_of_the_call_is_not_changed() -> None:
    sent = {"city": "x", "days": "5"}

    call(sent)

    assert sent == {"city": "x", "days": "5"}


def test_a_schema_too_deep_to_be_checked_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}

    with pytest.raises(RenderError, match="levels"):
        call({}, {"type": "object", "properties": {"x": schema}})


def test_other_options_keep_the_spec() -> None:
    made = Tool.from_spec(ToolSpec("t", "Does it.", SCHEMA), echo)

    other = made.with_options(timeout=1.0)

    assert (other.spec, other.timeout) == (made.spec, 1.0)
