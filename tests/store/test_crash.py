"""A process killed at any moment loses nothing that it showed and repeats no finished call.

Each run is a process of its own, forked from one that has imported everything, so that a kill costs
milliseconds and hundreds of them fit into a test.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon.events import Trajectory, event_to_row
from antiphon.store import open_store

PROGRAM = """
import asyncio, json, os, sys
from antiphon import Agent, Message, ScriptedModel, ToolCall
from antiphon.events import dump_row, event_to_row
from antiphon.store import open_store

def work(name: str) -> str:
    "Works once."
    with open("done.txt", "a") as file:
        file.write(name + "\\n")
    return "did " + name

def answer(conversation):
    turn = sum(m.role == "assistant" for m in conversation.messages)
    if turn == 4:
        return "All is done."
    names = [f"{turn}{letter}" for letter in "ab"]
    return Message.assistant("On it.", tool_calls=[ToolCall("work", {"name": n}, n) for n in names])

async def main(place, session, out):
    store = open_store(place)
    agent = Agent(model=ScriptedModel(answer, chunk_chars=3), tools=[work])
    known = store.runs(session=session)
    if known:
        run = agent.resume(known[0].id, store=store)
    else:
        run = agent.run("go", store=store, session=session)
    async for event in run:
        os.write(out, (dump_row(event_to_row(event)) + "\\n").encode())

asyncio.run(Agent(model=ScriptedModel(["warm"]), tools=[work]).run("up")._finish())
print("ready", flush=True)
for line in sys.stdin:
    place, folder, pipe = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.chdir(folder)
        asyncio.run(main(place, os.path.basename(folder), os.open(pipe, os.O_WRONLY)))
        os._exit(0)
    print(pid, flush=True)
    sys.stdin.readline()  # the pid stays the process's own until it is no longer needed
    print(os.waitpid(pid, 0)[1], flush=True)
"""
N_KILLS = int(os.environ.get("ANTIPHON_KILLS", "200"))


@pytest.mark.slow
def test_runs_killed_at_random_moments_end_whole(place: str, tmp_path: Path) -> None:
    n_kills = n_runs = 0
    with nursery() as parent:
        while n_kills < N_KILLS:
            folder = tmp_path / f"run {n_runs}"
            folder.mkdir()
            shown, killed = kill_until_it_ends(parent, place, folder, random.Random(n_runs))
            with_whole_record(place, folder, shown)
            n_kills += killed
            n_runs += 1


Parent = subprocess.Popen[str]


@contextmanager
def nursery() -> Generator[Parent]:
    """The process that forks the others."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert told(parent) == "ready"
        yield parent
        assert parent.stdin is not None
        parent.stdin.close()
        assert parent.wait() == 0


def told(parent: Parent) -> str:
    """The next line that the forking process says."""
    assert parent.stdout is not None
    return parent.stdout.readline().strip()


def kill_until_it_ends(
    parent: Parent, place: str, folder: Path, chance: random.Random
) -> tuple[list[dict[str, Any]], int]:
    """Start a run, kill its process, go on with it, until it ends: all it showed, and the kills."""
    shown: list[dict[str, Any]] = []
    n_kills = 0
    pipe = folder / "events"
    os.mkfifo(pipe)
    assert parent.stdin is not None
    while True:
        parent.stdin.write(json.dumps([place, str(folder), str(pipe)]) + "\n")
        parent.stdin.flush()
        pid = int(told(parent))
        with pipe.open("rb") as events:
            for _ in range(chance.randrange(1, 40)):
                line = events.readline()
                if not line.endswith(b"\n"):
                    break
                shown.append(json.loads(line))
            for _ in range(chance.randrange(2000)):  # a moment, not of the process's own choosing
                os.getpid()
            os.kill(pid, signal.SIGKILL)
            rest = events.readlines()
        parent.stdin.write("\n")
        parent.stdin.flush()
        shown += [json.loads(line) for line in rest if line.endswith(b"\n")]
        n_kills += os.WTERMSIG(int(told(parent))) == signal.SIGKILL
        if shown and shown[-1]["type"] == "run_end":
            return shown, n_kills


def with_whole_record(place: str, folder: Path, shown: list[dict[str, Any]]) -> None:
    """Hold a run to what it showed and did."""
    store = open_store(place)
    record: Trajectory = store.load(store.runs(session=folder.name)[0].id)
    store.close()
    kept = [json.loads(json.dumps(event_to_row(event))) for event in record.events]
    left = iter(kept)
    assert all(event in left for event in shown)  # in order; what was kept may not have been seen
    assert (record.output, record.stop_reason) == ("All is done.", "answer")
    log = folder / "done.txt"  # missing when every call was killed before it did anything
    done = log.read_text().split() if log.exists() else []
    assert len(done) == len(set(done))
    results = {m.tool_call_id: m.text for m in record.conversation.messages if m.role == "tool"}
    assert list(results) == [f"{turn}{letter}" for turn in range(4) for letter in "ab"]
    for name, text in results.items():
        assert text == f"did {name}" or "unknown" in text
        assert name in done or "unknown" in text
