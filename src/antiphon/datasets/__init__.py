"""Conversations from the files that others publish, and back.

Start with `_read.py`; `_unified.py` reads every spelling of a row of messages.  This room reads,
checks and writes; it renders nothing and knows no vocabulary.
"""

from antiphon.datasets._files import iter_lines, iter_rows, parse_line
from antiphon.datasets._read import read_line, read_row, read_row_all, read_rows
from antiphon.datasets._trajectory import conversations_of
from antiphon.datasets._unified import read_tools

__all__ = [
    "conversations_of",
    "iter_lines",
    "iter_rows",
    "parse_line",
    "read_line",
    "read_row",
    "read_row_all",
    "read_rows",
    "read_tools",
]
