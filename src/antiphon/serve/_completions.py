"""OpenAI's Completions: a text and its continuation, without roles.

Source: OpenAI API reference, ``POST /v1/completions``.  The text is the caller's own, its marks
included; see the format ``plain``.
"""

import secrets
import time
from collections.abc import Sequence
from typing import Any

from antiphon.messages import (
    Completion,
    Conversation,
    JsonObject,
    JsonValue,
    Message,
    TokenLogprob,
    Usage,
)
from antiphon.models import ModelSettings
from antiphon.serve._answer import Answer, End, Piece, TextPiece, TokensPiece
from antiphon.serve._ask import MAX_TOKENS, MAX_TOP, Ask, Limits, sampling
from antiphon.serve._fields import Fields
from antiphon.serve._openai import (
    Shown,
    finish_reason,
    logprob_of,
    openai_error,
    sum_of,
    tokens_of,
    usage_row,
)
from antiphon.serve._refusal import Refusal, bad
from antiphon.serve._wire import event

_DEFAULT_MAX_TOKENS = 16  # OpenAI's own


class CompletionsServing:
    """Reads requests and writes answers of ``/v1/completions``."""

    def read(self, row: dict[str, Any], limits: Limits) -> Ask:
        """What a request asks.

        Raises:
            Refusal: It cannot be meant as it is written.
        """
        fields = Fields(row)
        for name in ("suffix", "best_of"):
            if fields.get(name) not in (None, 1):
                raise bad(f"{name} is not served", name)
        options = fields.object("stream_options")
        settings = ModelSettings(
            max_tokens=fields.integer("max_tokens", 1, MAX_TOKENS) or _DEFAULT_MAX_TOKENS,
            seed=fields.integer("seed", -(1 << 63), (1 << 63) - 1),
            stop=fields.texts("stop", 16),
            logprobs=fields.integer("logprobs", 0, MAX_TOP),
        )
        prompt = _prompt(fields)
        return Ask(
            fields.text("model"),
            Conversation((Message.user(prompt),)),
            sampling(fields, settings),
            n=fields.integer("n", 1, limits.choices) or 1,
            include_usage=options is not None and options.flag("include_usage"),
            id=f"cmpl-{secrets.token_hex(12)}",
            echo={"prompt": prompt if fields.flag("echo") else ""},
        )

    def whole(self, ask: Ask, answers: Sequence[Answer]) -> JsonObject:
        """The body of an answer that is sent whole."""
        choices: list[JsonValue] = [
            {
                "index": index,
                "text": f"{ask.echo['prompt']}{answer.text}",
                "logprobs": _logprobs(ask, answer.completion),
                "finish_reason": finish_reason(answer.completion.stop_reason, False),
            }
            for index, answer in enumerate(answers)
        ]
        usage = sum_of(answer.completion.usage for answer in answers)
        return {**_head(ask), "choices": choices, "usage": usage_row(usage)}

    def stream(self, ask: Ask) -> "CompletionsStream":
        """What writes a streamed answer."""
        return CompletionsStream(ask)

    def error(self, refusal: Refusal) -> JsonObject:
        """The body of an error."""
        return openai_error(refusal)


def _prompt(fields: Fields) -> str:
    texts = fields.get("prompt")
    if isinstance(texts, list):
        if len(texts) != 1:  # pyright: ignore[reportUnknownArgumentType]
            raise fields.refuse("prompt", "one text; ask once for each")
        return fields.texts("prompt", 1)[0]
    return fields.text("prompt")


def _head(ask: Ask) -> JsonObject:
    return {
        "id": ask.id,
        "object": "text_completion",
        "created": int(time.time()),
        "model": ask.model,
    }


def _logprobs(ask: Ask, completion: Completion) -> JsonValue:
    tokens = tokens_of(ask, completion)
    return None if tokens is None else _logprobs_row(tokens)


def _logprobs_row(tokens: Sequence[TokenLogprob], at: int = 0) -> JsonObject:
    """Sampled tokens; the text of the first begins at a place."""
    offsets: list[JsonValue] = []
    for token in tokens:
        offsets.append(at)
        at += len(token.text)
    return {
        "tokens": [token.text for token in tokens],
        "token_logprobs": [logprob_of(token) for token in tokens],
        "top_logprobs": [{t.text: logprob_of(t) for t in token.top} or None for token in tokens],
        "text_offset": offsets,
    }


class CompletionsStream:
    """Writes one streamed continuation, or several side by side."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._head = _head(ask)
        self._usages: list[Usage] = []
        self._echoed: set[int] = set()
        self._shown = [Shown(ask) for _ in range(ask.n)]
        self._places = [0] * ask.n

    def begin(self) -> bytes:
        """What is sent before the first piece."""
        return b""

    def piece(self, piece: Piece, choice: int = 0) -> bytes:
        """What is sent for a piece."""
        shown = self._shown[choice]
        if isinstance(piece, TokensPiece):
            shown.take(piece.tokens)
            return b""
        text = "" if choice in self._echoed else str(self._ask.echo["prompt"])
        self._echoed.add(choice)
        if isinstance(piece, TextPiece):
            return self._chunk(choice, text + piece.text, shown.due())
        assert isinstance(piece, End)
        self._usages.append(piece.completion.usage)
        reason = finish_reason(piece.completion.stop_reason, False)
        return self._chunk(choice, text, shown.rest(self._ask, piece.completion), reason)

    def _chunk(
        self,
        choice: int,
        text: str,
        tokens: Sequence[TokenLogprob] = (),
        reason: str | None = None,
    ) -> bytes:
        logprobs = _logprobs_row(tokens, self._places[choice]) if tokens else None
        self._places[choice] += sum(len(token.text) for token in tokens)
        row: JsonObject = {
            "index": choice,
            "text": text,
            "logprobs": logprobs,
            "finish_reason": reason,
        }
        return event({**self._head, "choices": [row]})

    def end(self) -> bytes:
        """What is sent behind the last piece."""
        if not self._ask.include_usage:
            return b"data: [DONE]\n\n"
        usage = usage_row(sum_of(iter(self._usages)))
        return event({**self._head, "choices": [], "usage": usage}) + b"data: [DONE]\n\n"

    def error(self, refusal: Refusal) -> bytes:
        """What is sent where the answer breaks off."""
        return event(openai_error(refusal))
