"""Antiphon: call and response.  Tools, formats, agents, data and training of tool-using models.

The names below are the whole of what the README uses; each room has more.  Start reading in
`antiphon.messages`.  A name is loaded from its room when it is first used, so that importing the
package opens nothing and loads no dependency.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.agent import Agent, run_sync
    from antiphon.encode import Encoder, LossPolicy
    from antiphon.events import Trajectory
    from antiphon.formats import get_format, list_formats
    from antiphon.messages import (
        Conversation,
        ImagePart,
        InvalidToolCall,
        Message,
        TextPart,
        ThinkingPart,
        ToolCall,
        ToolResult,
        ToolSpec,
    )
    from antiphon.models import ReplayModel, ScriptedModel, load_model
    from antiphon.strategies import Plan, PlanAndExecute, Reflexion, Task
    from antiphon.tools import Tool, tool

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Conversation",
    "Encoder",
    "ImagePart",
    "InvalidToolCall",
    "LossPolicy",
    "Message",
    "Plan",
    "PlanAndExecute",
    "Reflexion",
    "ReplayModel",
    "ScriptedModel",
    "Task",
    "TextPart",
    "ThinkingPart",
    "Tool",
    "ToolCall",
    "ToolResult",
    "ToolSpec",
    "Trajectory",
    "__version__",
    "get_format",
    "list_formats",
    "load_model",
    "run_sync",
    "tool",
]

# Where each public name lives.  `tests/test_public_surface.py` holds it equal to the imports above.
_ROOMS = {
    "agent": (
        "Agent",
        "run_sync",
    ),
    "encode": (
        "Encoder",
        "LossPolicy",
    ),
    "events": ("Trajectory",),
    "formats": (
        "get_format",
        "list_formats",
    ),
    "messages": (
        "Conversation",
        "ImagePart",
        "InvalidToolCall",
        "Message",
        "TextPart",
        "ThinkingPart",
        "ToolCall",
        "ToolResult",
        "ToolSpec",
    ),
    "models": (
        "ReplayModel",
        "ScriptedModel",
        "load_model",
    ),
    "strategies": (
        "Plan",
        "PlanAndExecute",
        "Reflexion",
        "Task",
    ),
    "tools": (
        "Tool",
        "tool",
    ),
}
_HOMES = {name: f"antiphon.{room}" for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name from its room, once."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'antiphon' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
