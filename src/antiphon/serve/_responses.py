"""OpenAI's Responses, as a server speaks it.

Source: OpenAI API reference, ``POST /v1/responses``.  Of its tools, functions are served; answers
are kept for `previous_response_id` in memory, within bounds.
"""

import secrets
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.messages import (
    Conversation,
    InvalidToolCall,
    JsonObject,
    Message,
    Part,
    TextPart,
    ThinkingPart,
    ToolCall,
    dump_json,
)
from antiphon.models import ModelSettings
from antiphon.serve._answer import Answer
from antiphon.serve._ask import (
    MAX_TOKENS,
    MAX_TOP,
    Ask,
    Limits,
    image,
    input_audio,
    openai_tools,
    sampling,
)
from antiphon.serve._fields import Fields
from antiphon.serve._openai import answer_schema, assistant, call_of, openai_error, tool_choice
from antiphon.serve._refusal import Refusal, bad
from antiphon.serve._responses_stream import ResponsesStream, finished


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer that a later request may go on from."""

    owner: str
    """Whose it is."""
    row: JsonObject
    """Its body."""
    messages: tuple[Message, ...]
    """The conversation up to and with it, without instructions."""
    n_chars: int
    """How much there is of it."""


class KeptResponses:
    """The last answers, as many as bounds allow."""

    def __init__(self, most: int, most_chars: int = 64 << 20) -> None:
        """Set up.

        Args:
            most: How many to keep.
            most_chars: How many characters they may have together.
        """
        self._most = most
        self._most_chars = most_chars
        self._n_chars = 0
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def put(self, id: str, kept: Kept) -> None:
        """Keep an answer; the oldest go where there are too many."""
        self._kept[id] = kept
        self._n_chars += kept.n_chars
        while len(self._kept) > self._most or self._n_chars > self._most_chars:
            _, gone = self._kept.popitem(last=False)
            self._n_chars -= gone.n_chars

    def get(self, id: str, owner: str) -> Kept:
        """An answer of the same owner.

        Raises:
            Refusal: There is none.
        """
        kept = self._kept.get(id)
        if kept is None or kept.owner != owner:
            raise Refusal(404, f"there is no response {id[:80]!r}", "response_not_found")
        return kept

    def drop(self, id: str, owner: str) -> None:
        """Forget an answer.

        Raises:
            Refusal: There is none.
        """
        self._n_chars -= self.get(id, owner).n_chars
        del self._kept[id]


class ResponsesServing:
    """Reads requests and writes answers of ``/v1/responses``, for one owner."""

    def __init__(self, kept: KeptResponses, owner: str) -> None:
        """Set up.

        Args:
            kept: Earlier answers.
            owner: Whose request it is.
        """
        self._kept = kept
        self._owner = owner

    def read(self, row: dict[str, Any], limits: Limits) -> Ask:
        """What a request asks.

        Raises:
            Refusal: It cannot be meant as it is written.
        """
        fields = Fields(row)
        if fields.flag("background"):
            raise bad("background answers are not served", "background")
        tools = openai_tools(fields.rows("tools"), limits)
        messages = self._before(fields) + _input(fields, limits)
        if not messages:
            raise fields.refuse("input", "a text or a list of items")
        instructions = fields.text("instructions", "")
        system = (Message.system(instructions),) if instructions else ()
        text = fields.object("text")
        settings = ModelSettings(
            max_tokens=fields.integer("max_output_tokens", 1, MAX_TOKENS),
            tool_choice=tool_choice(fields, tools),
            parallel_tool_calls=fields.flag("parallel_tool_calls", True),
            response_schema=answer_schema(None if text is None else text.object("format")),
            logprobs=_n_top(fields),
        )
        return Ask(
            fields.text("model"),
            Conversation((*system, *messages), tools),
            sampling(fields, settings),
            id=f"resp_{secrets.token_hex(24)}",
            echo=_echo(fields, row),
        )

    def _before(self, fields: Fields) -> tuple[Message, ...]:
        id = fields.text("previous_response_id", "")
        return self._kept.get(id, self._owner).messages if id else ()

    def whole(self, ask: Ask, answers: Sequence[Answer]) -> JsonObject:
        """The body of an answer that is sent whole."""
        answer = answers[0]
        row = finished(ask, answer, int(time.time()))
        self.keep(ask, answer, row)
        return row

    def keep(self, ask: Ask, answer: Answer, row: JsonObject) -> None:
        """Remember an answer, where the request lets us."""
        if ask.echo["store"]:
            said = [m for m in ask.conversation.messages if m.role != "system"]
            told = (*said, _message_of(answer))
            self._kept.put(ask.id, Kept(self._owner, row, told, sum(map(_n_chars, told))))

    def stream(self, ask: Ask) -> ResponsesStream:
        """What writes a streamed answer."""
        return ResponsesStream(ask, self.keep)

    def error(self, refusal: Refusal) -> JsonObject:
        """The body of an error."""
        return openai_error(refusal)


# --- Requests


def _echo(fields: Fields, row: dict[str, Any]) -> JsonObject:
    """What of a request its answer repeats."""
    text = fields.object("text")
    return {
        "instructions": fields.text("instructions", "") or None,
        "max_output_tokens": row.get("max_output_tokens"),
        "metadata": row.get("metadata") if isinstance(row.get("metadata"), dict) else {},
        "parallel_tool_calls": fields.flag("parallel_tool_calls", True),
        "previous_response_id": fields.text("previous_response_id", "") or None,
        "store": fields.flag("store", True),
        "temperature": row.get("temperature"),
        "text": {"format": {"type": "text"}} if text is None else dict(text.row),
        "tool_choice": row.get("tool_choice") or "auto",
        "tools": row.get("tools") or [],
        "top_p": row.get("top_p"),
        "truncation": "disabled",
        "reasoning": {"effort": None, "summary": None},
    }


def _n_top(fields: Fields) -> int | None:
    """How many likely tokens are wanted beside each sampled one; ``None`` for nothing of all."""
    n_top = fields.integer("top_logprobs", 0, MAX_TOP)
    wanted = "message.output_text.logprobs" in fields.texts("include", 32)
    return n_top or 0 if wanted else n_top


def _input(fields: Fields, limits: Limits) -> tuple[Message, ...]:
    given = fields.get("input")
    if given is None:
        return ()
    if isinstance(given, str):
        return (Message.user(given),)
    rows = fields.rows("input")
    if len(rows) > limits.messages:
        raise bad(f"{len(rows)} items are more than this server takes", "input")
    turns = _Turns()
    for row in rows:
        turns.add(row)
    return turns.finish()


class _Turns:
    """Items as messages: what an assistant said, thought and called in a row is one turn."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._parts: list[Part] = []
        self._calls: list[ToolCall | InvalidToolCall] = []
        self._names: dict[str, str] = {}

    def add(self, row: Fields) -> None:
        match row.text("type", "message"):
            case "message":
                self._message(row)
            case "reasoning":
                self._begin_anew()
                texts = [part.text("text") for part in row.rows("content")]
                if texts:
                    self._parts.append(ThinkingPart("".join(texts)))
            case "function_call":
                id, name = row.text("call_id"), row.text("name")
                self._names[id] = name
                self._calls.append(call_of(name, row.text("arguments", ""), id))
            case "function_call_output":
                self._close()
                id = row.text("call_id")
                parts = _parts(row, "output")
                made = Message("tool", parts, tool_call_id=id, name=self._names.get(id, ""))
                self._messages.append(made)
            case _:
                raise row.refuse(
                    "type", "message, reasoning, function_call or function_call_output"
                )

    def _message(self, row: Fields) -> None:
        role = row.text("role")
        if role == "assistant":
            self._begin_anew()
            self._parts.extend(_parts(row, "content"))
            return
        self._close()
        match role:
            case "user":
                self._messages.append(Message("user", _parts(row, "content")))
            case "system" | "developer":
                self._messages.append(Message("system", _parts(row, "content")))
            case _:
                raise row.refuse("role", "user, assistant, system or developer")

    def _begin_anew(self) -> None:
        """Words behind calls are another turn."""
        if self._calls:
            self._close()

    def _close(self) -> None:
        if not self._parts and not self._calls:
            return
        self._messages.append(assistant(self._parts, self._calls))
        self._parts, self._calls = [], []

    def finish(self) -> tuple[Message, ...]:
        self._close()
        return tuple(self._messages)


