"""Chat Completions, Completions and Models on the wire."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from antiphon.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelError,
    RateLimitError,
    UsageError,
)
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
    TokenLogprob,
    ToolCall,
    Usage,
    VideoPart,
)
from antiphon.models import (
    Model,
    ModelOutput,
    ModelSettings,
    Retry,
    SampledTokens,
    ScriptedModel,
    load_model,
)
from antiphon.models._raw import RawModel
from antiphon.serve import Served, Server
from antiphon.serve._server import name_of
from models.loopback import Loopback, Reply, Request, body, sse
from serve.serving import ADD, ASK, Client, Got, asked, assembled, serving, whole

CALLED = Message.assistant("Let me add.", tool_calls=[ToolCall("add", {"a": 1, "b": 2}, "c1")])


def test_an_answer_has_text_usage_and_a_reason() -> None:
    completion = Completion(Message.assistant("3"), "stop", Usage(7, 2, 3, 1))

    got = asked(lambda client: client.chat(), completion)

    assert got.status == 200
    assert got.message == {"role": "assistant", "content": "3", "refusal": None}
    assert got.json["choices"][0]["finish_reason"] == "stop"
    assert got.json["usage"] == {
        "prompt_tokens": 7,
        "completion_tokens": 2,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 3},
    }


def test_calls_and_reasoning_come_streamed_as_they_come_whole() -> None:
    answer = Message(
        "assistant",
        (ThinkingPart("Hm. 🤔"), TextPart("Let me add.")),
        tool_calls=CALLED.tool_calls,
    )

    async def both(client: Client) -> tuple[Got, Got]:
        return await client.chat(), await client.chat(stream=True)

    at_once, streamed = asked(both, answer, answer)

    assert streamed.headers["Content-Type"].startswith("text/event-stream")
    assert streamed.events[-1] == "[DONE]"
    assert assembled(streamed.events) == whole(at_once.json)
    assert at_once.message["tool_calls"] == [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'},
        }
    ]
    assert at_once.message["reasoning_content"] == "Hm. 🤔"
    assert at_once.json["choices"][0]["finish_reason"] == "tool_calls"


def test_a_stream_ends_with_usage_where_it_is_asked_for() -> None:
    completion = Completion(Message.assistant("3"), "length", Usage(7, 2))

    got = asked(
        lambda client: client.chat(stream=True, stream_options={"include_usage": True}), completion
    )

    *chunks, last, done = got.events
    assert (last["choices"], last["usage"]["total_tokens"], done) == ([], 9, "[DONE]")
    assert all(chunk["usage"] is None for chunk in chunks)
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"


def test_what_a_client_says_reaches_the_model() -> None:
    model = ScriptedModel(["ok"])
    messages = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
                {"type": "audio_url", "audio_url": {"url": "https://x.y/a.mp3"}},
                {"type": "video_url", "video_url": {"url": "data:video/mp4;base64,AAAA"}},
            ],
        },
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Hm.",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "add", "arguments": '{"a": 1}'},
                },
                {"id": "c2", "type": "function", "function": {"name": "add", "arguments": '{"a"'}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "3"},
    ]

    got = asked(
        lambda client: client.chat(
            messages=messages,
            tools=[ADD],
            tool_choice={"type": "function", "function": {"name": "add"}},
            parallel_tool_calls=False,
            temperature=0.5,
            top_p=0.9,
            max_completion_tokens=99,
            seed=7,
            stop=["END"],
        ),
        model=model,
    )

    system, user, assistant, tool = model.conversations[0].messages
    settings = model.settings[0]
    assert got.status == 200
    assert (system.role, system.text) == ("system", "Be brief.")
    assert user.parts == (
        TextPart("What is it?"),
        ImagePart("data:image/png;base64,AAAA"),
        AudioPart("data:audio/wav;base64,UklG"),
        AudioPart("https://x.y/a.mp3"),
        VideoPart("data:video/mp4;base64,AAAA"),
    )
    assert assistant.reasoning == "Hm."
    assert assistant.tool_calls == (ToolCall("add", {"a": 1}, "c1"),)
    assert [(c.raw, c.id) for c in assistant.invalid_tool_calls] == [('{"a"', "c2")]
    assert (tool.tool_call_id, tool.text) == ("c1", "3")
    assert model.conversations[0].tools[0].to_openai() == ADD
    assert (settings.tool_choice, settings.parallel_tool_calls) == ("add", False)
    assert (settings.temperature, settings.top_p, settings.max_tokens) == (0.5, 0.9, 99)
    assert (settings.seed, settings.stop) == (7, ("END",))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"type": "audio_url", "audio_url": {"url": "https://x.y/a.mp3"}}, "audio"),
        ({"type": "video_url", "video_url": {"url": "https://x.y/a.mp4"}}, "video"),
        ({"type": "image_url", "image_url": {"url": "https://x.y/a.png"}}, "images"),
    ],
)
def test_what_a_family_cannot_be_shown_is_the_askers_mistake(
    part: dict[str, Any], said: str
) -> None:
    nowhere = "http://127.0.0.1:9/v1"
    model = RawModel("m", get_format("qwen3"), base_url=nowhere, model="m", kind="vllm")

    got = asked(
        lambda client: client.chat(messages=[{"role": "user", "content": [part]}]), model=model
    )

    assert got.status == 400
    assert f"qwen3: message 0: {said} cannot be shown" in got.json["error"]["message"]


def test_several_answers_are_told_apart_streamed_and_whole() -> None:
    async def both(client: Client) -> tuple[Got, Got]:
        return await client.chat(n=2, seed=5), await client.chat(n=2, stream=True)

    model = ScriptedModel(["one", "two", "one", "two"])
    at_once, streamed = asked(both, model=model)

    texts = ["", ""]
    for event in streamed.events[:-1]:
        for choice in event["choices"]:
            texts[choice["index"]] += choice["delta"].get("content") or ""
    assert [c["message"]["content"] for c in at_once.json["choices"]] == ["one", "two"]
    assert sorted(texts) == ["one", "two"]
    assert [s.seed for s in model.settings[:2]] == [5, 6]


def test_log_probabilities_are_those_of_the_sampled_tokens() -> None:
    tokens = (TokenLogprob(5, -0.25, "3"), TokenLogprob(9, None, ""))
    completion = Completion(Message.assistant("3"), "stop", tokens=tokens)

    async def both(client: Client) -> tuple[Got, Got]:
        return await client.chat(logprobs=True), await client.chat(logprobs=True, stream=True)

    at_once, streamed = asked(both, completion, completion)

    given = at_once.json["choices"][0]["logprobs"]["content"]
    assert [(t["token"], t["logprob"], t["bytes"]) for t in given] == [
        ("3", -0.25, [51]),
        ("", -9999.0, []),
    ]
    assert streamed.events[-2]["choices"][0]["logprobs"]["content"] == given


LIKELY = TokenLogprob(5, -0.25, "3", (TokenLogprob(5, -0.25, "3"), TokenLogprob(6, -1.5, "4")))


def test_as_many_likely_tokens_are_told_as_are_asked_for() -> None:
    completion = Completion(Message.assistant("3"), "stop", tokens=(LIKELY,))
    model = ScriptedModel([completion] * 3)

    async def ask(client: Client) -> list[Got]:
        return [
            await client.chat(logprobs=True, top_logprobs=2),
            await client.chat(logprobs=True, top_logprobs=1, stream=True),
            await client.chat(logprobs=True),
        ]

    two, one, none = asked(ask, model=model)

    def told(row: Any) -> list[tuple[str, float]]:
        top = row["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        return [(t["token"], t["logprob"]) for t in top]

    assert told(two.json) == [("3", -0.25), ("4", -1.5)]
    assert told(one.events[-2]) == [("3", -0.25)]
    assert told(none.json) == []
    assert [s.logprobs for s in model.settings] == [2, 1, 0]


WORDS = ("The ", "sum", " is 3", ".")
TOLD = tuple(TokenLogprob(n, -0.5 * n, word) for n, word in enumerate((*WORDS, "<end>")))


class Telling:
    """Says each token's text with the token, where its log probability is asked for."""

    spec = "telling"

    def __init__(self, *, fails_first: bool = False) -> None:
        self._fails = fails_first

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        asked = settings is not None and settings.logprobs is not None
        if self._fails:
            yield SampledTokens(TOLD[:1])  # and nothing to show yet
            yield Retry("broken")
        for token in TOLD:
            if asked:
                yield SampledTokens((token,))
            if token.text in WORDS:
                yield TextDelta(token.text)
        completion = Completion(Message.assistant("".join(WORDS)), "stop", tokens=TOLD)
        yield completion

    async def close(self) -> None:
        """Nothing is held."""


