"""An HTTP server on the loopback that answers by script, faults included.

It is a real server on a real socket: what is tested is the client's bytes, not a double of it.
"""

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias

REASONS = {
    200: "OK",
    206: "Partial Content",
    401: "Unauthorized",
    404: "Not Found",
    429: "Slow Down",
}


@dataclass(frozen=True)
class Request:
    """What a client sent."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read as strict UTF-8 JSON."""
        return json.loads(self.body.decode("utf-8", "strict"))


@dataclass(frozen=True)
class Reply:
    """What the server does with one request."""

    chunks: Iterable[bytes] = ()
    status: int = 200
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict[str, str])
    end: Literal["whole", "cut", "reset", "hang", "mute"] = "whole"
    """``cut``: close before the end was marked; ``reset``: abort; ``hang``: say nothing more;
    ``mute``: say nothing at all."""
    length: int | None = None
    """Promise this many bytes instead of chunked transfer."""


Script: TypeAlias = "list[Reply] | Callable[[Request], Reply]"


class Loopback:
    """``async with Loopback([reply, ...]) as server``: then ask `server.url`."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[Request] = []
        self.url = ""
        self.closed = asyncio.Event()
        """Set when a client has closed a connection that was kept waiting."""
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            while await self._one(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.closed.set()
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, path, _ = head[0].split(" ")
        pairs = (line.split(":", 1) for line in head[1:] if line)
        headers = {name.lower(): value.strip() for name, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        request = Request(method, path, headers, body)
        self.requests.append(request)
        reply = self._reply(request)
        if reply.end == "mute":
            await self._wait_for_close(reader)
            return False
        lines = [f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'Status')}"]
        lines += [f"Content-Type: {reply.kind}", *(f"{k}: {v}" for k, v in reply.headers.items())]
        chunked = reply.length is None
        lines.append("Transfer-Encoding: chunked" if chunked else f"Content-Length: {reply.length}")
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))
        for chunk in reply.chunks:
            writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunked else chunk)
            await writer.drain()
            await asyncio.sleep(0)
        if reply.end == "whole":
            writer.write(b"0\r\n\r\n" if chunked else b"")
            return True
        await writer.drain()
        if reply.end == "reset":
            writer.transport.abort()
        elif reply.end == "hang":
            await self._wait_for_close(reader)
        return False

    async def _wait_for_close(self, reader: asyncio.StreamReader) -> None:
        await reader.read()
        self.closed.set()

    def _reply(self, request: Request) -> Reply:
        if callable(self._script):
            return self._script(request)
        n = len(self.requests)
        assert n <= len(self._script), f"request {n} was not expected: {request.path}"
        return self._script[n - 1]


def sse(*events: Any, done: bool = True) -> list[bytes]:
    """Server-sent events of JSON values; bytes go out as they are."""
    out = [
        event if isinstance(event, bytes) else b"data: " + json.dumps(event).encode() + b"\n\n"
        for event in events
    ]
    return [*out, b"data: [DONE]\n\n"] if done else out


def stream(*events: Any, done: bool = True, **kwargs: Any) -> Reply:
    """A streamed reply."""
    return Reply(sse(*events, done=done), kind="text/event-stream", **kwargs)


def body(value: Any, status: int = 200, **kwargs: Any) -> Reply:
    """A reply with one JSON body."""
    return Reply([json.dumps(value).encode()], status=status, **kwargs)


def chat(delta: dict[str, Any] | None = None, finish: str | None = None, **more: Any) -> Any:
    """One chunk of a streamed chat completion."""
    return {"choices": [{"index": 0, "delta": delta or {}, "finish_reason": finish}], **more}


def call(arguments: str | None = None, **fields: Any) -> dict[str, Any]:
    """A delta with one piece of a call; ``name`` goes into the function."""
    function = {"name": fields.pop("name")} if "name" in fields else {}
    if arguments is not None:
        function["arguments"] = arguments
    return {"tool_calls": [{**fields, "function": function}]}
