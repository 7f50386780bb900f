"""Which tokens of a rendered conversation count in training, and how much.

A `LossPolicy` is a base (which spans count) and scales (how much of a span's text counts).  The
weights of all multiply.  A policy knows authors, messages and text; it knows no token: the encoder
gives each token the weight of the character that it begins with, so a policy never moves a token's
edge.

Names and configurations follow ms-swift's ``loss_scale`` (swift/loss_scale/, 4.6), deviations:

- ``last_turn`` is the whole turn after the last user message, calls included; ms-swift's
  ``last_round`` (kept under that name) begins after the last tool result and trains no call of an
  agent's turn.
- Where a scale's parts cut a token, the token stays whole (there, the parts are encoded apart).
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from antiphon.errors import DataError, UnknownNameError, UsageError, clip
from antiphon.messages import Conversation, Message

Base = Literal["default", "last_turn", "last_round", "all"]
Weighted: TypeAlias = "list[tuple[str, float]]"
"""A text in parts, each with its weight."""


class MessageWeights(NamedTuple):
    """How much a message counts."""

    given: float
    """What a model reads in it."""
    written: float
    """What a model wrote in it."""


@dataclass(frozen=True)
class Delimiters:
    """Weights for literal words and for what follows each, up to the next."""

    weights: tuple[tuple[str, float, float], ...]
    """The word, its weight, and the weight of the text after it."""
    queries: tuple[tuple[str, float], ...] = ()
    """Words in the message that is answered, and the weight of the whole answer then."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(re.escape(word) for word, _, _ in self.weights) or "(?!)")

    @cached_property
    def _table(self) -> dict[str, tuple[float, float]]:
        return {word: (own, after) for word, own, after in self.weights}

    def split(self, text: str, query: str = "") -> Weighted:
        """The text in parts with their weights; before the first word the weight is 1."""
        for word, weight in self.queries:
            if word in query:
                return [(text, weight)]
        parts: Weighted = []
        place, after = 0, 1.0
        for match in self._pattern.finditer(text):
            parts.append((text[place : match.start()], after))
            own, after = self._table[match.group()]
            parts.append((match.group(), own))
            place = match.end()
        parts.append((text[place:], after))
        return [part for part in parts if part[0]]


@dataclass(frozen=True)
class Matches:
    """Weights for what patterns match; all else weighs 1."""

    weights: tuple[tuple[str, float], ...]
    """A pattern (``.`` matches line ends, ``^`` the start of the span) and the weight of a
    match."""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        groups = (f"(?P<p{i}>{pattern})" for i, (pattern, _) in enumerate(self.weights))
        return re.compile("|".join(groups), re.DOTALL)

    def split(self, text: str, query: str = "") -> Weighted:
        """The text in parts with their weights."""
        parts: Weighted = []
        place = 0
        for match in self._pattern.finditer(text):
            parts.append((text[place : match.start()], 1.0))
            which = next(i for i in range(len(self.weights)) if match.group(f"p{i}") is not None)
            parts.append((match.group(), self.weights[which][1]))
            place = match.end()
        parts.append((text[place:], 1.0))
        return [part for part in parts if part[0]]


Scale: TypeAlias = Delimiters | Matches


@dataclass(frozen=True)
class LossPolicy:
    """Which spans count, and how much."""

    base: Base = "default"
    """``default``: what the model wrote; ``last_turn``, ``last_round``: of that, only the end;
    ``all``: everything, prompts too."""
    scales: tuple[Scale, ...] = ()
    """Applied one after the other, each to the parts of the one before; weights multiply."""
    name: str = "default"
    """How it was asked for."""

    @classmethod
    def named(cls, name: str) -> "LossPolicy":
        """A policy by name: one base, any scales, joined by ``+``.

        Args:
            name: For example ``"last_turn+react"``; bases are ``default``, ``last_turn``,
                ``last_round``, ``all``; scales are those of `list_policies`.

        Raises:
            UnknownNameError: A part of the name is no base and no scale.
            UsageError: Two bases are named.

        >>> LossPolicy.named("last_turn+hermes").base
        'last_turn'
        """
        parts = [part.strip() for part in name.split("+")]
        unknown = [p for p in parts if p not in _BASES and p not in _SCALES]
        if unknown:
            known = ", ".join([*_BASES, *_SCALES])
            raise UnknownNameError(f"no loss policy named {clip(unknown[0])}; known: {known}")
        bases = [p for p in parts if p in _BASES]
        if len(set(bases)) > 1:
            raise UsageError(
                f"loss policy {clip(name)} has two bases: {', '.join(bases)}; keep one"
            )
        base = cast("Base", bases[0] if bases else "default")
        return cls(base, tuple(_SCALES[p] for p in parts if p in _SCALES), name)

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any] | str | Path, *, base: Base = "default"
    ) -> "LossPolicy":
        """A policy from ms-swift's JSON: lists of two weights are words, lists of one are patterns.

        Args:
            config: The object, or a file that holds it. ``{"response": {...}, "query": {...}}``
                gives weights by the message that is answered too.
            base: Which spans count.

        Raises:
            DataError: The file is no JSON object, or an entry is no list of one or two numbers.
        """
        if isinstance(config, Mapping):
            return cls(base, (_scale_from_config(config),), "config")
        path = Path(config)
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(value, dict):
                raise DataError(
                    f"a loss policy must be a JSON object, got {clip(value)}", path=path
                )
            return replace(
                cls.from_config(cast("dict[str, Any]", value), base=base), name=str(path)
            )
        except json.JSONDecodeError as error:
            raise DataError(f"not JSON: {error.msg}", path=path, line=error.lineno) from error
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", path=path) from error

    def message_weights(self, conversation: Conversation) -> list[MessageWeights]:
        """The weights of each message before the scales.

        A message's own ``loss`` takes the place of the base; on a message that no model wrote it
        makes the message's content count.
        """
        given = 1.0 if self.base == "all" else 0.0
        start = self._start(conversation)
        return [
            _own_weights(m, given)
            if m.loss is not None
            else MessageWeights(given, 1.0 if i >= start else 0.0)
            for i, m in enumerate(conversation.messages)
        ]

    def _start(self, conversation: Conversation) -> int:
        """The first message whose written spans count."""
        ends = {"last_turn": ("user",), "last_round": ("user", "tool")}.get(self.base, ())
        roles = [m.role for m in conversation.messages]
        return max((i + 1 for i, role in enumerate(roles) if role in ends), default=0)

    def split(self, text: str, query: str = "") -> Weighted:
        """A written span in parts, each with the product of all scales' weights.

        Args:
            text: The span, without the mark that ends the turn.
            query: The text of the message that it answers.
        """
        parts: Weighted = [(text, 1.0)]
        for scale in self.scales:
            parts = [
                (part, weight * own)
                for whole, weight in parts
                for part, own in scale.split(whole, query)
            ]
        return parts


