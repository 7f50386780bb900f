"""Rows in, rows out: in order, many at once, again after any kill.

A finished row is written down before the next one of its place begins.  A run that begins again
works only on what is not written down, so that the rows that come out are the same however often it
was killed, whatever the engine, and however many were worked on at once.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from antiphon.batch._engines import Engine, LocalEngine, ProcessEngine, Run
from antiphon.batch._journal import Journal, digest, write_rows
from antiphon.batch._ray import RayEngine
from antiphon.batch._work import RowFunction, Work
from antiphon.errors import AntiphonError, UsageError, first_error
from antiphon.messages import JsonObject, JsonValue


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that could not be worked on."""

    index: int
    """Which of the source rows."""
    reason: str
    """Why."""


@dataclass(slots=True)
class Report:
    """How far a stage is."""

    n_rows: int = 0
    """Source rows that were looked at."""
    n_kept: int = 0
    """Of those, how many were done by an earlier run."""
    n_done: int = 0
    """How many this run has done."""
    n_out: int = 0
    """Rows that came out, once the stage has ended."""
    failures: list[Failure] = field(default_factory=list[Failure])
    """Rows that could not be worked on; the next run tries them again."""
    stopped: str = ""
    """Why the stage ended before its last row; empty where it did not."""
    seconds: float = 0.0
    """How long it took."""

    @property
    def is_complete(self) -> bool:
        """Whether every row of the source is done."""
        return not self.stopped and not self.failures


async def map_rows(
    work: Work | RowFunction,
    rows: Iterable[JsonObject],
    out: Path,
    *,
    settings: JsonValue = None,
    engine: Engine | None = None,
    concurrency: int = 32,
    max_failures: int = 10,
    stop: Callable[[], str] | None = None,
    progress: Callable[[Report], None] | None = None,
    done: Callable[[JsonObject], None] | None = None,
) -> Report:
    """Work on every row and write what comes out, in the order of the source.

    Beside `out` stands its journal, ``<out>.journal``: what is done, also of earlier runs and other
    settings.  Remove it to do everything again.

    Args:
        work: What is done to a row.  An `AntiphonError` that it raises is a failure of that row;
            anything else ends the stage.
        rows: The source; read once, lazily.
        out: The file of JSON lines that is written when the stage ends, whole or not at all.
        settings: What besides the row decides the result; other settings, other results.
        engine: Where the work is done; in this process by default.
        concurrency: How many rows are worked on at once.
        max_failures: How many failed rows are borne before no further row is begun.
        stop: Asked before each row; a reason that it gives ends the stage in good order.
        progress: Told the report after each row.
        done: Told each row that came out, also of earlier runs, for counting what it cost.

    Raises:
        UsageError: `concurrency` is not positive.
        DataError: The journal or `out` cannot be read or written.
        RunError: Another process runs the stage.
        AntiphonError: The work cannot be made ready.
    """
    if concurrency < 1:
        raise UsageError(f"concurrency must be at least 1, got {concurrency}")
    with Journal(out.with_name(f"{out.name}.journal")) as journal:
        stage = _Stage(journal, settings, max_failures, stop, progress, done)
        began = monotonic()
        async with (engine or LocalEngine()).open(work, concurrency) as run:
            await stage.run(run, rows, concurrency)
        finished = (key for key in stage.keys if key in journal)
        stage.report.n_out = write_rows(out, (row for key in finished for row in journal.rows(key)))
        stage.report.seconds = monotonic() - began
        return stage.report


class _Stage:
    """One stage under way."""

    def __init__(
        self,
        journal: Journal,
        settings: JsonValue,
        max_failures: int,
        stop: Callable[[], str] | None,
        progress: Callable[[Report], None] | None,
        done: Callable[[JsonObject], None] | None,
    ) -> None:
        self.report = Report()
        self.keys: list[str] = []
        self._journal = journal
        self._settings = digest(settings)
        self._max_failures = max_failures
        self._stop = stop
        self._progress = progress
        self._done = done
        self._times: Counter[str] = Counter()

    async def run(self, run: Run, rows: Iterable[JsonObject], concurrency: int) -> None:
        todo = self._todo(rows)

        async def work_on() -> None:
            for index, key, row in todo:
                await self._one(run, index, key, row)

        async with first_error(), asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work_on())

    def _todo(self, rows: Iterable[JsonObject]) -> Iterator[tuple[int, str, JsonObject]]:
        """The rows that are not done and may begin; the others are counted on the way."""
        for index, row in enumerate(rows):
            key = self._key(row)
            self.keys.append(key)
            self.report.n_rows += 1
            if key in self._journal:
                self.report.n_kept += 1
                self._tell(key)
            elif not self._ends():
                yield index, key, row

    def _key(self, row: JsonObject) -> str:
        """A digest of row and settings; equal rows are told apart by their number."""
        key = digest(self._settings, row)
        self._times[key] += 1
        n = self._times[key]
        return key if n == 1 else f"{key}#{n}"

    def _ends(self) -> bool:
        if not self.report.stopped and self._stop is not None:
            self.report.stopped = self._stop()
        return bool(self.report.stopped)

    async def _one(self, run: Run, index: int, key: str, row: JsonObject) -> None:
        try:
            made = await run(row)
        except AntiphonError as error:
            self._fail(index, error)
        else:
            self._journal.add(key, made)
            self.report.n_done += 1
            self._tell(key)
        if self._progress is not None:
            self._progress(self.report)

    def _tell(self, key: str) -> None:
        if self._done is not None:
            for one in self._journal.rows(key):
                self._done(one)

    def _fail(self, index: int, error: AntiphonError) -> None:
        self.report.failures.append(Failure(index, str(error)))
        n = len(self.report.failures)
        if n > self._max_failures and not self.report.stopped:
            self.report.stopped = f"{n} rows failed, the last one because: {error}"


def engine_named(name: str, *, processes: int = 1) -> Engine:
    """An engine by its name on the command line.

    Args:
        name: ``local`` or ``ray``.
        processes: How many processes ``local`` uses.

    Raises:
        UsageError: There is no such engine.
    """
    if name == "ray":
        return RayEngine()
    if name != "local":
        raise UsageError(f"no engine named {name!r}; known: local, ray")
    return LocalEngine() if processes <= 1 else ProcessEngine(processes)
