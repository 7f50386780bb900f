"""Tools of other libraries, where these are installed."""

import asyncio

import pytest

from antiphon.errors import ToolDefinitionError
from antiphon.tools import wrap_tool


def test_a_langchain_tool_is_used_as_ours() -> None:
    tools = pytest.importorskip("langchain_core.tools")

    @tools.tool(parse_docstring=True)
    def forecast(city: str, days: int = 1) -> str:
        """Weather to come.

        Args:
            city: The city.
            days: How many days.
        """
        return f"{city} {days}"

    made = wrap_tool(forecast)

    assert made.spec.description == "Weather to come."
    assert made.spec.parameters["properties"]["city"]["description"] == "The city."
    assert asyncio.run(made.call({"city": "Lima", "days": "2"})).text == "Lima 2"
    assert asyncio.run(made.call({})).text.startswith("forecast rejected its arguments")


def test_a_smolagents_tool_is_used_as_ours() -> None:
    smolagents = pytest.importorskip("smolagents")

    class Forecast(smolagents.Tool):  # type: ignore[misc, name-defined]  # the class is found at run time
        name = "forecast"
        description = "Weather to come."
        inputs = {  # noqa: RUF012  # smolagents' own way
            "city": {"type": "string", "description": "The city."},
            "days": {"type": "integer", "description": "How many days.", "nullable": True},
        }
        output_type = "string"

        def forward(self, city: str, days: int | None = None) -> str:
            return f"{city} {days}"

    made = wrap_tool(Forecast())

    assert made.spec.parameters["required"] == ["city"]
    assert asyncio.run(made.call({"city": "Lima", "days": "2"})).text == "Lima 2"
    assert asyncio.run(made.call({"city": "Lima"})).text == "Lima None"


def test_what_is_no_tool_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="no tool of LangChain"):
        wrap_tool(object())
