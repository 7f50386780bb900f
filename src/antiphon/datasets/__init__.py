"""Conversations from the files that others publish, and back.

Start with `_read.py`; `_adapters.py` lists the shapes of published data sets, and `_unified.py`
reads every spelling of a row of messages.  `_write.py` writes rows, `_check.py` and `_stats.py`
look at them, `_secrets.py` masks keys and passwords; `_preference.py` reads rows that compare
answers. This room renders nothing and knows no vocabulary.
"""

from antiphon.datasets._adapters import ADAPTERS, Adapter, adapter_named, adapter_of
from antiphon.datasets._check import Checker, Finding, check_file, digest_of
from antiphon.datasets._files import iter_lines, iter_rows, parse_line
from antiphon.datasets._mend import Mender
from antiphon.datasets._preference import (
    Judged,
    Preference,
    is_preference,
    prompt_of,
    read_judged,
    read_preference,
)
from antiphon.datasets._read import is_run, read_line, read_row, read_row_all, read_rows
from antiphon.datasets._secrets import mask_secrets
from antiphon.datasets._seen import Seen
from antiphon.datasets._sink import RowFile
from antiphon.datasets._stats import Stats, count
from antiphon.datasets._trajectory import (
    answer_in_place,
    conversation_shown,
    conversations_of,
)
from antiphon.datasets._unified import read_tools
from antiphon.datasets._write import WRITERS, write_row

__all__ = [
    "ADAPTERS",
    "WRITERS",
    "Adapter",
    "Checker",
    "Finding",
    "Judged",
    "Mender",
    "Preference",
    "RowFile",
    "Seen",
    "Stats",
    "adapter_named",
    "adapter_of",
    "answer_in_place",
    "check_file",
    "conversation_shown",
    "conversations_of",
    "count",
    "digest_of",
    "is_preference",
    "is_run",
    "iter_lines",
    "iter_rows",
    "mask_secrets",
    "parse_line",
    "prompt_of",
    "read_judged",
    "read_line",
    "read_preference",
    "read_row",
    "read_row_all",
    "read_rows",
    "read_tools",
    "write_row",
]