def _parts(fields: Fields, key: str) -> tuple[Part, ...]:
    content = fields.get(key)
    if isinstance(content, str):
        return (TextPart(content),) if content else ()
    parts: list[Part] = []
    for part in fields.rows(key):
        match part.text("type"):
            case "input_text" | "output_text" | "text":
                parts.append(TextPart(part.text("text")))
            case "refusal":
                parts.append(TextPart(part.text("refusal")))
            case "input_image":
                parts.append(image(part.text("image_url"), part.name("image_url")))
            case "input_audio":
                parts.append(input_audio(part))
            case _:
                raise part.refuse("type", "input_text, output_text, input_image or input_audio")
    return tuple(parts)


def _message_of(answer: Answer) -> Message:
    """An answer as the message that a later request goes on from."""
    calls = [call_of(call.name, call.arguments, call.id) for call in answer.calls]
    parts: list[Part] = []
    if answer.reasoning:
        parts.append(ThinkingPart(answer.reasoning))
    if answer.text:
        parts.append(TextPart(answer.text))
    return assistant(parts, calls)


def _n_chars(message: Message) -> int:
    calls = sum(len(dump_json(call.arguments)) for call in message.tool_calls)
    media = sum(len(part.source) for part in message.media)
    return len(message.text) + len(message.reasoning) + calls + media
