"""Streamed and whole answers say the same: for every family, any answer, in any cut."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import RenderError
from antiphon.formats._family import Family
from antiphon.messages import (
    Completion,
    Conversation,
    Message,
    TextDelta,
    ToolCall,
    ToolCallDelta,
)
from antiphon.models import ModelOutput, ModelSettings, ScriptedModel
from antiphon.serve._answer import Fold, Piece, pieces_of
from antiphon.serve._app import Serving
from antiphon.serve._ask import Ask
from antiphon.serve._chat import ChatServing
from antiphon.serve._messages import MessagesServing
from antiphon.serve._responses import KeptResponses, ResponsesServing
from formats.format_cases import VARIANTS, variant, written
from formats.format_strategies import TOOLS, answers
from serve.serving import assembled, whole

ASKED = Conversation((Message.user("Go."),), TOOLS)


def _events(data: bytes) -> list[Any]:
    blocks = [block.split("data: ", 1)[1] for block in data.decode().split("\n\n") if block]
    return [json.loads(text) for text in blocks if text != "[DONE]"]


def both_ways(
    model: ScriptedModel,
) -> tuple[dict[str, Any], dict[str, Any], Completion]:
    """One answer streamed and whole, and what the model itself says that it answered.

    The same pieces go through every dialect; each is checked here, and Chat Completions is shown.
    """

    async def pieces() -> list[Piece]:
        return [piece async for piece in pieces_of(model.stream(ASKED))]

    made = asyncio.run(pieces())
    fold = Fold()
    for piece in made:
        fold.take(piece)
    answer = fold.answer()
    shown: list[Any] = []
    for serving, of_stream, of_whole in DIALECTS:
        ask = Ask("m", ASKED, id="resp_1", echo={"store": False})
        writer = serving.stream(ask)
        sent = writer.begin() + b"".join(map(writer.piece, made)) + writer.end()
        streamed, at_once = of_stream(_events(sent)), of_whole(serving.whole(ask, [answer]))
        assert streamed == at_once
        shown += [streamed, at_once]
    return shown[0], shown[1], answer.completion


def messages_assembled(events: list[Any]) -> Any:
    """A message of Anthropic's out of its events, as its client puts it together."""
    blocks: list[Any] = []
    stop = None
    for event in events:
        match event["type"]:
            case "content_block_start":
                assert event["index"] == len(blocks)
                blocks.append(dict(event["content_block"]))
            case "content_block_delta":
                block, delta = blocks[event["index"]], event["delta"]
                assert event["index"] == len(blocks) - 1
                match delta["type"]:
                    case "input_json_delta":
                        block["input"] = json.loads(delta["partial_json"])
                    case "signature_delta":
                        block["signature"] += delta["signature"]
                    case kind:
                        block[kind.removesuffix("_delta")] += delta[kind.removesuffix("_delta")]
            case "message_delta":
                stop = event["delta"]["stop_reason"]
            case _:
                pass
    return blocks, stop


def responses_assembled(events: list[Any]) -> Any:
    """What the items of a streamed response hold, by their deltas, and by the last event."""
    grown: dict[str, str] = {}
    done: list[Any] = []
    for n, event in enumerate(events):
        assert event["sequence_number"] == n
        if event["type"].endswith(".delta"):
            grown[event["item_id"]] = grown.get(event["item_id"], "") + event["delta"]
        if event["type"] == "response.output_item.done":
            assert event["output_index"] == len(done)
            done.append(event["item"])
    assert [_text_of(item) for item in done] == [grown.get(item["id"], "") for item in done]
    last = events[-1]["response"]
    assert last["output"] == done
    return last["output"], last["status"]


def _text_of(item: Any) -> str:
    return item["arguments"] if "arguments" in item else item["content"][0]["text"]


DIALECTS: list[tuple[Serving, Callable[[list[Any]], Any], Callable[[Any], Any]]] = [
    (ChatServing(), assembled, whole),
    (MessagesServing(), messages_assembled, lambda row: (row["content"], row["stop_reason"])),
    (
        ResponsesServing(KeptResponses(1), ""),
        responses_assembled,
        lambda row: (row["output"], row["status"]),
    ),
]


def texts_of(completion: Completion) -> list[tuple[str, Any]]:
    return [(call.name, call.arguments) for call in completion.message.tool_calls]


def _is_the_same_both_ways(answer: Message, chunk: int) -> None:
    done: set[Any] = set()  # families share tables and texts: each is answered once
    for name in VARIANTS:
        fmt = cast("Family", variant(name))
        try:
            rendered = fmt.render(Conversation((Message.user("Go."), answer), TOOLS))
        except RenderError:
            continue
        text, start = written(rendered, 1, fmt)
        if (fmt.syntax, text, start) in done:
            continue
        done.add((fmt.syntax, text, start))

        streamed, at_once, completion = both_ways(
            ScriptedModel(lambda _, text=text: text, format=fmt, chunk_chars=chunk)
        )

        assert streamed == at_once, name
        assert (at_once["content"] or "").startswith(completion.message.text), name
        sent = [(n, json.loads(a)) for n, a in at_once["calls"]]
        assert sent[: len(texts_of(completion))] == texts_of(completion), name


@given(answer=answers, chunk=st.integers(1, 40))
@settings(max_examples=8, deadline=None)
def test_an_answer_of_any_family_is_the_same_streamed_and_whole(
    answer: Message, chunk: int
) -> None:
    _is_the_same_both_ways(answer, chunk)


@pytest.mark.slow
@given(answer=answers, chunk=st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_many_answers_of_any_family_are_the_same_streamed_and_whole(
    answer: Message, chunk: int
) -> None:
    """As the one above."""
    _is_the_same_both_ways(answer, chunk)


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


def test_calls_that_come_in_turns_are_written_one_after_the_other() -> None:
    """Some servers write parallel calls side by side; a dialect's blocks cannot."""
    found = [ToolCall("find", {"q": "x"}, "a"), ToolCall("find", {"q": "y"}, "b")]
    deltas = [
        ToolCallDelta(0, "find", "a", '{"q": '),
        ToolCallDelta(1, "find", "b", '{"q": '),
        TextDelta("and"),
        ToolCallDelta(1, arguments='"y"}'),
        ToolCallDelta(0, arguments='"x"}'),
    ]

    class Interleaved(ScriptedModel):
        async def stream(
            self, conversation: Conversation, settings: ModelSettings | None = None
        ) -> AsyncIterator[ModelOutput]:
            for delta in deltas:
                yield delta
            message = Message.assistant("and", tool_calls=found)
            yield Completion(message, "tool_calls")

    _, at_once, _ = both_ways(Interleaved([]))

    assert at_once["calls"] == [("find", '{"q": "x"}'), ("find", '{"q": "y"}')]
    assert at_once["content"] == "and"


def test_a_failed_call_beside_one_of_the_same_tool_does_not_get_its_arguments() -> None:
    text = (
        '<tool_call>\n{"name": "find", "arguments": nothing}\n</tool_call>\n'
        '<tool_call>\n{"name": "find", "arguments": {"q": "x"}}\n</tool_call>'
    )

    _, at_once, completion = both_ways(ScriptedModel([text], format="hermes"))

    assert [call.name for call in completion.message.invalid_tool_calls] == ["find"]
    readable = [a for _, a in at_once["calls"] if _readable(a)]
    assert readable == ['{"q": "x"}']
