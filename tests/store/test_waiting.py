"""A store that waits for a disk or a network holds up no event loop and shows nothing early."""

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from antiphon import Agent, ScriptedModel
from antiphon.errors import RunError
from antiphon.events import Event
from antiphon.store import PostgresStore, SqliteStore
from store.places import AnyStore

Release = Callable[[], None]


def locked(place: str) -> tuple[AnyStore, Release]:
    """A store whose entries nobody can write until it is released."""
    if place.startswith("postgresql:"):
        import psycopg

        opened = PostgresStore(place)
        other = psycopg.connect(place)
        other.execute("LOCK TABLE antiphon.entries IN EXCLUSIVE MODE")
        return opened, other.close
    file = SqliteStore(Path(place), synced=True)
    own = sqlite3.connect(place, isolation_level=None)
    own.execute("BEGIN IMMEDIATE")
    return file, own.close


def test_a_store_that_waits_holds_up_no_other_work_and_nothing_is_shown_before_it_is_safe(
    place: str,
) -> None:
    store, release = locked(place)
    shown: list[Event] = []

    async def look() -> None:
        run = Agent(model=ScriptedModel(["Hi."])).run("go", store=store)
        shown.extend([event async for event in run])

    async def main() -> list[Event]:
        looking = asyncio.create_task(look())
        for _ in range(1000):  # were the loop held up, these would wait for the lock, too
            await asyncio.sleep(0)
        before = list(shown)
        release()
        await looking
        return before

    before = asyncio.run(main())

    assert before == []
    [info] = store.runs()
    assert list(store.load(info.id).events) == shown
    assert info.status == "answer"
    store.close()


def test_many_runs_at_once_are_kept_whole(place: str) -> None:
    store, release = locked(place)
    release()

    async def main() -> list[str]:
        agent = Agent(model=ScriptedModel(lambda _: "Hi."))
        results = await asyncio.gather(*(agent.run(f"{n}", store=store) for n in range(30)))
        return [result.trajectory.id for result in results]

    ids = asyncio.run(main())

    assert [store.load(id).output for id in ids] == ["Hi."] * 30
    store.close()


def test_a_run_that_was_taken_over_takes_no_other_run_with_it(place: str) -> None:
    store, release = locked(place)
    release()
    lost, other = store.begin("r1"), store.begin("r2")
    for name, journal in (("r1", lost), ("r2", other)):
        journal.append("start", {"id": name, "messages": []})
    store.write("r1", 1, "state", {"n": 1})  # as a process that took it over would

    for journal in (lost, other):
        journal.put("state", {"n": 2})
        journal.put("state", {"n": 3})
    asyncio.run(other.kept())
    with pytest.raises(RunError, match="taken over"):
        asyncio.run(lost.kept())

    assert [row for _, row in store.entries("r1")[1:]] == [{"n": 1}]
    assert [row for _, row in store.entries("r2")[1:]] == [{"n": 2}, {"n": 3}]
    store.close()
