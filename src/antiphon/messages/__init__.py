"""What is said between a person, a model and its tools, as plain values.

Start with `_message.py` (Message, parts, calls, Conversation), then `_spec.py` (what a model sees
of a tool), `_completion.py` (what comes back from a model, whole or in deltas) and `_json.py` (the
row spelling of all of them).  This room knows no model family, no tool and no network; every room
may import it.
"""

from antiphon.messages._completion import (
    Completion,
    Delta,
    StopReason,
    TextDelta,
    ThinkingDelta,
    TokenLogprob,
    ToolCallDelta,
    Usage,
)
from antiphon.messages._json import (
    conversation_from_row,
    conversation_to_row,
    dump_json,
    indented_json,
    json_bytes,
    message_from_row,
    message_to_row,
    part_to_row,
    quoted_json,
)
from antiphon.messages._message import (
    AudioPart,
    Conversation,
    ImagePart,
    InvalidToolCall,
    JsonObject,
    JsonValue,
    MediaPart,
    Message,
    Part,
    Role,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolResult,
    VideoPart,
)
from antiphon.messages._spec import ToolSpec
from antiphon.messages._validate import Problem, find_problems, is_valid

__all__ = [
    "AudioPart",
    "Completion",
    "Conversation",
    "Delta",
    "ImagePart",
    "InvalidToolCall",
    "JsonObject",
    "JsonValue",
    "MediaPart",
    "Message",
    "Part",
    "Problem",
    "Role",
    "StopReason",
    "TextDelta",
    "TextPart",
    "ThinkingDelta",
    "ThinkingPart",
    "TokenLogprob",
    "ToolCall",
    "ToolCallDelta",
    "ToolResult",
    "ToolSpec",
    "Usage",
    "VideoPart",
    "conversation_from_row",
    "conversation_to_row",
    "dump_json",
    "find_problems",
    "indented_json",
    "is_valid",
    "json_bytes",
    "message_from_row",
    "message_to_row",
    "part_to_row",
    "quoted_json",
]
