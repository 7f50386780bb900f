"""What stays in view of a long conversation.

Start with `_compaction.py`: old tool results are left out first, then old messages, never a call
without its result.  The record of a run keeps everything; only what the model is shown is shorter.
"""

from antiphon.memory._compaction import (
    Compacted,
    Compaction,
    compact,
    count_tokens,
    summarise_with,
)

__all__ = ["Compacted", "Compaction", "compact", "count_tokens", "summarise_with"]