def _streamed(path: str, model: Model, **fields: Any) -> tuple[Got, Got]:
    async def go() -> tuple[Got, Got]:
        async with serving(Served("m", model, model)) as client:
            row = {"model": "m", **fields}
            return await client.post(path, row), await client.post(path, row | {"stream": True})

    return asyncio.run(go())


@pytest.mark.parametrize("fails", [False, True])
def test_a_streamed_chunk_tells_of_its_own_tokens(fails: bool) -> None:
    """As OpenAI's API does; what has no text of its own, the end mark, comes with the end."""
    at_once, streamed = _streamed(
        "/v1/chat/completions",
        Telling(fails_first=fails),
        messages=ASK["messages"],
        logprobs=True,
    )

    choices = [event["choices"][0] for event in streamed.events[:-1]]
    told = [
        (choice["delta"].get("content"), [t["token"] for t in choice["logprobs"]["content"]])
        for choice in choices
        if choice["logprobs"]
    ]
    assert told == [*((word, [word]) for word in WORDS), (None, ["<end>"])]
    joined = [t for c in choices if c["logprobs"] for t in c["logprobs"]["content"]]
    assert joined == at_once.json["choices"][0]["logprobs"]["content"]


def test_a_streamed_continuation_tells_of_its_own_tokens_and_where_they_stand() -> None:
    at_once, streamed = _streamed("/v1/completions", Telling(), prompt="1 + 2?", logprobs=0)

    choices = [event["choices"][0] for event in streamed.events[:-1]]
    assert [c["text"] for c in choices] == [*WORDS, ""]
    assert [c["logprobs"]["tokens"] for c in choices] == [[token.text] for token in TOLD]
    offsets = [offset for c in choices for offset in c["logprobs"]["text_offset"]]
    assert offsets == at_once.json["choices"][0]["logprobs"]["text_offset"]


