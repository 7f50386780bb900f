"""Daemon threads that run plain functions beside the event loop.

Unlike an executor's, a thread that hangs holds up neither the loop's end nor the interpreter's, and
it is replaced: a late call costs a thread, never a place in the queue.
"""

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

MAX_THREADS = 64
_IDLE_SECONDS = 10.0


class Job:
    """One function on its way through a thread."""

    __slots__ = ("abandoned", "call", "context", "done", "future", "label", "loop", "owner")

    def __init__(self, call: Callable[[], Any], label: str, owner: "Workers") -> None:
        self.call = call
        self.label = label
        self.owner = owner
        self.context = contextvars.copy_context()
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.abandoned = False
        self.done = False

    def run(self) -> None:
        """Run in a worker thread and hand over what came out, an exception too."""
        try:
            outcome: tuple[Any, BaseException | None] = (self.context.run(self.call), None)
        except BaseException as error:
            outcome = (None, error)
        try:
            self.loop.call_soon_threadsafe(self._deliver, outcome)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    def _deliver(self, outcome: tuple[Any, BaseException | None]) -> None:
        if not self.future.done():
            self.future.set_result(outcome)


class Workers:
    """A bounded set of threads, started as needed and gone after some idle seconds."""

    def __init__(self, limit: int = MAX_THREADS) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._ready = threading.Condition(self._lock)
        self._queue: deque[Job] = deque()
        self._n_threads = 0
        self._n_idle = 0
        self._late: dict[int, Job] = {}

    @property
    def late(self) -> tuple[str, ...]:
        """Labels of calls that nobody waits for and that still run."""
        with self._lock:
            return tuple(job.label for job in self._late.values())

    def submit(self, call: Callable[[], Any], label: str) -> Job:
        """Queue a function; await the job's `future` for ``(value, exception)``."""
        job = Job(call, label, self)
        with self._lock:
            self._queue.append(job)
            if self._n_idle >= len(self._queue):
                self._ready.notify()
            elif self._n_threads - len(self._late) < self.limit:
                self._start()
        return job

    def abandon(self, job: Job) -> None:
        """Stop waiting for a job: it leaves the queue, or its thread is counted as late."""
        with self._lock:
            job.abandoned = True
            if job in self._queue:
                self._queue.remove(job)
                job.done = True
            elif not job.done:
                self._late[id(job)] = job
                if self._queue and self._n_idle == 0:
                    self._start()

    def _start(self) -> None:
        self._n_threads += 1
        threading.Thread(target=self._work, name="antiphon-tool", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._n_idle += 1
                while not self._queue:
                    if not self._ready.wait(_IDLE_SECONDS) and not self._queue:
                        self._n_idle -= 1
                        self._n_threads -= 1
                        return
                self._n_idle -= 1
                job = self._queue.popleft()
            job.run()
            with self._lock:
                job.done = True
                self._late.pop(id(job), None)
            del job


_workers = [Workers()]


def workers() -> Workers:
    """The threads of this process."""
    return _workers[0]


def late_tools() -> tuple[str, ...]:
    """Names of tools whose calls timed out or were cancelled and whose threads still run."""
    return workers().late


def _forget_threads() -> None:
    """After a fork the child has none of the threads."""
    _workers[0] = Workers()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)
