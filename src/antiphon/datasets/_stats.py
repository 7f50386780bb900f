"""What a data set holds, counted in one pass: rows, turns, tools, calls, lengths, languages."""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from antiphon.messages import AudioPart, Conversation, ImagePart, VideoPart

_SAMPLE_CHARS = 400


@dataclass(slots=True)
class Stats:
    """Counts over conversations."""

    n_rows: int = 0
    """Conversations."""
    roles: Counter[str] = field(default_factory=Counter[str])
    """Messages by role."""
    messages: Counter[int] = field(default_factory=Counter[int])
    """Conversations by how many messages they have."""
    turns: Counter[int] = field(default_factory=Counter[int])
    """Conversations by how many user messages they have."""
    tools_on_offer: Counter[int] = field(default_factory=Counter[int])
    """Conversations by how many tools they offer."""
    calls_per_message: Counter[int] = field(default_factory=Counter[int])
    """Assistant messages by how many calls they make."""
    called: Counter[str] = field(default_factory=Counter[str])
    """Calls by tool."""
    chars: Counter[int] = field(default_factory=Counter[int])
    """Conversations by the power of two that their text's length reaches, in characters."""
    scripts: Counter[str] = field(default_factory=Counter[str])
    """Conversations by the script of their first user message."""
    n_reasoning: int = 0
    """Assistant messages with reasoning."""
    n_errors: int = 0
    """Results that are marked as errors."""
    n_images: int = 0
    """Images."""
    n_audios: int = 0
    """Sounds."""
    n_videos: int = 0
    """Films."""

    def add(self, conversation: Conversation) -> None:
        """Count a conversation."""
        messages = conversation.messages
        self.n_rows += 1
        self.messages[len(messages)] += 1
        self.turns[sum(m.role == "user" for m in messages)] += 1
        self.tools_on_offer[len(conversation.tools)] += 1
        self.chars[sum(len(m.text) for m in messages).bit_length()] += 1
        self.scripts[script_of(next((m.text for m in messages if m.role == "user"), ""))] += 1
        for message in messages:
            self.roles[message.role] += 1
            for part in message.media:
                self.n_images += isinstance(part, ImagePart)
                self.n_audios += isinstance(part, AudioPart)
                self.n_videos += isinstance(part, VideoPart)
            self.n_errors += message.is_error
            if message.role == "assistant":
                self.n_reasoning += bool(message.reasoning)
                self.calls_per_message[len(message.tool_calls)] += 1
                self.called.update(call.name for call in message.tool_calls)

    def to_row(self) -> dict[str, Any]:
        """The counts as JSON."""
        counters = {
            name: {str(key): n for key, n in getattr(self, name).most_common()}
            for name in ("roles", "called", "scripts")
        }
        spreads = {
            name: {str(key): n for key, n in sorted(getattr(self, name).items())}
            for name in ("messages", "turns", "tools_on_offer", "calls_per_message")
        }
        lengths = {str(1 << bits): n for bits, n in sorted(self.chars.items())}
        return {
            "n_rows": self.n_rows,
            "n_reasoning": self.n_reasoning,
            "n_errors": self.n_errors,
            "n_images": self.n_images,
            "n_audios": self.n_audios,
            "n_videos": self.n_videos,
            **counters,
            **spreads,
            "chars_below": lengths,
        }


def count(conversations: Iterable[Conversation]) -> Stats:
    """The counts of conversations."""
    stats = Stats()
    for conversation in conversations:
        stats.add(conversation)
    return stats


def script_of(text: str) -> str:
    """The script of most letters at the beginning of a text, in Unicode's word; ``""`` without any.

    >>> script_of("北京天气"), script_of("Ferry?"), script_of("12")
    ('CJK', 'LATIN', '')
    """
    letters = (c for c in text[:_SAMPLE_CHARS] if c.isalpha())
    names = Counter(unicodedata.name(c, "?").split(" ")[0] for c in letters)
    return names.most_common(1)[0][0] if names else ""
