"""The answers of OpenAI's Responses: a body at once, or the events that make it.

Source: OpenAI API reference, ``POST /v1/responses`` and "Streaming events".
"""

import time
from collections.abc import Callable

from antiphon.messages import Completion, JsonObject, JsonValue, Usage, json_bytes
from antiphon.serve._answer import (
    Answer,
    AnswerCall,
    CallBegin,
    CallPiece,
    End,
    Fold,
    Piece,
    Segment,
    TextPiece,
    ThinkingPiece,
    TokensPiece,
)
from antiphon.serve._ask import Ask
from antiphon.serve._openai import Shown, logprobs_of, tokens_of
from antiphon.serve._refusal import Refusal
from antiphon.serve._wire import event


def _head(ask: Ask, created: int, status: str) -> JsonObject:
    return {
        **ask.echo,
        "id": ask.id,
        "object": "response",
        "created_at": created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "model": ask.model,
        "output": [],
    }


def finished(ask: Ask, answer: Answer, created: int) -> JsonObject:
    """The body of an answer that is over."""
    completion = answer.completion
    cut = {"length": "max_output_tokens", "content_filter": "content_filter"}
    reason = cut.get(completion.stop_reason)
    status = "completed" if reason is None else "incomplete"
    row = _head(ask, created, status)
    last = len(answer.segments) - 1  # where a cut answer was cut
    row["output"] = [
        _item(
            ask,
            index,
            segment,
            status if index == last else "completed",
            _logprobs(ask, completion) if index == last else [],
        )
        for index, segment in enumerate(answer.segments)
    ]
    row["usage"] = _usage(completion.usage)
    if reason is not None:
        row["incomplete_details"] = {"reason": reason}
    return row


def _usage(usage: Usage) -> JsonObject:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }


def _logprobs(ask: Ask, completion: Completion) -> list[JsonValue]:
    return logprobs_of(tokens_of(ask, completion) or ())


def _item_id(ask: Ask, index: int, kind: str) -> str:
    heads = {"text": "msg", "thinking": "rs", "call": "fc"}
    return f"{heads[kind]}_{ask.id.removeprefix('resp_')}{index:04x}"


def _item(
    ask: Ask, index: int, segment: Segment, status: str, logprobs: list[JsonValue]
) -> JsonObject:
    id = _item_id(ask, index, segment.kind)
    if segment.call is not None:
        return {
            "type": "function_call",
            "id": id,
            "call_id": segment.call.id,
            "name": segment.call.name,
            "arguments": segment.call.arguments,
            "status": status,
        }
    if segment.kind == "thinking":
        content: JsonObject = {"type": "reasoning_text", "text": segment.text}
        return {
            "type": "reasoning",
            "id": id,
            "summary": [],
            "content": [content],
            "status": status,
        }
    return {
        "type": "message",
        "id": id,
        "role": "assistant",
        "status": status,
        "content": [_text_part(segment.text, logprobs)],
    }


def _text_part(text: str, logprobs: list[JsonValue]) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": logprobs}


