"""The pages of a server: a chat with its agent, and the record of a run.

A page holds no data that its reader may not see: the chat page is the same for everybody and asks
for everything else, and the record of a run is its owner's alone.  A browser cannot send a key with
a link, so whoever gives the key once gets a session in a cookie that no script and no other site
can use.
"""

import asyncio
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from antiphon.serve._agents import AgentRuns
from antiphon.serve._app import VISIT, App, json_response
from antiphon.serve._fields import Fields
from antiphon.serve._guard import COOKIE
from antiphon.serve._refusal import Refusal
from antiphon.viewer import Record, render_document, render_page

if TYPE_CHECKING:
    from aiohttp import web

_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


class Pages:
    """Handlers of the pages."""

    def __init__(self, app: App, runs: AgentRuns) -> None:
        """Set up.

        Args:
            app: Whose guard holds here, too.
            runs: The agent that the chat talks with.
        """
        self._app = app
        self._runs = runs

    def add_to(self, router: "web.UrlDispatcher") -> None:
        """Add the paths."""
        router.add_get("/", self._chat)
        router.add_post("/login", self._log_in)
        router.add_get("/v1/agent/runs/{id}/page", self._run)

    async def _chat(self, request: "web.Request") -> "web.StreamResponse":
        return page_response(chat_page())

    async def _log_in(self, request: "web.Request") -> "web.StreamResponse":
        key = Fields(await self._app.guard.body(request)).text("key")
        session = self._app.guard.log_in(key)
        if session is None:
            raise Refusal(401, "the key is wrong", "invalid_api_key")
        response = json_response({"ok": True})
        response.set_cookie(
            COOKIE,
            session,
            httponly=True,
            samesite="Strict",
            secure=request.headers.get("X-Forwarded-Proto", request.scheme) == "https",
            path="/",
        )
        return response

    async def _run(self, request: "web.Request") -> "web.StreamResponse":
        id = request.match_info["id"]
        record = await self._runs.record(id, VISIT.get().owner)
        page = await asyncio.to_thread(render_page, [Record(record, id)], title=f"run {id[:12]}")
        return page_response(page)


def page_response(page: str) -> "web.Response":
    """A page, which no other page may frame and no cache may keep."""
    from aiohttp import web

    return web.Response(body=page.encode("utf-8", "replace"), headers=_HEADERS)


@cache
def chat_page() -> str:
    """The chat page: the same for everybody."""
    here = files("antiphon.serve")
    return render_document(
        "{}",
        title="Antiphon chat",
        scripts=("parts.js", here.joinpath("chat.js").read_text("utf-8")),
        styles=("page.css", here.joinpath("chat.css").read_text("utf-8")),
        asks_its_server=True,
    )
