"""What clients and models do wrong, and that the server lives: one fault a test."""

import asyncio
import gc
import io
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from antiphon.errors import UsageError
from antiphon.messages import (
    Completion,
    Conversation,
    InvalidToolCall,
    Message,
    TextDelta,
    Usage,
)
from antiphon.models import ModelOutput, ModelSettings, RetryPolicy, ScriptedModel
from antiphon.models._chat import ChatDialect
from antiphon.models._remote import RemoteModel
from antiphon.serve import Served, Server, ServeSettings, read_settings
from antiphon.serve._sent import Sent
from models.loopback import Loopback, Reply, Request, chat, sse
from serve.serving import ADD, ASK, Client, Got, asked, assembled, serving

JSON = {"Content-Type": "application/json"}


class Gated:
    """Says a word, then waits to be let on, and tells when it is stopped."""

    spec = "gated"

    def __init__(self) -> None:
        self.began = asyncio.Event()
        self.go_on = asyncio.Event()
        self.stopped = asyncio.Event()
        self.n_asked = 0

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        self.n_asked += 1
        try:
            yield TextDelta("Hel")
            self.began.set()
            await self.go_on.wait()
            yield TextDelta("lo")
            yield Completion(Message.assistant("Hello"), "stop", Usage(3, 2))
        finally:
            self.stopped.set()

    async def close(self) -> None:
        """Nothing is held."""


def with_gate(what: Callable[[Client, Gated], Awaitable[Any]], **settings: Any) -> Any:
    async def go() -> Any:
        model = Gated()
        async with asyncio.timeout(10), serving(model, **settings) as client:
            return await what(client, model)

    return asyncio.run(go())


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_stops_the_model_and_frees_its_slot(stream: bool) -> None:
    async def leave(client: Client, model: Gated) -> str:
        url = client.url + "/v1/chat/completions"
        asking = asyncio.create_task(client.session.post(url, json=ASK | {"stream": stream}))
        await model.began.wait()
        if stream:
            (await asking).close()
        else:
            asking.cancel()
        await model.stopped.wait()
        model.go_on.set()
        after = await client.chat()
        assert after.message["content"] == "Hello"
        return (await client.get("/metrics")).text

    metrics = with_gate(leave, max_concurrent=1, max_waiting=1)

    assert "antiphon_requests_in_flight 0" in metrics
    assert 'status="499"' in metrics
    assert ('how="client_gone"' in metrics) is stream


def test_a_full_server_says_when_to_come_again() -> None:
    async def fill(client: Client, model: Gated) -> tuple[Got, Got]:
        first = asyncio.create_task(client.chat())
        await model.began.wait()
        refused = await client.chat()
        model.go_on.set()
        return await first, refused

    served, refused = with_gate(fill, max_concurrent=1, max_waiting=0)

    assert served.status == 200
    assert (refused.status, refused.headers["Retry-After"]) == (429, "1")
    assert refused.json["error"]["type"] == "rate_limit_error"


def test_who_waits_is_served_in_turn_or_sent_away_in_time() -> None:
    async def fill(client: Client, model: Gated) -> tuple[int, int]:
        first = asyncio.create_task(client.chat())
        await model.began.wait()
        late = await client.chat()
        second = asyncio.create_task(client.chat())
        while "antiphon_requests_waiting 1" not in (await client.get("/metrics")).text:
            await asyncio.sleep(0)
        model.go_on.set()
        await first
        return late.status, (await second).status

    assert with_gate(fill, max_concurrent=1, max_waiting=1, wait_seconds=0.05) in (
        (429, 200),
        (429, 429),
    )


def test_an_answer_that_takes_too_long_is_cut_with_its_reason() -> None:
    async def wait(client: Client, model: Gated) -> tuple[Got, Got]:
        return await client.chat(), await client.chat(stream=True)

    at_once, streamed = with_gate(wait, request_seconds=0.05)

    assert at_once.status == 504
    assert streamed.events[-1]["error"]["code"] == "request_timeout"
    assert "[DONE]" not in streamed.text


def test_a_silent_stream_says_that_it_is_alive() -> None:
    """nginx hangs up after 60 s of silence; a long prompt may take longer than that."""

    async def wait(client: Client, model: Gated) -> str:
        url = client.url + "/v1/chat/completions"
        async with client.session.post(url, json=ASK | {"stream": True}) as response:
            text = b""
            while text.count(b": still here") < 2:
                text += await response.content.readany()
            model.go_on.set()
            return (text + await response.read()).decode()

    text = with_gate(wait, ping_seconds=0.02)

    got = Got(200, {}, text)
    assert assembled(got.events)["content"] == "Hello"
    assert got.events[-1] == "[DONE]"


