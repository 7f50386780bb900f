"""The web application: which path is served by what, and how an answer goes out.

A handler reads an `Ask`, holds a slot, and either folds the model's pieces or sends them as they
come.  Whatever ends it (the client leaves, the model breaks, the time is over) closes the model's
stream, so that nothing is written that nobody reads.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, aclosing, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from antiphon.errors import AntiphonError, ModelError
from antiphon.messages import Completion, JsonObject, JsonValue, Usage, json_bytes
from antiphon.serve._agents import AgentRuns
from antiphon.serve._answer import Answer, End, Piece, Restart
from antiphon.serve._ask import Ask, Limits
from antiphon.serve._chat import ChatServing
from antiphon.serve._completions import CompletionsServing
from antiphon.serve._guard import Guard
from antiphon.serve._messages import MessagesServing, anthropic_error
from antiphon.serve._metrics import CONTENT_TYPE, Metrics
from antiphon.serve._openai import openai_error
from antiphon.serve._refusal import Refusal, refusal_of
from antiphon.serve._responses import KeptResponses, ResponsesServing
from antiphon.serve._sent import Sent
from antiphon.serve._served import Served, ServedModels, side_by_side, whole
from antiphon.serve._settings import ServeSettings
from antiphon.serve._slots import Slots
from antiphon.serve._telemetry import ServerTelemetry

if TYPE_CHECKING:
    from aiohttp import web

    from antiphon.serve._telemetry import Ended

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Visit:
    """What is known of the request that is being answered."""

    id: str
    """What it is called in logs and in the answer's head."""
    owner: str = ""
    """Whose key it came with."""
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    """What its line of the access log says besides: names of ours, and numbers."""


VISIT: ContextVar[Visit] = ContextVar("antiphon_visit")


class StreamWriter(Protocol):
    """Writes one streamed answer in a dialect."""

    def begin(self) -> bytes:
        """What is sent before the first piece."""
        ...

    def piece(self, piece: Piece, choice: int = 0) -> bytes:
        """What is sent for a piece."""
        ...

    def end(self) -> bytes:
        """What is sent behind the last piece."""
        ...

    def error(self, refusal: Refusal) -> bytes:
        """What is sent where the answer breaks off."""
        ...


class Serving(Protocol):
    """A dialect, as a server speaks it."""

    def read(self, row: dict[str, Any], limits: Limits) -> Ask:
        """What a request asks.

        Raises:
            Refusal: It cannot be meant as it is written.
        """
        ...

    def whole(self, ask: Ask, answers: Sequence[Answer]) -> JsonObject:
        """The body of an answer that is sent whole."""
        ...

    def stream(self, ask: Ask) -> StreamWriter:
        """What writes a streamed answer."""
        ...

    def error(self, refusal: Refusal) -> JsonObject:
        """The body of an error."""
        ...


