"""`antiphon serve` as a process: it says where it listens, answers, and goes down in order."""

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli import main
from antiphon.cli.serve import _agent  # pyright: ignore[reportPrivateUsage]
from antiphon.errors import UsageError


def test_a_server_says_where_it_is_answers_and_ends_on_a_signal(tmp_path: Path) -> None:
    script = tmp_path / "hello"
    script.write_text(json.dumps(["Hello."]), "utf-8")
    command = [sys.executable, "-m", "antiphon", "serve", "--model", f"script/{script}"]
    process = subprocess.Popen(
        [*command, "--port", "0", "--alias", "gpt"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    url = process.stdout.readline().split()[0]
    asking: Any = {"model": "gpt", "messages": [{"role": "user", "content": "a secret"}]}

    request = urllib.request.Request(
        f"{url}/chat/completions", json.dumps(asking).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10) as response:
        answer = json.load(response)
    process.send_signal(signal.SIGTERM)
    _, log = process.communicate(timeout=10)

    line = json.loads(log.splitlines()[0])
    assert answer["choices"][0]["message"]["content"] == "Hello."
    assert process.returncode == 0
    assert (line["route"], line["status"], line["model"]) == ("/v1/chat/completions", 200, "hello")
    assert "secret" not in log
    assert "Hello" not in log


Capture = pytest.CaptureFixture[str]


def test_the_network_is_not_served_without_a_key(capsys: Capture) -> None:
    assert main(["serve", "--host", "0.0.0.0"]) == 2
    assert "set a key first" in capsys.readouterr().err


def test_keys_are_read_from_a_file_and_an_empty_one_is_a_mistake(
    tmp_path: Path, capsys: Capture
) -> None:
    empty = tmp_path / "keys"
    empty.write_text("\n", "utf-8")

    assert main(["serve", "--key-file", str(empty)]) == 2
    assert main(["serve", "--key-file", str(tmp_path / "none")]) == 1
    assert "there is no key" in capsys.readouterr().err


def test_a_setting_that_nobody_knows_is_a_mistake(tmp_path: Path, capsys: Capture) -> None:
    config = tmp_path / "serve.toml"
    config.write_text("prot = 8000\n", "utf-8")

    assert main(["serve", "--config", str(config)]) == 2
    assert "no setting 'prot'" in capsys.readouterr().err


AGENT = """
from antiphon import Agent, ScriptedModel
agent = Agent(name="clerk", model=ScriptedModel(["Hello."]))
def make():
    return agent
nothing = 5
"""


def test_an_agent_is_named_by_its_module_or_made_by_a_function(tmp_path: Path) -> None:
    path = tmp_path / "clerk.py"
    path.write_text(AGENT, "utf-8")

    assert _agent(f"{path}:agent").name == _agent(f"{path}:make").name == "clerk"
    with pytest.raises(UsageError, match="no Agent"):
        _agent(f"{path}:nothing")
    with pytest.raises(UsageError, match="MODULE:NAME"):
        _agent("clerk")
