"""What a Chat Completions server sends is read as it was meant; what breaks is told and repeated.

The servers are real ones on the loopback; the faults are those of the fault table in runtimes.md,
§3.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from antiphon.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    ModelResponseError,
    RateLimitError,
)
from antiphon.messages import (
    Completion,
    Conversation,
    ImagePart,
    InvalidToolCall,
    Message,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
    Usage,
)
from antiphon.models import ModelOutput, ModelSettings, Retry, SampledTokens
from antiphon.models._chat import ChatDialect
from antiphon.models._http import Timeouts
from antiphon.models._remote import RemoteModel
from antiphon.models._retries import RetryPolicy
from models.loopback import Loopback, Reply, body, call, chat, sse, stream

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
ASKED = Conversation((Message.user("What is 1 + 2?"),), (ADD,))
PROMPT = RetryPolicy(max_tries=4, first_wait=0.0)


def model_at(
    url: str,
    *,
    key: str | None = None,
    retries: RetryPolicy = PROMPT,
    timeouts: Timeouts | None = None,
) -> RemoteModel:
    return RemoteModel(
        "m",
        ChatDialect("m"),
        base_url=f"{url}/v1",
        model="m",
        key=key,
        retries=retries,
        timeouts=timeouts,
    )


def ask(
    *replies: Reply,
    conversation: Conversation = ASKED,
    settings: ModelSettings | None = None,
    key: str | None = None,
    retries: RetryPolicy = PROMPT,
    timeouts: Timeouts | None = None,
    after_first: Conversation | None = None,
) -> tuple[list[ModelOutput], Loopback]:
    """Ask once (or again with `after_first`) a server that has these replies."""

    async def go() -> tuple[list[ModelOutput], Loopback]:
        async with Loopback(list(replies)) as server:
            model = model_at(server.url, key=key, retries=retries, timeouts=timeouts)
            try:
                outputs = [o async for o in model.stream(conversation, settings)]
                if after_first is not None:
                    outputs = [o async for o in model.stream(after_first, settings)]
            finally:
                await model.close()
        return outputs, server

    return asyncio.run(go())


def completion_of(outputs: Sequence[ModelOutput]) -> Completion:
    last = outputs[-1]
    assert isinstance(last, Completion)
    assert sum(isinstance(o, Completion) for o in outputs) == 1
    return last


def text_of(outputs: Sequence[ModelOutput]) -> str:
    return "".join(o.text for o in outputs if isinstance(o, TextDelta))


def retries_of(outputs: Sequence[ModelOutput]) -> list[str]:
    return [o.reason for o in outputs if isinstance(o, Retry)]


def shown_of(outputs: Sequence[ModelOutput]) -> str:
    """The text that a consumer who discards at each Retry has in the end."""
    shown = ""
    for output in outputs:
        if isinstance(output, Retry):
            shown = ""
        elif isinstance(output, TextDelta):
            shown += output.text
    return shown


ANSWER = stream(
    chat({"role": "assistant", "content": ""}), chat({"content": "three"}), chat({}, "stop")
)


def test_text_is_streamed_as_it_comes_and_the_completion_holds_it_whole() -> None:
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    outputs, _ = ask(
        stream(
            chat({"content": "one "}),
            chat({"content": "two"}),
            chat({}, "stop", model="served"),
            {"choices": [], "usage": usage},
        )
    )

    completion = completion_of(outputs)
    assert outputs[:2] == [TextDelta("one "), TextDelta("two")]
    assert completion.message == Message.assistant("one two")
    assert completion.stop_reason == "stop"
    assert completion.usage == Usage(11, 7, 4, 1)
    assert completion.model == "served"
    assert completion.time_to_first_token is not None


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_kept_apart_and_goes_back_in_the_servers_own_field(field: str) -> None:
    first = stream(chat({field: "hm"}), chat({"content": "three"}), chat({}, "stop"))
    answer = Message.assistant("three", reasoning="hm")

    outputs, server = ask(first, first, after_first=ASKED.append(answer, Message.user("Why?")))

    assert outputs[0] == ThinkingDelta("hm")
    assert completion_of(outputs).message == answer
    assert server.requests[1].json["messages"][1][field] == "hm"


def test_reasoning_is_not_sent_to_a_server_that_never_sent_any() -> None:
    answer = Message.assistant("three", reasoning="hm")

    _, server = ask(ANSWER, conversation=ASKED.append(answer, Message.user("Why?")))

    assert server.requests[0].json["messages"][1] == {"role": "assistant", "content": "three"}


def test_a_server_that_answers_with_one_json_body_is_taken() -> None:
    message = {
        "content": "Let me add.",
        "tool_calls": [{"id": "c1", "function": {"name": "add", "arguments": '{"a": 1}'}}],
    }
    outputs, _ = ask(body({"choices": [{"message": message, "finish_reason": "tool_calls"}]}))

    assert text_of(outputs) == "Let me add."
    assert completion_of(outputs).message.tool_calls == (ToolCall("add", {"a": 1}, id="c1"),)


PIECES: dict[str, list[dict[str, Any]]] = {
    "as documented": [
        call("", index=0, id="c1", name="add"),
        call('{"a"', index=0),
        call(": 1}", index=0),
        call("", index=1, id="c2", name="add"),
        call('{"a": 2}', index=1),
    ],
    "interleaved": [
        call("", index=0, id="c1", name="add"),
        call("", index=1, id="c2", name="add"),
        call('{"a": 1}', index=0),
        call('{"a": 2}', index=1),
    ],
    "index always 0": [
        call('{"a": 1}', index=0, id="c1", name="add"),
        call('{"a": 2}', index=0, id="c2", name="add"),
    ],
    "no index": [
        call("", id="c1", name="add"),
        call('{"a": 1}'),
        call("", id="c2", name="add"),
        call('{"a": 2}'),
    ],
    "name and id with every piece": [
        call('{"a"', index=0, id="c1", name="add"),
        call(": 1}", index=0, id="c1", name="add"),
        call('{"a": 2}', index=1, id="c2", name="add"),
    ],
    "name later": [
        call(index=0, id="c1"),
        call('{"a": 1}', index=0, name="add"),
        call('{"a": 2}', index=1, id="c2", name="add"),
    ],
    "no ids, index always 0": [
        call('{"a": 1}', index=0, name="add"),
        call('{"a": 2}', index=0, name="add"),
    ],
    "empty ids": [
        call('{"a": 1}', index=0, id="", name="add"),
        call('{"a": 2}', index=1, id="", name="add"),
    ],
    "one id twice": [
        call('{"a": 1}', index=0, id="c1", name="add"),
        call('{"a": 2}', index=1, id="c1", name="add"),
    ],
}


@pytest.mark.parametrize(
    "pieces",
    [
        [call(name="a", index=0, id="c1"), call(name="dd", index=0), call("{}", index=0)],
        [call("", name="ad", index=0, id="c1"), call("", name="d", index=0), call("{}", index=0)],
        [
            {"function_call": {"name": "add", "arguments": "{"}},
            {"function_call": {"arguments": "}"}},
        ],
    ],
)
def test_a_name_in_pieces_and_a_call_as_it_was_before_are_one_call(pieces: list[Any]) -> None:
    outputs, _ = ask(stream(*map(chat, pieces), chat(finish="tool_calls")))

    message = completion_of(outputs).message
    assert [(c.name, c.arguments) for c in message.tool_calls] == [("add", {})]
    assert "".join(o.name for o in outputs if isinstance(o, ToolCallDelta)) == "add"


def test_another_answer_beside_the_first_is_not_mixed_into_it() -> None:
    other = {"choices": [{"index": 1, "delta": {"content": "no"}}]}
    outputs, _ = ask(stream(chat({"content": "d"}), other, chat({"content": "one"}, "stop")))

    assert completion_of(outputs).message.text == "done"


def test_what_comes_behind_the_end_of_a_stream_is_nothing() -> None:
    outputs, server = ask(
        stream(chat({"content": "done"}, "stop"), b"data: [DONE]\n\ndata: {x\n\n")
    )

    assert completion_of(outputs).message.text == "done"
    assert len(server.requests) == 1


@pytest.mark.parametrize("pieces", PIECES.values(), ids=PIECES.keys())
def test_two_calls_are_two_calls_however_a_server_numbers_them(pieces: list[Any]) -> None:
    outputs, _ = ask(stream(*(chat(piece) for piece in pieces), chat({}, "tool_calls")))

    completion = completion_of(outputs)
    calls = completion.message.tool_calls
    streamed = ["", ""]
    names = ["", ""]
    for output in outputs:
        if isinstance(output, ToolCallDelta):
            streamed[output.index] += output.arguments
            names[output.index] += output.name
    assert [c.arguments for c in calls] == [{"a": 1}, {"a": 2}]
    assert [json.loads(text) for text in streamed] == [{"a": 1}, {"a": 2}]
    assert names == ["add", "add"]
    assert all(c.id for c in calls)
    assert len({c.id for c in calls}) == 2
    assert completion.stop_reason == "tool_calls"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"a": 1, "b": ', "not valid JSON"),
        ("[1, 2]", "must be a JSON object, not an array"),
        ('"x"', "must be a JSON object, not a string"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_arguments_that_are_no_json_object_make_an_invalid_call(
    arguments: str, reason: str
) -> None:
    outputs, _ = ask(
        stream(chat(call(arguments, index=0, id="c1", name="add")), chat({}, "tool_calls"))
    )

    message = completion_of(outputs).message
    assert message.tool_calls == ()
    (invalid,) = message.invalid_tool_calls
    assert (invalid.raw, invalid.name, invalid.id) == (arguments, "add", "c1")
    assert reason in invalid.reason


def test_no_arguments_at_all_are_an_empty_object() -> None:
    outputs, _ = ask(stream(chat(call("", index=0, id="c1", name="now")), chat({}, "tool_calls")))

    assert completion_of(outputs).message.tool_calls == (ToolCall("now", {}, id="c1"),)


@pytest.mark.parametrize("arguments", ['{"a": 1, "b', '{"a": 1}'])
@pytest.mark.parametrize(
    ("finish", "why"), [("length", "token limit"), ("content_filter", "filter")]
)
def test_a_call_of_a_cut_answer_is_never_valid_even_if_it_parses(
    arguments: str, finish: str, why: str
) -> None:
    outputs, _ = ask(stream(chat(call(arguments, index=0, id="c1", name="add")), chat({}, finish)))

    completion = completion_of(outputs)
    assert completion.stop_reason == finish
    assert completion.message.tool_calls == ()
    assert why in completion.message.invalid_tool_calls[0].reason
    assert completion.message.invalid_tool_calls[0].raw == arguments


IN_TEXT = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_a_call_that_a_server_left_in_the_text_is_read_as_one(size: int) -> None:
    text = f"Let me add. {IN_TEXT}"
    pieces = [text[i : i + size] for i in range(0, len(text), size)]

    outputs, _ = ask(stream(*(chat({"content": piece}) for piece in pieces), chat({}, "stop")))

    message = completion_of(outputs).message
    assert text_of(outputs) == message.text == "Let me add. "
    assert [(c.name, c.arguments) for c in message.tool_calls] == [("add", {"a": 1})]
    assert "call_in_text" in message.tool_calls[0].repairs
    assert message.tool_calls[0].id
    assert any(isinstance(o, ToolCallDelta) and o.name == "add" for o in outputs)


@pytest.mark.parametrize(
    "text",
    [
        "Write <tool_call> and then JSON.",
        "It ends with <tool_",
        '<tool_call>\n{"name": "other", "arguments": {}}\n</tool_call>',
    ],
)
def test_text_that_only_speaks_of_calls_stays_text(text: str) -> None:
    outputs, _ = ask(stream(chat({"content": text}), chat({}, "stop")))

    assert text_of(outputs) == text
    assert completion_of(outputs).message == Message.assistant(text)


def test_a_broken_call_in_the_text_is_an_invalid_call() -> None:
    broken = '<tool_call>\n{"name": "add", "arguments": {"a": \n</tool_call>'

    message = completion_of(ask(stream(chat({"content": broken}), chat({}, "stop")))[0]).message

    assert message.tool_calls == ()
    assert message.invalid_tool_calls[0].id
    assert '"a":' in message.invalid_tool_calls[0].raw


def test_a_refusal_is_text_with_its_own_stop_reason() -> None:
    outputs, _ = ask(
        stream(chat({"refusal": "I will "}), chat({"refusal": "not."}), chat({}, "stop"))
    )

    assert text_of(outputs) == "I will not."
    assert completion_of(outputs).message.text == "I will not."
    assert completion_of(outputs).stop_reason == "refusal"


def test_a_filtered_answer_says_so() -> None:
    outputs, _ = ask(stream(chat({"content": "part"}), chat({}, "content_filter")))

    assert completion_of(outputs).stop_reason == "content_filter"


def test_token_ids_and_logprobs_are_kept_where_the_server_gives_them() -> None:
    def chunk(text: str, id: int) -> Any:
        entry = {"token": text, "logprob": -0.5}
        choice = {"delta": {"content": text}, "token_ids": [id], "logprobs": {"content": [entry]}}
        return {"choices": [choice], "prompt_token_ids": [1, 2]}

    outputs, _ = ask(stream(chunk("a", 7), chunk("b", 8), chat({}, "stop")))

    completion = completion_of(outputs)
    assert completion.tokens is not None
    assert [(t.token_id, t.logprob, t.text) for t in completion.tokens] == [
        (7, -0.5, "a"),
        (8, -0.5, "b"),
    ]
    assert completion.prompt_ids == (1, 2)


def test_probabilities_are_asked_for_and_kept_where_the_server_knows_no_ids() -> None:
    top = [{"token": "a", "logprob": -0.5}, {"token": "b", "logprob": -1.5}]
    entry = {"token": "a", "logprob": -0.5, "top_logprobs": top}
    choice = {"delta": {"content": "a"}, "logprobs": {"content": [entry]}}

    outputs, server = ask(
        stream({"choices": [choice]}, chat({}, "stop")), settings=ModelSettings(logprobs=2)
    )

    sent, completion = server.requests[0].json, completion_of(outputs)
    assert (sent["logprobs"], sent["top_logprobs"]) == (True, 2)
    assert completion.tokens is None
    assert completion.logprobs is not None
    assert [(t.text, t.logprob) for t in completion.logprobs[0].top] == [("a", -0.5), ("b", -1.5)]


@pytest.mark.parametrize("n_top", [0, None])
def test_sampled_tokens_come_before_their_text_where_they_are_asked_for(n_top: int | None) -> None:
    def chunk(text: str) -> Any:
        logprobs = {"content": [{"token": text, "logprob": -0.5}]}
        return {"choices": [{"delta": {"content": text}, "logprobs": logprobs}]}

    outputs, _ = ask(
        stream(chunk("a"), chunk("b"), chat({}, "stop")), settings=ModelSettings(logprobs=n_top)
    )

    told = [
        "".join(t.text for t in o.tokens) if isinstance(o, SampledTokens) else o
        for o in outputs[:-1]
    ]
    a, b = TextDelta("a"), TextDelta("b")
    assert told == ([a, b] if n_top is None else ["a", a, "b", b])


def test_an_answer_that_is_wanted_whole_is_asked_for_whole() -> None:
    message = {"role": "assistant", "content": "It is 3."}
    whole = {"choices": [{"message": message, "finish_reason": "stop"}]}

    outputs, server = ask(body(whole), settings=ModelSettings(stream=False))

    sent = server.requests[0].json
    assert sent["stream"] is False
    assert "stream_options" not in sent
    assert completion_of(outputs).message.text == "It is 3."


HALF = sse(chat({"content": "one "}), chat({"content": "two"}), done=False)
BROKEN: dict[str, Reply] = {
    "ends without saying so": Reply(HALF, kind="text/event-stream"),
    "closed in mid-stream": Reply(HALF, kind="text/event-stream", end="cut"),
    "reset in mid-stream": Reply(HALF, kind="text/event-stream", end="reset"),
    "an event that is not JSON": stream(*HALF, b'data: {"choices":[{"delta":{"conte\n\n'),
    "an event that is no object": stream(*HALF, b"data: [1]\n\n"),
    "an error event": stream(*HALF, {"error": {"message": "overloaded", "code": 503}}),
    "finish reason error": stream(*HALF, chat({}, "error")),
    "no choices": stream({"choices": []}),
    "status 500": body({"error": {"message": "oops"}}, 500),
    "status 503 with a page": Reply([b"<html>busy</html>"], status=503, kind="text/html"),
    "status 429": body({"error": {"message": "slow down"}}, 429, headers={"Retry-After": "0"}),
    "half a JSON body": Reply([b'{"choices": ['], length=500, end="cut"),
    "a JSON body that is none": Reply([b'{"choices": [']),
}


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_answer_is_discarded_and_asked_for_again(reply: Reply) -> None:
    outputs, server = ask(reply, ANSWER)

    assert len(server.requests) == 2
    assert len(retries_of(outputs)) == 1
    assert shown_of(outputs) == "three"
    assert completion_of(outputs).message == Message.assistant("three")


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN.keys())
def test_what_stays_broken_is_an_error_in_one_line_after_bounded_tries(reply: Reply) -> None:
    with pytest.raises(ModelError, match="after 4 tries") as caught:
        ask(reply, reply, reply, reply)

    assert "\n" not in str(caught.value)


def test_a_finish_reason_without_done_is_a_whole_answer() -> None:
    outputs, _ = ask(stream(chat({"content": "three"}), chat({}, "stop"), done=False))

    assert completion_of(outputs).message.text == "three"


@pytest.mark.parametrize(
    "events",
    [
        b': keep-alive\n\ndata:{"choices":[{"delta":{"content":"caf\xe9\xff"}}]}\n\n',
        b'id: 1\r\ndata: {"choices":[{"delta":\r\ndata: {"content":"caf\xe9\xff"}}]}\r\n\r\n',
        b'\xef\xbb\xbf\n\ndata: {"choices":[{"delta":{"content":"caf\xe9\xff"}}]}\r\r',
    ],
)
@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_bytes_that_are_not_utf8_and_odd_line_ends_are_survived(events: bytes, size: int) -> None:
    whole = events + b"".join(sse(chat({}, "stop")))
    chunks = [whole[i : i + size] for i in range(0, len(whole), size)]

    outputs, _ = ask(Reply(chunks, kind="text/event-stream"))

    assert completion_of(outputs).message.text == "caf\ufffd\ufffd"


def test_a_last_event_without_a_line_end_is_read() -> None:
    last = b"data: " + json.dumps(chat({}, "stop")).encode()

    outputs, _ = ask(stream(chat({"content": "three"}), last, done=False))

    assert completion_of(outputs).message.text == "three"


@pytest.mark.parametrize(
    ("reply", "kind", "said"),
    [
        (
            body({"error": {"message": "Incorrect API key"}}, 401),
            ModelAuthError,
            "ANTIPHON_API_KEY",
        ),
        (
            body({"error": {"message": "The model `m` does not exist"}}, 404),
            ModelNotFoundError,
            "no model 'm'",
        ),
        (Reply([b"404 page not found"], status=404, kind="text/plain"), ModelNotFoundError, "/v1"),
        (
            body({"error": {"message": "maximum context length is 8 tokens"}}, 400),
            ContextLengthError,
            "too long for 'm'",
        ),
        (body({"detail": "bad temperature"}, 422), ModelError, "422.*bad temperature"),
        (Reply([b"<html>hello</html>"], kind="text/html"), ModelError, "web page"),
        (
            Reply(status=308, headers={"Location": "https://elsewhere/v1"}),
            ModelResponseError,
            "moved to https://elsewhere/v1",
        ),
        (
            body({"error": "busy"}, 429, headers={"Retry-After": "3600"}),
            RateLimitError,
            "busy",
        ),
    ],
)
def test_what_a_user_must_mend_is_not_repeated_and_is_one_clear_line(
    reply: Reply, kind: type[ModelError], said: str
) -> None:
    policy = PROMPT if kind is not ModelResponseError else RetryPolicy(max_tries=1)
    with pytest.raises(kind, match=said) as caught:
        ask(reply, retries=policy)

    assert "\n" not in str(caught.value)


def test_a_key_is_sent_and_never_said() -> None:
    with pytest.raises(ModelAuthError) as caught:
        ask(body({"error": {"message": "no"}}, 401), key="sk-secret")
    _, server = ask(ANSWER, key="sk-secret")

    assert "sk-secret" not in str(caught.value)
    assert server.requests[0].headers["authorization"] == "Bearer sk-secret"


def test_a_dead_endpoint_is_told_at_once() -> None:
    async def go() -> None:
        async with Loopback([]) as server:
            url = server.url
        model = model_at(url)
        async for _ in model.stream(ASKED):
            raise AssertionError("there is nobody there")

    with pytest.raises(ModelConnectionError, match=r"cannot connect to http://127.*running\?"):
        asyncio.run(go())


def test_a_server_that_falls_silent_is_a_connection_error() -> None:
    quick = Timeouts(connect=1.0, read=0.05, total=5.0)
    silent = Reply(HALF, kind="text/event-stream", end="hang")

    with pytest.raises(ModelConnectionError, match="fell silent in mid-answer"):
        ask(silent, retries=RetryPolicy(max_tries=1), timeouts=quick)


def test_a_server_that_never_answers_is_a_connection_error() -> None:
    quick = Timeouts(connect=1.0, read=0.05, total=5.0)

    with pytest.raises(ModelConnectionError, match="did not answer within"):
        ask(Reply(end="mute"), retries=RetryPolicy(max_tries=1), timeouts=quick)


def test_cancelling_closes_the_connection() -> None:
    async def go() -> bool:
        async with Loopback([Reply(HALF, kind="text/event-stream", end="hang")]) as server:
            model = model_at(server.url)
            outputs = model.stream(ASKED)
            assert await anext(aiter(outputs)) == TextDelta("one ")
            task = asyncio.ensure_future(_drain(outputs))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.wait_for(server.closed.wait(), 5)
            await model.close()
            return task.cancelled()

    assert asyncio.run(go())


async def _drain(outputs: Any) -> None:
    async for _ in outputs:
        pass


def test_one_model_serves_several_event_loops_and_leaves_nothing_open() -> None:
    """Connections that outlive their loop would be ResourceWarnings, which are errors here."""

    async def once(model_url: list[RemoteModel]) -> str:
        async with Loopback([ANSWER]) as server:
            model = model_at(server.url)
            model_url.append(model)
            return completion_of([o async for o in model.stream(ASKED)]).message.text

    kept: list[RemoteModel] = []
    assert [asyncio.run(once(kept)) for _ in range(3)] == ["three"] * 3


def test_the_request_says_what_was_asked_for() -> None:
    settings = ModelSettings(
        temperature=0.0,
        top_p=0.9,
        max_tokens=50,
        seed=7,
        stop=("END",),
        tool_choice="add",
        parallel_tool_calls=False,
        constrain=True,
        extra={"min_p": 0.1},
    )

    outputs, server = ask(ANSWER, settings=settings)

    sent = server.requests[0].json
    assert server.requests[0].path == "/v1/chat/completions"
    assert sent["tools"][0]["function"].pop("strict") is True
    assert sent == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.0,
        "top_p": 0.9,
        "max_tokens": 50,
        "seed": 7,
        "stop": ["END"],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "parallel_tool_calls": False,
        "min_p": 0.1,
        "messages": [{"role": "user", "content": "What is 1 + 2?"}],
        "tools": [ADD.to_openai()],
    }
    assert completion_of(outputs).sampling["temperature"] == 0.0


def test_tools_are_left_out_when_none_may_be_called() -> None:
    _, server = ask(ANSWER, settings=ModelSettings(tool_choice="none"))

    assert "tools" not in server.requests[0].json


HISTORY = (
    Message.system("Be brief."),
    Message.user("Add."),
    Message.assistant(
        tool_calls=[ToolCall("add", {"a": 1}, id="c1"), ToolCall("add", {"a": 2}, id="c2")]
    ),
    Message.tool("1", call_id="c2", name="add"),
    Message.tool("2", call_id="c1", name="add"),
)


def test_a_history_is_sent_as_the_api_has_it() -> None:
    _, server = ask(ANSWER, conversation=Conversation(HISTORY, (ADD,)))

    def row(id: str, n: int) -> Any:
        function = {"name": "add", "arguments": json.dumps({"a": n})}
        return {"id": id, "type": "function", "function": function}

    assert server.requests[0].json["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add."},
        {"role": "assistant", "content": None, "tool_calls": [row("c1", 1), row("c2", 2)]},
        {"role": "tool", "tool_call_id": "c2", "content": "1"},
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
    ]


@pytest.mark.parametrize("ids", [("", ""), ("c", "c")])
def test_calls_without_ids_of_their_own_are_sent_with_unique_ones(ids: tuple[str, str]) -> None:
    calls = [ToolCall("add", {"a": n}, id=id) for n, id in enumerate(ids)]
    history = (
        Message.user("Add."),
        Message.assistant(tool_calls=calls),
        Message.tool("0", call_id=ids[0]),
        Message.tool("1", call_id=ids[1]),
    )

    _, server = ask(ANSWER, conversation=Conversation(history))

    rows = server.requests[0].json["messages"]
    sent = [c["id"] for c in rows[1]["tool_calls"]]
    assert len(set(sent)) == 2
    assert all(sent)
    assert [row["tool_call_id"] for row in rows[2:]] == sent
    assert [row["content"] for row in rows[2:]] == ["0", "1"]


def test_an_invalid_call_goes_back_as_a_call_whose_arguments_are_an_object() -> None:
    broken = InvalidToolCall('{"a": ', "not JSON", "add", "c9")
    history = (
        Message.user("Add."),
        Message.assistant(invalid_tool_calls=[broken]),
        Message.tool("not JSON", call_id="c9", name="add", is_error=True),
    )

    _, server = ask(ANSWER, conversation=Conversation(history))

    rows = server.requests[0].json["messages"]
    function = rows[1]["tool_calls"][0]["function"]
    assert json.loads(function["arguments"]) == {"invalid_arguments": '{"a": '}
    assert rows[2]["tool_call_id"] == rows[1]["tool_calls"][0]["id"] == "c9"


def test_a_result_whose_call_is_gone_is_sent_as_text() -> None:
    history = (Message.user("Add."), Message.tool("3", call_id="c1", name="add"))

    _, server = ask(ANSWER, conversation=Conversation(history))

    assert server.requests[0].json["messages"][1] == {
        "role": "user",
        "content": "Result of add:\n3",
    }


def test_lone_surrogates_are_sent_as_replacement_characters() -> None:
    history = (Message.user("file \udcff name \ud83d\ude00"),)

    _, server = ask(ANSWER, conversation=Conversation(history))

    assert server.requests[0].json["messages"][0]["content"] == "file \ufffd name \U0001f600"


def test_images_are_sent_as_parts_and_those_of_tools_in_a_user_message() -> None:
    picture = ImagePart("data:image/png;base64,AA==")
    shot = Message(
        "tool", (TextPart("done"), ImagePart("https://host/x.png")), tool_call_id="c1", name="add"
    )
    history = (
        Message.user([TextPart("See."), picture]),
        Message.assistant(tool_calls=[ToolCall("add", {}, id="c1")]),
        shot,
    )

    _, server = ask(ANSWER, conversation=Conversation(history))

    rows = server.requests[0].json["messages"]
    assert rows[0]["content"] == [
        {"type": "text", "text": "See."},
        {"type": "image_url", "image_url": {"url": picture.source}},
    ]
    assert rows[2]["content"] == "done"
    assert rows[3] == {
        "role": "user",
        "content": [{"type": "image_url", "image_url": {"url": "https://host/x.png"}}],
    }


def test_each_message_is_written_once_however_often_it_is_sent() -> None:
    dialect = ChatDialect("m")
    long = Message.user("x" * 100_000)
    first = dialect.request(Conversation((long,)), ModelSettings())
    cached = dialect._written.get(long)  # pyright: ignore[reportPrivateUsage]

    second = dialect.request(Conversation((long, Message.user("more"))), ModelSettings())

    assert cached is not None
    assert dialect._written.get(long) is cached  # pyright: ignore[reportPrivateUsage]
    assert cached in first.body
    assert cached in second.body


def test_what_is_sent_is_the_same_whether_the_steps_before_were_sent_or_not() -> None:
    """Images of tools, ids made up, orphans, another agent's instructions: nothing depends on
    it."""
    picture = ImagePart("https://host/x.png")
    history: list[Message] = [Message.user("Add.")]
    for n in range(5):
        id = "" if n % 2 else f"c{n}"
        history += [
            Message.assistant(tool_calls=[ToolCall("add", {"a": n}, id=id)]),
            Message("tool", (TextPart(str(n)), picture), tool_call_id=id, name="add"),
        ]
        if n == 3:
            history.append(Message.tool("lost", call_id="gone", name="add"))
    warm = ChatDialect("m")

    for n in range(1, len(history) + 1):
        shown = Conversation((Message.system(f"Step {n}."), *history[:n]), (ADD,))
        sent = warm.request(shown, ModelSettings()).body

        assert sent == ChatDialect("m").request(shown, ModelSettings()).body

    branch = Conversation((*history[:4], Message.user("Else?")), (ADD,))
    assert warm.request(branch, ModelSettings()).body == (
        ChatDialect("m").request(branch, ModelSettings()).body
    )
