"""Streamed and whole answers say the same: for every family, any answer, in any cut."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from antiphon.errors import RenderError
from antiphon.messages import Completion, Conversation, Message, ToolCall
from antiphon.models import ModelOutput, ModelSettings, ScriptedModel
from antiphon.serve._answer import Fold, pieces_of
from antiphon.serve._ask import Ask
from antiphon.serve._chat import ChatServing
from formats.format_cases import VARIANTS, variant, written
from formats.format_strategies import TOOLS, answers
from serve.serving import assembled, whole

CHAT = ChatServing()
ASKED = Conversation((Message.user("Go."),), TOOLS)


def _events(data: bytes) -> list[Any]:
    texts = [block[6:] for block in data.decode().split("\n\n") if block]
    return [json.loads(text) for text in texts if text != "[DONE]"]


def both_ways(model: ScriptedModel) -> tuple[dict[str, Any], dict[str, Any], Completion]:
    """One answer streamed and whole, and what the model itself says that it answered."""

    async def go() -> tuple[dict[str, Any], dict[str, Any], Completion]:
        ask = Ask("m", ASKED)
        writer, fold = CHAT.stream(ask), Fold()
        sent = writer.begin()
        async for piece in pieces_of(model.stream(ASKED)):
            sent += writer.piece(piece)
            fold.take(piece)
        sent += writer.end()
        answer = fold.answer()
        return assembled(_events(sent)), whole(CHAT.whole(ask, [answer])), answer.completion

    return asyncio.run(go())


def texts_of(completion: Completion) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in completion.message.tool_calls]


@pytest.mark.parametrize("name", VARIANTS)
@given(answer=answers, chunk=st.integers(1, 40))
@settings(max_examples=6, deadline=None)
def test_an_answer_of_any_family_is_the_same_streamed_and_whole(
    name: str, answer: Message, chunk: int
) -> None:
    fmt = variant(name)
    try:
        rendered = fmt.render(Conversation((Message.user("Go."), answer), TOOLS))
    except RenderError:
        assume(False)
        return
    text, _ = written(rendered, 1, fmt)

    streamed, at_once, completion = both_ways(
        ScriptedModel(lambda _: text, format=fmt, chunk_chars=chunk)
    )

    assert streamed == at_once
    assert (at_once["content"] or "").startswith(completion.message.text)
    sent = [(n, json.loads(a)) for n, a in at_once["calls"]]
    assert sent[: len(texts_of(completion))] == texts_of(completion)


DAMAGED = [
    '<tool_call>\n{"name": "find", "arguments": {"q": "x"\n</tool_call>',
    '<tool_call>\n{"name": "find"',
    '<tool_call>\n{"name": "find", "arguments": {"q": "x"}}\n</tool_call>\n<tool_call>nothing',
    "before <tool_call>\n{}\n</tool_call> after",
]


@pytest.mark.parametrize("text", DAMAGED)
@pytest.mark.parametrize("chunk", [1, 7, 400])
def test_a_damaged_call_is_never_arguments_that_can_be_read(text: str, chunk: int) -> None:
    """A client that gets ``{}`` for half a call would run it with what its tool has by default."""
    model = ScriptedModel(lambda _: text, format="hermes", chunk_chars=chunk)

    streamed, at_once, completion = both_ways(model)

    assert streamed == at_once
    valid = texts_of(completion)
    for name, arguments in at_once["calls"]:
        if _readable(arguments):
            assert (name, json.loads(arguments)) in valid


@pytest.mark.parametrize("text", DAMAGED)
def test_no_word_of_a_damaged_call_without_a_name_is_lost(text: str) -> None:
    model = ScriptedModel(lambda _: text, format="hermes")

    _, at_once, completion = both_ways(model)

    for call in completion.message.invalid_tool_calls:
        if not call.name:
            assert call.raw in at_once["content"]


def _readable(text: str) -> bool:
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except ValueError:
        return False


def test_ids_of_the_model_are_kept_and_others_are_made_once() -> None:
    calls = [ToolCall("find", {"q": "x"}, "own"), ToolCall("find", {"q": "y"})]
    pieces = _pieces(ScriptedModel([Message.assistant(tool_calls=calls)]))

    ids = [piece.id for piece in pieces if hasattr(piece, "id")]

    assert ids[0] == "own"
    assert ids[1].startswith("call_")
    assert len(ids) == 2


def test_two_calls_never_share_an_id() -> None:
    calls = [ToolCall("find", {"q": "x"}, "same"), ToolCall("find", {"q": "y"}, "same")]
    pieces = _pieces(ScriptedModel([Message.assistant(tool_calls=calls)]))

    ids = [piece.id for piece in pieces if hasattr(piece, "id")]

    assert len(set(ids)) == len(ids) == 2


def test_calls_that_came_without_deltas_are_sent_at_the_end() -> None:
    class Silent(ScriptedModel):
        async def stream(
            self, conversation: Conversation, settings: ModelSettings | None = None
        ) -> AsyncIterator[ModelOutput]:
            async for output in super().stream(conversation, settings):
                if isinstance(output, Completion):
                    yield output

    call = ToolCall("find", {"q": "x"}, "c1")
    streamed, at_once, _ = both_ways(Silent([Message.assistant(tool_calls=[call])]))

    assert streamed == at_once
    assert at_once["calls"] == [("find", '{"q": "x"}')]


def _pieces(model: ScriptedModel) -> Sequence[Any]:
    async def go() -> list[Any]:
        return [piece async for piece in pieces_of(model.stream(ASKED))]

    return asyncio.run(go())
