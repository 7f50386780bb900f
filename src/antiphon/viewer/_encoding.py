"""What a trainer would see of a conversation, as plain values that the page can colour.

The viewer knows no format and no tokenizer: whoever calls it prepares this, or leaves it out.
"""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Span:
    """A token, or a stretch of text where there is no tokenizer."""

    text: str
    """Its text; of a token that is part of a character, what can be shown of it."""
    weight: float = 0.0
    """How much it counts in training; 0 where it is only read."""
    author: Literal["frame", "given", "written"] = "frame"
    """Whose text it is: the family's own, what the model reads, or what it writes."""
    token_id: int | None = None
    """Its id in the vocabulary, where there is a tokenizer."""
    special: bool = False
    """Whether it is a special token."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """One conversation as rendered text, cut into spans, each with its author and its weight."""

    spans: tuple[Span, ...]
    """The text in order."""
    format: str = ""
    """The Format that rendered it."""
    policy: str = ""
    """The LossPolicy that weighed it."""
    tokenizer: str = ""
    """The tokenizer that cut it; empty where the spans are stretches of text."""
