"""A model's answer as pieces that every dialect can send, and the whole that they make.

An answer that is sent whole is put together from the same pieces as one that is streamed, so both
say the same.  A call begins once, with its name and an id; an id that the model gave is kept.
What meant to be a call and failed is not lost: with a name it is a call whose arguments are the
text that was written, without one it is text.
"""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from antiphon.messages import (
    Completion,
    Delta,
    InvalidToolCall,
    JsonObject,
    TextDelta,
    ThinkingDelta,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    dump_json,
)
from antiphon.models import ModelOutput, Retry, SampledTokens
from antiphon.serve._fields import read_json


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
class TokensPiece:
    """The tokens of what comes next."""

    tokens: tuple[TokenLogprob, ...]
    """Those sampled since the last that were told."""


@dataclass(frozen=True, slots=True)
class Restart:
    """What came so far does not hold; the answer begins anew."""


@dataclass(frozen=True, slots=True)
class End:
    """The answer is over."""

    completion: Completion
    """How it ended and what it cost."""


Piece: TypeAlias = TextPiece | ThinkingPiece | CallBegin | CallPiece | TokensPiece | Restart | End


@dataclass(slots=True)
class _Call:
    given_id: str = ""
    name: str = ""
    index: int = -1
    texts: list[str] = field(default_factory=list[str])
    is_whole: bool = False

    @property
    def text(self) -> str:
        return "".join(self.texts)


class Assembler:
    """Makes the pieces of one answer out of a model's deltas.

    One thing is written at a time: while a call's arguments are no whole object, whatever else the
    model says waits.  So a dialect may close a call as soon as something else begins.
    """

    def __init__(self) -> None:
        self._calls: dict[int, _Call] = {}
        self._begun: list[_Call] = []
        self._ids: set[str] = set()
        self._waiting: list[Delta] = []
        self._left: list[ToolCall | InvalidToolCall] = []
        self._n_settled = 0
        self._is_over = False

    def take(self, delta: Delta) -> Iterator[Piece]:
        """The pieces that a delta brings."""
        if self._goes_on(delta):
            yield from self._pieces(delta)
            if self._waiting and self._is_free():
                waiting, self._waiting = self._waiting, []
                for held in waiting:
                    yield from self.take(held)
        elif self._is_over:
            yield from self._settle()
            yield from self._pieces(delta)
        elif self._waiting or not self._is_free():
            self._waiting.append(delta)
        else:
            yield from self._pieces(delta)

    def end(self, completion: Completion) -> Iterator[Piece]:
        """What waited, what the deltas did not bring, and the end."""
        message = completion.message
        self._left = [*message.tool_calls, *message.invalid_tool_calls]
        self._is_over = True
        waiting, self._waiting = self._waiting, []
        for delta in waiting:
            yield from self.take(delta)
        yield from self._settle()
        for call in self._left:
            if isinstance(call, ToolCall):
                yield from self._whole(call.name, call.id, dump_json(call.arguments))
            elif call.name:
                yield from self._whole(call.name, call.id, call.raw)
            elif call.raw:
                yield TextPiece(call.raw)
        yield End(completion)

    def _goes_on(self, delta: Delta) -> bool:
        """Whether a delta belongs to the call that is being written."""
        if not isinstance(delta, ToolCallDelta) or not self._begun:
            return False
        return self._calls.get(delta.index) is self._begun[-1]

    def _is_free(self) -> bool:
        """Whether the last call's arguments are a whole object, so that something else may come."""
        if not self._begun or self._begun[-1].is_whole:
            return True
        last = self._begun[-1]
        last.is_whole = _object_in(last.text) is not None
        return last.is_whole

    def _pieces(self, delta: Delta) -> Iterator[Piece]:
        match delta:
            case TextDelta(text):
                if text:
                    yield TextPiece(text)
            case ThinkingDelta(text):
                if text:
                    yield ThinkingPiece(text)
            case ToolCallDelta():
                yield from self._take_call(delta)

    def _take_call(self, delta: ToolCallDelta) -> Iterator[Piece]:
        call = self._calls.setdefault(delta.index, _Call())
        call.given_id = call.given_id or delta.id
        held = ""
        if delta.name and not call.name:
            held = call.text  # came before the name
            call.texts.clear()
            yield self._begin(call, delta.name)
        text = held + delta.arguments
        if not text:
            return
        if call.name:
            yield self._more(call, text)
        else:
            call.texts.append(text)

    def _begin(self, call: _Call, name: str) -> CallBegin:
        call.name = name
        call.index = len(self._begun)
        taken = not call.given_id or call.given_id in self._ids
        id = f"call_{secrets.token_hex(12)}" if taken else call.given_id
        self._ids.add(id)
        self._begun.append(call)
        return CallBegin(call.index, id, name)

    def _more(self, call: _Call, text: str) -> CallPiece:
        call.texts.append(text)
        call.is_whole = False
        return CallPiece(call.index, text)

    def _whole(self, name: str, id: str, arguments: str) -> Iterator[Piece]:
        call = _Call(given_id=id)
        yield self._begin(call, name)
        yield self._more(call, arguments)

    def _settle(self) -> Iterator[Piece]:
        """Find out what the calls that have begun became.  One that brought no arguments gets the
        text that was written: nothing would be taken for none."""
        for call in self._begun[self._n_settled :]:
            final = _taken(self._left, call)
            if not call.texts and final is not None:
                is_valid = isinstance(final, ToolCall)
                text = dump_json(final.arguments) if is_valid else final.raw
                if text:
                    yield self._more(call, text)
        self._n_settled = len(self._begun)


def _taken(
    left: list[ToolCall | InvalidToolCall], call: _Call
) -> ToolCall | InvalidToolCall | None:
    """What a call that has begun became in the end; it is taken from what is left."""
    found = _object_in(call.text) if call.texts else {}
    tests: tuple[Callable[[ToolCall | InvalidToolCall], bool], ...] = (
        lambda c: bool(c.id) and c.id == call.given_id,
        lambda c: isinstance(c, ToolCall) and c.name == call.name and c.arguments == found,
        lambda c: not isinstance(c, ToolCall) and c.name == call.name,
        lambda c: bool(call.texts) and c.name == call.name,
    )
    for fits in tests:
        place = next((n for n, candidate in enumerate(left) if fits(candidate)), None)
        if place is not None:
            return left.pop(place)
    return None


def _object_in(text: str) -> "JsonObject | None":
    """The JSON object that a text is; ``None`` where it is none."""
    if not text.rstrip().endswith("}"):
        return None
    try:
        value: object = read_json(text)
    except (ValueError, RecursionError):
        return None
    return cast("JsonObject", value) if isinstance(value, dict) else None


async def pieces_of(outputs: AsyncIterator[ModelOutput]) -> AsyncGenerator[Piece, None]:
    """The pieces of one answer.  Closing this closes the model's stream.

    Raises:
        ModelError: There is no answer.
    """
    assembler, is_fresh = Assembler(), True
    tokens: list[TokenLogprob] = []
    try:
        async for output in outputs:
            if isinstance(output, SampledTokens):
                tokens += output.tokens
                continue
            if isinstance(output, Retry):
                if not is_fresh:
                    yield Restart()
                assembler, is_fresh = Assembler(), True
                tokens.clear()
                continue
            made = (
                assembler.end(output) if isinstance(output, Completion) else assembler.take(output)
            )
            for piece in made:
                if tokens:
                    yield TokensPiece(tuple(tokens))
                    tokens.clear()
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
            case TokensPiece():
                pass  # the completion has them

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
