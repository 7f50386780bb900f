"""What OpenAI's APIs have in common: tool choice, schemas, calls in a history, usage, errors.

Source: OpenAI API reference, Chat Completions, Completions and Responses.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

from antiphon.messages import (
    Completion,
    InvalidToolCall,
    JsonObject,
    JsonValue,
    Message,
    Part,
    TokenLogprob,
    ToolCall,
    ToolSpec,
    Usage,
)
from antiphon.serve._ask import Ask, check_choice
from antiphon.serve._fields import Fields, read_json
from antiphon.serve._refusal import Refusal

# --- Requests


def tool_choice(fields: Fields, tools: Sequence[ToolSpec]) -> str:
    """Which tools may be called; a name with or without the ``function`` wrapper.

    Raises:
        Refusal: It cannot be meant, or the tools do not allow it.
    """
    choice = fields.get("tool_choice")
    if choice is None or isinstance(choice, str):
        word = fields.one_of("tool_choice", "auto", "none", "required", default="auto")
        return check_choice(word, tools)
    named = fields.object("tool_choice")
    assert named is not None
    if named.text("type") != "function":
        raise fields.refuse("tool_choice", "auto, none, required or a named function")
    return check_choice((named.object("function") or named).text("name"), tools)


def answer_schema(wanted: Fields | None) -> "JsonObject | None":
    """The JSON Schema that a ``response_format``, or ``text.format``, asks for.

    Raises:
        Refusal: It is of no known type, or its schema is missing.
    """
    if wanted is None:
        return None
    match wanted.text("type"):
        case "text":
            return None
        case "json_object":
            return {"type": "object"}
        case "json_schema":
            holder = wanted.object("json_schema") or wanted
            schema = holder.object("schema")
            if schema is None:
                raise holder.refuse("schema", "a JSON Schema")
            return cast("JsonObject", dict(schema.row))
        case _:
            raise wanted.refuse("type", "text, json_object or json_schema")


def call_of(name: str, arguments: str, id: str) -> ToolCall | InvalidToolCall:
    """A call that comes back in a history.  Arguments that are no JSON object come back as text."""
    try:
        value: Any = read_json(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return InvalidToolCall(arguments, "the arguments are not a JSON object", name, id)
    return ToolCall(name, cast("JsonObject", value), id)


def assistant(parts: Iterable[Part], calls: Iterable[ToolCall | InvalidToolCall]) -> Message:
    """A turn of the assistant that comes back in a history."""
    valid: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for call in calls:
        if isinstance(call, ToolCall):
            valid.append(call)
        else:
            invalid.append(call)
    return Message(
        "assistant", tuple(parts), tool_calls=tuple(valid), invalid_tool_calls=tuple(invalid)
    )


# --- Answers


def openai_error(refusal: Refusal) -> JsonObject:
    """An error as OpenAI's APIs spell it."""
    return {
        "error": {
            "message": refusal.message,
            "type": refusal.kind,
            "param": refusal.param or None,
            "code": refusal.code or None,
        }
    }


def finish_reason(stop_reason: str, has_calls: bool) -> str:
    """Why an answer ended, in OpenAI's words."""
    if stop_reason in ("length", "content_filter"):
        return stop_reason
    return "tool_calls" if has_calls else "stop"


def usage_row(usage: Usage) -> JsonObject:
    """What an answer cost, in OpenAI's words."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
    }


def sum_of(usages: Iterator[Usage]) -> Usage:
    """What several answers to one prompt cost: the prompt once."""
    total: Usage | None = None
    for usage in usages:
        if total is None:
            total = usage
        else:
            total = replace(total, output_tokens=total.output_tokens + usage.output_tokens)
    return total or Usage()


def tokens_of(ask: Ask, completion: Completion) -> tuple[TokenLogprob, ...] | None:
    """The sampled tokens, with as many likely others as were asked for; ``None`` where none were,
    or none are known."""
    n_top = ask.settings.logprobs
    told = completion.tokens or completion.logprobs
    if n_top is None or told is None:
        return None
    return tuple(replace(token, top=token.top[:n_top]) for token in told)


class Shown:
    """Which of the sampled tokens of a streamed answer the client was shown."""

    def __init__(self, ask: Ask) -> None:
        self._n_top = ask.settings.logprobs
        self._due: list[TokenLogprob] = []
        self._n_shown = 0

    def take(self, tokens: Iterable[TokenLogprob]) -> None:
        """Tokens of what is sent next."""
        if self._n_top is not None:
            self._due += (replace(token, top=token.top[: self._n_top]) for token in tokens)

    def due(self) -> list[TokenLogprob]:
        """The tokens of what is sent now."""
        due, self._due = self._due, []
        self._n_shown += len(due)
        return due

    def rest(self, ask: Ask, completion: Completion) -> tuple[TokenLogprob, ...]:
        """At the end: those that were not shown."""
        return (tokens_of(ask, completion) or ())[self._n_shown :]


def logprobs_of(tokens: Iterable[TokenLogprob]) -> list[JsonValue]:
    """Sampled tokens, as Chat Completions and Responses show them."""
    return [
        {**_token_row(token), "top_logprobs": [_token_row(other) for other in token.top]}
        for token in tokens
    ]


def _token_row(token: TokenLogprob) -> JsonObject:
    return {
        "token": token.text,
        "logprob": logprob_of(token),
        "bytes": list(token.text.encode("utf-8", "replace")),
    }


def logprob_of(token: TokenLogprob) -> float:
    """A number that JSON can say; OpenAI's own for "very unlikely" where there is none."""
    logprob = token.logprob
    return logprob if logprob is not None and math.isfinite(logprob) else -9999.0
