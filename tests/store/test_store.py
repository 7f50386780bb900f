"""Runs in a store: durable as they happen, gone on from, never run twice at once."""

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from antiphon.agent import Agent, run_sync
from antiphon.errors import DataError, ModelConnectionError, RunError, UnknownNameError, UsageError
from antiphon.events import Event, Trajectory, event_to_row
from antiphon.messages import JsonObject, Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.store import SqliteStore, open_store
from antiphon.tools import RunContext, tool
from store.places import AnyStore, Reopen

ADD = Message.assistant("So:", tool_calls=[ToolCall("add", {"a": 1, "b": 2}, "c1")])
TWO = Message.assistant(
    tool_calls=[ToolCall("add", {"a": 1, "b": 2}, "c2"), ToolCall("nothing", {}, "c3")]
)


@tool
def add(context: RunContext[Any], a: int, b: int) -> int:
    """Adds two numbers."""
    context.state["sum"] = a + b
    return a + b


def adder(*answers: Any, **options: Any) -> Agent:
    given: dict[str, Any] = {"tools": [add], "instructions": "Be brief."} | options
    return Agent(model=ScriptedModel(answers), **given)


def timeless(events: tuple[Event, ...]) -> list[dict[str, Any]]:
    return [
        {k: v for k, v in event_to_row(e).items() if k not in ("time", "duration")} for e in events
    ]


def test_a_kept_run_is_the_run_itself(store: AnyStore) -> None:
    result = run_sync(adder(ADD, "", TWO, "3").run("go", store=store, metadata={"tag": 1}))

    kept = store.load(result.trajectory.id)

    assert kept.events == result.trajectory.events
    assert kept.conversation.messages == result.trajectory.conversation.messages
    assert kept.steps == result.trajectory.steps
    assert (kept.usage, kept.output, kept.state) == (result.usage, "3", {"sum": 3})
    assert kept.metadata == {"tag": 1}


def test_runs_are_listed_newest_first(store: AnyStore) -> None:
    run_sync(adder("Hi.").run("one", store=store, session="s"))
    run_sync(adder(ModelConnectionError("gone")).run("two", store=store))

    listed = store.runs()

    assert [(run.question, run.status, run.is_live) for run in listed] == [
        ("two", "error", False),
        ("one", "answer", False),
    ]
    assert [run.question for run in store.runs(session="s")] == ["one"]


def test_a_session_remembers_what_was_said(store: AnyStore) -> None:
    run_sync(adder(ADD, "3").run("1+2?", store=store, session="s"))

    result = run_sync(adder("Three.").run("In words?", store=store, session="s"))

    assert [m.role for m in result.messages] == [
        *("user", "assistant", "tool", "assistant", "user", "assistant")
    ]


def cut(reopen: Reopen, run_id: str, n: int) -> Trajectory:
    """What is left of a run whose process died after its first n entries."""
    dying = reopen()
    journal = dying.begin(f"cut {n}")
    for kind, row in dying.entries(run_id)[:n]:
        journal.append(kind, dict(row) | ({"id": f"cut {n}"} if kind == "start" else {}))
    dying.close()
    return reopen().load(f"cut {n}")


def test_a_run_broken_off_after_any_entry_ends_as_if_it_never_was(
    store: AnyStore, reopen: Reopen
) -> None:
    script = [ADD, "", TWO, "It is 3."]
    whole = run_sync(adder(*script).run("go", store=store)).trajectory
    n_entries = len(store.entries(whole.id))

    for n in range(2, n_entries):
        broken = cut(reopen, whole.id, n)
        if broken.stop_reason == "answer":
            continue
        agent = adder(*script[len(broken.steps) :])
        result = run_sync(agent.resume(f"cut {n}", store=store))

        assert result.output == "It is 3."
        again = store.load(f"cut {n}")
        assert again.conversation.messages == result.trajectory.conversation.messages
        shown = timeless(broken.events)
        assert timeless(again.events)[: len(shown)] == shown
        tools = [m for m in result.messages if m.role == "tool"]
        assert len(tools) == 3
        for message in tools:
            assert message.text == "3" or "unknown" in message.text or "no tool" in message.text


def test_a_finished_call_is_not_executed_again(store: AnyStore, reopen: Reopen) -> None:
    ran: list[str] = []

    def note(name: str) -> str:
        ran.append(name)
        return f"noted {name}"

    both = Message.assistant(
        tool_calls=[ToolCall("note", {"name": "a"}, "c1"), ToolCall("note", {"name": "b"}, "c2")]
    )
    whole = run_sync(adder(both, "ok", tools=[note]).run("go", store=store)).trajectory
    kinds = [kind for kind, _ in store.entries(whole.id)]
    cut(reopen, whole.id, kinds.index("result") + 1)
    ran.clear()

    result = run_sync(
        adder("ok", tools=[note]).resume(f"cut {kinds.index('result') + 1}", store=store)
    )

    texts = sorted(m.text[:10] for m in result.messages if m.role == "tool")
    assert ran == []
    assert texts[1].startswith("noted")
    assert texts[0].startswith("The run wa")


