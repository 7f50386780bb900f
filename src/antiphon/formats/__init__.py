"""How each model family writes and reads.  Start with `_types.py`; then any family, one file each.

`get_format` finds a family by name.  The machinery: `_render.py` writes pieces, `_scan.py` is the
streaming parser that every family's table (`_syntax.py`) runs on, `_readers.py` and `_values.py`
read what stands inside calls, `_grammar.py` makes what constrained decoding may write.
"""

from antiphon.formats._described import read_format
from antiphon.formats._detect import detect_format
from antiphon.formats._example import example_conversation
from antiphon.formats._grammar import Grammar
from antiphon.formats._kept import Kept, keep_history, keep_history_in
from antiphon.formats._names import describe, get_format, list_formats
from antiphon.formats._types import (
    Author,
    Format,
    Piece,
    Rendered,
    Start,
    StreamParser,
    ToolChoice,
)

__all__ = [
    "Author",
    "Format",
    "Grammar",
    "Kept",
    "Piece",
    "Rendered",
    "Start",
    "StreamParser",
    "ToolChoice",
    "describe",
    "detect_format",
    "example_conversation",
    "get_format",
    "keep_history",
    "keep_history_in",
    "list_formats",
    "read_format",
]
