"""A server on the loopback and what asks it: real sockets on both sides."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import aiohttp

from antiphon.models import Model, ScriptedModel
from antiphon.serve import Served, Server, ServeSettings

T = TypeVar("T")

ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
}
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "1 + 2?"}]}


class Client:
    """Asks one server."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def post(self, path: str, body: Any = None, **options: Any) -> "Got":
        """Ask with a JSON body."""
        return await self._ask("POST", path, json=body, **options)

    async def get(self, path: str, **options: Any) -> "Got":
        """Ask without a body."""
        return await self._ask("GET", path, **options)

    async def chat(self, **fields: Any) -> "Got":
        """A chat completion."""
        return await self.post("/v1/chat/completions", ASK | fields)

    async def _ask(self, method: str, path: str, **options: Any) -> "Got":
        async with self.session.request(method, self.url + path, **options) as response:
            return Got(response.status, dict(response.headers), await response.text())


class Got:
    """An answer."""

    def __init__(self, status: int, headers: dict[str, str], text: str) -> None:
        self.status = status
        self.headers = headers
        self.text = text

    @property
    def json(self) -> Any:
        """The body."""
        return json.loads(self.text)

    @property
    def message(self) -> Any:
        """The message of a chat completion."""
        return self.json["choices"][0]["message"]

    @property
    def events(self) -> list[Any]:
        """The data of each server-sent event; ``[DONE]`` as it is."""
        found: list[Any] = []
        for block in self.text.split("\n\n"):
            data = [line[6:] for line in block.split("\n") if line.startswith("data: ")]
            if data:
                found.append(data[0] if data[0] == "[DONE]" else json.loads(data[0]))
        return found


@asynccontextmanager
async def serving(*models: Model | Served | str, **settings: Any) -> AsyncGenerator[Client]:
    """A server of some models; one that is no `Served` is called ``m``."""
    served = [Served("m", m) if not isinstance(m, Served | str) else m for m in models]
    server = Server(served, settings=ServeSettings(port=0, **settings))
    async with server.listening(), aiohttp.ClientSession() as session:
        yield Client(session, server.url)


def asked(
    what: Callable[[Client], Awaitable[T]],
    *answers: Any,
    model: Model | None = None,
    **settings: Any,
) -> T:
    """Ask a server of a scripted model, and stop it."""

    async def go() -> T:
        async with serving(model or ScriptedModel(answers), **settings) as client:
            return await what(client)

    return asyncio.run(go())


def assembled(events: Sequence[Any]) -> dict[str, Any]:
    """A chat message out of its streamed chunks, as OpenAI's own client puts it together."""
    message: dict[str, Any] = {"content": None, "reasoning_content": None}
    calls: list[dict[str, str]] = []
    for event in events:
        choices: list[Any] = [] if event == "[DONE]" else event["choices"]
        for choice in choices:
            delta = choice["delta"]
            for key in ("content", "reasoning_content"):
                if delta.get(key) is not None:
                    message[key] = (message[key] or "") + delta[key]
            for part in delta.get("tool_calls", ()):
                if part["index"] == len(calls):
                    calls.append({"id": part["id"], "name": part["function"]["name"], "text": ""})
                calls[part["index"]]["text"] += part["function"].get("arguments") or ""
            message["finish_reason"] = choice["finish_reason"]
    return message | {"calls": [(c["name"], c["text"]) for c in calls]}


def whole(row: Any) -> dict[str, Any]:
    """A chat completion that came whole, in the shape of `assembled`."""
    choice = row["choices"][0]
    message = choice["message"]
    calls = [c["function"] for c in message.get("tool_calls", ())]
    return {
        "content": message["content"],
        "reasoning_content": message.get("reasoning_content"),
        "finish_reason": choice["finish_reason"],
        "calls": [(c["name"], c["arguments"]) for c in calls],
    }
