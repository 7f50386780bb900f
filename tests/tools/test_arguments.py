"""What a model sent becomes values, or an answer that shows the way back."""

import asyncio
import json
from datetime import date
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from antiphon.messages import ToolResult
from antiphon.tools import Tool, tool


@tool
def get_weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Current weather in a city."""
    return f"{city} {unit}"


class Opts(BaseModel):
    depth: int
    tags: list[str] = []


@tool
def crawl(
    url: str, opts: Opts | None = None, pages: list[int] | None = None, day: date | None = None
) -> str:
    """Crawl."""
    return f"{url!r} {opts!r} {pages!r} {day!r}"


@tool
def add(n: int, tag: str = "x", big: float = 0.0, flag: bool = False) -> str:
    """Add."""
    return f"{n!r} {tag!r} {big!r} {flag!r}"


def call(made: Tool[..., Any], arguments: Any) -> ToolResult:
    return asyncio.run(made.call(arguments))


def test_a_missing_argument_is_answered_with_the_way_back() -> None:
    """The example of the house style, §5."""
    assert call(get_weather, {"town": "Lima"}).text == (
        "get_weather rejected its arguments: 'city' is missing; 'town' is not a parameter. "
        'You sent {"town": "Lima"}; expected {"city": string, "unit"?: "celsius" | "fahrenheit"}. '
        'Call it again with the required "city".'
    )


@pytest.mark.parametrize(
    ("sent", "parts"),
    [
        ('{"n": "five"}', ["'n' should be a valid integer", 'got "five"', '"n": integer']),
        ('{"n": 5.5}', ["'n'", "got 5.5"]),
        ('{"n": [5]}', ["'n' should be a valid integer", "got [5]"]),
        ('{"n": 5, "tga": "x"}', ["'tga' is not a parameter, did you mean 'tag'?"]),
        ('{"n": 5, "tag": 7}', ["'tag' should be a valid string"]),
        ('{"n": 5, "tag": "t', ["not valid JSON", "line 1 column"]),
        ("[5]", ["one JSON object, not an array"]),
        ('"five"', ["one JSON object, not text"]),
        ("5", ["one JSON object, not an integer"]),
        ("null", ["one JSON object, not null"]),
        ("", ["'n' is missing"]),
        ('{"n": 5, "big": NaN}', ["NaN is not JSON"]),
        ('{"n": 5, "big": -Infinity}', ["-Infinity is not JSON"]),
        ('{"n": 5, "big": 1e999}', ["finite"]),
        ('{"n": ' + "9" * 5000 + "}", ["rejected"]),
        ("[" * 100_000, ["not valid JSON"]),
        (b'{"n": 5, "tag": "\xff"}', ["rejected"]),
        ('{"n": 5, "tag": "\\ud800"}', ["not valid JSON"]),
    ],
)
def test_what_cannot_be_used_is_answered_and_not_run(sent: str | bytes, parts: list[str]) -> None:
    result = call(add, sent)

    assert result.is_error
    assert result.text.startswith("add rejected its arguments: ")
    assert all(part in result.text for part in parts), result.text
    assert len(result.text) < 1500


def test_an_object_with_nan_is_refused_as_its_text_is() -> None:
    assert "finite" in call(add, {"n": 5, "big": float("nan")}).text


@pytest.mark.parametrize(
    ("sent", "text", "repairs"),
    [
        ({"n": 5, "big": 2}, "5 'x' 2.0 False", ()),
        ({"n": "5"}, "5 'x' 0.0 False", ("n: text read as int",)),
        ({"n": 5.0}, "5 'x' 0.0 False", ("n: number read as int",)),
        ({"n": 5, "flag": "true"}, "5 'x' 0.0 True", ("flag: text read as bool",)),
        ({"n": 5, "tag": None}, "5 'x' 0.0 False", ("tag: null left out, the default is used",)),
        ('"{\\"n\\": 5}"', "5 'x' 0.0 False", ("arguments: JSON text unpacked",)),
    ],
)
def test_a_harmless_slip_is_mended_and_recorded(
    sent: Any, text: str, repairs: tuple[str, ...]
) -> None:
    result = call(add, sent)

    assert result.text == text
    assert result.repairs == repairs


def test_json_text_in_an_objects_place_is_unpacked() -> None:
    sent = {"url": "[1]", "opts": '{"depth": "2", "tags": "[\\"a\\"]"}', "pages": "[1, 2]"}

    result = call(crawl, sent)

    assert result.text == "'[1]' Opts(depth=2, tags=['a']) [1, 2] None"
    assert "opts: JSON text unpacked" in result.repairs
    assert "pages: JSON text unpacked" in result.repairs


def test_a_date_is_no_slip() -> None:
    result = call(crawl, {"url": "u", "day": "2024-05-06"})

    assert result.text == "'u' None None datetime.date(2024, 5, 6)"
    assert result.repairs == ()


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40))
def test_text_for_a_text_parameter_is_never_touched(text: str) -> None:
    seen: list[str] = []

    @tool(threaded=False)
    def keep(note: str) -> None:
        seen.append(note)

    result = call(keep, json.dumps({"note": text}, ensure_ascii=False).encode("utf-8", "replace"))

    assert not result.is_error
    assert seen == [text.encode("utf-8", "replace").decode()]
    assert result.repairs == ()


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=60) | st.binary(max_size=60))
def test_no_text_makes_a_call_raise(text: str | bytes) -> None:
    assert isinstance(call(add, text), ToolResult)


def test_the_record_of_a_call_is_not_changed_by_its_tool() -> None:
    @tool(threaded=False)
    def spoil(items: list[Any], extra: dict[str, Any]) -> None:
        items.append(1)
        extra["x"]["y"] = 2

    sent: dict[str, Any] = {"items": [], "extra": {"x": {}}}
    call(spoil, sent)

    assert sent == {"items": [], "extra": {"x": {}}}


def test_a_problem_in_depth_is_named_by_its_path() -> None:
    @tool
    def order(lines: list[Opts]) -> None:
        """Order."""

    assert "'lines[1].depth' is missing" in call(order, {"lines": [{"depth": 1}, {}]}).text


def test_a_union_is_answered_once() -> None:
    result = call(crawl, {"url": "u", "pages": {"a": 1}})

    assert result.text.count("'pages'") == 1
    assert "'pages' should be [integer] | null" in result.text
