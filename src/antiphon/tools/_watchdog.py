"""Interrupts an async tool that holds up the event loop in one step for longer than its time.

No timeout of asyncio can fire while a coroutine computes without awaiting.  One daemon thread
watches the steps of async tools; a step that outlives its limit gets `HeldUp` raised in it, at the
next instruction of Python code.  A step inside C code, such as ``time.sleep``, is reached only when
that returns: a tool that blocks belongs in a thread (``threaded=True``).
"""

import ctypes
import threading
import time
from collections.abc import Callable, Coroutine, Generator
from typing import Any

_interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc
_interrupt.argtypes = (ctypes.c_ulong, ctypes.py_object)
_withdraw = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p)(
    ("PyThreadState_SetAsyncExc", ctypes.pythonapi)
)


class HeldUp(Exception):
    """Raised in a step that has held up the event loop for longer than the tool may take."""


class _Step:
    __slots__ = ("deadline", "fired", "thread")

    def __init__(self, seconds: float) -> None:
        self.thread = threading.get_ident()
        self.deadline = time.monotonic() + seconds
        self.fired = False


class _Watchdog:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._steps: set[_Step] = set()
        self._running = False
        self._next = float("inf")

    def enter(self, seconds: float) -> _Step:
        step = _Step(seconds)
        with self._lock:
            self._steps.add(step)
            if not self._running:
                self._running = True
                threading.Thread(target=self._watch, name="antiphon-watchdog", daemon=True).start()
            elif step.deadline < self._next:
                self._wake.notify()
        return step

    def leave(self, step: _Step) -> None:
        with self._lock:
            self._steps.discard(step)
            if step.fired:
                _withdraw(step.thread, None)  # where it has not been raised yet, it never is

    def _watch(self) -> None:
        with self._lock:
            while True:
                now = time.monotonic()
                for step in self._steps:
                    if not step.fired and step.deadline <= now:
                        step.fired = True
                        _interrupt(step.thread, HeldUp)
                waiting = [s.deadline for s in self._steps if not s.fired]
                self._next = min(waiting, default=now + 10.0)
                if not self._wake.wait(max(0.0, self._next - now)) and not self._steps:
                    self._running = False
                    return


_WATCHDOG = _Watchdog()


class Watched(Coroutine[Any, Any, Any]):
    """A coroutine whose every step must end within some seconds.

    Args:
        inner: The coroutine.
        seconds: The longest that one step may take.
    """

    def __init__(self, inner: Coroutine[Any, Any, Any], seconds: float) -> None:
        self._inner = inner
        self._seconds = seconds

    def send(self, value: Any) -> Any:
        """Run the next step."""
        return self._step(self._inner.send, value)

    def throw(self, *error: Any) -> Any:
        """Raise in the coroutine and run its next step."""
        return self._step(self._inner.throw, *error)

    def close(self) -> None:
        """Close the coroutine."""
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()

    def _step(self, run: Callable[..., Any], *values: Any) -> Any:
        step = _WATCHDOG.enter(self._seconds)
        try:
            return run(*values)
        finally:
            _WATCHDOG.leave(step)