def test_a_streamed_response_tells_of_its_own_tokens() -> None:
    _, streamed = _streamed(
        "/v1/responses", Telling(), input="1 + 2?", include=["message.output_text.logprobs"]
    )

    deltas = [e for e in streamed.events if e["type"] == "response.output_text.delta"]
    assert [(e["delta"], [t["token"] for t in e["logprobs"]]) for e in deltas] == [
        (word, [word]) for word in WORDS
    ]
    done = next(e for e in streamed.events if e["type"] == "response.output_text.done")
    assert [t["token"] for t in done["logprobs"]] == [token.text for token in TOLD]


def test_tokens_are_not_told_where_nobody_asked() -> None:
    _, streamed = _streamed("/v1/chat/completions", Telling(), messages=ASK["messages"])

    assert all(event["choices"][0]["logprobs"] is None for event in streamed.events[:-1])


def test_likely_tokens_are_not_told_without_probabilities() -> None:
    got = asked(lambda client: client.chat(top_logprobs=2))

    assert (got.status, got.json["error"]["param"]) == (400, "logprobs")


def test_a_continuation_tells_likely_tokens_by_their_text() -> None:
    completion = Completion(Message.assistant("3"), "stop", tokens=(LIKELY,))
    served = Served("m", ScriptedModel([]), ScriptedModel([completion]))

    async def go() -> Got:
        async with serving(served) as client:
            asking = {"model": "m", "prompt": "1 + 2 =", "logprobs": 2}
            return await client.post("/v1/completions", asking)

    assert asyncio.run(go()).json["choices"][0]["logprobs"] == {
        "tokens": ["3"],
        "token_logprobs": [-0.25],
        "top_logprobs": [{"3": -0.25, "4": -1.5}],
        "text_offset": [0],
    }


