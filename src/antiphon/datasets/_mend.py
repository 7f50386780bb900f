"""Faults that can be mended without guessing what was meant, and the mending of them.

A message without content is removed, two user messages in a row are joined, a late system message
goes first where no other is, and a conversation that came before is left out.  All else needs a
decision: which result a call had, what an argument should be.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from antiphon.datasets._check import digest_of
from antiphon.datasets._read import read_row_all
from antiphon.datasets._seen import Seen
from antiphon.datasets._write import write_row
from antiphon.errors import DataError
from antiphon.messages import Conversation, Message, TextPart

BETWEEN_USERS = "\n\n"


@dataclass(slots=True)
class Mender:
    """Mends rows one after the other, and counts what it did."""

    done: Counter[str] = field(default_factory=Counter[str])
    """How often each fault was mended, by the code of its finding."""
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Rows that were left out, by the code of the finding."""
    seen: Seen = field(default_factory=Seen)
    """Digests of the conversations so far."""

    def mend(self, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """A row without the faults that can be mended; the row itself where it has none.

        Recorded runs are evidence and stay as they are.

        Args:
            row: The row.

        Returns:
            The row to keep; ``None`` where it is left out.
        """
        try:
            conversations = read_row_all(row)
        except DataError:
            self.left_out["unreadable"] += 1
            return None
        is_run = "steps" in row
        mended = conversations if is_run else [self._mended(c) for c in conversations]
        if not self.seen.add(b"".join(map(digest_of, mended))):
            self.left_out["duplicate"] += 1
            return None
        return row if mended == conversations else write_row(mended[0])[0]

    def _mended(self, conversation: Conversation) -> Conversation:
        messages = self._without_empty(conversation.messages)
        messages = self._system_first(messages)
        messages = self._joined(messages)
        if messages == conversation.messages:
            return conversation
        return replace(conversation, messages=messages)

    def _without_empty(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        kept = tuple(m for m in messages if m.role == "tool" or not _is_empty(m))
        self.done["empty"] += len(messages) - len(kept)
        return kept if kept else messages

    def _system_first(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        systems = [i for i, m in enumerate(messages) if m.role == "system"]
        if len(systems) != 1 or systems[0] == 0:
            return messages
        self.done["system_not_first"] += 1
        at = systems[0]
        return (messages[at], *messages[:at], *messages[at + 1 :])

    def _joined(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        joined: list[Message] = []
        for message in messages:
            if joined and joined[-1].role == message.role == "user":
                between = (TextPart(BETWEEN_USERS),)
                parts = (*joined[-1].parts, *between, *message.parts)
                metadata = joined[-1].metadata | message.metadata
                joined[-1] = replace(joined[-1], parts=parts, metadata=metadata)
                self.done["user_twice"] += 1
            else:
                joined.append(message)
        return tuple(joined)


def _is_empty(message: Message) -> bool:
    said = message.text.strip() or message.media or message.reasoning
    return not said and not message.tool_calls and not message.invalid_tool_calls
