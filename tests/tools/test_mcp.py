"""Tools of MCP servers and our tools as one, over the official package."""

import asyncio
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon.errors import RunError, UsageError
from antiphon.messages import ImagePart, ToolResult
from antiphon.tools import Tool, mcp_server, mcp_tools, tool

pytest.importorskip("mcp")


@tool
def forecast(city: str, days: int = 1) -> dict[str, Any]:
    """Weather to come.

    Args:
        city: The city.
        days: How many days.
    """
    return {"city": city, "days": days}


@tool
def chart() -> list[Any]:
    """A picture."""
    return ["a chart", ImagePart("data:image/png;base64,AA==")]


@tool
def fails() -> None:
    """Fails."""
    raise ValueError("disk on fire")


async def in_process(name: str, arguments: Any) -> ToolResult:
    async with mcp_tools(mcp_server([forecast, chart, fails])) as tools:
        return await {t.name: t for t in tools}[name].call(arguments, call_id="c1")


def test_a_tool_is_the_same_at_both_ends() -> None:
    async def run() -> list[Tool[..., Any]]:
        async with mcp_tools(mcp_server([forecast]), prefix="sky_") as tools:
            return tools

    (made,) = asyncio.run(run())

    assert made.name == "sky_forecast"
    assert made.spec.description == forecast.spec.description
    assert made.spec.parameters == forecast.spec.parameters


def test_a_call_goes_there_and_its_value_comes_back() -> None:
    result = asyncio.run(in_process("forecast", {"city": "Lima", "days": "2"}))

    assert not result.is_error
    assert result.value == {"city": "Lima", "days": 2}
    assert result.text == '{"city": "Lima", "days": 2}'
    assert result.repairs == ("days: text read as integer",)
    assert result.call_id == "c1"


def test_wrong_arguments_are_answered_before_the_server_is_asked() -> None:
    result = asyncio.run(in_process("forecast", {"town": "Lima"}))

    assert result.is_error
    assert result.text.startswith("forecast rejected its arguments: 'city' is missing.")


def test_images_and_errors_come_back_as_such() -> None:
    picture = asyncio.run(in_process("chart", {}))
    failure = asyncio.run(in_process("fails", {}))

    assert picture.images == (ImagePart("data:image/png;base64,AA=="),)
    assert picture.text == "a chart"
    assert failure.is_error
    assert "disk on fire" in failure.text


def test_our_server_answers_over_stdio() -> None:
    """Both ends in processes of their own, as a client of others would start it."""
    command = [sys.executable, "-m", "antiphon", "tools", "serve", "antiphon.tools.builtin"]
    environment = {"PYTHONPATH": os.environ["PYTHONPATH"]}  # set by tests/conftest.py

    async def run() -> ToolResult:
        async with mcp_tools(command, env=environment, timeout=300.0) as tools:
            return await {t.name: t for t in tools}["get_weather"].call({"city": "Lima"})

    assert asyncio.run(run()).value == {
        "city": "Lima",
        "temperature": 18,
        "unit": "celsius",
        "sky": "overcast",
    }


@pytest.mark.parametrize(
    "command", ["no-such-command-anywhere", [sys.executable, "-c", "print('no protocol')"]]
)
def test_a_server_that_does_not_start_is_one_line(command: Any) -> None:
    async def run() -> None:
        async with mcp_tools(command, timeout=20.0):
            pass

    with pytest.raises(RunError, match="cannot be used") as caught:
        asyncio.run(run())
    assert "\n" not in str(caught.value)


def test_a_server_needs_a_command() -> None:
    async def run() -> None:
        async with mcp_tools(""):
            pass

    with pytest.raises(UsageError, match="needs a command"):
        asyncio.run(run())


def test_a_server_of_others_is_used_over_stdio() -> None:
    """The reference time server, where it is installed."""
    pytest.importorskip("mcp_server_time")
    environment = {"PYTHONPATH": os.environ["PYTHONPATH"]}

    async def run() -> list[ToolResult]:
        command = [sys.executable, "-m", "mcp_server_time"]
        async with mcp_tools(command, env=environment, timeout=300.0) as tools:
            now = {t.name: t for t in tools}["get_current_time"]
            return [await now.call({"timezone": zone}) for zone in ("Asia/Tokyo", "Mars")]

    tokyo, mars = asyncio.run(run())

    assert "+09:00" in tokyo.text
    assert mars.is_error


@pytest.fixture
def endpoint() -> Iterator[str]:
    """Our own server over streamable HTTP on this machine."""
    uvicorn: Any = pytest.importorskip("uvicorn")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    app = mcp_server([forecast]).streamable_http_app()
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=port, log_level="critical", ws="none")
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}/mcp"
    server.should_exit = True
    thread.join(10)


@pytest.mark.parametrize("headers", [None, {"X-Key": "k"}])
def test_a_server_is_used_over_http(endpoint: str, headers: dict[str, str] | None) -> None:
    async def run() -> ToolResult:
        async with mcp_tools(endpoint, headers=headers) as tools:
            return await tools[0].call({"city": "Lima"})

    assert asyncio.run(run()).value == {"city": "Lima", "days": 1}