def test_a_model_that_we_write_the_text_of_is_told_the_schema_of_an_answer() -> None:
    class Formatted(ScriptedModel):
        format = get_format("qwen3")

    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    ours, theirs = Formatted(["{}"]), ScriptedModel(["{}"])
    asked(lambda client: client.chat(response_format=wanted), model=ours)
    asked(lambda client: client.chat(response_format=wanted), model=theirs)

    assert ours.settings[0].response_schema == theirs.settings[0].response_schema == schema
    assert '"required": ["sum"]' in ours.conversations[0].messages[0].text
    assert [m.role for m in theirs.conversations[0].messages] == ["user"]


def test_the_models_are_listed_and_shown_by_name() -> None:
    async def look(client: Client) -> list[Got]:
        return [
            await client.get("/v1/models"),
            await client.get("/v1/models/m"),
            await client.get("/v1/models/gpt-4"),
        ]

    listed, shown, missing = asked(look)

    assert [row["id"] for row in listed.json["data"]] == ["m"]
    assert shown.json["object"] == "model"
    assert (missing.status, missing.json["error"]["code"]) == (404, "model_not_found")


def test_an_alias_is_another_name_and_a_star_is_every_name() -> None:
    async def look(client: Client) -> list[int]:
        named = await client.chat(model="gpt-4")
        other = await client.chat(model="gpt-5")
        return [named.status, other.status]

    assert asked(look, "a", "b", aliases=("gpt-4",)) == [200, 404]
    assert asked(look, "a", "b", aliases=("*",)) == [200, 200]


def bad(**fields: Any) -> dict[str, Any]:
    return ASK | fields


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no messages": (bad(messages=[]), "messages"),
    "messages no list": (bad(messages="hi"), "messages"),
    "a message no object": (bad(messages=["hi"]), "messages[0]"),
    "unknown role": (bad(messages=[{"role": "robot", "content": "x"}]), "messages[0].role"),
    "a role that is a list": (bad(messages=[{"role": ["user"]}]), "messages[0].role"),
    "content a number": (bad(messages=[{"role": "user", "content": 5}]), "messages[0].content"),
    "a file as image": (
        bad(
            messages=[
                {
                    "role": "user",
                    "content": [{"type": "image_url", "image_url": {"url": "/etc/passwd"}}],
                }
            ]
        ),
        "messages[0].content[0].image_url",
    ),
    "a file as a film": (
        bad(
            messages=[
                {
                    "role": "user",
                    "content": [{"type": "video_url", "video_url": {"url": "/etc/passwd"}}],
                }
            ]
        ),
        "messages[0].content[0].video_url",
    ),
    "a sound of a kind that is none": (
        bad(
            messages=[
                {
                    "role": "user",
                    "content": [
                        {"type": "input_audio", "input_audio": {"data": "AA", "format": "../x"}}
                    ],
                }
            ]
        ),
        "messages[0].content[0].input_audio.format",
    ),
    "a sound that is not there": (
        bad(messages=[{"role": "user", "content": [{"type": "input_audio"}]}]),
        "messages[0].content[0].input_audio",
    ),
    "no model": ({"messages": ASK["messages"]}, "model"),
    "temperature text": (bad(temperature="hot"), "temperature"),
    "temperature high": (bad(temperature=3), "temperature"),
    "temperature true": (bad(temperature=True), "temperature"),
    "max_tokens zero": (bad(max_tokens=0), "max_tokens"),
    "n many": (bad(n=99), "n"),
    "stream text": (bad(stream="yes"), "stream"),
    "stop numbers": (bad(stop=[1]), "stop"),
    "tool without name": (bad(tools=[{"type": "function", "function": {}}]), "tools[0]"),
    "tool of another kind": (bad(tools=[{"type": "web_search"}]), "tools[0].type"),
    "two tools of one name": (bad(tools=[ADD, ADD]), "tools"),
    "a tool's name with a mark": (
        bad(tools=[{"type": "function", "function": {"name": "<|im_end|>"}}]),
        "tools",
    ),
    "choice without tools": (bad(tool_choice="required"), "tool_choice"),
    "choice of nothing": (
        bad(tools=[ADD], tool_choice={"type": "function", "function": {"name": "sub"}}),
        "tool_choice",
    ),
    "choice of another word": (bad(tools=[ADD], tool_choice="maybe"), "tool_choice"),
    "format unknown": (bad(response_format={"type": "xml"}), "response_format.type"),
    "format without schema": (
        bad(response_format={"type": "json_schema", "json_schema": {"name": "x"}}),
        "response_format.json_schema.schema",
    ),
}


