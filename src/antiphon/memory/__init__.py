"""What stays in view of a long conversation, and of a long result.

Start with `_compaction.py`: old tool results are left out first, then old messages, never a call
without its result.  `_observations.py` brings one long result within a budget; `_memory.py` keeps
what later runs recall.  The record of a run
keeps everything; only what the model is shown is shorter.
"""

from antiphon.memory._compaction import (
    Compacted,
    Compaction,
    compact,
    count_tokens,
    summarise_with,
)
from antiphon.memory._memory import Memory, MemoryEntry
from antiphon.memory._observations import (
    Observations,
    SummariseText,
    extract,
    head_tail,
    n_tokens,
    shorten,
    thin_json,
)

__all__ = [
    "Compacted",
    "Compaction",
    "Memory",
    "MemoryEntry",
    "Observations",
    "SummariseText",
    "compact",
    "count_tokens",
    "extract",
    "head_tail",
    "n_tokens",
    "shorten",
    "summarise_with",
    "thin_json",
]
