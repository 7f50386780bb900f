"""Rows worked on by a Ray cluster.

Ray knows nothing of rows that are done: the journal stays with the process that began the stage.  A
task takes a few rows, since a task has a process to itself; it works on them at once, and Ray gives
it to another node when its own is lost.  Ray is imported when the engine is opened.
"""

import asyncio
import importlib
import pickle
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from threading import Lock, Thread
from typing import Any

from antiphon.batch._engines import Run
from antiphon.batch._work import RowFunction, Work, apply, opened, pickled
from antiphon.errors import AntiphonError, MissingExtraError
from antiphon.messages import JsonObject

Outcome = tuple[list[JsonObject], AntiphonError | None]
"""The rows that came of a row, or why there are none."""


class RayEngine:
    """A Ray cluster: the one that this process is connected to, or the one of ``RAY_ADDRESS``, or
    one that is started here.

    Args:
        n_cpus: CPUs that a task takes; 0 for work that only waits for servers.
    """

    def __init__(self, n_cpus: float = 1.0) -> None:
        self.n_cpus = n_cpus

    @asynccontextmanager
    async def open(self, work: Work | RowFunction, concurrency: int) -> AsyncGenerator[Run]:
        """Connect to the cluster; see `Engine.open`.

        Raises:
            MissingExtraError: Ray is not installed.
        """
        ray, started = await asyncio.to_thread(_connect)
        try:
            n_tasks = _n_tasks(ray, self.n_cpus)
            task = ray.remote(num_cpus=self.n_cpus, max_retries=-1)(work_on_rows)
            shared = ray.put(pickled(work))
            dispatch = _Dispatch(task, shared, min(n_tasks, concurrency), concurrency)
            yield dispatch.run
        finally:
            if started:
                await asyncio.to_thread(ray.shutdown)


class RayPool:
    """A Ray cluster as a pool of processes, for work that is a plain function: see `RayEngine` for
    which cluster, and use it as a context.

    Args:
        n_cpus: CPUs that a call takes.
    """

    def __init__(self, n_cpus: float = 1.0) -> None:
        self.n_cpus = n_cpus
        self.n_workers = 1
        """How many calls the cluster makes at once."""
        self._ray: Any = None
        self._started = False

    def __enter__(self) -> "RayPool":
        """Connect to the cluster.

        Raises:
            MissingExtraError: Ray is not installed.
        """
        self._ray, self._started = _connect()
        self.n_workers = _n_tasks(self._ray, self.n_cpus)
        self._task = self._ray.remote(num_cpus=self.n_cpus, max_retries=-1)(_call)
        return self

    def __exit__(self, *_: object) -> None:
        if self._started:
            self._ray.shutdown()

    def submit(self, function: Callable[[Any], Any], argument: Any, /) -> Future[Any]:
        """Have a function of a module called in the cluster, again where its node is lost."""
        return self._task.remote(function, argument).future()


def _call(function: Callable[[Any], Any], argument: Any) -> Any:
    return function(argument)


def _connect() -> tuple[Any, bool]:
    """Ray, and whether it was started here."""
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise MissingExtraError("a Ray cluster", "ray") from error
    started = not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False)
    return ray, started


def _n_tasks(ray: Any, n_cpus: float) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1) / max(n_cpus, 0.05)))


class _Dispatch:
    """Gathers rows into tasks."""

    def __init__(self, task: Any, work: Any, n_tasks: int, concurrency: int) -> None:
        self._task = task
        self._work = work
        self._n_free = n_tasks
        self._size = -(-concurrency // n_tasks)
        self._waiting: deque[tuple[JsonObject, asyncio.Future[list[JsonObject]]]] = deque()
        self._running: set[asyncio.Task[None]] = set()

    async def run(self, row: JsonObject) -> list[JsonObject]:
        future: asyncio.Future[list[JsonObject]] = asyncio.get_running_loop().create_future()
        self._waiting.append((row, future))
        asyncio.get_running_loop().call_soon(self._send)
        return await future

    def _send(self) -> None:
        while self._n_free and self._waiting:
            n = min(self._size, len(self._waiting))
            part = [self._waiting.popleft() for _ in range(n)]
            self._n_free -= 1
            running = asyncio.ensure_future(self._one(part))
            self._running.add(running)
            running.add_done_callback(self._running.discard)

    async def _one(self, part: list[tuple[JsonObject, asyncio.Future[list[JsonObject]]]]) -> None:
        try:
            outcomes: list[Outcome] = await self._task.remote(self._work, [row for row, _ in part])
        except Exception as error:  # a fault of the program or of the cluster: raised by each row
            for _, future in part:
                if not future.done():
                    future.set_exception(error)
        else:
            for (_, future), (rows, failure) in zip(part, outcomes, strict=True):
                if not future.done() and failure is None:
                    future.set_result(rows)
                elif not future.done():
                    future.set_exception(failure or RuntimeError())
        self._n_free += 1
        self._send()


# ---- in the processes of the cluster ----------------------------------------------------------

_lock = Lock()
_hosts: dict[bytes, "_Host"] = {}


def work_on_rows(work: bytes, rows: list[JsonObject]) -> list[Outcome]:
    """One task: work on a few rows at once, with the work kept open for the next task."""
    with _lock:
        host = _hosts.setdefault(work, _Host(pickle.loads(work)))
    return host.outcomes(rows)


class _Host:
    """An event loop in a thread, in which the work stays open."""

    def __init__(self, work: Work | RowFunction) -> None:
        self._work = work
        self._loop = asyncio.new_event_loop()
        self._function: RowFunction | None = None
        self._open: Any = None
        self._started = False

    def outcomes(self, rows: list[JsonObject]) -> list[Outcome]:
        if not self._started:
            self._started = True
            Thread(target=self._loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(self._all(rows), self._loop).result()

    async def _all(self, rows: list[JsonObject]) -> list[Outcome]:
        try:
            function = self._function or await self._opened()
        except AntiphonError as error:
            return [([], error) for _ in rows]
        return list(await asyncio.gather(*(_outcome(function, row) for row in rows)))

    async def _opened(self) -> RowFunction:
        self._open = opened(self._work)  # closed when the process ends
        self._function = function = await self._open.__aenter__()
        return function


async def _outcome(function: RowFunction, row: JsonObject) -> Outcome:
    try:
        return await apply(function, row), None
    except AntiphonError as error:
        return [], error
