"""Asking a model for something other than an answer: text, or a JSON object in it.

What was asked and what it cost is counted in a `Meter`, one a row.
"""

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from antiphon.messages import Completion, Conversation, JsonObject, Message, Usage
from antiphon.models import Model, ModelOutput, ModelSettings, complete


@dataclass(slots=True)
class Meter:
    """What models were asked in the making of one row, by the name that each gives itself."""

    usage: dict[str, Usage] = field(default_factory=dict[str, Usage])
    """What it cost."""

    def add(self, model: str, usage: Usage) -> None:
        """Count a completion."""
        self.usage[model] = self.usage.get(model, Usage()) + usage

    def to_row(self) -> JsonObject:
        """The counts as JSON."""
        return {
            model: {
                "calls": usage.n_requests,
                "input_tokens": usage.input_tokens,
                "output_tokens": usage.output_tokens,
                "cached_tokens": usage.cached_tokens,
            }
            for model, usage in self.usage.items()
        }


class Metered:
    """A model whose completions are counted."""

    def __init__(self, model: Model, meter: Meter) -> None:
        self._model = model
        self._meter = meter

    @property
    def spec(self) -> str:
        """How the model was named."""
        return self._model.spec

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        """Ask, and count the completion; see `Model.stream`."""
        async for output in self._model.stream(conversation, settings):
            if isinstance(output, Completion):
                used = output.usage
                counted = used if used.n_requests else replace(used, n_requests=1)
                self._meter.add(output.model or self._model.spec, counted)
            yield output

    async def close(self) -> None:
        """The model stays open: others use it."""


async def ask_text(
    model: Model, system: str, text: str, settings: ModelSettings | None = None
) -> str:
    """What a model answers to a message.

    Raises:
        ModelError: There is no answer.
    """
    messages = (Message.system(system), Message.user(text)) if system else (Message.user(text),)
    return (await complete(model, Conversation(messages), settings)).message.text


def find_object(text: str) -> dict[str, Any] | None:
    """The first JSON object in a text that may hold other words; ``None`` where there is none.

    >>> find_object('Sure! {"a": {"b": 1}} There.')
    {'a': {'b': 1}}
    """
    decoder = json.JSONDecoder()
    start = text.find("{")
    while start >= 0:
        try:
            value, _ = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        return cast("dict[str, Any]", value) if isinstance(value, Mapping) else None
    return None
