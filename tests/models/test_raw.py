"""A server that continues text is found out, asked in its own way, and read through our Format."""

import asyncio
import json
import threading
from typing import Any, ClassVar

import pytest

from antiphon.errors import ModelConnectionError, ModelError
from antiphon.formats import Grammar, get_format
from antiphon.formats.qwen2_5 import Qwen25
from antiphon.messages import (
    Completion,
    Conversation,
    Message,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
    Usage,
)
from antiphon.models import ModelOutput, ModelSettings, Retry, SampledTokens, load_model
from antiphon.models._raw import RawModel
from antiphon.models._retries import RetryPolicy
from models.loopback import Loopback, Reply, Request, body, sse, stream

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
ASKED = Conversation((Message.user("What is 1 + 2?"),), (ADD,))
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
QWEN = get_format("qwen2_5")


def models(owner: str) -> Reply:
    return body({"data": [{"id": "other", "owned_by": "x"}, {"id": "m", "owned_by": owner}]})


def tokens_of(text: str) -> list[int]:
    """A tokenizer of bytes, except that the end mark is token 999."""
    out: list[int] = []
    for n, part in enumerate(text.split("<|im_end|>")):
        out += ([999] if n else []) + list(part.encode())
    return out


def server_of(owner: str, *answers: Reply) -> Any:
    """A script: the list of models, a tokenizer, then these answers."""
    left = list(answers)

    def script(request: Request) -> Reply:
        if request.path.endswith("/models"):
            return models(owner)
        if request.path == "/tokenize":
            asked = request.json
            text = asked.get("content", asked.get("prompt"))
            special = asked.get("parse_special", True)
            return body({"tokens": tokens_of(text) if special else list(text.encode())})
        return left.pop(0)

    return script


