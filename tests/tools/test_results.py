"""What a tool returned, as the model reads it: JSON text, safe, and never too long."""

import asyncio
import datetime
import json
import math
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from antiphon.messages import ImagePart, ToolResult
from antiphon.tools import tool
from antiphon.tools._result import cap


def returned(value: object, **options: Any) -> ToolResult:
    made = tool(lambda: value, name="t", threaded=False, **options)
    return asyncio.run(made.call("{}", call_id="c1"))


class Sky(Enum):
    CLEAR = "clear"


@dataclass
class Weather:
    temp: float
    sky: Sky


class Point(BaseModel):
    x: int = Field(alias="X")


class Named:
    def __str__(self) -> str:
        return "a report of 3 rows"


class Opaque:
    pass


class Agent:
    name = "refunds"
    instructions = "Give the money back."


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain text", "plain text"),
        ("", ""),
        (None, "done"),
        (True, "true"),
        (42, "42"),
        (2.5, "2.5"),
        (math.nan, "nan"),
        (
            {"n": 1, "ok": True, "name": "Zo\u00eb", "none": None},
            '{"n": 1, "ok": true, "name": "Zo\u00eb", "none": null}',
        ),
        ([1, "a", None], '[1, "a", null]'),
        ((1, 2), "[1, 2]"),
        ({3}, "[3]"),
        ({"x": math.inf}, '{"x": "inf"}'),
        ({1: "a", Sky.CLEAR: 2}, '{"1": "a", "clear": 2}'),
        (Weather(21.5, Sky.CLEAR), '{"temp": 21.5, "sky": "clear"}'),
        (Point(X=1), '{"X": 1}'),
        (Sky.CLEAR, "clear"),
        (Decimal("1.50"), "1.50"),
        (datetime.date(2024, 1, 2), "2024-01-02"),
        ({"at": datetime.datetime(2024, 1, 2, 3, 4)}, '{"at": "2024-01-02T03:04:00"}'),
        (Path("a/b.txt"), "a/b.txt"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (b"text", "text"),
        (Named(), "a report of 3 rows"),
        (Opaque(), "<Opaque>"),
        (10**400, "an integer of 1329 bits"),
        ("broken \ud83d surrogate", "broken \ufffd surrogate"),
        ({"broken": "\udc00"}, '{"broken": "\ufffd"}'),
    ],
)
def test_a_value_is_read_as_json_text_or_as_itself(value: object, text: str) -> None:
    result = returned(value)

    assert result.text == text
    assert not result.is_error
    result.text.encode("utf-8")


def test_binary_data_is_described() -> None:
    assert returned(b"\x00\xff" * 100).text.startswith("binary data, 200 bytes")


def test_an_agent_is_handed_on_untouched() -> None:
    agent = Agent()

    result = returned(agent)

    assert result.value is agent
    assert result.text == "handed over to refunds"


def test_images_come_beside_the_text() -> None:
    image = ImagePart("data:image/png;base64,AA==")

    result = returned(["a chart", image])

    assert result.images == (image,)
    assert result.text == "a chart"


def test_a_tool_may_say_itself_that_it_failed() -> None:
    result = returned(ToolResult("", "", "no luck", is_error=True))

    assert (result.call_id, result.name, result.text, result.is_error) == (
        "c1",
        "t",
        "no luck",
        True,
    )


def test_a_long_result_keeps_its_head_its_tail_and_all_of_it_in_the_record() -> None:
    """Five megabytes, as some tools do give."""
    text = "start" + "x" * 5_000_000 + "end"

    result = returned(text)

    assert len(result.text) < 20_300
    assert result.text.startswith("start")
    assert result.text.endswith("end")
    assert "characters left out here" in result.text
    assert result.full_text == text


def test_a_short_result_is_kept_once() -> None:
    assert returned("short").full_text is None


def test_a_value_that_cannot_be_written_down_is_an_error_of_its_tool() -> None:
    class Bad:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    result = returned(Bad())

    assert result.is_error
    assert result.text == "t failed: RuntimeError: no text"


def test_a_value_that_contains_itself_ends() -> None:
    loop: list[Any] = []
    loop.append(loop)

    assert returned(loop).text.count("[") < 100


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=2000), st.integers(200, 1000))
def test_a_capped_text_is_short_and_keeps_both_ends(text: str, limit: int) -> None:
    shown = cap(text, limit)

    assert len(shown) <= limit + 120
    assert shown[: limit // 2] == text[: limit // 2]
    assert shown[-(limit // 4) :] == text[-(limit // 4) :]


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text(), json_values, max_size=5))
def test_json_comes_back_as_it_was(value: dict[str, Any]) -> None:
    text = returned(value, max_chars=10**6).text

    assert json.loads(text) == json.loads(json.dumps(value).encode("utf-8", "replace"))