def test_what_comes_at_once_goes_out_at_once() -> None:
    """A send costs more than all that is done with a token."""
    words = [f"word{n} " for n in range(100)]
    burst = b"".join(sse(*(chat({"content": word}) for word in words), chat(finish="stop")))

    async def go() -> tuple[int, Got]:
        reply = Reply([burst], kind="text/event-stream")
        async with Loopback([reply]) as upstream, serving(_remote(upstream.url)) as client:
            url = client.url + "/v1/chat/completions"
            async with client.session.post(url, json=ASK | {"stream": True}) as response:
                chunks = [chunk async for chunk, _ in response.content.iter_chunks() if chunk]
        return len(chunks), Got(200, {}, b"".join(chunks).decode())

    n_chunks, got = asyncio.run(go())

    assert assembled(got.events)["content"] == "".join(words)
    assert n_chunks < 10


def test_a_client_that_reads_slowly_holds_the_model_back_and_gets_all() -> None:
    n_words = 8_000
    words = ScriptedModel([Message.assistant("word " * n_words)])

    async def ask(client: Client) -> str:
        url = client.url + "/v1/chat/completions"
        async with client.session.post(url, json=ASK | {"stream": True}) as response:
            text = b""
            async for chunk in response.content.iter_any():
                text += chunk
                await asyncio.sleep(0)
            return text.decode()

    got = Got(200, {}, asked(ask, model=words))

    assert assembled(got.events)["content"] == "word " * n_words


def test_a_stream_whose_client_is_gone_says_so_and_waits_for_no_room() -> None:
    async def opening() -> Any:
        raise ConnectionResetError("gone")

    async def go() -> None:
        async with asyncio.timeout(10), Sent(opening, ping_seconds=60.0) as sent:
            for _ in range(3):
                await sent.write(b"x" * (1 << 17))

    with pytest.raises(ConnectionResetError, match="gone"):
        asyncio.run(go())


class Forgetful:
    """Says a word, and remembers nothing; a `ScriptedModel` keeps what it was asked."""

    spec = "forgetful"

    async def stream(
        self, conversation: Conversation, settings: ModelSettings | None = None
    ) -> AsyncIterator[ModelOutput]:
        yield TextDelta("Hello")
        yield Completion(Message.assistant("Hello"), "stop", Usage(3, 2))

    async def close(self) -> None:
        """Nothing is held."""


def test_nothing_stays_behind_requests() -> None:
    """``bench/serving.py --requests 100000`` watches the memory of a whole process."""

    async def ask(client: Client) -> int:
        async def some(n: int) -> int:
            for _ in range(n):
                await client.chat()
                await client.chat(stream=True)
                await client.chat(messages=5)
                await client.post("/v1/responses", {"model": "m", "input": "x", "stream": True})
                await client.get("/nowhere")
            gc.collect()
            return len(gc.get_objects())

        before = await some(10)
        return await some(40) - before

    assert asked(ask, model=Forgetful(), max_responses=5) < 200  # of as many requests


def test_going_down_finishes_what_has_begun_and_takes_nothing_new() -> None:
    async def go() -> tuple[str, int, int]:
        model = Gated()
        server = Server([Served("m", model)], settings=ServeSettings(port=0))
        async with aiohttp.ClientSession() as session:
            client = Client(session, "")
            async with server.listening():
                client.url = server.url
                both = await asyncio.gather(client.get("/readyz"), client.get("/readyz"))
                ready = max(got.status for got in both)  # two connections that stay open
                streaming = asyncio.create_task(client.chat(stream=True))
                await model.began.wait()
                draining = asyncio.create_task(_later(model, client, server))
            got, late = await streaming, await draining
            assert assembled(got.events)["content"] == "Hello"
            return got.events[-1], ready, late

    assert asyncio.run(go()) == ("[DONE]", 200, 503)


def test_what_does_not_end_in_its_time_is_broken_off() -> None:
    async def go() -> bool:
        model = Gated()
        server = Server([Served("m", model)], settings=ServeSettings(port=0, drain_seconds=0.05))
        async with aiohttp.ClientSession() as session:
            async with server.listening():
                asking = asyncio.create_task(Client(session, server.url).chat(stream=True))
                await model.began.wait()
            with pytest.raises(aiohttp.ClientError):
                await asking
        return model.stopped.is_set()

    assert asyncio.run(go())


