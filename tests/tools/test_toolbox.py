"""Of many tools a model is shown the few that fit."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from antiphon.errors import UsageError
from antiphon.messages import ToolSpec
from antiphon.tools import Tool, Toolbox, tool
from antiphon.tools.builtin import DEMO_TOOLS, calculator, get_weather


def names(tools: Sequence[Tool[..., Any]]) -> list[str]:
    return [one.name for one in tools]


def test_the_tools_that_fit_are_chosen_after_those_that_are_always_shown() -> None:
    box = Toolbox(DEMO_TOOLS, always=["calculator"])

    chosen = asyncio.run(box.choose("Which city has the nicest weather?", k=1))

    assert names(chosen) == ["calculator", "get_weather"]


def test_meaning_helps_where_words_do_not() -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] if "weather" in t or "umbrella" in t else [0.0, 1.0] for t in texts]

    box = Toolbox(DEMO_TOOLS, embed=embed)

    assert names(asyncio.run(box.choose("Do I need an umbrella?", k=1))) == ["get_weather"]


def test_a_second_stage_has_the_last_word() -> None:
    async def refine(query: str, specs: Sequence[ToolSpec]) -> list[str]:
        return ["no_such_tool", "get_weather"]

    box = Toolbox(DEMO_TOOLS, refine=refine)

    assert names(asyncio.run(box.choose("current weather and time in a city"))) == ["get_weather"]


def test_a_toolbox_changes_in_place() -> None:
    box = Toolbox([calculator])
    box.add(get_weather)
    assert "get_weather" in box

    box.remove("calculator")
    assert len(box) == 1
    assert asyncio.run(box.choose("arithmetic expression")) == []


def test_two_tools_of_one_name_are_refused() -> None:
    other = tool(lambda: None, name="calculator", description="Another.")

    with pytest.raises(UsageError, match="already"):
        Toolbox([calculator, other])
    with pytest.raises(UsageError, match="no tool"):
        Toolbox([calculator], always=["calculater"])


def test_a_model_finds_and_uses_a_tool_by_itself() -> None:
    search, use = Toolbox(DEMO_TOOLS).search_tools(k=2)

    found: Any = asyncio.run(search.call({"query": "weather in a city"})).value
    used = asyncio.run(
        use.call({"name": "get_weather", "arguments": {"city": "Lima"}}, call_id="c")
    )
    unknown = asyncio.run(use.call({"name": "get_wether", "arguments": {}}))
    nothing = asyncio.run(search.call({"query": "zebra"}))

    assert found[0]["name"] == "get_weather"
    assert used.text.startswith('{"city": "Lima"')
    assert used.call_id == "c"
    assert unknown.is_error
    assert nothing.is_error


def test_a_tool_that_needs_agreement_is_not_used_behind_a_persons_back() -> None:
    pay = tool(lambda: "paid", name="pay", description="Pay money.", approval=True)
    _, use = Toolbox([pay]).search_tools()

    assert "agreement" in asyncio.run(use.call({"name": "pay", "arguments": {}})).text


def test_a_toolbox_finds_by_the_requests_that_its_index_has_learned() -> None:
    box = Toolbox(DEMO_TOOLS)
    assert names(asyncio.run(box.choose("Do I need an umbrella?", k=1))) != ["get_weather"]

    box.index.learn_requests({"get_weather": ["Shall I take my umbrella?"]})

    assert names(asyncio.run(box.choose("Do I need an umbrella?", k=1))) == ["get_weather"]


def test_a_tool_that_is_gone_is_found_neither_by_words_nor_by_meaning() -> None:
    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, float("weather" in text)] for text in texts]

    box = Toolbox([calculator, get_weather], embed=embed)
    asyncio.run(box.choose("weather"))

    box.remove("get_weather")

    assert names(asyncio.run(box.choose("weather"))) == ["calculator"]
