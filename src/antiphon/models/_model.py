"""The Protocol of everything that completes a Conversation, and how it is asked to.

One method, and it streams: deltas as they arrive, then exactly one `Completion`, last.  Whatever
breaks raises a `ModelError`; what the model wrote wrongly is in the Completion.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from antiphon.formats import ToolChoice
from antiphon.messages import (
    Completion,
    Conversation,
    Delta,
    JsonObject,
    JsonValue,
    TokenLogprob,
)


@dataclass(frozen=True, slots=True)
class Retry:
    """A request broke in mid-stream and is made again: discard the deltas so far."""

    reason: str
    """What broke."""
    wait: float = 0.0
    """Seconds until the next try."""


@dataclass(frozen=True, slots=True)
class SampledTokens:
    """Tokens that were sampled, told before the deltas that they bring.

    They are told where `ModelSettings.logprobs` asks for them and the model knows them as it
    writes; the Completion has all of them.
    """

    tokens: tuple[TokenLogprob, ...]
    """Those since the last that were told."""


ModelOutput: TypeAlias = Delta | SampledTokens | Retry | Completion


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """How a completion is sampled.  ``None`` leaves a value to the model or server."""

    temperature: float | None = None
    """Sampling temperature; 0 is greedy."""
    top_p: float | None = None
    """Nucleus sampling threshold."""
    max_tokens: int | None = None
    """The most tokens to write."""
    seed: int | None = None
    """Seed of the sampler, where the model takes one."""
    stop: tuple[str, ...] = ()
    """Further texts that end the completion."""
    tool_choice: ToolChoice = "auto"
    """``auto``, ``none``, ``required``, or the name of one tool."""
    parallel_tool_calls: bool = True
    """Whether more than one call may be written in a step."""
    constrain: bool | None = None
    """Whether decoding is held to the format's grammar; ``None``: where the model can."""
    response_schema: "JsonObject | None" = None
    """A JSON Schema that an answer without calls must fit; held where the model can be held."""
    logprobs: int | None = None
    """How many of the likeliest tokens are wanted beside each sampled one; ``None``: no log
    probabilities are asked for, though a model that has them tells those of the sampled tokens."""
    stream: bool = True
    """Whether the answer is wanted as it is written; a server that is asked for it whole has less
    to send.  A model that does not know the difference streams."""
    extra: JsonObject = field(default_factory=dict[str, JsonValue])
    """Further fields of the request, sent as they are."""
    response_pattern: str | None = None
    """A regular expression that all of an answer without calls must match; held where decoding is
    held to a grammar of ours, unknown elsewhere."""


class Model(Protocol):
    """Anything that completes a Conversation."""

    @property
    def spec(self) -> str:
        """How it was named: ``local``, ``openai/<name>``, ..."""
        ...

    def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Complete a conversation: deltas as they arrive, then one Completion.

        Raises:
            ModelError: There is no completion.
        """
        ...

    async def close(self) -> None:
        """Give back connections, threads and memory. May be called twice."""
        ...