def test_what_is_wrong_with_a_request_is_said_with_its_place() -> None:
    async def ask_all(client: Client) -> dict[str, Got]:
        return {
            name: await client.post("/v1/chat/completions", row) for name, (row, _) in WRONG.items()
        }

    got = asked(ask_all)

    assert {name: g.status for name, g in got.items()} == dict.fromkeys(WRONG, 400)
    assert {n: g.json["error"]["param"] for n, g in got.items()} == {
        name: param for name, (_, param) in WRONG.items()
    }


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "half": b'{"model": "m", "messages": [',
    "a list": b"[]",
    "not utf-8": b'{"model": "\xff"}',
    "NaN": b'{"model": "m", "temperature": NaN}',
    "a long number": b'{"model": "m", "n": ' + b"9" * 5000 + b"}",
    "deep": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "deep lists": b'{"messages":' + b"[" * 200 + b"]" * 200 + b"}",
}


def test_a_body_that_is_no_json_object_is_refused() -> None:
    headers = {"Content-Type": "application/json"}

    async def ask_all(client: Client) -> dict[str, int]:
        found: dict[str, int] = {}
        for name, data in BODIES.items():
            url = client.url + "/v1/chat/completions"
            async with client.session.post(url, data=data, headers=headers) as response:
                found[name] = response.status
                assert (await response.json())["error"]["type"] == "invalid_request_error"
        return found

    assert asked(ask_all) == dict.fromkeys(BODIES, 400)


FAILURES: dict[str, tuple[Exception, int]] = {
    "gone": (ModelError("http://10.1.2.3:8000/v1 failed (500): secret"), 502),
    "key": (ModelAuthError("http://10.1.2.3:8000/v1 refused the key sk-secret"), 502),
    "busy": (RateLimitError("http://10.1.2.3:8000/v1 secret", retry_after=7.0), 429),
    "long": (ContextLengthError("the file /home/secret.gguf has 10 tokens"), 400),
}


@pytest.mark.parametrize("name", FAILURES)
@pytest.mark.parametrize("stream", [False, True])
def test_a_model_without_an_answer_is_told_without_its_address(name: str, stream: bool) -> None:
    error, status = FAILURES[name]

    got = asked(lambda client: client.chat(stream=stream), error)

    assert got.status == status
    assert "secret" not in got.text
    assert "10.1.2.3" not in got.text
    assert got.headers.get("Retry-After") == ("7" if status == 429 else None)


# --- In front of a raw completion server

CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


def raw_server(*texts: str) -> Any:
    """A llama.cpp server that says these texts, a character an event."""
    left = list(texts)

    def script(request: Request) -> Reply:
        if request.path.endswith("/models"):
            return body({"data": [{"id": "m", "owned_by": "llamacpp"}]})
        if request.path == "/tokenize":
            return body({"tokens": list(request.json["content"].encode())})
        said = left.pop(0)
        events: list[Any] = [{"content": ch, "tokens": [], "stop": False} for ch in said]
        end = {"content": "", "stop": True, "stop_type": "eos", "tokens_predicted": len(said)}
        return Reply(sse(*events, end, done=False), kind="text/event-stream")

    return script


