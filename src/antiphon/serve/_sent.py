"""A stream of server-sent events on its way out.

What is written between two waits goes out together: a model's server often sends many tokens at
once, and one send costs more than all that is done with a token.  It knows no dialect.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from aiohttp import web

_ENOUGH_BYTES = 1 << 16
_ALIVE = b": still here\n\n"


class Sent:
    """Sends what is written to it; opens with the first bytes, or after a long silence.

    ``async with`` it: without `close`, what was not sent yet is dropped on the way out.
    """

    def __init__(
        self, opening: Callable[[], "Awaitable[web.StreamResponse]"], *, ping_seconds: float
    ) -> None:
        """Set up a stream.

        Args:
            opening: Opens it.
            ping_seconds: After how long a silence it says that it is alive: proxies hang up on
                those that do not.
        """
        self._opening = opening
        self._ping_seconds = ping_seconds
        self._response: web.StreamResponse | None = None
        self._parts: list[bytes] = []
        self._n_bytes = 0
        self._last = 0.0
        self._is_over = False
        self._wake = asyncio.Event()
        self._room = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._last = self._loop.time()
        self._sending = self._loop.create_task(self._send())
        self._timer = self._loop.call_later(self._ping_seconds, self._ping)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        self._sending.cancel()
        await asyncio.gather(self._sending, return_exceptions=True)

    @property
    def is_open(self) -> bool:
        """Whether anything was sent, or is about to be."""
        return self._response is not None or bool(self._parts)

    async def write(self, data: bytes) -> None:
        """Send some bytes; waits while the client is slow to read.

        Raises:
            ConnectionError: The client is gone.
        """
        if not data:
            return
        if self._sending.done():
            self._sending.result()
        self._add(data)
        if self._n_bytes > _ENOUGH_BYTES:
            self._room.clear()
            await self._room.wait()

    async def close(self) -> "web.StreamResponse":
        """Say that this was all.

        Raises:
            ConnectionError: The client is gone.
        """
        self._is_over = True
        self._wake.set()
        await self._sending
        assert self._response is not None
        return self._response

    def _add(self, data: bytes) -> None:
        self._parts.append(data)
        self._n_bytes += len(data)
        self._last = self._loop.time()
        self._wake.set()

    async def _send(self) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                if self._response is None:
                    self._response = await self._opening()
                parts, self._parts, self._n_bytes = self._parts, [], 0
                self._room.set()
                if parts:
                    await self._response.write(b"".join(parts))
                if self._is_over and not self._parts:
                    await self._response.write_eof()
                    return
        finally:
            self._room.set()  # nobody waits for one that sends no more

    def _ping(self) -> None:
        if self._loop.time() - self._last >= self._ping_seconds:
            self._add(_ALIVE)
        self._timer = self._loop.call_at(self._last + self._ping_seconds, self._ping)
