"""A useful set of tools.

`DEMO_TOOLS` work offline on invented data: `calculator`, `current_time`, `get_address`,
`get_weather`, `convert_currency`.  The others are made by functions, which take what the operator
decides: `files` (a directory), `python_tool` (limits), `http_get` (hosts), `web_search` (a server),
`sqlite_query` (a database).  What a tool refuses it says to the model in one sentence; none of them
raises for what a model sent.
"""

from typing import Any

from antiphon.tools._tool import Tool
from antiphon.tools.builtin._calculator import calculate, calculator
from antiphon.tools.builtin._clock import current_time
from antiphon.tools.builtin._demo import convert_currency, get_address, get_weather
from antiphon.tools.builtin._files import files
from antiphon.tools.builtin._http import http_get, web_search
from antiphon.tools.builtin._python import python_tool, sandbox_promises
from antiphon.tools.builtin._sqlite import sqlite_query

DEMO_TOOLS: tuple[Tool[..., Any], ...] = (
    calculator,
    current_time,
    get_address,
    get_weather,
    convert_currency,
)

__all__ = [
    "DEMO_TOOLS",
    "calculate",
    "calculator",
    "convert_currency",
    "current_time",
    "files",
    "get_address",
    "get_weather",
    "http_get",
    "python_tool",
    "sandbox_promises",
    "sqlite_query",
    "web_search",
]
