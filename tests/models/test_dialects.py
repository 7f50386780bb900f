"""The Responses and Messages APIs are written and read as documented; a second model takes over."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from antiphon.errors import ModelAuthError, ModelConnectionError, ModelError, UsageError
from antiphon.messages import (
    Completion,
    Conversation,
    ImagePart,
    InvalidToolCall,
    Message,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
    Usage,
)
from antiphon.models import (
    FallbackModel,
    Model,
    ModelOutput,
    ModelSettings,
    Retry,
    ScriptedModel,
    load_model,
)
from antiphon.models._anthropic import AnthropicDialect
from antiphon.models._dialect import Dialect
from antiphon.models._remote import RemoteModel
from antiphon.models._responses import ResponsesDialect
from antiphon.models._retries import RetryPolicy
from models.loopback import Loopback, Reply, Request, body, stream

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
HISTORY = Conversation(
    (
        Message.system("Be brief."),
        Message.user([TextPart("See."), ImagePart("data:image/png;base64,AA==")]),
        Message(
            "assistant",
            (ThinkingPart("hm", "r1:sealed"), ThinkingPart("other"), TextPart("Adding.")),
            tool_calls=(ToolCall("add", {"a": 1}, id="c1"), ToolCall("add", {"a": 2}, id="c2")),
            invalid_tool_calls=(InvalidToolCall('{"a":', "no JSON", "add", "c3"),),
        ),
        Message.tool("1", call_id="c1", name="add"),
        Message.tool("no", call_id="c2", name="add", is_error=True),
        Message.tool("no JSON", call_id="c3", name="add", is_error=True),
        Message.user("And?"),
    ),
    (ADD,),
)
ASKED = Conversation((Message.user("What is 1 + 2?"),), (ADD,))


def ask(
    dialect: Dialect,
    *replies: Reply,
    conversation: Conversation = ASKED,
    settings: ModelSettings | None = None,
) -> tuple[list[ModelOutput], Request]:
    async def go() -> tuple[list[ModelOutput], Request]:
        async with Loopback(list(replies)) as server:
            model = RemoteModel(
                "m",
                dialect,
                base_url=f"{server.url}/v1",
                model="m",
                key="k",
                retries=RetryPolicy(max_tries=2, first_wait=0.0),
            )
            try:
                outputs = [o async for o in model.stream(conversation, settings)]
            finally:
                await model.close()
            return outputs, server.requests[-1]

    return asyncio.run(go())


def completion_of(outputs: list[ModelOutput]) -> Completion:
    assert isinstance(outputs[-1], Completion)
    return outputs[-1]


def block(index: int, kind: str, **fields: Any) -> Any:
    return {
        "type": "content_block_start",
        "index": index,
        "content_block": {"type": kind, **fields},
    }


def piece(index: int, kind: str, **fields: Any) -> Any:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def anthropic_stream(*middle: Any, stop: str = "tool_use") -> Reply:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 1}
    return stream(
        {"type": "message_start", "message": {"model": "served", "usage": usage}},
        {"type": "ping"},
        *middle,
        {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
        done=False,
    )


ANTHROPIC = anthropic_stream(
    block(0, "thinking", thinking=""),
    piece(0, "thinking_delta", thinking="hm"),
    piece(0, "signature_delta", signature="sealed"),
    block(1, "text", text=""),
    piece(1, "text_delta", text="Adding."),
    block(2, "tool_use", id="c1", name="add", input={}),
    piece(2, "input_json_delta", partial_json='{"a":'),
    piece(2, "input_json_delta", partial_json=" 1}"),
    {"type": "content_block_stop", "index": 2},
)
ANTHROPIC_WHOLE = body(
    {
        "model": "served",
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 9},
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sealed"},
            {"type": "text", "text": "Adding."},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
        ],
    }
)


def item(index: int, *, done: bool = False, **fields: Any) -> Any:
    kind = "response.output_item.done" if done else "response.output_item.added"
    return {"type": kind, "output_index": index, "item": fields}


def responses_stream(*middle: Any, **response: Any) -> Reply:
    usage = {
        "input_tokens": 12,
        "output_tokens": 9,
        "input_tokens_details": {"cached_tokens": 7},
    }
    kind = "response.incomplete" if response.get("status") == "incomplete" else "response.completed"
    end = {"type": kind, "response": {"model": "served", "usage": usage, "error": None, **response}}
    return stream({"type": "response.created", "response": {}}, *middle, end, done=False)


CALL: Any = {"type": "function_call", "id": "fc", "call_id": "c1", "name": "add"}
REASONING: Any = {"type": "reasoning", "id": "r1", "encrypted_content": "sealed"}
RESPONSES = responses_stream(
    item(0, type="reasoning", id="r1"),
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "delta": "hm"},
    item(0, done=True, **REASONING),
    item(1, type="message"),
    {"type": "response.output_text.delta", "output_index": 1, "delta": "Adding."},
    item(2, **CALL, arguments=""),
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"a":'},
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": " 1}"},
    item(2, done=True, **CALL, arguments='{"a": 1}'),
)
RESPONSES_WHOLE = body(
    {
        "model": "served",
        "status": "completed",
        "error": None,
        "usage": {
            "input_tokens": 12,
            "output_tokens": 9,
            "input_tokens_details": {"cached_tokens": 7},
        },
        "output": [
            REASONING | {"summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "message", "content": [{"type": "output_text", "text": "Adding."}]},
            CALL | {"arguments": '{"a": 1}'},
        ],
    }
)


@pytest.mark.parametrize(
    ("dialect", "reply", "signature"),
    [
        (AnthropicDialect("m"), ANTHROPIC, "sealed"),
        (AnthropicDialect("m"), ANTHROPIC_WHOLE, "sealed"),
        (ResponsesDialect("m"), RESPONSES, "r1:sealed"),
        (ResponsesDialect("m"), RESPONSES_WHOLE, "r1:sealed"),
    ],
    ids=["anthropic", "anthropic whole", "responses", "responses whole"],
)
def test_an_answer_is_read_streamed_or_whole(
    dialect: Dialect, reply: Reply, signature: str
) -> None:
    outputs, _ = ask(dialect, reply)

    completion = completion_of(outputs)
    assert completion.message == Message(
        "assistant",
        (ThinkingPart("hm", signature), TextPart("Adding.")),
        tool_calls=(ToolCall("add", {"a": 1}, id="c1"),),
    )
    assert completion.stop_reason == "tool_calls"
    assert completion.usage == Usage(12, 9, 7, 1)
    assert completion.model == "served"
    assert [o for o in outputs if isinstance(o, TextDelta | ThinkingDelta)] == [
        ThinkingDelta("hm"),
        TextDelta("Adding."),
    ]
    calls = [o for o in outputs if isinstance(o, ToolCallDelta)]
    assert calls[0] == ToolCallDelta(0, name="add", id="c1")
    assert json.loads("".join(c.arguments for c in calls)) == {"a": 1}


CUT_CALL = (
    block(0, "tool_use", id="c1", name="add", input={}),
    piece(0, "input_json_delta", partial_json='{"a": 1}'),
)
CUT_ITEM = (
    item(0, **CALL, arguments=""),
    {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"a": 1}'},
)


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [
        (AnthropicDialect("m"), anthropic_stream(*CUT_CALL, stop="max_tokens")),
        (
            ResponsesDialect("m"),
            responses_stream(
                *CUT_ITEM,
                status="incomplete",
                incomplete_details={"reason": "max_output_tokens"},
            ),
        ),
    ],
)
def test_a_call_of_a_cut_answer_is_invalid(dialect: Dialect, reply: Reply) -> None:
    completion = completion_of(ask(dialect, reply)[0])

    assert completion.stop_reason == "length"
    assert completion.message.tool_calls == ()
    assert completion.message.invalid_tool_calls[0].name == "add"


@pytest.mark.parametrize(
    ("dialect", "reply"),
    [
        (
            AnthropicDialect("m"),
            anthropic_stream(block(0, "text"), piece(0, "text_delta", text="No."), stop="refusal"),
        ),
        (
            ResponsesDialect("m"),
            responses_stream({"type": "response.refusal.delta", "output_index": 0, "delta": "No."}),
        ),
    ],
)
def test_a_refusal_is_told_apart(dialect: Dialect, reply: Reply) -> None:
    completion = completion_of(ask(dialect, reply)[0])

    assert (completion.stop_reason, completion.message.text) == ("refusal", "No.")


@pytest.mark.parametrize(
    ("dialect", "broken", "good"),
    [
        (
            AnthropicDialect("m"),
            stream(
                block(0, "text"),
                piece(0, "text_delta", text="half"),
                {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
                done=False,
            ),
            ANTHROPIC,
        ),
        (
            AnthropicDialect("m"),
            stream(block(0, "text"), piece(0, "text_delta", text="half"), done=False),
            ANTHROPIC,
        ),
        (
            ResponsesDialect("m"),
            stream(
                {"type": "response.output_text.delta", "output_index": 0, "delta": "half"},
                {"type": "response.failed", "response": {"error": {"message": "busy"}}},
                done=False,
            ),
            RESPONSES,
        ),
    ],
)
def test_a_broken_stream_is_asked_for_again(dialect: Dialect, broken: Reply, good: Reply) -> None:
    outputs, _ = ask(dialect, broken, good)

    assert sum(isinstance(o, Retry) for o in outputs) == 1
    assert completion_of(outputs).message.text == "Adding."


def test_the_messages_api_is_sent_blocks_in_alternating_turns() -> None:
    settings = ModelSettings(
        max_tokens=50, stop=("END",), tool_choice="add", parallel_tool_calls=False
    )

    _, request = ask(AnthropicDialect("m"), ANTHROPIC, conversation=HISTORY, settings=settings)

    sent = request.json
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == "k"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert sent["system"] == "Be brief."
    assert sent["tool_choice"] == {
        "type": "tool",
        "name": "add",
        "disable_parallel_tool_use": True,
    }
    assert sent["tools"] == [
        {"name": "add", "description": "Adds.", "input_schema": ADD.parameters}
    ]
    assert [turn["role"] for turn in sent["messages"]] == ["user", "assistant", "user"]
    user, assistant, results = (turn["content"] for turn in sent["messages"])
    assert user[1]["source"] == {"type": "base64", "media_type": "image/png", "data": "AA=="}
    assert assistant == [
        {"type": "thinking", "thinking": "hm", "signature": "r1:sealed"},
        {"type": "text", "text": "Adding."},
        {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "c2", "name": "add", "input": {"a": 2}},
        {"type": "tool_use", "id": "c3", "name": "add", "input": {"invalid_arguments": '{"a":'}},
    ]
    assert [b.get("tool_use_id") for b in results] == ["c1", "c2", "c3", None]
    assert results[1]["is_error"] is True
    assert results[3] == {"type": "text", "text": "And?"}


def test_the_responses_api_is_sent_items_and_stores_nothing() -> None:
    settings = ModelSettings(max_tokens=50, tool_choice="add", parallel_tool_calls=False)

    _, request = ask(ResponsesDialect("m"), RESPONSES, conversation=HISTORY, settings=settings)

    sent = request.json
    assert request.path == "/v1/responses"
    assert (sent["store"], sent["max_output_tokens"]) == (False, 50)
    assert sent["tool_choice"] == {"type": "function", "name": "add"}
    assert sent["parallel_tool_calls"] is False
    assert sent["tools"][0]["name"] == "add"
    kinds = [i["type"] for i in sent["input"]]
    assert kinds == [
        *("message", "message", "reasoning", "message"),
        *("function_call", "function_call", "function_call"),
        *("function_call_output", "function_call_output", "function_call_output"),
        "message",
    ]
    assert sent["input"][2] == {
        "type": "reasoning",
        "id": "r1",
        "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "sealed",
    }
    assert [i["call_id"] for i in sent["input"][4:10]] == ["c1", "c2", "c3"] * 2


@pytest.mark.parametrize(
    ("spec", "dialect"),
    [
        ("anthropic/m", AnthropicDialect),
        ("openai/m?api=responses", ResponsesDialect),
        ("http://h/v1#m?api=anthropic", AnthropicDialect),
    ],
)
def test_a_spec_says_which_api(spec: str, dialect: type[Dialect]) -> None:
    model = load_model(spec, environ={"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"})

    assert isinstance(model, RemoteModel)
    assert type(model._dialect) is dialect  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    ("spec", "kind", "said"),
    [
        ("anthropic/m", ModelAuthError, "set ANTHROPIC_API_KEY"),
        ("http://h/v1#m?api=soap", UsageError, "known: chat, responses, anthropic"),
    ],
)
def test_a_wrong_api_or_a_missing_key_is_told(spec: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        load_model(spec, environ={})


def outputs_of(model: Model) -> list[ModelOutput]:
    async def go() -> list[ModelOutput]:
        return [o async for o in model.stream(ASKED)]

    return asyncio.run(go())


def test_a_second_model_takes_over_and_the_consumer_is_told_to_discard() -> None:
    first = ScriptedModel([ModelConnectionError("dead")], spec="first")

    outputs = outputs_of(FallbackModel([first, ScriptedModel(["three"], spec="second")]))

    assert outputs[0] == Retry("dead; asking second instead")
    assert completion_of(outputs).message.text == "three"


def test_the_last_models_error_is_the_error() -> None:
    models = [ScriptedModel([ModelError(n)], spec=n) for n in ("one", "two")]

    with pytest.raises(ModelError, match="two"):
        outputs_of(FallbackModel(models))


def test_models_of_one_process_wait_together_when_the_server_asks_to() -> None:
    """The second model's request comes after the pause that the first one was told."""
    slow_down = body({"error": "slow"}, 429, headers={"retry-after-ms": "150"})
    times: list[float] = []

    def script(clock: Callable[[], float]) -> Callable[[Request], Reply]:
        def answer(request: Request) -> Reply:
            times.append(clock())
            return slow_down if len(times) == 1 else ANTHROPIC

        return answer

    async def go() -> None:
        async with Loopback(script(asyncio.get_running_loop().time)) as server:
            models = [
                RemoteModel("m", AnthropicDialect("m"), base_url=server.url, model="m")
                for _ in range(2)
            ]
            first = models[0].stream(ASKED)
            assert isinstance(await anext(aiter(first)), Retry)
            async for _ in models[1].stream(ASKED):
                pass
            async for _ in first:
                pass
            for model in models:
                await model.close()

    asyncio.run(go())

    assert len(times) == 3
    assert times[1] - times[0] >= 0.14
