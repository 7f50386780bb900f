"""A Python function as a tool: described exactly, checked, run safely.

Start with `_tool.py` (`tool` and `Tool`).  On the way in: `_signature.py` reads a callable,
`_docstring.py` its docstring, `_schema.py` writes the JSON Schema, `_arguments.py` reads what a
model sent.  On the way out: `_execution.py` and `_workers.py` run the function, `_result.py` writes
what the model reads.  `builtin` is a useful set of tools.  This room knows no model and no agent.
"""

from antiphon.errors import ToolDefinitionError, ToolError
from antiphon.tools._context import RunContext
from antiphon.tools._docstring import Docstring, parse_docstring
from antiphon.tools._names import valid_name
from antiphon.tools._tool import Tool, tool, unknown_tool_result
from antiphon.tools._workers import late_tools

__all__ = [
    "Docstring",
    "RunContext",
    "Tool",
    "ToolDefinitionError",
    "ToolError",
    "late_tools",
    "parse_docstring",
    "tool",
    "unknown_tool_result",
    "valid_name",
]
