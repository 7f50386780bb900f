"""Rows come out in order and whole, whatever was killed, whatever the engine."""

import asyncio
import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from antiphon.batch import (
    LocalEngine,
    ProcessEngine,
    Report,
    engine_named,
    map_rows,
)
from antiphon.errors import DataError, RunError, UsageError
from antiphon.messages import JsonObject
from batch import works

ROWS: list[JsonObject] = [{"n": n} for n in range(40)]
ENGINES = [LocalEngine(), ProcessEngine(2)]


def mapped(work: Any, out: Path, rows: Iterable[JsonObject] = ROWS, **options: Any) -> Report:
    return asyncio.run(map_rows(work, rows, out, **options))


def same(row: JsonObject) -> JsonObject:
    return row


def content(out: Path) -> list[int]:
    return [json.loads(line)["n"] for line in out.read_text().splitlines()]


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("work", [works.doubled, works.slow], ids=lambda w: w.__name__)
def test_rows_come_out_in_the_order_of_the_source(engine: Any, work: Any, tmp_path: Path):
    report = mapped(work, tmp_path / "out", engine=engine, concurrency=8)

    assert content(tmp_path / "out") == [2 * n for n in range(40)]
    assert (report.n_rows, report.n_done, report.n_out, report.is_complete) == (40, 40, 40, True)


def test_a_row_may_become_several_or_none(tmp_path: Path):
    def spread(row: JsonObject) -> list[JsonObject]:
        return [row] * int(str(row["n"]))

    mapped(spread, tmp_path / "out", ROWS[:4])

    assert content(tmp_path / "out") == [1, 2, 2, 3, 3, 3]


def test_what_is_done_is_not_done_again(tmp_path: Path):
    asked: list[int] = []

    def seen(row: JsonObject) -> JsonObject:
        asked.append(int(str(row["n"])))
        return row

    mapped(seen, tmp_path / "out", ROWS[:5])
    report = mapped(seen, tmp_path / "out", ROWS[:7])

    assert asked == [0, 1, 2, 3, 4, 5, 6]
    assert (report.n_kept, report.n_done, report.n_out) == (5, 2, 7)


def test_other_settings_do_everything_again_and_the_first_ones_nothing(tmp_path: Path):
    for settings, n_done in (("a", 3), ("b", 3), ("a", 0)):
        report = mapped(works.doubled, tmp_path / "out", ROWS[:3], settings=settings)
        assert report.n_done == n_done


def test_equal_rows_are_rows_of_their_own(tmp_path: Path):
    mapped(works.doubled, tmp_path / "out", [{"n": 1}, {"n": 1}, {"n": 1}])

    assert content(tmp_path / "out") == [2, 2, 2]


def test_no_more_rows_are_begun_at_once_than_was_asked(tmp_path: Path):
    now, most = 0, 0

    async def watched(row: JsonObject) -> JsonObject:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0)
        now -= 1
        return row

    mapped(watched, tmp_path / "out", concurrency=7)

    assert most == 7


def test_a_line_that_was_cut_is_done_again(tmp_path: Path):
    mapped(works.doubled, tmp_path / "out")
    journal = tmp_path / "out.journal"
    journal.write_bytes(journal.read_bytes()[:-9])

    report = mapped(works.doubled, tmp_path / "out")

    assert report.n_done == 1
    assert content(tmp_path / "out") == [2 * n for n in range(40)]


def test_a_file_that_is_no_journal_is_named_and_left_alone(tmp_path: Path):
    (tmp_path / "out.journal").write_text("my notes\n")

    with pytest.raises(DataError, match=r"out\.journal:1: is no journal"):
        mapped(works.doubled, tmp_path / "out")

    assert (tmp_path / "out.journal").read_text() == "my notes\n"


def test_failed_rows_are_named_and_tried_again_next_time(tmp_path: Path):
    report = mapped(works.picky, tmp_path / "out")

    assert [f.index for f in report.failures] == [9, 19, 29, 39]
    assert report.failures[0].reason == "nine is no good: 9"
    assert (report.n_out, report.is_complete) == (36, False)
    assert mapped(works.doubled, tmp_path / "out").n_done == 4


def test_too_many_failed_rows_end_the_stage_with_what_is_done(tmp_path: Path):
    report = mapped(works.picky, tmp_path / "out", max_failures=1, concurrency=1)

    assert report.stopped == "2 rows failed, the last one because: nine is no good: 19"
    assert content(tmp_path / "out") == [n for n in range(19) if n != 9]


