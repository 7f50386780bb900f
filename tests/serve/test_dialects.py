"""Messages and Responses on the wire."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon.errors import ModelConnectionError
from antiphon.formats import get_format
from antiphon.messages import (
    AudioPart,
    Completion,
    Conversation,
    ImagePart,
    Message,
    TextDelta,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolSpec,
    Usage,
)
from antiphon.models import ModelOutput, ModelSettings, ScriptedModel, load_model
from antiphon.models._raw import RawModel
from antiphon.serve import Served
from antiphon.serve._answer import Answer, Segment
from antiphon.serve._ask import Limits
from antiphon.serve._refusal import Refusal
from antiphon.serve._responses import KeptResponses, ResponsesServing
from models.loopback import Loopback, Reply, Request, body
from serve.serving import ADD, Client, Got, asked, serving

MESSAGES: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "1 + 2?"}],
}
RESPONSES: dict[str, Any] = {"model": "m", "input": "1 + 2?"}
FUNCTION: Any = ADD["function"]
TOOL = {"name": "add", "description": "Add.", "input_schema": FUNCTION["parameters"]}


class Broken(ScriptedModel):
    """Says one word and breaks."""

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        yield TextDelta("Hel")
        raise ModelConnectionError("http://10.1.2.3 is gone")


def test_messages_reach_the_model_with_results_of_tools_apart() -> None:
    model = ScriptedModel(["ok"])
    turns: list[Any] = [
        {"role": "user", "content": [{"type": "text", "text": "Look."}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "text", "text": "I add."},
                {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "t1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no b"}],
                },
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
                },
                {"type": "text", "text": "Again."},
            ],
        },
    ]

    got = asked(
        lambda client: client.post(
            "/v1/messages",
            MESSAGES
            | {
                "system": "Be brief.",
                "messages": turns,
                "tools": [TOOL],
                "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
                "stop_sequences": ["END"],
                "top_k": 4,
            },
        ),
        model=model,
    )

    system, user, assistant, tool, last = model.conversations[0].messages
    settings = model.settings[0]
    assert got.status == 200
    assert (system.text, user.text) == ("Be brief.", "Look.")
    assert assistant.parts == (ThinkingPart("Hm.", "s"), TextPart("I add."))
    assert assistant.tool_calls == (ToolCall("add", {"a": 1}, "t1"),)
    assert (tool.name, tool.tool_call_id, tool.text, tool.is_error) == ("add", "t1", "no b", True)
    assert last.parts == (ImagePart("data:image/png;base64,AAAA"), TextPart("Again."))
    assert (settings.tool_choice, settings.parallel_tool_calls) == ("required", False)
    assert (settings.stop, settings.max_tokens, settings.extra) == (("END",), 9, {"top_k": 4})


def test_tokens_are_counted_before_a_model_is_asked() -> None:
    """Anthropic's ``count_tokens``: what the family's own prompt has, tools and marks included."""

    def script(request: Request) -> Reply:
        if request.path.endswith("/models"):
            return body({"data": [{"id": "m", "owned_by": "llamacpp"}]})
        return body({"tokens": [0] * len(request.json["content"])})

    counted = {key: MESSAGES[key] for key in ("model", "messages")} | {"tools": [TOOL]}

    async def go() -> tuple[Got, list[Any]]:
        async with Loopback(script) as upstream:
            model = load_model(f"{upstream.url}/v1#m?format=qwen2_5", environ={})
            async with serving(Served("m", model)) as client:
                got = await client.post("/v1/messages/count_tokens", counted)
            return got, [r.json["content"] for r in upstream.requests if r.path == "/tokenize"]

    got, texts = asyncio.run(go())

    user = Message.user(MESSAGES["messages"][0]["content"])
    prompt = get_format("qwen2_5").render(
        Conversation((user,), (ToolSpec.from_anthropic(TOOL),)), generate=True
    )
    assert got.json == {"input_tokens": len(prompt.text)}
    assert set(texts) <= {"".join(p.text for p in run) for run in prompt.runs}


def test_a_model_that_cannot_count_says_so_in_anthropics_words() -> None:
    got = asked(lambda client: client.post("/v1/messages/count_tokens", MESSAGES))

    assert got.status == 501
    assert got.json["type"] == "error"


def test_messages_say_why_they_ended_and_what_they_cost() -> None:
    completion = Completion(Message.assistant("3"), "length", Usage(10, 2, 4))

    got = asked(lambda client: client.post("/v1/messages", MESSAGES), completion)

    assert got.json["stop_reason"] == "max_tokens"
    assert got.json["usage"]["input_tokens"] == 6
    assert got.json["usage"]["cache_read_input_tokens"] == 4


def test_each_dialect_says_in_its_own_words_that_a_request_is_wrong() -> None:
    async def ask(client: Client) -> list[Got]:
        return [
            await client.post("/v1/messages", MESSAGES | {"max_tokens": None}),
            await client.post("/v1/messages", MESSAGES | {"tools": [{"type": "bash_1"}]}),
            await client.post("/v1/responses", {"model": "m"}),
            await client.post("/v1/responses", RESPONSES | {"tools": [{"type": "web_search"}]}),
            await client.post("/v1/responses", RESPONSES | {"previous_response_id": "resp_x"}),
        ]

    no_limit, server_tool, no_input, search, unknown = asked(ask)

    assert no_limit.json["error"]["type"] == "invalid_request_error"
    assert (no_limit.json["type"], no_limit.status) == ("error", 400)
    assert (server_tool.status, no_input.status, search.status) == (400, 400, 400)
    assert no_input.json["error"]["param"] == "input"
    assert unknown.status == 404


def test_an_answer_that_breaks_off_says_so_in_each_dialect() -> None:
    async def ask(client: Client) -> list[Got]:
        return [
            await client.chat(stream=True),
            await client.post("/v1/messages", MESSAGES | {"stream": True}),
            await client.post("/v1/responses", RESPONSES | {"stream": True}),
        ]

    chat, messages, responses = asked(ask, model=Broken([]))

    assert chat.events[-1]["error"]["code"] == "upstream_error"
    assert messages.events[-1]["error"]["type"] == "api_error"
    assert responses.events[-1]["response"]["status"] == "failed"
    for got in (chat, messages, responses):
        assert got.status == 200
        assert "Hel" in got.text
        assert "10.1.2.3" not in got.text
        assert "[DONE]" not in got.text
        assert "message_stop" not in got.text


def test_items_of_a_turn_are_one_message() -> None:
    model = ScriptedModel(["ok"])
    items: list[Any] = [
        {"role": "user", "content": [{"type": "input_text", "text": "1 + 2?"}]},
        {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}]},
        {"type": "message", "role": "assistant", "content": "I add."},
        {"type": "function_call", "call_id": "a", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call", "call_id": "b", "name": "add", "arguments": '{"a"'},
        {"type": "function_call_output", "call_id": "a", "output": "3"},
    ]

    asked(
        lambda client: client.post(
            "/v1/responses", RESPONSES | {"input": items, "instructions": "Be brief."}
        ),
        model=model,
    )

    system, user, assistant, tool = model.conversations[0].messages
    assert (system.text, user.text) == ("Be brief.", "1 + 2?")
    assert assistant.parts == (ThinkingPart("Hm."), TextPart("I add."))
    assert assistant.tool_calls == (ToolCall("add", {"a": 1}, "a"),)
    assert assistant.invalid_tool_calls[0].raw == '{"a"'
    assert (tool.name, tool.tool_call_id, tool.text) == ("add", "a", "3")


def heard(format: Any = "wav", data: Any = "UklG") -> list[Any]:
    """An item that asks about a sound."""
    sound = {"type": "input_audio", "input_audio": {"data": data, "format": format}}
    return [{"role": "user", "content": [{"type": "input_text", "text": "Who?"}, sound]}]


def test_a_sound_reaches_the_model_in_a_message_and_as_what_a_tool_gave() -> None:
    model = ScriptedModel(["ok"])
    call = {"type": "function_call", "call_id": "a", "name": "add", "arguments": "{}"}
    output = heard("mp3", "AAAA")[0]["content"]
    gave = {"type": "function_call_output", "call_id": "a", "output": output}

    got = asked(
        lambda client: client.post("/v1/responses", RESPONSES | {"input": [*heard(), call, gave]}),
        model=model,
    )

    user, _, tool = model.conversations[0].messages
    assert got.status == 200
    assert user.parts == (TextPart("Who?"), AudioPart("data:audio/wav;base64,UklG"))
    assert tool.parts == (TextPart("Who?"), AudioPart("data:audio/mp3;base64,AAAA"))


@pytest.mark.parametrize(
    ("items", "place"),
    [
        (heard("../x"), "input[0].content[1].input_audio.format"),
        (heard(None), "input[0].content[1].input_audio.format"),
        (heard(data=5), "input[0].content[1].input_audio.data"),
        (
            [{"role": "user", "content": [{"type": "input_audio"}]}],
            "input[0].content[0].input_audio",
        ),
    ],
)
def test_what_is_wrong_with_a_sound_is_said_with_its_place(items: list[Any], place: str) -> None:
    got = asked(lambda client: client.post("/v1/responses", RESPONSES | {"input": items}))

    assert (got.status, got.json["error"]["param"]) == (400, place)


def test_a_sound_that_a_family_cannot_hear_is_the_askers_mistake() -> None:
    model = RawModel(
        "m", get_format("qwen3"), base_url="http://127.0.0.1:9/v1", model="m", kind="vllm"
    )

    got = asked(
        lambda client: client.post("/v1/responses", RESPONSES | {"input": heard()}), model=model
    )

    assert got.status == 400
    assert "qwen3: message 0: audio cannot be shown" in got.json["error"]["message"]


def test_what_a_kept_response_was_shown_counts_as_its_characters() -> None:
    kept = KeptResponses(9, most_chars=1000)
    serving = ResponsesServing(kept, "alice")
    answer = Answer((Segment("text", "It is."),), Completion(Message.assistant("It is."), "stop"))

    def keep(data: str) -> str:
        ask = serving.read(RESPONSES | {"input": heard(data=data)}, Limits())
        serving.whole(ask, [answer])
        return ask.id

    first, second = keep("A" * 400), keep("A" * 400)
    assert (kept.get(first, "alice").owner, kept.get(second, "alice").owner) == ("alice", "alice")
    third = keep("A" * 800)

    assert kept.get(third, "alice").n_chars > 800
    for gone in (first, second):
        with pytest.raises(Refusal, match="there is no response"):
            kept.get(gone, "alice")


KEYS = ("key-of-alice", "key-of-bob")


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def test_the_events_of_a_response_are_numbered_as_they_come() -> None:
    call = Message.assistant("Let me add.", tool_calls=[ToolCall("add", {"a": 1, "b": 2})])

    got = asked(lambda client: client.post("/v1/responses", RESPONSES | {"stream": True}), call)

    assert [event["sequence_number"] for event in got.events] == list(range(len(got.events)))
    assert got.events[0]["type"] == "response.created"


def test_a_kept_response_is_its_owners_alone_until_it_is_deleted() -> None:
    async def go() -> list[int]:
        async with serving(ScriptedModel(["one", "two"]), keys=KEYS) as client:
            alice, bob = _bearer(KEYS[0]), _bearer(KEYS[1])
            made = await client.post("/v1/responses", RESPONSES, headers=alice)
            path = f"/v1/responses/{made.json['id']}"
            going_on = RESPONSES | {"previous_response_id": made.json["id"]}
            found = [
                await client.get(path, headers=alice),
                await client.get(path, headers=bob),
                await client.post("/v1/responses", going_on, headers=bob),
                await client.post("/v1/responses", going_on, headers=alice),
            ]
            async with client.session.delete(client.url + path, headers=alice) as response:
                deleted = response.status
            gone = await client.get(path, headers=alice)
            return [*(got.status for got in found), deleted, gone.status]

    assert asyncio.run(go()) == [200, 404, 404, 200, 200, 404]


def test_only_so_many_responses_are_kept_and_none_that_is_not_to_be() -> None:
    async def ask(client: Client) -> list[int]:
        ids = [
            (await client.post("/v1/responses", RESPONSES | fields)).json["id"]
            for fields in ({}, {}, {}, {"store": False})
        ]
        return [(await client.get(f"/v1/responses/{id}")).status for id in ids]

    assert asked(ask, *"abcd", max_responses=2) == [404, 200, 200, 404]
