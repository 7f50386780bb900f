"""The paths of an agent: what `_agents.py` says of them, over HTTP."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING

from antiphon.agent import Run, RunResult
from antiphon.errors import AntiphonError
from antiphon.events import Event
from antiphon.messages import JsonObject
from antiphon.serve._ag_ui import AgUi, speaks_ag_ui
from antiphon.serve._agents import AgentRuns, event_bytes, result_row, run_row, told
from antiphon.serve._app import VISIT, App, json_response
from antiphon.serve._fields import Fields
from antiphon.serve._refusal import Refusal, bad
from antiphon.serve._wire import event

if TYPE_CHECKING:
    from aiohttp import web

_MAX_LISTED = 500


class AgentPaths:
    """Handlers of the paths of one agent."""

    def __init__(self, app: App, runs: AgentRuns) -> None:
        """Set up.

        Args:
            app: Whose slots, limits and metrics hold here, too.
            runs: The agent's runs.
        """
        self._app = app
        self._runs = runs

    def add_to(self, router: "web.UrlDispatcher") -> None:
        """Add the paths."""
        router.add_get("/v1/agent", self._about)
        router.add_get("/v1/agent/runs", self._list)
        router.add_post("/v1/agent/runs", self._begin)
        router.add_get("/v1/agent/runs/{id}", self._show)
        router.add_post("/v1/agent/runs/{id}/resume", self._resume)
        router.add_post("/v1/agent/runs/{id}/cancel", self._cancel)
        if speaks_ag_ui():
            router.add_post("/v1/agent/ag-ui", AgUi(self._app, self._runs).run)

    async def _about(self, request: "web.Request") -> "web.StreamResponse":
        return json_response(self._runs.about())

    async def _list(self, request: "web.Request") -> "web.StreamResponse":
        query = request.query
        limit = query.get("limit", "100")
        if not limit.isdecimal() or not 1 <= int(limit[:6]) <= _MAX_LISTED:
            raise bad(f"limit must be a number from 1 to {_MAX_LISTED}", "limit")
        owner = VISIT.get().owner
        rows = await self._runs.runs(owner, query.get("session", ""), int(limit))
        return json_response({"data": rows})

    async def _show(self, request: "web.Request") -> "web.StreamResponse":
        from aiohttp import web

        record = await self._runs.record(request.match_info["id"], VISIT.get().owner)
        text = await asyncio.to_thread(record.to_json)
        data = text.encode("utf-8", "backslashreplace")
        return web.Response(body=data, headers={"Content-Type": "application/json"})

    async def _cancel(self, request: "web.Request") -> "web.StreamResponse":
        self._runs.cancel(request.match_info["id"], VISIT.get().owner)
        return json_response({"id": request.match_info["id"], "cancelled": True})

    async def _begin(self, request: "web.Request") -> "web.StreamResponse":
        fields = Fields(await self._app.guard.body(request))
        stream = fields.flag("stream")
        async with self._app.slots:
            return await self._answer(request, self._runs.begin(fields, VISIT.get().owner), stream)

    async def _resume(self, request: "web.Request") -> "web.StreamResponse":
        fields = Fields(await self._app.guard.body(request))
        stream = fields.flag("stream")
        async with self._app.slots:
            owner = VISIT.get().owner
            run = await self._runs.resume(request.match_info["id"], fields, owner)
            return await self._answer(request, run, stream)

    async def _answer(self, request: "web.Request", run: Run, stream: bool) -> "web.StreamResponse":
        visit = VISIT.get()
        visit.facts |= {"agent": self._runs.agent.name, "stream": stream, "run": run.id}
        async with aclosing(self._runs.follow(run, visit.owner)) as outputs:
            if stream:
                return await self._stream(request, run, outputs)
            async with self._app.in_time():
                *_, result = [one async for one in outputs if isinstance(one, RunResult)]
        return json_response(self._ended(run, result))

    async def _stream(
        self, request: "web.Request", run: Run, outputs: AsyncGenerator[Event | RunResult, None]
    ) -> "web.StreamResponse":
        is_first = True
        async with self._app.sent(request) as sent:
            try:
                async with self._app.in_time():
                    async for one in outputs:
                        if is_first:
                            await sent.write(event(run_row(run), "run"))
                            is_first = False
                        if isinstance(one, RunResult):
                            await sent.write(event(self._ended(run, one), "result"))
                        else:
                            await sent.write(event_bytes(told(one)))
            except (AntiphonError, Refusal) as error:
                if not sent.is_open:
                    raise
                refusal = error if isinstance(error, Refusal) else self._app.told(error)
                row = {"message": refusal.message, "code": refusal.code}
                await sent.write(event({"error": dict(row)}, "error"))
            return await sent.close()

    def _ended(self, run: Run, result: RunResult) -> JsonObject:
        """What is told of how a run ended; it is counted."""
        if result.error is not None:
            self._app.told(result.error)
        VISIT.get().facts["stop"] = result.stop_reason
        self._app.count_usage(result.usage)
        return result_row(run, result)
