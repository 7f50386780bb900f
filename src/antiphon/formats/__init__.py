"""How each model family writes and reads.  Start with `_types.py`; then any family, one file each."""

from antiphon.formats._types import (
    Author,
    Format,
    Piece,
    Rendered,
    Start,
    StreamParser,
    ToolChoice,
)

__all__ = ["Author", "Format", "Piece", "Rendered", "Start", "StreamParser", "ToolChoice"]
