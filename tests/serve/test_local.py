"""The embedded model, served: a real engine behind real clients' requests."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from antiphon.models._catalog import CARDS, DEFAULT
from antiphon.models._weights import find
from antiphon.serve import Server, ServeSettings
from serve.serving import ADD, Client, assembled, whole

pytestmark = pytest.mark.slow

pytest.importorskip("xllamacpp")
if find(CARDS[DEFAULT]) is None:
    what = "the embedded model is not here; get it with: antiphon models fetch"
    pytest.skip(what, allow_module_level=True)

ASKED = {"model": "local", "messages": [{"role": "user", "content": "Add 17 and 25."}]}


@asynccontextmanager
async def local() -> AsyncGenerator[Client]:
    """The embedded model behind a server."""
    server = Server(["local"], settings=ServeSettings(port=0))
    timeout = aiohttp.ClientTimeout(total=120)
    async with server.listening(), aiohttp.ClientSession(timeout=timeout) as session:
        yield Client(session, server.url)


def test_a_call_comes_streamed_as_it_comes_whole() -> None:
    async def go() -> None:
        async with local() as client:
            asking = ASKED | {"tools": [ADD], "tool_choice": "required", "temperature": 0}
            at_once = await client.post("/v1/chat/completions", asking)
            streamed = await client.post("/v1/chat/completions", asking | {"stream": True})

            assert whole(at_once.json)["calls"] == assembled(streamed.events)["calls"]
            name, arguments = whole(at_once.json)["calls"][0]
            assert (name, set(json.loads(arguments))) == ("add", {"a", "b"})
            assert at_once.json["usage"]["completion_tokens"] > 0

    asyncio.run(go())


def test_an_answer_is_held_to_a_schema_and_its_tokens_are_told() -> None:
    schema = {
        "type": "object",
        "properties": {"sum": {"type": "integer"}, "ok": {"type": "boolean"}},
        "required": ["sum", "ok"],
    }

    async def go() -> None:
        async with local() as client:
            wanted = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
            asking = ASKED | {"response_format": wanted, "logprobs": True, "max_tokens": 60}
            got = await client.post("/v1/chat/completions", asking)

            answer = json.loads(got.message["content"])
            tokens = got.json["choices"][0]["logprobs"]["content"]
            assert isinstance(answer["sum"], int)
            assert isinstance(answer["ok"], bool)
            assert "".join(t["token"] for t in tokens).startswith(got.message["content"])

    asyncio.run(go())


def test_a_text_is_continued() -> None:
    async def go() -> None:
        async with local() as client:
            asking = {"model": "local", "prompt": "1, 2, 3, 4,", "max_tokens": 8, "temperature": 0}
            got = await client.post("/v1/completions", asking)

            assert got.json["choices"][0]["text"]
            assert got.json["usage"]["completion_tokens"] == 8

    asyncio.run(go())


def test_a_client_that_leaves_frees_the_engine() -> None:
    async def go() -> None:
        async with local() as client:
            url = client.url + "/v1/chat/completions"
            long = ASKED | {"stream": True, "max_tokens": 1500}
            for _ in range(6):  # more than the engine has slots
                response = await client.session.post(url, json=long)
                await response.content.readany()
                response.close()
            after = await client.post("/v1/chat/completions", ASKED | {"max_tokens": 4})

            assert after.status == 200
            assert "antiphon_requests_in_flight 0" in (await client.get("/metrics")).text

    asyncio.run(go())