async def _later(model: Gated, client: Client, server: Server) -> int:
    """Ask on a connection that is still open while the server goes down, then let it."""
    while not server.app.guard.is_draining:
        await asyncio.sleep(0)
    status = (await client.chat()).status
    model.go_on.set()
    return status


def _remote(url: str) -> RemoteModel:
    retries = RetryPolicy(max_tries=2, first_wait=0.0)
    return RemoteModel("m", ChatDialect("m"), base_url=f"{url}/v1", model="m", retries=retries)


@pytest.mark.parametrize("end", ["cut", "reset"])
def test_a_server_behind_that_dies_in_mid_answer_is_told(end: Any) -> None:
    def script(request: Request) -> Reply:
        half = sse(chat({"content": "Hel"}), done=False)
        return Reply(half, kind="text/event-stream", end=end)

    async def go() -> tuple[Got, Got]:
        async with Loopback(script) as upstream, serving(_remote(upstream.url)) as client:
            return await client.chat(stream=True), await client.chat()

    streamed, at_once = asyncio.run(go())

    assert assembled(streamed.events[:-1])["content"] == "Hel"
    assert "error" in streamed.events[-1]
    assert at_once.status == 502
    assert "127.0.0.1" not in streamed.text + at_once.text


ODD: dict[str, bytes] = {
    "logprobs of no objects": b'{"choices":[{"logprobs":{"content":["a",null]}}]}',
    "logprobs that are text": b'{"choices":[{"logprobs":{"content":"abc"}}]}',
    "a logprob that is text": b'{"choices":[{"logprobs":{"content":[{"token":5,"logprob":"x"}]}}]}',
    "likely tokens of no objects": (
        b'{"choices":[{"logprobs":{"content":[{"token":"a","logprob":-1,"top_logprobs":[3]}]}}]}'
    ),
    "ids that are none": b'{"choices":[{"token_ids":["a",null,{}]}]}',
    "choices that are text": b'{"choices":["x"]}',
    "a usage of texts": b'{"choices":[],"usage":{"prompt_tokens":"x","prompt_tokens_details":7}}',
}


@pytest.mark.parametrize("event", ODD.values(), ids=list(ODD))
def test_odd_fields_of_a_server_behind_break_no_answer(event: bytes) -> None:
    chunks = [b"data: " + event + b"\n\n", *sse(chat({"content": "3"}), chat(finish="stop"))]

    async def go() -> Got:
        reply = Reply(chunks, kind="text/event-stream")
        async with Loopback([reply]) as upstream, serving(_remote(upstream.url)) as client:
            return await client.chat(stream=True, logprobs=True, top_logprobs=1)

    got = asyncio.run(go())

    assert assembled(got.events)["content"] == "3"
    assert got.events[-1] == "[DONE]"


def test_a_number_too_long_for_python_in_an_event_is_told_as_a_broken_answer() -> None:
    event = b'data: {"choices":[],"created":' + b"9" * 6000 + b"}\n\n"

    async def go() -> Got:
        reply = Reply([*sse(chat({"content": "3"}), done=False), event], kind="text/event-stream")
        async with Loopback([reply]) as upstream, serving(_remote(upstream.url)) as client:
            return await client.chat(stream=True)

    assert asyncio.run(go()).events[-1]["error"]["code"] == "upstream_error"


def test_what_is_asked_again_before_the_first_word_is_not_seen() -> None:
    replies = [
        Reply(sse(chat({"role": "assistant"}), done=False), kind="text/event-stream", end="cut"),
        Reply(sse(chat({"content": "3"}), chat(finish="stop")), kind="text/event-stream"),
    ]

    async def go() -> Got:
        async with Loopback(replies) as upstream, serving(_remote(upstream.url)) as client:
            return await client.chat(stream=True)

    got = asyncio.run(go())

    assert assembled(got.events)["content"] == "3"
    assert got.events[-1] == "[DONE]"


def _body(size: int) -> bytes:
    return json.dumps(ASK | {"user": "x" * size}).encode()


