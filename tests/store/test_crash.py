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

from antiphon.events import event_to_row
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
    store = open_store("runs.db")
    agent = Agent(model=ScriptedModel(answer, chunk_chars=3), tools=[work])
    known = store.runs()
    run = agent.resume(known[0].id, store=store) if known else agent.run("go", store=store)
    async for event in run:
        print(dump_row(event_to_row(event)), flush=True)

asyncio.run(main())
"""
N_KILLS = int(os.environ.get("ANTIPHON_KILLS", "30"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(N_KILLS))
def test_a_run_killed_again_and_again_ends_whole(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    shown: list[dict[str, Any]] = []
    ended = False
    while not ended:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        for _ in range(chance.randrange(1, 60)):
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
        process.wait()
        ended = bool(shown) and shown[-1]["type"] == "run_end"

    store = open_store(tmp_path / "runs.db")
    record = store.load(store.runs()[0].id)
    kept = [json.loads(json.dumps(event_to_row(event))) for event in record.events]
    left = iter(kept)
    assert all(event in left for event in shown)  # in order; what was kept may not have been seen
    assert (record.output, record.stop_reason) == ("All is done.", "answer")
    done = (tmp_path / "done.txt").read_text().split()
    assert len(done) == len(set(done))
    results = {m.tool_call_id: m.text for m in record.conversation.messages if m.role == "tool"}
    assert list(results) == [f"{turn}{letter}" for turn in range(4) for letter in "ab"]
    for name, text in results.items():
        assert text == f"did {name}" if "unknown" not in text else True
        assert name in done or "unknown" in text
