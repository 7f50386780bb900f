"""MCP servers of others, as their registries have them: from PyPI, and from npm.

Each is started as its own documentation says.  ``ANTIPHON_NPM`` names the folder that npm installed
into; ``.ci/run`` installs all of them.
"""

import asyncio
import importlib.util
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from antiphon.messages import ToolResult
from antiphon.tools import mcp_tools

pytest.importorskip("mcp")
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Case:
    """A server, one call of a tool of its own, and what must be in the answer."""

    server: str
    tool: str
    arguments: dict[str, Any]
    answer: str
    is_error: bool = False
    n_images: int = 0


CASES = [
    Case("mcp_server_time", "get_current_time", {"timezone": "Asia/Tokyo"}, "+09:00"),
    Case("mcp_server_time", "get_current_time", {"timezone": "Mars"}, "Mars", is_error=True),
    Case("mcp_server_git", "git_status", {"repo_path": "{folder}"}, "a.txt"),
    Case("mcp-server-everything", "echo", {"message": "hello"}, "Echo: hello"),
    Case("mcp-server-everything", "get-sum", {"a": 17, "b": "5"}, "22"),
    Case("mcp-server-everything", "get-sum", {"a": 17}, "'b' is missing", is_error=True),
    Case("mcp-server-everything", "get-tiny-image", {}, "image", n_images=1),
    Case(
        "mcp-server-everything", "get-structured-content", {"location": "New York"}, "temperature"
    ),
    Case("mcp-server-filesystem", "read_text_file", {"path": "{folder}/a.txt"}, "a kettle"),
    Case(
        "mcp-server-filesystem", "read_text_file", {"path": "/etc/hosts"}, "denied", is_error=True
    ),
    Case("mcp-server-memory", "read_graph", {}, "entities"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with one file."""
    (tmp_path / "a.txt").write_text("a kettle\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    return tmp_path


def command_of(server: str, folder: Path) -> list[str]:
    """How a server is started; skips where it is not installed."""
    if server.isidentifier():
        if importlib.util.find_spec(server) is None:
            pytest.skip(f"{server} is not installed: pip install {server.replace('_', '-')}")
        more = ["--repository", str(folder)] if server == "mcp_server_git" else []
        return [sys.executable, "-m", server, *more]
    program = Path(os.environ.get("ANTIPHON_NPM", "")) / "node_modules/.bin" / server
    if not program.is_file():
        name = server.removeprefix("mcp-")
        pytest.skip(f"{server} is not in ANTIPHON_NPM: npm install @modelcontextprotocol/{name}")
    return [str(program), *([str(folder)] if server == "mcp-server-filesystem" else [])]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.server}.{case.tool}")
def test_a_tool_of_a_server_of_others_answers_as_its_own_clients_see_it(
    case: Case, folder: Path
) -> None:
    command = command_of(case.server, folder)
    given = {
        key: value.replace("{folder}", str(folder)) if isinstance(value, str) else value
        for key, value in case.arguments.items()
    }

    async def call() -> ToolResult:
        async with mcp_tools(command, env={"PATH": os.environ["PATH"]}, timeout=60.0) as tools:
            return await {one.name: one for one in tools}[case.tool].call(given)

    result = asyncio.run(call())

    assert case.answer in result.text
    assert (result.is_error, len(result.images)) == (case.is_error, case.n_images)