class App:
    """What a server does with requests; `application` is what aiohttp runs."""

    def __init__(
        self,
        models: ServedModels,
        settings: ServeSettings,
        runs: AgentRuns | None = None,
        telemetry: ServerTelemetry | None = None,
    ) -> None:
        """Set up.

        Args:
            models: What answers.
            settings: Limits, keys and manners.
            runs: The agent that answers, where one is served.
            telemetry: Where requests are told of, besides the log and the metrics.
        """
        self._telemetry = telemetry
        self.runs = runs
        self.models = models
        self.settings = settings
        self.metrics = Metrics()
        self.guard = Guard(settings, self.metrics)
        self.slots = Slots(
            settings.max_concurrent,
            max_waiting=settings.max_waiting,
            wait_seconds=settings.wait_seconds,
            metrics=self.metrics,
        )
        self.limits = Limits(tools=settings.max_tools)
        self.request_came: Callable[[object], None] = lambda connection: None
        """Called with its connection as soon as the head of a request has come."""
        self._kept = KeptResponses(settings.max_responses)
        self._begun = int(time.time())

    def application(self) -> "web.Application":
        """The application."""
        from aiohttp import web

        app = web.Application(
            middlewares=[self._observed], client_max_size=self.settings.max_body_bytes
        )
        app.on_response_prepare.append(_name_server)
        app.router.add_get("/healthz", self._health)
        app.router.add_get("/readyz", self._ready)
        app.router.add_get("/metrics", self._metrics_page)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/v1/models/{model:.+}", self._show_model)
        post = app.router.add_post
        post("/v1/chat/completions", self._completing(ChatServing))
        post("/v1/completions", self._completing(CompletionsServing, Served.raw_pieces))
        post("/v1/messages", self._completing(MessagesServing))
        post("/v1/messages/count_tokens", self._count_tokens)
        post("/v1/responses", self._completing(self._responses))
        app.router.add_get("/v1/responses/{id}", self._show_response)
        app.router.add_delete("/v1/responses/{id}", self._drop_response)
        if self.runs is not None:
            from antiphon.serve._agent_paths import AgentPaths
            from antiphon.serve._pages import Pages

            AgentPaths(self, self.runs).add_to(app.router)
            Pages(self, self.runs).add_to(app.router)
        return app

    def _responses(self) -> ResponsesServing:
        return ResponsesServing(self._kept, VISIT.get().owner)

    # --- Every request

    @property
    def _observed(self) -> Any:
        from aiohttp import web

        @web.middleware
        async def observed(request: web.Request, handler: "Handler") -> web.StreamResponse:
            began = time.perf_counter()
            self.request_came(request.protocol)
            resource = request.match_info.route.resource
            route = resource.canonical if resource is not None else "(none)"
            visit = Visit(f"req_{secrets.token_hex(8)}")
            VISIT.set(visit)
            status = 499  # as nginx says it: the client left
            with self._span(request, route) as ended:
                try:
                    response = await self._answered(request, handler, route)
                    status = response.status
                    return response
                finally:
                    facts = {"id": visit.id, **visit.facts}
                    self.guard.finished(request, route, status, began, **facts)
                    if ended is not None:
                        ended(status, facts)

        return observed

    def _span(self, request: "web.Request", route: str) -> "AbstractContextManager[Ended | None]":
        if self._telemetry is None:
            return nullcontext()
        return self._telemetry.request(request.method, route, request.headers)

    async def _answered(
        self, request: "web.Request", handler: "Handler", route: str
    ) -> "web.StreamResponse":
        from aiohttp import web

        if request.method == "OPTIONS":
            return self.guard.preflight(request)
        error_of = self._error_of(route)
        try:
            VISIT.get().owner = self.guard.check(request, is_open=route in _OPEN)
            if self.guard.is_draining and route not in _OPEN:
                raise Refusal(503, "the server is going down; ask another", retry_after=1.0)
            response = await handler(request)
        except Refusal as refusal:
            return self._refused(request, refusal, error_of)
        except web.HTTPException as error:  # the router's: no such path, no such method
            text = "there is nothing at this path" if error.status == 404 else error.reason.lower()
            return self._refused(request, Refusal(error.status, text), error_of)
        except AntiphonError as error:
            return self._refused(request, self.told(error), error_of)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:  # a fault of ours: the client learns that there is one, the log which
            _log.exception("request %s to %s failed", VISIT.get().id, route)
            return self._refused(
                request, Refusal(500, "the server failed", "internal_error"), error_of
            )
        if not response.prepared:
            response.headers["x-request-id"] = VISIT.get().id
            response.headers.update(self.guard.cors_headers(request))
        return response

    def unreadable(
        self, request: "web.BaseRequest", status: int, error: BaseException | None
    ) -> "web.StreamResponse":
        """The answer to what is no request, or failed before one was read."""
        if status < 500:
            refusal = Refusal(status, "what was sent is no HTTP request that can be read")
        else:
            _log.error("a connection failed", exc_info=error)
            refusal = Refusal(status, "the server failed", "internal_error")
        self.guard.finished(request, "(none)", status, time.perf_counter())
        response = json_response(openai_error(refusal), status=status)
        response.headers["Server"] = _NAME
        response.force_close()
        return response

    def told(self, error: AntiphonError) -> Refusal:
        """What a client is told of an error; the rest of it goes to the log."""
        refusal = refusal_of(error)
        if isinstance(error, ModelError):
            _log.warning("request %s: %s", VISIT.get().id, error)
        elif refusal.status >= 500:
            _log.error("request %s: %s", VISIT.get().id, error)
        return refusal

    def _error_of(self, route: str) -> Callable[[Refusal], JsonObject]:
        if not route.startswith("/v1/messages"):
            return openai_error
        return lambda refusal: anthropic_error(refusal, VISIT.get().id)

    def _refused(
        self,
        request: "web.Request",
        refusal: Refusal,
        error_of: Callable[[Refusal], JsonObject],
    ) -> "web.Response":
        response = json_response(error_of(refusal), status=refusal.status)
        response.headers["x-request-id"] = VISIT.get().id
        response.headers.update(self.guard.cors_headers(request))
        if refusal.retry_after is not None:
            response.headers["Retry-After"] = str(max(1, round(refusal.retry_after)))
        if not request.content.is_eof():
            response.force_close()  # what is left of the body is not read
        return response

    # --- Small answers

    async def _health(self, request: "web.Request") -> "web.StreamResponse":
        return json_response({"status": "ok"})

    async def _ready(self, request: "web.Request") -> "web.StreamResponse":
        ready = not self.guard.is_draining
        return json_response(
            {"status": "ready" if ready else "draining"}, status=200 if ready else 503
        )

    async def _metrics_page(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        return web.Response(
            body=self.metrics.text().encode(), headers={"Content-Type": CONTENT_TYPE}
        )

    async def _list_models(self, request: "web.Request") -> "web.StreamResponse":
        rows: list[JsonValue] = [self._model_row(name) for name in self.models.served]
        return json_response({"object": "list", "data": rows})

    async def _show_model(self, request: "web.Request") -> "web.StreamResponse":
        return json_response(self._model_row(self.models[request.match_info["model"]].name))

    def _model_row(self, name: str) -> JsonObject:
        return {"id": name, "object": "model", "created": self._begun, "owned_by": "antiphon"}

    async def _show_response(self, request: "web.Request") -> "web.StreamResponse":
        id = request.match_info["id"]
        return json_response(self._kept.get(id, VISIT.get().owner).row)

    async def _drop_response(self, request: "web.Request") -> "web.StreamResponse":
        id = request.match_info["id"]
        self._kept.drop(id, VISIT.get().owner)
        return json_response({"id": id, "object": "response.deleted", "deleted": True})

    async def _count_tokens(self, request: "web.Request") -> "web.StreamResponse":
        ask = MessagesServing().shown(await self.guard.body(request), self.limits)
        async with self.slots, self.in_time():
            n_tokens = await self.models[ask.model].count_tokens(ask)
        return json_response({"input_tokens": n_tokens})

    # --- Completions

    def _completing(
        self,
        make: Callable[[], Serving],
        pieces_of: Callable[[Served, Ask, int], AsyncGenerator[Piece, None]] = Served.pieces,
    ) -> "Handler":
        async def complete(request: "web.Request") -> "web.StreamResponse":
            serving = make()
            row = await self.guard.body(request)
            ask = serving.read(row, self.limits)
            served = self.models[ask.model]
            VISIT.get().facts |= {"model": served.name, "stream": ask.stream}
            async with self.slots:
                streams = [pieces_of(served, ask, index) for index in range(ask.n)]
                if ask.stream:
                    return await self.send(request, serving.stream(ask), side_by_side(streams))
                async with self.in_time():
                    answers = await self._all(streams)
            for answer in answers:
                self.count(answer.completion)
            return json_response(serving.whole(ask, answers))

        return complete

    async def _all(self, streams: "list[AsyncGenerator[Piece, None]]") -> list[Answer]:
        if len(streams) == 1:
            return [await whole(streams[0])]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(whole(stream)) for stream in streams]
        except* AntiphonError as errors:
            raise errors.exceptions[0] from errors
        return [task.result() for task in tasks]

    def in_time(self) -> "InTime":
        """The time that a request may take."""
        return InTime(self.settings.request_seconds)

    async def send(
        self,
        request: "web.Request",
        writer: StreamWriter,
        pieces: AsyncGenerator[tuple[int, Piece], None],
    ) -> "web.StreamResponse":
        """Send an answer as it is written.

        Nothing is sent before the first piece, so that a request that fails has its status.

        Raises:
            AntiphonError: There is no answer, and nothing was sent.
        """
        begin = writer.begin
        async with aclosing(pieces), self.sent(request) as sent:
            try:
                async with self.in_time():
                    async for choice, piece in pieces:
                        await sent.write(begin())
                        begin = bytes
                        if isinstance(piece, Restart):  # what was sent cannot be taken back
                            raise _broke_off()
                        if isinstance(piece, End):
                            self.count(piece.completion)
                        await sent.write(writer.piece(piece, choice))
                    await sent.write(writer.end())
            except (AntiphonError, Refusal) as error:
                if not sent.is_open:
                    raise
                refusal = error if isinstance(error, Refusal) else self.told(error)
                self.metrics.broke("timeout" if refusal.status == 504 else "upstream")
                await sent.write(begin())
                await sent.write(writer.error(refusal))
            except (asyncio.CancelledError, ConnectionError):
                self.metrics.broke("client_gone")
                raise
            return await sent.close()

    def sent(self, request: "web.Request") -> Sent:
        """A stream of server-sent events that answers a request."""
        began = time.perf_counter()

        async def opening() -> "web.StreamResponse":
            response = await self._opened(request)
            self.metrics.first(_route(request), time.perf_counter() - began)
            return response

        return Sent(opening, ping_seconds=self.settings.ping_seconds)

    async def _opened(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        response = web.StreamResponse(
            headers={
                "Content-Type": "text/event-stream; charset=utf-8",
                "Cache-Control": "no-cache",
                "X-Accel-Buffering": "no",
                "x-request-id": VISIT.get().id,
                **self.guard.cors_headers(request),
            }
        )
        await response.prepare(request)
        return response

    def count(self, completion: Completion) -> None:
        """Count what a completion cost."""
        self.count_usage(completion.usage)
        VISIT.get().facts["stop"] = completion.stop_reason

    def count_usage(self, usage: Usage) -> None:
        """Count tokens."""
        self.metrics.tokens(
            read=usage.input_tokens, cached=usage.cached_tokens, written=usage.output_tokens
        )
        facts = VISIT.get().facts
        facts["read"] = facts.get("read", 0) + usage.input_tokens
        facts["written"] = facts.get("written", 0) + usage.output_tokens


class InTime:
    """So long an ``async with`` may take; a `Refusal` where it takes longer."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError as late:
            raise Refusal(504, "the answer took too long", "request_timeout") from late


_NAME = "antiphon"


async def _name_server(request: "web.Request", response: "web.StreamResponse") -> None:
    """Nobody needs to know which versions serve."""
    response.headers["Server"] = _NAME


_OPEN = frozenset({"/", "/login", "/healthz", "/readyz"})


def _route(request: "web.Request") -> str:
    resource = request.match_info.route.resource
    return "(none)" if resource is None else resource.canonical


def _broke_off() -> Refusal:
    return Refusal(
        502, "the model behind this server broke off in mid-answer; ask again", "upstream_error"
    )


def json_response(value: JsonValue, *, status: int = 200) -> "web.Response":
    """A small JSON answer."""
    from aiohttp import web

    return web.Response(
        body=json_bytes(value), status=status, headers={"Content-Type": "application/json"}
    )
