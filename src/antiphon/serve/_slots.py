"""How many requests are worked on at once, and who waits: first come, first served."""

import asyncio
from collections import deque

from antiphon.serve._metrics import Metrics
from antiphon.serve._refusal import Refusal


class Slots:
    """A bounded number of slots with a bounded queue before them; ``async with`` holds one."""

    def __init__(self, n: int, *, max_waiting: int, wait_seconds: float, metrics: Metrics) -> None:
        """Set up.

        Args:
            n: Slots.
            max_waiting: How many may wait for one.
            wait_seconds: How long one may wait.
            metrics: Where to count them.
        """
        self._n_free = n
        self._max_waiting = max_waiting
        self._wait_seconds = wait_seconds
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._metrics = metrics
        self._idle = asyncio.Event()
        self._idle.set()

    async def __aenter__(self) -> None:
        """Take a slot.

        Raises:
            Refusal: Too many wait already, or none came free in time.
        """
        await self._take()
        self._metrics.in_flight += 1
        self._idle.clear()

    async def __aexit__(self, *error: object) -> None:
        self._metrics.in_flight -= 1
        if not self._metrics.in_flight:
            self._idle.set()
        self._give_back()

    async def idle(self) -> None:
        """Wait until nobody holds a slot."""
        await self._idle.wait()

    async def _take(self) -> None:
        if self._n_free:
            self._n_free -= 1
            return
        if len(self._waiting) >= self._max_waiting:
            raise _busy()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._metrics.waiting += 1
        try:
            async with asyncio.timeout(self._wait_seconds):
                await turn
        except TimeoutError as error:
            self._leave(turn)
            raise _busy() from error
        except asyncio.CancelledError:
            self._leave(turn)
            raise
        finally:
            self._metrics.waiting -= 1

    def _leave(self, turn: "asyncio.Future[None]") -> None:
        """Whoever waited goes; a slot that was just given to it goes to the next."""
        if turn.done() and not turn.cancelled():
            self._give_back()
        elif turn in self._waiting:
            self._waiting.remove(turn)

    def _give_back(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._n_free += 1


def _busy() -> Refusal:
    return Refusal(
        429,
        "the server is busy; ask again in a moment",
        "server_busy",
        retry_after=1.0,
    )