def through_raw(*texts: str, **fields: Any) -> tuple[list[Got], list[Any]]:
    async def go() -> tuple[list[Got], list[Any]]:
        async with Loopback(raw_server(*texts)) as upstream:
            model = load_model(f"{upstream.url}/v1#m?format=qwen2_5", environ={})
            async with serving(Served("m", model)) as client:
                got = [await client.chat(tools=[ADD], stream=n > 0, **fields) for n in range(2)]
            return got, [r.json for r in upstream.requests if r.path == "/completion"]

    return asyncio.run(go())


def test_a_raw_server_gets_text_and_gives_calls_streamed_and_whole() -> None:
    (at_once, streamed), sent = through_raw(CALL, CALL)

    assert whole(at_once.json) == assembled(streamed.events)
    assert whole(at_once.json)["calls"] == [("add", '{"a": 1, "b": 2}')]
    assert "<tools>" in bytes(sent[0]["prompt"]).decode()
    assert "root ::=" in sent[0]["grammar"]


def test_a_required_call_is_held_by_the_grammar() -> None:
    _, free = through_raw(CALL, CALL)
    _, held = through_raw(CALL, CALL, tool_choice="required")

    assert held[0]["grammar"] != free[0]["grammar"]


def test_an_answer_that_must_be_json_is_held_by_the_grammar() -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}

    (got, _), sent = through_raw('{"sum": 3}', '{"sum": 3}', response_format=wanted)

    assert '"\\"sum\\": "' in sent[0]["grammar"]
    assert json.loads(got.message["content"]) == {"sum": 3}


# --- Completions


def test_a_text_is_continued_by_the_raw_model() -> None:
    async def go() -> tuple[Got, Got, Any]:
        async with Loopback(raw_server(" there", " there")) as upstream:
            plain = load_model(f"{upstream.url}/v1#m?format=plain", environ={})
            served = Served("m", ScriptedModel([]), plain)
            async with serving(served) as client:
                asking = {"model": "m", "prompt": "Hello <|im_end|>", "echo": True}
                at_once = await client.post("/v1/completions", asking)
                streamed = await client.post("/v1/completions", asking | {"stream": True})
            tokenized = [r.json for r in upstream.requests if r.path == "/tokenize"]
            return at_once, streamed, tokenized

    at_once, streamed, tokenized = asyncio.run(go())

    assert at_once.json["choices"][0]["text"] == "Hello <|im_end|> there"
    texts = [e["choices"][0]["text"] for e in streamed.events[:-1]]
    assert "".join(texts) == "Hello <|im_end|> there"
    assert tokenized[0]["parse_special"] is True
    assert at_once.json["object"] == "text_completion"


def test_a_model_that_knows_conversations_only_says_so() -> None:
    got = asked(lambda client: client.post("/v1/completions", {"model": "m", "prompt": "x"}))

    assert got.status == 400
    assert "/v1/chat/completions" in got.json["error"]["message"]


def test_a_spec_serves_conversations_and_plain_text() -> None:
    server = Server(["http://127.0.0.1:9/v1#org/name?format=qwen3&thinking=false"])

    found = server.app.models["org/name"]

    assert isinstance(found.raw, RawModel)
    assert found.raw.format.name == "plain"


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("local", "local"),
        ("openai/gpt-4o", "gpt-4o"),
        ("hf/Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("gguf//models/Qwen3-8B-Q8_0.gguf?n_ctx=512", "Qwen3-8B-Q8_0.gguf"),
        ("http://127.0.0.1:8000/v1#a/b?format=qwen3", "a/b"),
    ],
)
def test_a_model_is_called_as_its_spec_calls_it(spec: str, name: str) -> None:
    assert name_of(spec) == name


def test_models_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="two models named 'm'"):
        Server([Served("m", ScriptedModel([])), Served("m", ScriptedModel([]))])
