"""An event loop whose clock jumps to the next timer, so that waiting takes no time and is exact.

A plan whose tools sleep for hours is run in milliseconds and takes, by the loop's clock, exactly
the time that it would take.  The loop knows of timers alone: a thread, a process or a socket takes
real time, of which its clock knows nothing and for which it does not hold.  Tools in it are async,
or run in the event loop (``threaded=False``).
"""

import asyncio
import math
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

ResultT = TypeVar("ResultT")


class _JumpingSelector(selectors.DefaultSelector):
    """Looks whether something is ready; where nothing is, the clock jumps instead of waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready, now; else the time until the next timer passes at once."""
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        ready = super().select(0)
        if not ready:
            self.now += timeout
        return ready


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """An event loop whose `time` starts at 0 and passes only where all wait for a timer."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    @property
    def _clock_resolution(self) -> float:
        """How near a timer must be to be due: more than the clock can be wrong by, at any time."""
        return 2 * math.ulp(self._jumping.now)

    @_clock_resolution.setter
    def _clock_resolution(self, seconds: float) -> None:
        """asyncio sets that of the real clock, which is not the one in use."""

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now


def run_in_virtual_time(main: Coroutine[Any, Any, ResultT]) -> ResultT:
    """Run a coroutine to its end on a loop whose clock jumps.

    Args:
        main: The coroutine; what it starts runs on the same loop.

    >>> async def sleep_long() -> float:
    ...     await asyncio.sleep(3600)
    ...     return asyncio.get_running_loop().time()
    >>> run_in_virtual_time(sleep_long())
    3600.0
    """
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