class ResponsesStream:
    """Writes one streamed answer: items that are added, grow, and are done, one at a time."""

    def __init__(self, ask: Ask, keep: Callable[[Ask, Answer, JsonObject], None]) -> None:
        """Set up a stream.

        Args:
            ask: What it answers.
            keep: Given the answer and its body when it is whole.
        """
        self._ask = ask
        self._keep = keep
        self._created = int(time.time())
        self._n_events = 0
        self._n_items = 0
        self._kind = ""
        self._fold = Fold()
        self._texts: list[str] = []
        self._call: AnswerCall | None = None
        self._ended: Completion | None = None
        self._shown = Shown(ask)

    def _event(self, kind: str, **fields: JsonValue) -> bytes:
        row: JsonObject = {"type": kind, "sequence_number": self._n_events, **fields}
        self._n_events += 1
        return event(row, kind)

    def begin(self) -> bytes:
        """What is sent before the first piece."""
        head = _head(self._ask, self._created, "in_progress")
        return self._event("response.created", response=head) + self._event(
            "response.in_progress", response=head
        )

    def piece(self, piece: Piece, choice: int = 0) -> bytes:
        """What is sent for a piece."""
        self._fold.take(piece)
        match piece:
            case TextPiece(text):
                return self._in("text") + self._grow("response.output_text.delta", text)
            case ThinkingPiece(text):
                return self._in("thinking") + self._grow("response.reasoning_text.delta", text)
            case CallBegin(_, id, name):
                return self._close() + self._begin_call(id, name)
            case CallPiece(_, text):
                return self._grow("response.function_call_arguments.delta", text)
            case TokensPiece(tokens):
                self._shown.take(tokens)
                return b""
            case End(completion):
                self._ended = completion
                return self._close()
            case _:
                raise AssertionError(piece)

    @property
    def _id(self) -> str:
        return _item_id(self._ask, self._n_items, self._kind)

    def _grow(self, kind: str, text: str) -> bytes:
        self._texts.append(text)
        head = b'event: %b\ndata: {"type":"%b","sequence_number":%d,' % (
            kind.encode(),
            kind.encode(),
            self._n_events,
        )
        self._n_events += 1
        place = b'"item_id":"%b","output_index":%d,' % (self._id.encode(), self._n_items)
        inner = b"" if self._kind == "call" else b'"content_index":0,'
        due = self._shown.due()  # those of reasoning and of calls have no place
        logprobs = b""
        if self._kind == "text":
            logprobs = b',"logprobs":' + (json_bytes(logprobs_of(due)) if due else b"[]")
        return head + place + inner + b'"delta":' + json_bytes(text) + logprobs + b"}\n\n"

    def _in(self, kind: str) -> bytes:
        if self._kind == kind:
            return b""
        out = self._close()
        self._kind = kind
        item = _item(self._ask, self._n_items, Segment(kind), "in_progress", [])
        item["content"] = []
        part: JsonObject = (
            _text_part("", []) if kind == "text" else {"type": "reasoning_text", "text": ""}
        )
        out += self._event("response.output_item.added", output_index=self._n_items, item=item)
        return out + self._event(
            "response.content_part.added",
            item_id=self._id,
            output_index=self._n_items,
            content_index=0,
            part=part,
        )

    def _begin_call(self, id: str, name: str) -> bytes:
        self._kind = "call"
        self._call = AnswerCall(id, name)
        item = _item(self._ask, self._n_items, Segment("call", "", self._call), "in_progress", [])
        return self._event("response.output_item.added", output_index=self._n_items, item=item)

    def _close(self) -> bytes:
        if not self._kind:
            return b""
        text = "".join(self._texts)
        self._texts.clear()
        status = "completed"
        if self._ended is not None and self._ended.stop_reason in ("length", "content_filter"):
            status = "incomplete"
        place: JsonObject = {"item_id": self._id, "output_index": self._n_items}
        if self._call is not None:
            kind = "response.function_call_arguments.done"
            out = self._event(kind, **place, name=self._call.name, arguments=text)
            call = AnswerCall(self._call.id, self._call.name, text)
            item = _item(self._ask, self._n_items, Segment("call", "", call), status, [])
            self._call = None
        else:
            out, item = self._close_text(place, text, status)
        out += self._event("response.output_item.done", output_index=self._n_items, item=item)
        self._kind = ""
        self._n_items += 1
        return out

    def _close_text(self, place: JsonObject, text: str, status: str) -> tuple[bytes, JsonObject]:
        is_text = self._kind == "text"
        logprobs: list[JsonValue] = []
        if is_text and self._ended is not None:
            logprobs = _logprobs(self._ask, self._ended)
        item = _item(self._ask, self._n_items, Segment(self._kind, text), status, logprobs)
        part: JsonObject = (
            _text_part(text, logprobs) if is_text else {"type": "reasoning_text", "text": text}
        )
        place = {**place, "content_index": 0}
        kind = "response.output_text.done" if is_text else "response.reasoning_text.done"
        more: JsonObject = {"logprobs": logprobs} if is_text else {}
        out = self._event(kind, **place, text=text, **more)
        return out + self._event("response.content_part.done", **place, part=part), item

    def end(self) -> bytes:
        """What is sent behind the last piece."""
        answer = self._fold.answer()
        row = finished(self._ask, answer, self._created)
        self._keep(self._ask, answer, row)
        return self._event(f"response.{row['status']}", response=row)

    def error(self, refusal: Refusal) -> bytes:
        """What is sent where the answer breaks off."""
        row = _head(self._ask, self._created, "failed")
        row["error"] = {"code": "server_error", "message": refusal.message}
        return self._event("response.failed", response=row)
