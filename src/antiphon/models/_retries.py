"""When a request is made again, and after how long.

Only what may pass is repeated: a broken or silent connection, a failing server, a full one, an
answer that is none.  A refused key, an unknown model, a conversation that is too long and a
malformed request stay what they are.
"""

import asyncio
import random
import time
from dataclasses import dataclass

from antiphon.errors import (
    ModelConnectionError,
    ModelError,
    ModelResponseError,
    RateLimitError,
)


class Gate:
    """Closed while a server asks to wait; all models of this process that ask it with one key
    wait."""

    def __init__(self) -> None:
        """An open gate."""
        self._open_at = 0.0

    async def wait(self) -> None:
        """Wait until the gate is open."""
        while (left := self._open_at - time.monotonic()) > 0:
            await asyncio.sleep(left)

    def close_for(self, seconds: float) -> None:
        """Keep the gate closed for at least so long."""
        self._open_at = max(self._open_at, time.monotonic() + seconds)


_gates: dict[tuple[str, str, str], Gate] = {}


def gate_of(base_url: str, model: str, key: str) -> Gate:
    """The gate that this process shares for one model behind one key."""
    return _gates.setdefault((base_url, model, key), Gate())


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long."""

    max_tries: int = 6
    """The most requests for one completion; 1 never repeats."""
    first_wait: float = 0.25
    """Seconds before the second request; doubled for each further one."""
    max_wait: float = 60.0
    """The longest wait in seconds, also where a server asks for more: then its error is raised."""

    def wait(self, error: ModelError, n_tries: int) -> float | None:
        """How long to wait before the next request, in seconds; ``None``: do not repeat.

        Args:
            error: What the last request ended in.
            n_tries: How many requests were made.
        """
        if n_tries >= self.max_tries or not isinstance(
            error, RateLimitError | ModelConnectionError | ModelResponseError
        ):
            return None
        backoff = min(self.first_wait * 2 ** (n_tries - 1), self.max_wait)
        if isinstance(error, RateLimitError) and error.retry_after is not None:
            return None if error.retry_after > self.max_wait else max(error.retry_after, 0.0)
        return backoff * random.uniform(0.75, 1.0)  # so that many agents do not return at once