def list_policies() -> list[str]:
    """The names that `LossPolicy.named` knows, bases first."""
    return [*_BASES, *_SCALES]


def _own_weights(message: Message, given: float) -> MessageWeights:
    loss = message.loss or 0.0
    return MessageWeights(given if message.role == "assistant" else loss, loss)


def _scale_from_config(config: Mapping[str, Any]) -> Scale:
    if isinstance(config.get("response"), Mapping):
        scale = _scale_from_config(config["response"])
        by_query = cast("dict[str, Any]", config.get("query") or {})
        queries = tuple((w, _numbers(w, v)[0]) for w, v in by_query.items())
        if isinstance(scale, Delimiters):
            return replace(scale, queries=queries)
        raise DataError("a loss policy with 'query' needs lists of two weights in 'response'")
    entries = {key: _numbers(key, value) for key, value in config.items()}
    words = tuple((key, v[0], v[1]) for key, v in entries.items() if len(v) == 2)
    if words:  # as ms-swift: patterns beside words are not looked at
        return Delimiters(words)
    matches = Matches(tuple((key, v[0]) for key, v in entries.items()))
    for pattern, _ in matches.weights:
        try:
            re.compile(pattern)
        except re.error as error:
            raise DataError(f"not a pattern: {clip(pattern)}: {error}") from error
    return matches


def _numbers(key: str, value: Any) -> Sequence[float]:
    given: Any = value
    values: list[Any] = given if isinstance(value, list) else [given]
    if len(values) not in (1, 2) or not all(
        isinstance(v, int | float) and not isinstance(v, bool) and v >= 0 for v in values
    ):
        raise DataError(
            f"the weights of {clip(key)} must be one or two numbers from 0 up, got {clip(given)}"
        )
    return [float(v) for v in values]


_BASES = ("default", "last_turn", "last_round", "all")

_REACT = (
    ("Action:", 2.0, 2.0),
    ("Action Input:", 2.0, 2.0),
    ("Thought:", 1.0, 1.0),
    ("Final Answer:", 1.0, 1.0),
    ("Observation:", 2.0, 0.0),
)
_AGENTFLAN = Delimiters(
    (
        *(
            (word, 1.0, 3.0)
            for word in (
                "Name:", "Action:", "ACTION:", "Tool:", "Command", "Arguments:",
                "action input", "ACTION_INPUT:", "Action Input:",
            )
        ),
        ("Thought:", 1.0, 1.0),
        ("Final Answer:", 1.0, 1.0),
        ("Observation:", 2.0, 0.0),
    ),
    queries=(
        ("What is the tool you want to use", 3.0),
        ("What are the required parameter names", 3.0),
        ("What is the value of", 3.0),
        ("What are the required parameter names for this tool", 3.0),
    ),
)  # fmt: skip
_EMPTY_THINKING = Matches(
    (
        (r"^<think>\s*</think>\s*", 0.0),
        (
            r"^<seed:think><seed:cot_budget_reflect>The current thinking budget is 0, so I will "
            r"directly start answering the question.</seed:cot_budget_reflect>\n</seed:think>\s*",
            0.0,
        ),
        (r"^</think>\s*", 0.0),
        (r"^<\|channel>thought\n<channel\|>", 0.0),
        (r"^</mm:think>\s*", 0.0),
    )
)

_SCALES: dict[str, Scale] = {
    "react": Delimiters(_REACT),
    "hermes": Matches(((r"<tool_call>.+?</tool_call>", 2.0),)),
    "qwen": Delimiters(
        (
            ("✿FUNCTION✿:", 2.0, 2.0),
            ("✿ARGS✿:", 2.0, 2.0),
            ("✿RETURN✿:", 1.0, 1.0),
            ("✿RESULT✿:", 2.0, 0.0),
        )
    ),
    "agentflan": _AGENTFLAN,
    "alpha_umi": Delimiters((*_REACT, ("Next:", 2.0, 2.0))),
    "ignore_empty_thinking": _EMPTY_THINKING,
    "ignore_empty_think": _EMPTY_THINKING,
    "ignore_think_prefix": Matches(((r"^<think>\n?", 0.0),)),
}
