"""A process killed at any moment loses nothing that it showed and repeats no finished call."""

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.events import Trajectory, event_to_row
from antiphon.store import open_store

PROGRAM = """
import asyncio, os, sys
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

async def main():
    store = open_store(sys.argv[1])
    agent = Agent(model=ScriptedModel(answer, chunk_chars=3), tools=[work])
    known = store.runs(session=sys.argv[2])
    if known:
        run = agent.resume(known[0].id, store=store)
    else:
        run = agent.run("go", store=store, session=sys.argv[2])
    async for event in run:
        print(dump_row(event_to_row(event)), flush=True)

asyncio.run(main())
"""
N_KILLS = int(os.environ.get("ANTIPHON_KILLS", "200"))


@pytest.mark.slow
def test_runs_killed_at_random_moments_end_whole(place: str, tmp_path: Path) -> None:
    n_kills = n_runs = 0
    while n_kills < N_KILLS:
        folder = tmp_path / f"run {n_runs}"
        folder.mkdir()
        shown, killed = kill_until_it_ends(place, folder, random.Random(n_runs))
        with_whole_record(place, folder, shown)
        n_kills += killed
        n_runs += 1


def kill_until_it_ends(
    place: str, folder: Path, chance: random.Random
) -> tuple[list[dict[str, Any]], int]:
    """Start a run, kill its process, go on with it, until it ends: all it showed, and the kills."""
    shown: list[dict[str, Any]] = []
    n_kills = 0
    while True:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, place, folder.name],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        for _ in range(chance.randrange(1, 40)):
            line = process.stdout.readline()
            if not line.endswith("\n"):
                break
            shown.append(json.loads(line))
        for _ in range(chance.randrange(2000)):  # a moment, not of the process's own choosing
            os.getpid()
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().splitlines(keepends=True)
        shown += [json.loads(line) for line in rest if line.endswith("\n")]
        process.stdout.close()
        n_kills += process.wait() == -signal.SIGKILL
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
