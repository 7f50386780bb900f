"""A synthesis that is killed again and again ends with the rows of one that never was."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOOL = '''
import os, signal

left = int(os.environ.get("KILLED_AFTER", "1000000"))


def ferry(to: str) -> str:
    """When the ferry leaves.

    Args:
        to: The harbour.
    """
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"to {to} at 9"
'''
CATALOG = {
    "tools": [
        {
            "id": "ferry",
            "parameters": [{"key": "to", "slot": "harbour", "required": True}],
            "questions": ["When is the ferry to {to}?", "Is there a ferry to {to}?"],
            "answers": ["It goes {result}."],
        }
    ]
}
CONFIG = """
[[toolset]]
python = ["tools.py:ferry"]
catalogs = ["ferries.json"]

[tasks]
count = 150
kinds = { single = 2, multi_turn = 1 }

[limits]
concurrency = 8
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOL)
    (tmp_path / "ferries.json").write_text(json.dumps(CATALOG))
    harbours = {"harbour": ["Holm", "Elba", "Rab", "Ven", "Texel"]}
    (tmp_path / "slots_ferries.json").write_text(json.dumps(harbours))
    (tmp_path / "synth.toml").write_text(CONFIG)
    return tmp_path / "synth.toml"


def made(config: Path, out: str, killed_after: int = 1_000_000) -> int:
    words = [
        sys.executable,
        "-m",
        "antiphon",
        "synth",
        str(config),
        "--out",
        str(config.parent / out),
    ]
    env = os.environ | {"KILLED_AFTER": str(killed_after)}
    return subprocess.run(words, env=env, capture_output=True, check=False).returncode


def rows(config: Path, out: str, name: str) -> list[Any]:
    """What does not depend on time."""
    lines = (config.parent / out / name).read_text("utf-8").splitlines()
    read = [json.loads(line) for line in lines]
    return [
        [row[key] for key in ("id", "messages", "turns", "tools") if key in row] for row in read
    ]


@pytest.mark.slow
def test_a_synthesis_killed_twenty_times_ends_with_the_same_rows(config: Path) -> None:
    draw = random.Random(8)

    ends = [made(config, "killed", draw.randrange(1, 12)) for _ in range(20)]

    assert ends == [-9] * 20
    assert not (config.parent / "killed" / "runs.jsonl").exists()
    assert made(config, "killed") == made(config, "whole") == 0
    for name in ("tasks.jsonl", "runs.jsonl"):
        assert rows(config, "killed", name) == rows(config, "whole", name)
    assert len(rows(config, "killed", "runs.jsonl")) == 150
