"""The one place that speaks HTTP: send a request, read the answer's bytes as they arrive.

It knows no API and parses no body.  Everything that can break below a complete answer is a
`ModelConnectionError` in one line.  The library underneath is aiohttp; why, with numbers, stands in
docs/why/dependencies.md.

A client may be used from several event loops, one after the other or side by side (``run_sync``
makes a loop a call): connections belong to the loop that opened them and are closed when it ends.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from antiphon.errors import ModelConnectionError, UsageError, clip

if TYPE_CHECKING:
    import aiohttp

_MAX_ERROR_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long each wait may last, in seconds."""

    connect: float = 10.0
    """Until a connection stands."""
    read: float = 300.0
    """Between two pieces of an answer; the first comes after the prompt was computed."""
    total: float = 3600.0
    """For one whole request."""


class Response:
    """An answer whose head has arrived: ``async with`` it, and iterate for its body.

    The body comes piece by piece; where it breaks off, a `ModelConnectionError` is raised.
    """

    def __init__(self, answer: "aiohttp.ClientResponse", timeouts: Timeouts) -> None:
        self._answer = answer
        self._timeouts = timeouts
        self.status = answer.status
        """The HTTP status."""
        self.headers: Mapping[str, str] = answer.headers
        """The headers; names in any case."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        self._answer.release()
        await self._answer.wait_for_close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        import aiohttp

        try:
            chunk = await self._answer.content.readany()
        except TimeoutError as error:
            raise ModelConnectionError(
                f"{_origin(str(self._answer.url))} fell silent in mid-answer "
                f"for more than {self._timeouts.read:g} s"
            ) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ModelConnectionError(
                f"the connection to {_origin(str(self._answer.url))} broke in mid-answer "
                f"({_reason(error)})"
            ) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    @property
    def content_type(self) -> str:
        """The media type in lower case, without its parameters."""
        return self.headers.get("Content-Type", "").split(";")[0].strip().lower()

    async def read(self, limit_bytes: int = _MAX_ERROR_BYTES) -> bytes:
        """The rest of the body, cut after `limit_bytes`.

        Raises:
            ModelConnectionError: The body broke off.
        """
        parts: list[bytes] = []
        size = 0
        async for chunk in self:
            parts.append(chunk[: limit_bytes - size])
            size += len(chunk)
            if size >= limit_bytes:
                break
        return b"".join(parts)


class HttpClient:
    """Keeps connections for one model; opens nothing until asked."""

    def __init__(self, timeouts: Timeouts | None = None) -> None:
        """Set up a client.

        Args:
            timeouts: How long each wait may last.
        """
        self.timeouts = timeouts or Timeouts()
        self._silent = replace(self.timeouts, read=self.timeouts.total)
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()
        self._proxies: dict[str, str | None] = {}

    async def request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        silent: bool = False,
    ) -> Response:
        """Send a request and give the answer while it arrives: ``async with await`` it.

        Args:
            method: ``GET`` or ``POST``.
            url: Where to.
            headers: All headers.
            body: The body.
            silent: Whether the server may say nothing until all of the answer is there.

        Raises:
            ModelConnectionError: There is no answer, or not within the time.
            UsageError: The URL is none.
        """
        import aiohttp

        pool = await self._pool()
        timeouts = self._silent if silent else self.timeouts
        try:
            answer = await pool.session.request(
                method,
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy(url),
                timeout=pool.silent if silent else pool.session.timeout,
            )
        except aiohttp.InvalidURL as error:
            raise UsageError(f"not a URL: {clip(url)}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ModelConnectionError(_connect_message(error, _origin(url), timeouts)) from error
        return Response(answer, timeouts)

    async def close(self) -> None:
        """Close the connections of the running loop. May be called twice."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.keeper.aclose()

    async def _pool(self) -> "_Pool":
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            keeper = _open_session(self.timeouts)
            # The generator waits for nothing before it yields, so no other task runs here.
            session = await anext(keeper)
            pool = self._pools[loop] = _Pool(session, _limits(self._silent), keeper)
        return pool

    def _proxy(self, url: str) -> str | None:
        parts = urlsplit(url)
        if parts.netloc not in self._proxies:
            from urllib.request import getproxies, proxy_bypass

            bypass = proxy_bypass(parts.hostname or "")
            self._proxies[parts.netloc] = None if bypass else getproxies().get(parts.scheme)
        return self._proxies[parts.netloc]


@dataclass(frozen=True, slots=True)
class _Pool:
    """The session of one loop, what a silent answer may take, and the generator whose end closes
    it."""

    session: "aiohttp.ClientSession"
    silent: "aiohttp.ClientTimeout"
    keeper: "AsyncGenerator[aiohttp.ClientSession, None]"


async def _open_session(timeouts: Timeouts) -> "AsyncGenerator[aiohttp.ClientSession, None]":
    """Hold a session until closed: by `HttpClient.close`, or by the loop, which closes its
    generators."""
    import aiohttp

    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=_limits(timeouts),
        headers={"Accept-Encoding": "identity", "User-Agent": "antiphon"},
    )
    try:
        yield session
    finally:
        await session.close()


def _limits(timeouts: Timeouts) -> "aiohttp.ClientTimeout":
    import aiohttp

    return aiohttp.ClientTimeout(
        total=timeouts.total, sock_connect=timeouts.connect, sock_read=timeouts.read
    )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}" + (f":{parts.port}" if parts.port else "")


def _connect_message(error: BaseException, origin: str, timeouts: Timeouts) -> str:
    import aiohttp

    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return f"no connection to {origin} within {timeouts.connect:g} s; is the address right?"
    if isinstance(error, TimeoutError):
        return f"{origin} did not answer within {timeouts.read:g} s"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {origin} ({_reason(error)}); is the server running?"
    return f"{origin} closed the connection before it answered ({_reason(error)})"


def _reason(error: BaseException) -> str:
    inner: object = getattr(error, "os_error", None) or error
    text = getattr(inner, "strerror", None) or str(inner) or type(error).__name__
    return " ".join(str(text).split())[:160]
