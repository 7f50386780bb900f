"""Where rows are worked on: in this process, or in several processes of this machine.

A process that dies, for example because memory ran out, is replaced, and the rows that it was
working on are tried again one at a time, so that the row that kills is found and the others are
not lost.
"""

import asyncio
import multiprocessing
import pickle
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from itertools import count
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, Protocol, TypeAlias

from antiphon.batch._work import RowFunction, Work, apply, opened, pickled
from antiphon.errors import AntiphonError, RunError, UsageError
from antiphon.messages import JsonObject

Run: TypeAlias = Callable[[JsonObject], Awaitable[list[JsonObject]]]
"""Works on one row."""


class Engine(Protocol):
    """A place where rows are worked on."""

    def open(self, work: Work | RowFunction, concurrency: int) -> AbstractAsyncContextManager[Run]:
        """Make the place ready.

        Args:
            work: What is done to a row.
            concurrency: How many rows will be given at once.

        Raises:
            AntiphonError: The work cannot be made ready.
        """
        ...


class LocalEngine:
    """This process and its event loop."""

    @asynccontextmanager
    async def open(self, work: Work | RowFunction, concurrency: int) -> AsyncGenerator[Run]:
        """Open the work here; see `Engine.open`."""
        async with opened(work) as function:

            async def run(row: JsonObject) -> list[JsonObject]:
                await asyncio.sleep(0)  # a plain function would never let go of the loop
                return await apply(function, row)

            yield run


class ProcessEngine:
    """Several processes of this machine, each with an event loop of its own.

    Args:
        n_processes: How many.

    Raises:
        UsageError: The number is not positive.
    """

    def __init__(self, n_processes: int) -> None:
        if n_processes < 1:
            raise UsageError(f"processes must be at least 1, got {n_processes}")
        self.n_processes = n_processes

    @asynccontextmanager
    async def open(self, work: Work | RowFunction, concurrency: int) -> AsyncGenerator[Run]:
        """Start the processes; see `Engine.open`."""
        pool = _Pool(pickled(work), self.n_processes)
        try:
            await pool.start()
            yield pool.run
        finally:
            await pool.close()


class _Died(Exception):
    """The process that worked on a row is gone."""


class _Worker:
    """One process, as its parent sees it."""

    def __init__(self, work: bytes) -> None:
        context = multiprocessing.get_context("spawn")  # threads do not survive a fork
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self._process.start()
        theirs.close()
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count()
        self.is_dead = False
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def n_waiting(self) -> int:
        return len(self._waiting)

    async def ask(self, row: "JsonObject | None") -> list[JsonObject]:
        """Have a row worked on; ``None`` waits until the work is open."""
        if self.is_dead:
            raise _Died
        number = next(self._numbers)
        future = self._waiting[number] = self._loop.create_future()
        try:
            self._pipe.send((number, row))
            return await future
        except OSError as error:
            raise _Died from error
        finally:
            self._waiting.pop(number, None)

    def _read(self) -> None:
        """Take answers, in a thread of its own, until the process is gone."""
        with suppress(EOFError, OSError):
            while True:
                answer = self._pipe.recv()
                self._loop.call_soon_threadsafe(self._answer, *answer)
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._end)

    def _answer(self, number: int, rows: list[JsonObject], error: BaseException | None) -> None:
        future = self._waiting.get(number)
        if future is None or future.done():
            return
        if error is None:
            future.set_result(rows)
        else:
            future.set_exception(error)

    def _end(self) -> None:
        self.is_dead = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(_Died())

    async def close(self) -> None:
        """End the process."""
        with suppress(OSError):
            self._pipe.send(None)
        await asyncio.to_thread(self._process.join, 5)
        if self._process.is_alive():
            self._process.kill()
            await asyncio.to_thread(self._process.join)
        await asyncio.to_thread(self._reader.join)
        self._pipe.close()
        self._process.close()


class _Pool:
    """The processes, and what is done when one of them dies."""

    def __init__(self, work: bytes, n_processes: int) -> None:
        self._work = work
        self._n_processes = n_processes
        self._workers: list[_Worker] = []
        self._dead: list[_Worker] = []
        self._alone = asyncio.Lock()

    async def start(self) -> None:
        self._workers = [_Worker(self._work) for _ in range(self._n_processes)]
        for worker in self._workers:
            await self._ready(worker)

    async def _ready(self, worker: _Worker) -> None:
        try:
            await worker.ask(None)
        except _Died as error:
            raise RunError("a process of this stage ended before its first row") from error

    async def run(self, row: JsonObject) -> list[JsonObject]:
        try:
            return await min(self._workers, key=lambda w: w.n_waiting).ask(row)
        except _Died:
            self._replace()
        async with self._alone:
            return await self._run_alone(row)

    def _replace(self) -> None:
        for index, worker in enumerate(self._workers):
            if worker.is_dead:
                self._dead.append(worker)
                self._workers[index] = _Worker(self._work)

    async def _run_alone(self, row: JsonObject) -> list[JsonObject]:
        worker = _Worker(self._work)
        try:
            await self._ready(worker)
            return await worker.ask(row)
        except _Died as error:
            raise RunError(
                "the process that worked on it died twice, the second time on it alone; "
                "is there memory enough?"
            ) from error
        finally:
            await worker.close()

    async def close(self) -> None:
        for worker in (*self._workers, *self._dead):
            await worker.close()


def _serve(pipe: Connection, work: bytes) -> None:
    """The life of a process: rows in, rows out, until the parent says so or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    asyncio.run(_work(pipe, pickle.loads(work)))


async def _work(pipe: Connection, work: Work | RowFunction) -> None:
    tasks: set[asyncio.Task[None]] = set()
    try:
        async with opened(work) as function:
            while (message := await _next(pipe)) is not None:
                number, row = message
                task = asyncio.create_task(_one(pipe, function, number, row))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
    except AntiphonError as error:  # it cannot be opened
        message = await _next(pipe)
        if message is not None:
            pipe.send((message[0], [], error))


async def _next(pipe: Connection) -> "tuple[int, JsonObject | None] | None":
    try:
        return await asyncio.to_thread(pipe.recv)
    except EOFError:
        return None


async def _one(
    pipe: Connection, function: RowFunction, number: int, row: "JsonObject | None"
) -> None:
    rows: list[JsonObject] = []
    failure: BaseException | None = None
    try:
        rows = [] if row is None else await apply(function, row)
    except AntiphonError as error:
        failure = error
    except Exception as error:  # a fault of the program: it is raised where the stage was begun
        failure = RuntimeError(f"{type(error).__name__} in a process of the stage: {error}")
    with suppress(OSError):  # the parent is gone
        pipe.send((number, rows, failure))