def test_a_reason_to_stop_begins_no_further_row_and_keeps_what_is_done(tmp_path: Path):
    spent: list[JsonObject] = []

    report = mapped(
        works.doubled,
        tmp_path / "out",
        stop=lambda: "the budget is spent" if len(spent) >= 3 else "",
        done=spent.append,
        concurrency=1,
    )

    assert (report.stopped, report.n_out) == ("the budget is spent", 3)
    assert mapped(works.doubled, tmp_path / "out").n_done == 37


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: type(e).__name__)
def test_a_fault_of_the_program_is_raised_and_what_was_done_is_kept(engine: Any, tmp_path: Path):
    with pytest.raises((ZeroDivisionError, RuntimeError), match="division"):
        mapped(works.broken, tmp_path / "out", engine=engine, concurrency=1)

    assert len((tmp_path / "out.journal").read_text().splitlines()) == 3


def test_a_disk_that_fills_is_named_and_the_next_run_goes_on(tmp_path: Path):
    """The limit on a file's size stands in for the disk's: a write is cut in the same way."""
    code = f"""
import asyncio, resource, signal
from pathlib import Path
from antiphon.batch import map_rows
from antiphon.errors import DataError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500))
try:
    rows = [{{"n": n}} for n in range(40)]
    asyncio.run(map_rows(lambda row: row, rows, Path({str(tmp_path / "out")!r})))
except DataError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "out.journal: cannot be written: file too large" in done.stdout
    report = mapped(same, tmp_path / "out")
    assert report.n_kept > 5
    assert content(tmp_path / "out") == list(range(40))
    assert os.strerror(errno.EFBIG) == "File too large"


def test_a_second_process_is_refused(tmp_path: Path):
    def nested(row: JsonObject) -> JsonObject:
        with pytest.raises(RunError, match="another process is writing"):
            _in_thread(tmp_path / "out")  # the stage is under way in this one
        return row

    mapped(nested, tmp_path / "out", ROWS[:1])


def _in_thread(out: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(mapped, works.doubled, out, ROWS[:1]).result()


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: type(e).__name__)
def test_work_that_cannot_be_made_ready_says_so_before_the_first_row(engine: Any, tmp_path: Path):
    with pytest.raises(UsageError, match="there is no such model"):
        mapped(works.NeverReady(), tmp_path / "out", engine=engine)


def test_work_is_opened_once_in_each_process(tmp_path: Path):
    mark = tmp_path / "mark"

    mapped(works.Counted(mark), tmp_path / "out", engine=ProcessEngine(2))

    assert mark.read_text().splitlines() == ["opened", "opened"]


def test_a_process_that_dies_loses_no_row(tmp_path: Path):
    work = works.DiesOnce(tmp_path / "mark")

    report = mapped(work, tmp_path / "out", engine=ProcessEngine(2), concurrency=4)

    assert report.is_complete
    assert content(tmp_path / "out") == [2 * n for n in range(40)]


def test_a_row_that_kills_its_process_fails_alone(tmp_path: Path):
    report = mapped(works.deadly, tmp_path / "out", engine=ProcessEngine(2), concurrency=4)

    assert [f.index for f in report.failures] == [5]
    assert "died twice" in report.failures[0].reason
    assert report.n_out == 39


def test_what_cannot_be_sent_to_a_process_is_refused(tmp_path: Path):
    def local(row: JsonObject) -> JsonObject:
        return row

    with pytest.raises(UsageError, match="cannot be sent"):
        mapped(local, tmp_path / "out", engine=ProcessEngine(1))


def test_an_engine_has_a_name():
    assert isinstance(engine_named("local"), LocalEngine)
    assert isinstance(engine_named("local", processes=3), ProcessEngine)
    with pytest.raises(UsageError, match="known: local, ray"):
        engine_named("spark")


def test_text_that_is_no_utf8_survives(tmp_path: Path):
    mapped(same, tmp_path / "out", [{"n": 1, "text": "\ud800 上海"}])

    assert json.loads((tmp_path / "out").read_text())["text"] == "\ud800 上海"


KILLED = """
import asyncio, os, random, signal
from pathlib import Path
from antiphon.batch import map_rows
left = random.Random({seed}).randrange(40)
def work(row):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return {{"n": row["n"] * 2}}
asyncio.run(map_rows(work, [{{"n": n}} for n in range(120)], Path({out!r}), concurrency=4))
"""


def killed(out: Path, seed: int) -> int:
    code = KILLED.format(out=str(out), seed=seed)
    return subprocess.run([sys.executable, "-c", code], check=False).returncode


@pytest.mark.slow
def test_a_stage_killed_twenty_times_gives_the_same_rows(tmp_path: Path):
    ends = [killed(tmp_path / "out", seed) for seed in range(20)]

    mapped(works.doubled, tmp_path / "out", [{"n": n} for n in range(120)])

    assert -9 in ends
    assert content(tmp_path / "out") == [2 * n for n in range(120)]


def test_a_killed_stage_gives_the_same_rows(tmp_path: Path):
    assert killed(tmp_path / "out", 1) == -9

    report = mapped(works.doubled, tmp_path / "out", [{"n": n} for n in range(120)])

    assert 0 < report.n_done < 120
    assert content(tmp_path / "out") == [2 * n for n in range(120)]
