"""A Python function as a tool: described exactly, checked, run safely.

Start with `_tool.py` (`tool` and `Tool`).  On the way in: `_signature.py` reads a callable,
`_docstring.py` its docstring, `_schema.py` writes the JSON Schema, `_arguments.py` reads what a
model sent.  On the way out: `_execution.py` and `_workers.py` run the function, `_result.py`
writes what the model reads.  Tools that others describe go through `_foreign.py`: MCP servers
(`_mcp.py`) and web APIs (`_openapi.py`).  Of many tools `_toolbox.py` chooses.  `builtin` is a
useful set.  This room knows no model and no agent.
"""

from antiphon.errors import ToolDefinitionError, ToolError
from antiphon.tools._context import RunContext
from antiphon.tools._docstring import Docstring, parse_docstring
from antiphon.tools._lint import Finding, check_tools
from antiphon.tools._load import load_tools
from antiphon.tools._mcp import mcp_server, mcp_tools, serve_mcp
from antiphon.tools._names import valid_name
from antiphon.tools._openapi import openapi_tools
from antiphon.tools._tool import Tool, tool, unknown_tool_result
from antiphon.tools._tool_index import RecordedRun, RecordedStep, ToolIndex, tool_text
from antiphon.tools._toolbox import Toolbox
from antiphon.tools._workers import late_tools
from antiphon.tools._wrapped import wrap_tool

__all__ = [
    "Docstring",
    "Finding",
    "RecordedRun",
    "RecordedStep",
    "RunContext",
    "Tool",
    "ToolDefinitionError",
    "ToolError",
    "ToolIndex",
    "Toolbox",
    "check_tools",
    "late_tools",
    "load_tools",
    "mcp_server",
    "mcp_tools",
    "openapi_tools",
    "parse_docstring",
    "serve_mcp",
    "tool",
    "tool_text",
    "unknown_tool_result",
    "valid_name",
    "wrap_tool",
]
