"""A useful set of tools.

`DEMO_TOOLS` work offline on invented data: `calculator`, `current_time`, `get_address`,
`get_weather`, `convert_currency`.  `files` makes tools for the files under one directory.  What a
tool refuses it says to the model in one sentence; none of them raises for what a model sent.
"""

from typing import Any

from antiphon.tools._tool import Tool
from antiphon.tools.builtin._calculator import calculate, calculator
from antiphon.tools.builtin._clock import current_time
from antiphon.tools.builtin._demo import convert_currency, get_address, get_weather
from antiphon.tools.builtin._files import files

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
]
