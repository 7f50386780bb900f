"""What comes back from a model: deltas while it writes, one `Completion` at the end.

A Completion keeps the evidence: the exact prompt and text where they are known, the sampled token
ids and their log probabilities.  Nothing downstream encodes a model's text a second time.
"""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from antiphon.messages._message import JsonObject, Message

StopReason = Literal[
    "stop",
    "tool_calls",
    "length",
    "content_filter",
    "refusal",
    "cancelled",
    "error",
]


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text of the answer."""

    text: str
    """The new characters."""


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """More reasoning."""

    text: str
    """The new characters."""


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """More of one call: its name first, then pieces of its arguments' JSON text."""

    index: int
    """Which call of this message, counted from 0."""
    name: str = ""
    """The tool's name; given once, with the first delta of a call, but by servers that send it in
    pieces."""
    id: str = ""
    """The call's id, where the family or server gives one."""
    arguments: str = ""
    """The next characters of the arguments as JSON text; joined they are one JSON object."""


Delta: TypeAlias = TextDelta | ThinkingDelta | ToolCallDelta


@dataclass(frozen=True, slots=True)
class Usage:
    """What a completion, or a run, cost."""

    input_tokens: int = 0
    """Tokens of the prompt."""
    output_tokens: int = 0
    """Tokens that the model wrote."""
    cached_tokens: int = 0
    """Tokens of the prompt that were not computed again."""
    n_requests: int = 0
    """Model calls."""

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.n_requests + other.n_requests,
        )


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """One sampled token."""

    token_id: int
    """Its id in the model's vocabulary."""
    logprob: float | None = None
    """Its log probability (natural) under the sampling distribution, where known."""
    text: str = ""
    """Its text, where known; may be part of a character."""
    top: "tuple[TokenLogprob, ...]" = ()
    """The likeliest tokens in its place, likeliest first, where they were asked for."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered to one conversation."""

    message: Message
    """The answer, parsed."""
    stop_reason: StopReason
    """Why the model stopped writing."""
    usage: Usage = field(default_factory=Usage)
    """What it cost."""
    model: str = ""
    """The model's own name for itself, or its spec."""
    format: str = ""
    """The Format that rendered and parsed it, with its variant; empty for a server's own calls."""
    prompt: str | None = None
    """The exact prompt text, where we rendered it."""
    text: str | None = None
    """The exact text the model wrote, stop marks excluded, where it is known."""
    prompt_ids: tuple[int, ...] | None = None
    """The tokens of the prompt, where known."""
    tokens: tuple[TokenLogprob, ...] | None = None
    """The sampled tokens, the end mark included, where known."""
    sampling: JsonObject = field(default_factory=lambda: {})
    """The sampling parameters that were asked for."""
    time_to_first_token: float | None = None
    """Seconds from request to first delta."""
    duration: float | None = None
    """Seconds from request to end."""
    logprobs: tuple[TokenLogprob, ...] | None = None
    """As `tokens`, of a server that tells texts and probabilities but no ids: each id is -1."""
