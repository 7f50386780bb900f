"""A server on a socket: begins, listens, and ends without breaking what it has begun to answer."""

import asyncio
import logging
import signal
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from antiphon.agent import Agent
from antiphon.errors import MissingExtraError, UsageError
from antiphon.models import Model, load_model
from antiphon.serve._agents import AgentModel, AgentRuns, Runnable
from antiphon.serve._app import App
from antiphon.serve._served import Served, ServedModels
from antiphon.serve._settings import ServeSettings
from antiphon.serve._telemetry import ServerTelemetry
from antiphon.store import SqliteStore, Store

if TYPE_CHECKING:
    from aiohttp import web

_log = logging.getLogger(__name__)

_LAST_SECONDS = 0.5
"""For what is still going on when all answers have ended, or had their time."""


@runtime_checkable
class Loads(Protocol):
    """A model that can be loaded before it is asked."""

    async def load(self) -> None:
        """Load it now.

        Raises:
            ModelError: It cannot be loaded.
        """
        ...


class Server:
    """Models behind an HTTP server."""

    def __init__(
        self,
        models: Sequence[str | Model | Served] = (),
        *,
        settings: ServeSettings | None = None,
        agent: Runnable | None = None,
        store: Store | None = None,
        telemetry: ServerTelemetry | None = None,
    ) -> None:
        """Set up a server; nothing is opened or loaded yet.

        Args:
            models: What answers: specs, opened models, or models with a name of their own.
            settings: Where to listen, who may ask, and how much.
            agent: An agent, or a strategy, whose tools run here; without one the first model is
                one without tools.
            store: Where the agent's runs are kept; in memory without one.
            telemetry: Where OpenTelemetry is told of requests; where the settings ask for it and
                nothing is given here, the process's own providers.

        Raises:
            MissingExtraError: The settings ask for OpenTelemetry, and it is not installed.
            UsageError: There is no model, or two have one name.
            ModelError: A spec names something that is not there.
        """
        self.settings = settings or ServeSettings()
        served = [_served(model) for model in models]
        if agent is not None:
            served.append(Served(agent.name, AgentModel(agent)))
        names = [one.name for one in served]
        twice = next((name for name in names if names.count(name) > 1), None)
        if not served or twice is not None:
            what = "no model" if twice is None else f"two models named {twice!r}"
            raise UsageError(f"a server needs models with names of their own, got {what}")
        aliases = dict.fromkeys(self.settings.aliases, names[0])
        answers = agent or Agent(name="assistant", model=served[0].model)
        self._memory: SqliteStore | None = None
        if store is None:
            store = self._memory = SqliteStore(":memory:")
        runs = AgentRuns(answers, store)
        if telemetry is None and self.settings.telemetry:
            telemetry = ServerTelemetry()
        self.app = App(ServedModels(served, aliases), self.settings, runs, telemetry)
        self.url = ""
        """Where it listens, once it does."""
        self._heads: dict[object, asyncio.TimerHandle] = {}

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator["Server"]:
        """Listen, once; on the way out, answers that have begun are finished first.

        A model in this process is loaded before, so that what is wrong with it is told here.

        Raises:
            UsageError: The address cannot be had.
            ModelError: A model cannot be loaded.
        """
        runner = await self._runner()
        try:
            for one in self.app.models.served.values():
                if isinstance(one.model, Loads):
                    await one.model.load()
            listener = await self._listen(runner)
            try:
                yield self
            finally:
                await self._drain(listener)
        finally:
            await runner.cleanup()
            for timer in self._heads.values():
                timer.cancel()
            await self.app.models.close()
            if self._memory is not None:
                self._memory.close()

    async def run(self, listens: Callable[[], None] = lambda: None) -> None:
        """Listen until SIGINT or SIGTERM.

        Args:
            listens: Called once the server listens.

        Raises:
            UsageError: The address cannot be had.
        """
        loop = asyncio.get_running_loop()
        stopped = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):  # no signals on this platform's loop
                loop.add_signal_handler(number, stopped.set)
        async with self.listening():
            listens()
            await stopped.wait()

    async def _runner(self) -> "web.AppRunner":
        try:
            from aiohttp import web
        except ImportError as error:
            raise MissingExtraError("serving", "serve") from error
        self.app.request_came = self._head_came
        runner = web.AppRunner(
            self.app.application(), handler_cancellation=True, shutdown_timeout=_LAST_SECONDS
        )
        await runner.setup()
        return runner

    async def _listen(self, runner: "web.AppRunner") -> asyncio.Server:
        from antiphon.serve._connection import Connection

        loop = asyncio.get_running_loop()
        server = runner.server
        assert server is not None

        def accept() -> Any:
            protocol = Connection(
                server,
                answering=self.app.unreadable,
                loop=loop,
                access_log=None,
                keepalive_timeout=75.0,
                max_field_size=16384,
                max_line_size=16384,
            )
            self._heads[protocol] = loop.call_later(
                self.settings.head_seconds, self._too_slow, protocol
            )
            return protocol

        host, port = self.settings.host, self.settings.port
        try:
            listener = await loop.create_server(accept, host.strip("[]"), port, backlog=2048)
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections have it of the socket that listens
            for one in listener.sockets:
                milliseconds = int(self.settings.send_seconds * 1000)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        bound = listener.sockets[0].getsockname()
        shown = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
        self.url = f"http://{shown}:{bound[1]}"
        return listener

    def _too_slow(self, protocol: Any) -> None:
        """No request has come on a connection in the time that it has for one."""
        self._heads.pop(protocol, None)
        if protocol.transport is not None:
            protocol.transport.abort()

    def _head_came(self, connection: object) -> None:
        timer = self._heads.pop(connection, None)
        if timer is not None:
            timer.cancel()

    async def _drain(self, listener: asyncio.Server) -> None:
        self.app.guard.is_draining = True
        listener.close()
        try:
            async with asyncio.timeout(self.settings.drain_seconds):
                await self.app.slots.idle()
        except TimeoutError:
            _log.warning("%d answers were broken off", self.app.metrics.in_flight)


def _served(model: str | Model | Served) -> Served:
    if isinstance(model, Served):
        return model
    opened = load_model(model)
    raw = load_model(plain_spec(model)) if isinstance(model, str) else None
    return Served(name_of(opened.spec), opened, raw)


def name_of(spec: str) -> str:
    """What clients call the model of a spec.

    >>> [name_of(s) for s in ("local", "hf/Qwen/Qwen3-8B", "http://h/v1#a/b?format=qwen3")]
    ['local', 'Qwen/Qwen3-8B', 'a/b']
    """
    head = spec.partition("?")[0]
    if "://" in head:
        return head.rpartition("#")[2]
    kind, _, name = head.partition("/")
    return Path(name).name if kind in ("gguf", "script") else name or kind


def plain_spec(spec: str) -> str:
    """A spec with the format ``plain`` in place of its own.

    >>> plain_spec("local?format=react_en&frame=smollm2&n_ctx=512")
    'local?format=plain&n_ctx=512'
    """
    head, _, query = spec.partition("?")
    kept = [
        part
        for part in query.split("&")
        if part.partition("=")[0] in ("n_ctx", "n_threads", "lora")
    ]
    return f"{head}?{'&'.join(['format=plain', *kept])}"
