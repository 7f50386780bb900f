"""A model's answer as pieces that every dialect can send, and the whole that they make.

An answer that is sent whole is put together from the same pieces as one that is streamed, so both
say the same.  A call begins once, with its name and an id; an id that the model gave is kept.
What meant to be a call and failed is not lost: with a name it is a call whose arguments are the
text that was written, without one it is text.
"""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from antiphon.messages import (
    Completion,
    Delta,
    InvalidToolCall,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    dump_json,
)
from antiphon.models import ModelOutput, Retry


@dataclass(frozen=True, slots=True)
class TextPiece:
    """More text."""

    text: str
    """The new characters."""


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    """More reasoning."""

    text: str
    """The new characters."""


@dataclass(frozen=True, slots=True)
class CallBegin:
    """A call begins."""

    index: int
    """Which call of the answer, counted from 0."""
    id: str
    """Its id."""
    name: str
    """The tool's name."""


@dataclass(frozen=True, slots=True)
class CallPiece:
    """More of a call's arguments."""

    index: int
    """Which call."""
    text: str
    """The next characters of their JSON text."""


@dataclass(frozen=True, slots=True)
class Restart:
    """What came so far does not hold; the answer begins anew."""


@dataclass(frozen=True, slots=True)
class End:
    """The answer is over."""

    completion: Completion
    """How it ended and what it cost."""


Piece: TypeAlias = TextPiece | ThinkingPiece | CallBegin | CallPiece | Restart | End


@dataclass(slots=True)
class _Call:
    given_id: str = ""
    id: str = ""
    name: str = ""
    index: int = -1
    held: list[str] = field(default_factory=list[str])
    n_sent: int = 0


class Assembler:
    """Makes the pieces of one answer out of a model's deltas."""

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._begun: list[_Call] = []
        self._ids: set[str] = set()

    def take(self, delta: Delta) -> Iterator[Piece]:
        """The pieces that a delta brings."""
        match delta:
            case TextDelta(text):
                if text:
                    yield TextPiece(text)
            case ThinkingDelta(text):
                if text:
                    yield ThinkingPiece(text)
            case ToolCallDelta():
                yield from self._take_call(delta)

    def end(self, completion: Completion) -> Iterator[Piece]:
        """What the deltas did not bring, and the end."""
        message = completion.message
        left = list(self._begun)
        for call in message.tool_calls:
            if _taken(left, call) is None:
                yield from self._whole(call.name, call.id, dump_json(call.arguments))
        for call in message.invalid_tool_calls:
            begun = _taken(left, call)
            if begun is not None:
                if not begun.n_sent and call.raw:
                    yield self._more(begun, call.raw)
            elif call.name:
                yield from self._whole(call.name, call.id, call.raw)
            elif call.raw:
                yield TextPiece(call.raw)
        yield End(completion)

    def _take_call(self, delta: ToolCallDelta) -> Iterator[Piece]:
        call = self._calls.setdefault(delta.index, _Call())
        call.given_id = call.given_id or delta.id
        if delta.name and not call.name:
            yield self._begin(call, delta.name)
        if delta.arguments:
            call.held.append(delta.arguments)
        if call.name and call.held:
            text = "".join(call.held)
            call.held.clear()
            yield self._more(call, text)

    def _begin(self, call: _Call, name: str) -> CallBegin:
        call.name = name
        call.index = len(self._begun)
        taken = not call.given_id or call.given_id in self._ids
        call.id = f"call_{secrets.token_hex(12)}" if taken else call.given_id
        self._ids.add(call.id)
        self._begun.append(call)
        return CallBegin(call.index, call.id, name)

    def _more(self, call: _Call, text: str) -> CallPiece:
        call.n_sent += len(text)
        return CallPiece(call.index, text)

    def _whole(self, name: str, id: str, arguments: str) -> Iterator[Piece]:
        call = _Call(given_id=id)
        yield self._begin(call, name)
        yield self._more(call, arguments)


def _taken(begun: list[_Call], call: ToolCall | InvalidToolCall) -> _Call | None:
    """The begun call that a finished one is; it is taken from the list."""
    for index, candidate in enumerate(begun):
        same_id = bool(call.id) and candidate.given_id == call.id
        if same_id or (candidate.name == call.name and not candidate.given_id):
            return begun.pop(index)
    return None


async def pieces_of(outputs: AsyncIterator[ModelOutput]) -> AsyncGenerator[Piece, None]:
    """The pieces of one answer.  Closing this closes the model's stream.

    Raises:
        ModelError: There is no answer.
    """
    assembler, is_fresh = Assembler(), True
    try:
        async for output in outputs:
            if isinstance(output, Retry):
                if not is_fresh:
                    yield Restart()
                assembler, is_fresh = Assembler(), True
                continue
            made = (
                assembler.end(output) if isinstance(output, Completion) else assembler.take(output)
            )
            for piece in made:
                is_fresh = False
                yield piece
    finally:
        if isinstance(outputs, AsyncGenerator):
            await outputs.aclose()


@dataclass(slots=True)
class AnswerCall:
    """A call of a whole answer."""

    id: str
    """Its id."""
    name: str
    """The tool's name."""
    arguments: str = ""
    """The arguments' JSON text, as it was written."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of one kind in a whole answer, in the order in which it came."""

    kind: str
    """``text``, ``thinking`` or ``call``."""
    text: str = ""
    """Text or reasoning."""
    call: AnswerCall | None = None
    """The call."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer."""

    segments: tuple[Segment, ...]
    """What it holds, in order."""
    completion: Completion
    """How it ended and what it cost."""

    @property
    def text(self) -> str:
        """All text, joined."""
        return "".join(part.text for part in self.segments if part.kind == "text")

    @property
    def reasoning(self) -> str:
        """All reasoning, joined."""
        return "".join(part.text for part in self.segments if part.kind == "thinking")

    @property
    def calls(self) -> list[AnswerCall]:
        """The calls, in order."""
        return [part.call for part in self.segments if part.call is not None]


class Fold:
    """Puts pieces together; the same for answers that are sent whole and that are streamed."""

    def __init__(self) -> None:
        self._segments: list[tuple[str, list[str], AnswerCall | None]] = []
        self._calls: list[list[str]] = []
        self.completion: Completion | None = None

    def take(self, piece: Piece) -> None:
        """Take one more piece."""
        match piece:
            case TextPiece(text):
                self._say("text", text)
            case ThinkingPiece(text):
                self._say("thinking", text)
            case CallBegin(_, id, name):
                texts: list[str] = []
                self._calls.append(texts)
                self._segments.append(("call", texts, AnswerCall(id, name)))
            case CallPiece(index, text):
                self._calls[index].append(text)
            case Restart():
                self._segments.clear()
                self._calls.clear()
            case End(completion):
                self.completion = completion

    def _say(self, kind: str, text: str) -> None:
        if not self._segments or self._segments[-1][0] != kind:
            self._segments.append((kind, [], None))
        self._segments[-1][1].append(text)

    def answer(self) -> Answer:
        """The whole; only after the end."""
        assert self.completion is not None
        segments: list[Segment] = []
        for kind, texts, call in self._segments:
            if call is not None:
                call.arguments = "".join(texts)
            segments.append(Segment(kind, "" if call else "".join(texts), call))
        return Answer(tuple(segments), self.completion)