def test_an_idempotent_call_is_executed_again(store: AnyStore, reopen: Reopen) -> None:
    ran: list[int] = []

    @tool(idempotent=True)
    def look() -> str:
        ran.append(1)
        return "seen"

    asks = Message.assistant(tool_calls=[ToolCall("look", {}, "c1")])
    whole = run_sync(adder(asks, "ok", tools=[look]).run("go", store=store)).trajectory
    n = [kind for kind, _ in store.entries(whole.id)].index("result")
    cut(reopen, whole.id, n)
    ran.clear()

    result = run_sync(adder("ok", tools=[look]).resume(f"cut {n}", store=store))

    assert (ran, result.messages[2].text) == ([1], "seen")


def test_a_paused_run_waits_in_the_store(store: AnyStore) -> None:
    @tool(approval=True)
    def pay() -> str:
        return "paid"

    asks = Message.assistant(tool_calls=[ToolCall("pay", {}, "c1")])
    paused = run_sync(adder(asks, tools=[pay]).run("go", store=store))

    agent = adder("ok", tools=[pay])
    result = run_sync(agent.resume(paused.trajectory.id, {"c1": True}, store=store))

    assert (paused.stop_reason, result.messages[2].text) == ("pending", "paid")
    assert [e.type for e in store.load(paused.trajectory.id).events].count("run_end") == 1


def test_a_run_that_is_going_on_is_not_taken_over(store: AnyStore) -> None:
    store.begin("r1").append("start", {"id": "r1", "messages": []})

    with pytest.raises(RunError, match="is being run by"):
        store.claim("r1")


def test_a_run_of_another_living_process_is_not_taken_over(place: str, store: AnyStore) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, place],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"

    with pytest.raises(RunError, match="is being run by"):
        store.claim("r1")
    assert [info.is_live for info in store.runs()] == [True]

    process.kill()
    process.wait()
    process.stdin.close()
    process.stdout.close()
    assert [info.is_live for info in store.runs()] == [False]
    store.claim("r1").append("state", {"n": 1})
    assert store.load("r1").state == {"n": 1}


HOLDER = """
import sys
from antiphon.store import open_store
store = open_store(sys.argv[1])
store.begin("r1").append("start", {"id": "r1", "messages": []})
print("held", flush=True)
sys.stdin.read()
"""


def test_a_worker_that_lost_its_run_writes_nothing_more(reopen: Reopen) -> None:
    lost = reopen().begin("r1")
    lost.append("start", {"id": "r1", "messages": []})
    store = reopen()
    entry: tuple[str, JsonObject] = ("event", {"type": "step_start", "step": 0, "agent": "a"})
    store.write("r1", 1, *entry)  # as a process that took it over would

    with pytest.raises(RunError, match="taken over"):
        lost.append("event", {"type": "step_start", "step": 0, "agent": "b"})

    assert store.entries("r1")[1:] == [entry]


def test_text_that_no_database_takes_is_kept_readable(store: AnyStore) -> None:
    result = run_sync(adder("odd \x00 \ud83d name").run("\x00 \ud83d?", store=store))

    assert store.runs()[0].question == "\\x00 \\ud83d?"
    assert store.load(result.trajectory.id).output == "odd \x00 \ud83d name"


def test_a_store_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version=99")

    with pytest.raises(DataError, match="version 99 and this antiphon knows"):
        SqliteStore(path)


def test_a_server_that_is_not_there_is_one_line_without_the_password() -> None:
    pytest.importorskip("psycopg")

    with pytest.raises(DataError, match="no store of runs") as caught:
        open_store("postgresql://me:secret@127.0.0.1:1/none")

    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_is_not_there_is_named(store: AnyStore, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no run 'r9'"):
        store.load("r9")
    with pytest.raises(UnknownNameError, match="no run 'r9'"):
        store.claim("r9")
    with pytest.raises(UsageError, match="no store for 'mongodb'"):
        open_store("mongodb://here")
    with pytest.raises(UsageError, match="needs a store"):
        adder("Hi.").run("go", session="s")
    text = tmp_path / "notes.txt"
    text.write_text("no database " * 100)
    with pytest.raises(DataError, match="no store of runs"):
        open_store(text)


PROGRAM = """
import os, sys
from pathlib import Path
from antiphon import Agent, Message, ScriptedModel, ToolCall
from antiphon.store import open_store

def work(name: str) -> str:
    "Works."
    if name == "slow":
        print("under way", flush=True)
        import time; time.sleep(60)
    Path("done.txt").open("a").write(name + "\\n")
    return "did " + name

both = Message.assistant(tool_calls=[ToolCall("work", {"name": n}, n) for n in ("quick", "slow")])
agent = Agent(model=ScriptedModel([both, "ok"]), tools=[work])
print(agent.run("go", store=open_store("runs.db"), session="s").wait())
"""


def test_a_killed_process_lets_go_of_its_run_and_the_session_goes_on(tmp_path: Path) -> None:
    """strands-agents/harness-sdk#859."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "under way\n"
    while not (tmp_path / "done.txt").exists() or kept(tmp_path) < 1:
        pass
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    store = open_store(tmp_path / "runs.db")
    result = run_sync(adder("Gone on.").run("go on", store=store, session="s"))

    tools = {m.tool_call_id: m.text for m in result.messages if m.role == "tool"}
    assert tools["quick"] == "did quick"
    assert "interrupted" in tools["slow"]
    assert (tmp_path / "done.txt").read_text() == "quick\n"
    assert result.output == "Gone on."


def kept(path: Path) -> int:
    """How many results the store of a running process holds."""
    os.sched_yield()
    store = open_store(path / "runs.db")
    n = sum(kind == "result" for run in store.runs() for kind, _ in store.entries(run.id))
    store.close()
    return n
