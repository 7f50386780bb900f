"""Who may ask, what a request may bring, and what is written down about it.

Everything here happens before a dialect sees a request, or after it has answered.  Nothing of what
a client or a model wrote is logged: a line holds the route's own pattern, a status and numbers.
"""

import asyncio
import hashlib
import hmac
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from antiphon.serve._fields import read_object
from antiphon.serve._metrics import Metrics
from antiphon.serve._refusal import Refusal, bad
from antiphon.serve._settings import ServeSettings, is_loopback

if TYPE_CHECKING:
    from aiohttp import web

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

access_log = logging.getLogger("antiphon.serve.access")
COOKIE = "antiphon_session"
OWNER = "key-"
"""What the name of a key's owner begins with."""
_MAX_SESSIONS = 4096


class Guard:
    """Looks at every request once."""

    def __init__(self, settings: ServeSettings, metrics: Metrics) -> None:
        self._settings = settings
        self._metrics = metrics
        self._sessions: dict[str, str] = {}
        self._origins = frozenset(settings.cors)
        self.is_draining = False
        """Whether the server is on its way down."""

    # --- Who

    def check(self, request: "web.Request", *, is_open: bool) -> str:
        """Let a request in, or not.

        Args:
            request: The request.
            is_open: Whether it needs no key.

        Returns:
            Whose it is: a name for the key, which is not the key.

        Raises:
            Refusal: It may not come in.
        """
        self._check_origin(request)
        if not self._settings.keys:
            if not _is_own(request.headers.get("Host", "")):
                raise Refusal(403, "this server is for this machine alone; set a key to open it")
            return ""
        owner = self._owner(request)
        if owner is None and not is_open:
            raise Refusal(401, "the key is missing or wrong", "invalid_api_key")
        return owner or ""

    def log_in(self, key: str) -> str | None:
        """A session for the pages, against a key; ``None`` where the key is wrong."""
        owner = self._owner_of_key(key)
        if owner is None:
            return None
        if len(self._sessions) >= _MAX_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        session = secrets.token_urlsafe(32)
        self._sessions[session] = owner
        return session

    def _owner(self, request: "web.Request") -> str | None:
        header = request.headers.get("Authorization", "")
        scheme, _, key = header.partition(" ")
        if scheme.lower() == "bearer" and key:
            return self._owner_of_key(key.strip())
        key = request.headers.get("x-api-key", "")
        if key:
            return self._owner_of_key(key)
        return self._sessions.get(request.cookies.get(COOKIE, ""))

    def _owner_of_key(self, key: str) -> str | None:
        found = None
        for known in self._settings.keys:  # all of them: no time tells which
            if hmac.compare_digest(key.encode("utf-8", "replace"), known.encode()):
                found = f"{OWNER}{hashlib.sha256(known.encode()).hexdigest()[:16]}"
        return found

    def _check_origin(self, request: "web.Request") -> None:
        """A web page of another origin may not ask, unless it is among those that may."""
        origin = request.headers.get("Origin")
        if origin is None or origin in self._origins:
            return
        parts = _split(origin)
        if parts and parts.netloc.lower() == request.headers.get("Host", "").lower():
            return
        raise Refusal(403, "pages of this origin may not ask this server", "origin_not_allowed")

    # --- CORS

    def cors_headers(self, request: "web.Request") -> dict[str, str]:
        """What lets a page of an allowed origin read the answer."""
        origin = request.headers.get("Origin", "")
        if origin not in self._origins:
            return {}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": "x-request-id, retry-after",
            "Vary": "Origin",
        }

    def preflight(self, request: "web.Request") -> "web.Response":
        """The answer to a browser that asks whether a page may ask."""
        from aiohttp import web

        headers = self.cors_headers(request)
        if headers:
            headers["Access-Control-Allow-Methods"] = "GET, POST, DELETE"
            headers["Access-Control-Allow-Headers"] = (
                "authorization, content-type, x-api-key, anthropic-version, anthropic-beta"
            )
            headers["Access-Control-Max-Age"] = "600"
        return web.Response(status=204 if headers else 403, headers=headers)

    # --- What

    async def body(self, request: "web.Request") -> dict[str, Any]:
        """The JSON object that a request brings.

        Raises:
            Refusal: It is too large, too slow, or none.
        """
        if request.content_type != "application/json":
            raise Refusal(415, "the body must be JSON: send Content-Type: application/json")
        limit = self._settings.max_body_bytes
        if request.content_length is not None and request.content_length > limit:
            raise _too_large(limit)
        content = request.content
        if content.is_eof() and content.exception() is None:  # all of it came with the head
            body = content.read_nowait()
            if len(body) > limit:
                raise _too_large(limit)
            return read_object(body)
        return read_object(await self._awaited_body(request, limit))

    async def _awaited_body(self, request: "web.Request", limit: int) -> bytes:
        from aiohttp import web

        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                async for chunk in request.content.iter_any():
                    parts.append(chunk)
                    size += len(chunk)
                    if size > limit:
                        raise _too_large(limit)
        except TimeoutError as error:
            raise Refusal(408, "the body did not come in time", "request_timeout") from error
        except web.RequestPayloadError as error:
            raise bad("the body cannot be read: it is not encoded as its head says") from error
        return b"".join(parts)

    # --- The record

    def finished(
        self, request: "web.BaseRequest", route: str, status: int, began: float, **more: Any
    ) -> None:
        """Count a request and write its line."""
        seconds = time.perf_counter() - began
        self._metrics.request(request.method, route, status, seconds)
        if access_log.isEnabledFor(logging.INFO):
            line = {
                "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                "method": request.method,
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 2),
                **more,
            }
            access_log.info("%s", json.dumps(line, separators=(",", ":")))


@lru_cache(64)
def _is_own(host: str) -> bool:
    """Whether a ``Host`` is a name of this machine itself: without a key no other is served.

    A web page can point a name of its own at 127.0.0.1; the browser then sends that name.
    """
    parts = _split(f"//{host}")
    return parts is not None and is_loopback(parts.hostname or "")


def _split(address: str) -> SplitResult | None:
    """The parts of an address; ``None`` where it is none."""
    try:
        return urlsplit(address)
    except ValueError:
        return None


def _too_large(limit: int) -> Refusal:
    return Refusal(413, f"the body is larger than {limit:,} bytes", "request_too_large")