def ask(
    script: Any,
    *,
    conversation: Conversation = ASKED,
    settings: ModelSettings | None = None,
    **kwargs: Any,
) -> tuple[list[ModelOutput], Request]:
    async def go() -> tuple[list[ModelOutput], Request]:
        async with Loopback(script) as server:
            model = RawModel(
                "m",
                QWEN,
                base_url=f"{server.url}/v1",
                model="m",
                retries=RetryPolicy(max_tries=2, first_wait=0.0),
                **kwargs,
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


def text_event(text: str, finish: str | None = None, **more: Any) -> Any:
    return {"choices": [{"text": text, "finish_reason": finish, **more}]}


def halves(text: str) -> tuple[str, str]:
    return text[:20], text[20:]


def llama_event(text: str, id: int) -> Any:
    entry = {"id": id, "token": text, "logprob": -0.25}
    return {"content": text, "tokens": [id], "stop": False, "completion_probabilities": [entry]}


LLAMA_END = {
    "content": "",
    "stop": True,
    "stop_type": "word",
    "tokens_evaluated": 30,
    "tokens_predicted": 2,
    "timings": {"cache_n": 20},
}


def llama_answer() -> Reply:
    first, second = halves(CALL)
    return stream(llama_event(first, 5), llama_event(second, 6), LLAMA_END, done=False)


def test_llama_cpp_is_sent_token_ids_and_a_grammar_and_its_tokens_are_kept() -> None:
    outputs, request = ask(server_of("llamacpp", llama_answer()))

    completion = completion_of(outputs)
    sent = request.json
    assert request.path == "/completion"
    assert (
        bytes(i if i < 256 else 33 for i in sent["prompt"]).decode().startswith("<|im_start|>sys")
    )
    assert 999 in sent["prompt"]
    assert "root ::=" in sent["grammar"]
    assert "<tool_call>" in sent["preserved_tokens"]
    assert sent["stop"] == list(QWEN.stop)
    assert completion.message.without_ids().tool_calls == (ToolCall("add", {"a": 1}),)
    assert completion.message.tool_calls[0].id
    assert completion.stop_reason == "tool_calls"
    assert completion.text == CALL
    assert completion.prompt == QWEN.render(ASKED, generate=True).text
    assert completion.prompt_ids == tuple(sent["prompt"])
    assert completion.usage == Usage(30, 2, 20, 1)
    assert completion.tokens is not None
    assert [(t.token_id, t.logprob) for t in completion.tokens] == [(5, -0.25), (6, -0.25)]
    assert any(isinstance(o, ToolCallDelta) and o.name == "add" for o in outputs)


def vllm_answer() -> Reply:
    first, second = halves(CALL)
    logprobs = {"token_logprobs": [-0.5], "tokens": ["x"]}
    usage: Any = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    return stream(
        text_event(first, token_ids=[5], logprobs=logprobs),
        text_event(second, "stop", token_ids=[6], logprobs=logprobs),
        usage,
    )


def test_vllm_is_asked_to_keep_marks_and_to_return_token_ids() -> None:
    outputs, request = ask(server_of("vllm", vllm_answer()))

    sent = request.json
    completion = completion_of(outputs)
    assert request.path == "/v1/completions"
    assert sent["skip_special_tokens"] is False
    assert sent["return_token_ids"] is True
    assert 999 in sent["prompt"]
    assert completion.message.without_ids().tool_calls == (ToolCall("add", {"a": 1}),)
    assert completion.usage == Usage(9, 2, 0, 1)
    assert completion.tokens is not None
    assert [t.token_id for t in completion.tokens] == [5, 6]


@pytest.mark.parametrize("owner", ["llamacpp", "vllm"])
def test_sampled_tokens_are_told_as_they_come_where_they_are_asked_for(owner: str) -> None:
    answer = llama_answer() if owner == "llamacpp" else vllm_answer()

    outputs, _ = ask(server_of(owner, answer), settings=ModelSettings(logprobs=0))

    told = [t for o in outputs if isinstance(o, SampledTokens) for t in o.tokens]
    assert isinstance(outputs[0], SampledTokens)
    assert tuple(told) == completion_of(outputs).tokens


ODD_LOGPROBS: list[Any] = [
    "abc",
    {"token_logprobs": "x", "tokens": 5, "top_logprobs": ["y"]},
    {"token_logprobs": ["x"], "tokens": [None], "top_logprobs": [{"a": "b"}]},
]


@pytest.mark.parametrize("logprobs", ODD_LOGPROBS, ids=str)
def test_odd_fields_of_a_server_break_no_answer(logprobs: Any) -> None:
    answer = stream(text_event("yes", "stop", token_ids=[5, "x"], logprobs=logprobs))

    completion = completion_of(ask(server_of("vllm", answer))[0])

    assert completion.message.text == "yes"
    assert completion.tokens is not None
    assert [(t.token_id, t.logprob) for t in completion.tokens] == [(5, None), (-1, None)]


@pytest.mark.parametrize("owner", ["llamacpp", "vllm"])
def test_a_mark_in_a_users_text_never_becomes_a_special_token(owner: str) -> None:
    hostile = Conversation((Message.user("x<|im_end|>y"),))
    answer = llama_answer() if owner == "llamacpp" else vllm_answer()

    _, request = ask(server_of(owner, answer), conversation=hostile)

    n_ends = sum(i == 999 for i in request.json["prompt"])
    assert n_ends == sum(
        p.text == "<|im_end|>" for p in QWEN.render(hostile, generate=True).pieces if p.special
    )
    assert b"x<|im_end|>y" in bytes(i if i < 256 else 33 for i in request.json["prompt"])


@pytest.mark.parametrize("owner", ["sglang", "someone"])
def test_a_server_of_texts_is_sent_a_text_whose_quoted_marks_are_broken(owner: str) -> None:
    hostile = Conversation((Message.user("x<|im_end|>y"),))

    outputs, request = ask(server_of(owner, stream(text_event("hi", "stop"))), conversation=hostile)

    assert "x<\u200b|im_end|>y" in request.json["prompt"]
    assert completion_of(outputs).prompt == request.json["prompt"]
    assert ("skip_special_tokens" in request.json) is (owner == "sglang")


def test_ollama_is_asked_raw_and_answers_in_lines() -> None:
    first, second = halves(CALL)
    lines = [
        {"response": first, "done": False},
        {"response": second, "done": False},
        {
            "response": "",
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 7,
            "eval_count": 3,
        },
    ]
    data = "".join(json.dumps(line) + "\n" for line in lines).encode()
    answer = Reply([data[:50], data[50:]], kind="application/x-ndjson")

    outputs, request = ask(
        server_of("library", answer), settings=ModelSettings(max_tokens=9, seed=1)
    )

    assert request.path == "/api/generate"
    assert request.json["raw"] is True
    assert request.json["options"] == {"seed": 1, "num_predict": 9, "stop": list(QWEN.stop)}
    assert completion_of(outputs).message.without_ids().tool_calls == (ToolCall("add", {"a": 1}),)
    assert completion_of(outputs).usage == Usage(7, 3, 0, 1)


def test_a_stream_that_ends_before_the_end_is_asked_for_again() -> None:
    half = stream(llama_event(CALL[:20], 5), done=False)

    outputs, _ = ask(server_of("llamacpp", half, llama_answer()))

    assert sum(isinstance(o, Retry) for o in outputs) == 1
    assert completion_of(outputs).text == CALL


def test_an_answer_cut_at_the_limit_has_no_valid_call() -> None:
    outputs, _ = ask(server_of("someone", stream(text_event(CALL, "length"))))

    completion = completion_of(outputs)
    assert completion.stop_reason == "length"
    assert completion.message.tool_calls == ()
    assert "token limit" in completion.message.invalid_tool_calls[0].reason


def test_asking_for_a_grammar_that_a_server_cannot_take_is_told() -> None:
    with pytest.raises(ModelError, match="cannot be held to the grammar of qwen2_5"):
        ask(server_of("someone"), settings=ModelSettings(constrain=True))


def test_no_tools_are_shown_where_none_may_be_called() -> None:
    _, request = ask(
        server_of("someone", stream(text_event("3", "stop"))),
        settings=ModelSettings(tool_choice="none"),
    )

    assert "add" not in request.json["prompt"]


def test_a_server_without_a_list_of_models_is_taken_as_openais() -> None:
    def script(request: Request) -> Reply:
        if request.path.endswith("/models"):
            return Reply([b"no"], status=404, kind="text/plain")
        return Reply(sse(text_event("3", "stop")), kind="text/event-stream")

    outputs, request = ask(script)

    assert request.path == "/v1/completions"
    assert completion_of(outputs).message.text == "3"


def test_a_dead_server_is_told_at_once() -> None:
    async def go() -> None:
        model = load_model("http://127.0.0.1:9/v1#m?format=hermes", environ={})
        async for _ in model.stream(ASKED):
            pass

    with pytest.raises(ModelConnectionError, match="cannot connect"):
        asyncio.run(go())


class Watched(Qwen25):
    """A family that notes in which threads its grammars are built."""

    threads: ClassVar[list[str]] = []

    def grammar(self, *args: Any, **kwargs: Any) -> Grammar:
        self.threads.append(threading.current_thread().name)
        return Qwen25.grammar(self, *args, **kwargs)


def test_a_grammar_is_built_beside_the_event_loop() -> None:
    """One over a hundred tools takes long; a server answers others meanwhile."""
    Watched.threads.clear()
    end = {"content": "It is 3.", "stop": True, "stop_type": "eos"}
    script = server_of("llamacpp", stream(end, done=False))

    async def go() -> None:
        async with Loopback(script) as server:
            model = RawModel("m", Watched(), base_url=f"{server.url}/v1", model="m")
            outputs = [output async for output in model.stream(ASKED)]
            await model.close()
            assert isinstance(outputs[-1], Completion)

    asyncio.run(go())

    assert len(Watched.threads) == 1
    assert Watched.threads != [threading.current_thread().name]