@pytest.mark.parametrize("chunked", [True, False])
def test_fifty_megabytes_are_refused(chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(50):
            yield b"x" * (1 << 20)

    async def ask(client: Client) -> tuple[int, int]:
        data = pieces() if chunked else io.BytesIO(_body(50 << 20))
        status = 413
        try:
            url = client.url + "/v1/chat/completions"
            async with client.session.post(url, data=data, headers=JSON) as response:
                status = response.status
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
            pass  # it was refused before all of it was sent
        return status, (await client.chat()).status

    assert asked(ask, "ok") == (413, 200)


def test_ten_thousand_tools_are_refused() -> None:
    tools = [{"type": "function", "function": {"name": f"t{n}"}} for n in range(10_000)]

    got = asked(lambda client: client.chat(tools=tools))

    assert (got.status, got.json["error"]["param"]) == (400, "tools")


def test_a_head_that_comes_too_slowly_is_hung_up_on() -> None:
    async def drip(client: Client) -> tuple[bytes, int]:
        host, port = client.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ")
        try:
            said = await reader.read()
        except ConnectionResetError:
            said = b""
        writer.close()
        return said, (await client.chat()).status

    assert asked(drip, "ok", head_seconds=0.05) == (b"", 200)


def test_a_body_that_comes_too_slowly_is_refused() -> None:
    async def drip(client: Client) -> tuple[bytes, int]:
        host, port = client.url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 999\r\n\r\n{"
        )
        said = await reader.readline()
        writer.close()
        return said, (await client.chat()).status

    said, after = asked(drip, "ok", body_seconds=0.05)

    assert said.startswith(b"HTTP/1.1 408")
    assert after == 200


async def _said(client: Client, data: bytes) -> bytes:
    """What a server says to some bytes on a connection of their own, until it hangs up."""
    host, port = client.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(data)
    try:
        return await reader.read()
    finally:
        writer.close()


def _raw(*headers: str, body: bytes = b"") -> bytes:
    head = ["POST /v1/chat/completions HTTP/1.1", "Host: 127.0.0.1", "Connection: close"]
    return "\r\n".join([*head, "Content-Type: application/json", *headers, "", ""]).encode() + body


CHUNKED = "Transfer-Encoding: chunked"
NO_HTTP = {
    "no words of HTTP": b"what is this\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03secret",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no host": b"GET /v1/models HTTP/1.1\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
    "bare line feeds": b"GET / HTTP/1.1\nHost: 127.0.0.1\n\n",
    "two lengths": _raw("Content-Length: 2", "Content-Length: 3", body=b"{}"),
    "a length and chunks": _raw("Content-Length: 2", CHUNKED, body=b"0\r\n\r\n"),
    "a negative length": _raw("Content-Length: -2", body=b"{}"),
    "a chunk without a size": _raw(CHUNKED, body=b"secret\r\n{}\r\n"),
    "a header that is a novel": _raw("X-A: " + "secret" * 20_000),
    "too many headers": _raw(*(f"X-{n}: secret" for n in range(5_000))),
    "a NUL": _raw("X-A: secret\0"),
    "an unknown coding": _raw("Content-Encoding: br", "Content-Length: 6", body=b"secret"),
}


@pytest.mark.parametrize("data", NO_HTTP.values(), ids=list(NO_HTTP))
def test_what_is_no_http_is_refused_and_not_written_down(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def ask(client: Client) -> tuple[bytes, int, str]:
        said = await _said(client, data)
        return said, (await client.chat()).status, (await client.get("/metrics")).text

    with caplog.at_level(logging.DEBUG):
        said, after, metrics = asked(ask, "ok")

    head, _, text = said.partition(b"\r\n\r\n")
    assert head.split(b" ")[1] == b"400"
    assert b"\r\nServer: antiphon" in head
    assert json.loads(text)["error"]["type"] == "invalid_request_error"
    assert after == 200
    assert 'route="(none)",status="400"} 1' in metrics
    assert "Traceback" not in caplog.text
    assert "secret" not in caplog.text


BAD_BODIES = {
    "no gzip": _raw("Content-Encoding: gzip", "Content-Length: 6", body=b"secret"),
    "no deflate": _raw("Content-Encoding: deflate", "Content-Length: 6", body=b"secret"),
    "no JSON but a number too large": _raw("Content-Length: 14", body=b'{"seed":1e999}'),
}


@pytest.mark.parametrize("data", BAD_BODIES.values(), ids=list(BAD_BODIES))
def test_a_body_that_is_not_what_its_head_says_is_refused(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    said = asked(lambda client: _said(client, data))

    assert said.split(b" ")[1] == b"400"
    assert "Traceback" not in caplog.text


def test_half_a_surrogate_pair_in_a_request_is_no_fault_of_ours() -> None:
    """No store and no wire can hold one."""

    async def ask(client: Client) -> Got:
        row = {"input": "a \ud800 b", "session": "\udfff"}
        return await client.post("/v1/agent/runs", row)

    got = asked(ask, "ok")

    assert (got.status, got.json["session"]) == (200, "\ufffd")


def test_numbers_that_json_has_not_are_no_arguments_of_a_call() -> None:
    """A client of Messages would be sent what is no JSON."""
    call = InvalidToolCall('{"a": NaN}', "no JSON", "add", "c1")
    answer = Message.assistant("", invalid_tool_calls=[call])

    async def ask(client: Client) -> Got:
        row = {"model": "m", "max_tokens": 9, "messages": ASK["messages"]}
        return await client.post("/v1/messages", row)

    block = asked(ask, answer).json["content"][-1]

    assert block["input"] == {"invalid_arguments": '{"a": NaN}'}


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="Linux only")
def test_a_client_that_reads_nothing_is_hung_up_on() -> None:
    """It would hold its slot for as long as it likes."""
    body = json.dumps(ASK | {"stream": True}).encode()
    words = ScriptedModel([Message.assistant("word " * 2_000_000)])

    async def stall(client: Client) -> None:
        host, port = client.url.removeprefix("http://").split(":")
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.connect((host, int(port)))
            silent.sendall(_raw(f"Content-Length: {len(body)}", body=body))
            while 'how="client_gone"' not in (await client.get("/metrics")).text:
                await asyncio.sleep(0.02)

    async def go() -> None:
        async with asyncio.timeout(20), serving(words, send_seconds=0.2) as client:
            await stall(client)

    asyncio.run(go())


PATHS = [
    "/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/v1/models/../../../etc/passwd",
    "/v1//chat/completions",
    "//etc/passwd",
    "/v1/models/%00",
    "/v1/models/..%2f..%2fetc%2fpasswd",
    "/.env",
    "/static/../__init__.py",
]


@pytest.mark.parametrize("path", PATHS)
def test_no_path_leads_anywhere_else(path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"

    said = asked(lambda client: _said(client, head.encode()))

    assert said.split(b" ")[1] in (b"404", b"400")
    assert b"root:" not in said
    assert b"Python" not in said


# --- Who may ask


def test_a_wrong_key_or_none_is_refused_and_a_right_one_is_not() -> None:
    async def ask(client: Client) -> list[int]:
        heads = [
            {},
            {"Authorization": "Bearer wrong-key-1"},
            {"Authorization": "Bearer right-key-2"},
            {"x-api-key": "right-key-1"},
            {"Authorization": "Basic right-key-1"},
            {"Authorization": "Bearer right-key-ü"},
        ]
        return [(await client.get("/v1/models", headers=head)).status for head in heads]

    assert asked(ask, keys=("right-key-1", "right-key-2")) == [401, 401, 200, 200, 401, 401]


def test_health_needs_no_key_and_metrics_do() -> None:
    async def ask(client: Client) -> list[int]:
        paths = ("/healthz", "/readyz", "/metrics")
        return [(await client.get(path)).status for path in paths]

    assert asked(ask, keys=("right-key-1",)) == [200, 200, 401]


def test_a_page_of_another_origin_may_not_ask_unless_it_is_named() -> None:
    async def ask(client: Client) -> list[Got]:
        evil = {"Origin": "https://evil.example"}
        good = {"Origin": "https://chat.example"}
        own = {"Origin": client.url}
        async with client.session.options(client.url + "/v1/models", headers=good) as response:
            preflight = Got(response.status, dict(response.headers), "")
        return [
            await client.get("/v1/models", headers=evil),
            await client.get("/v1/models", headers=good),
            await client.get("/v1/models", headers=own),
            preflight,
        ]

    evil, good, own, preflight = asked(ask, cors=("https://chat.example",))

    assert (evil.status, good.status, own.status, preflight.status) == (403, 200, 200, 204)
    assert "Access-Control-Allow-Origin" not in evil.headers
    assert good.headers["Access-Control-Allow-Origin"] == "https://chat.example"
    assert "authorization" in preflight.headers["Access-Control-Allow-Headers"]


def test_a_name_that_was_pointed_at_this_machine_is_not_served() -> None:
    """DNS rebinding: the browser sends the page's own name."""
    got = asked(lambda client: client.get("/v1/models", headers={"Host": "evil.example"}))

    assert got.status == 403


NO_ADDRESSES = [
    {"Host": "["},
    {"Host": "127.0.0.1]"},
    {"Host": "\u2100.com"},
    {"Origin": "http://["},
]


@pytest.mark.parametrize("headers", NO_ADDRESSES, ids=str)
def test_a_name_that_is_no_name_is_refused(headers: dict[str, str]) -> None:
    got = asked(lambda client: client.get("/v1/models", headers=headers))

    assert got.status == 403


def test_a_form_of_a_web_page_is_not_taken_for_a_request() -> None:
    async def ask(client: Client) -> int:
        url = client.url + "/v1/chat/completions"
        async with client.session.post(url, data=json.dumps(ASK)) as response:
            return response.status

    assert asked(ask) == 415


# --- What is written down


def test_the_access_log_has_numbers_and_no_words(caplog: pytest.LogCaptureFixture) -> None:
    completion = Completion(Message.assistant("the answer"), "stop", Usage(7, 2))
    with caplog.at_level(logging.INFO, "antiphon.serve.access"):
        asked(
            lambda client: client.chat(messages=[{"role": "user", "content": "the question"}]),
            completion,
        )

    line = json.loads(caplog.records[-1].message)
    assert line["route"] == "/v1/chat/completions"
    assert (line["status"], line["read"], line["written"], line["stop"]) == (200, 7, 2, "stop")
    assert "question" not in caplog.text
    assert "answer" not in caplog.text


def test_a_fault_of_ours_is_one_line_for_the_client(caplog: pytest.LogCaptureFixture) -> None:
    def fail(conversation: Conversation) -> str:
        raise ZeroDivisionError("a secret of ours")

    got = asked(lambda client: client.chat(), model=ScriptedModel(fail))

    assert got.status == 500
    assert got.json["error"]["message"] == "the server failed"
    assert "secret" not in got.text
    assert "a secret of ours" in caplog.text


def test_what_is_counted_can_be_read_by_prometheus() -> None:
    async def ask(client: Client) -> str:
        await client.chat(stream=True)
        await client.get("/nowhere/<secret>")
        return (await client.get("/metrics")).text

    text = asked(ask, Completion(Message.assistant("3"), "stop", Usage(7, 2, 3)))

    lines = [line for line in text.splitlines() if not line.startswith("#")]
    values = dict(line.rsplit(" ", 1) for line in lines)
    key = 'antiphon_requests_total{method="POST",route="/v1/chat/completions",status="200"}'
    assert values[key] == "1"
    assert values['antiphon_tokens_total{kind="cached"}'] == "3"
    assert "secret" not in text


# --- Settings


def test_settings_come_from_file_environment_and_hand_in_that_order(tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text('port = 1\nmax_tools = 2\nkeys = ["abcdefgh"]\nwait_seconds = 3\n', "utf-8")
    environ = {"ANTIPHON_SERVE_MAX_TOOLS": "3", "ANTIPHON_SERVE_CORS": "https://a.b, https://c.d"}

    made = read_settings(config, environ, {"port": 5, "host": None})

    assert (made.port, made.max_tools, made.keys) == (5, 3, ("abcdefgh",))
    assert (made.cors, made.wait_seconds) == (("https://a.b", "https://c.d"), 3.0)


WRONG: list[dict[str, Any]] = [
    {"host": "0.0.0.0"},
    {"host": "example.com"},
    {"keys": ("short",)},
    {"cors": ("*",)},
    {"port": 70_000},
    {"max_concurrent": 0},
]


@pytest.mark.parametrize("values", WRONG, ids=str)
def test_settings_that_would_harm_are_refused(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        ServeSettings(**values)


@pytest.mark.parametrize("text", ["port = 'x'", "keys = 5", "nothing = 1", "port = true"])
def test_a_file_with_a_wrong_value_is_refused(text: str, tmp_path: Path) -> None:
    config = tmp_path / "serve.toml"
    config.write_text(text, "utf-8")

    with pytest.raises(UsageError):
        read_settings(config, {}, {})


def test_a_port_that_is_taken_is_told() -> None:
    async def go() -> None:
        async with serving(ScriptedModel([])) as client:
            port = int(client.url.rpartition(":")[2])
            settings = ServeSettings(port=port)
            with pytest.raises(UsageError, match="cannot listen"):
                async with Server([Served("m", ScriptedModel([]))], settings=settings).listening():
                    pass

    asyncio.run(go())


def test_a_tool_of_a_request_is_shown_as_it_was_given() -> None:
    model = ScriptedModel(["ok"])

    asked(lambda client: client.chat(tools=[ADD]), model=model)

    assert model.conversations[0].tools[0].to_openai() == ADD
