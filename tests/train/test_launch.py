"""Several processes make the step that one would, and the launcher's files are what it reads."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon.encode import EncodedRow
from antiphon.encode._shards import ShardBuilder, write_index

LAUNCH = Path(__file__).parents[2] / "docs" / "guides" / "launch"

PROGRAM = """
import json, sys
from pathlib import Path
from antiphon.encode import EncodedRows
from antiphon.train import TrainSettings, train

directory, rows, out, accumulate = sys.argv[1:]
settings = TrainSettings(
    f"hf/{directory}", Path(out), max_steps=3, accumulate=int(accumulate), learning_rate=1e-2,
    log_steps=1, trainer={"max_grad_norm": 0.0, "data_seed": 3},
)
train(settings, EncodedRows(rows))
"""


def test_each_file_is_read_by_the_launcher() -> None:
    pytest.importorskip("accelerate")
    config: Any = pytest.importorskip("accelerate.commands.config.config_args")
    found = {path.stem: config.load_config_from_file(str(path)) for path in LAUNCH.glob("*.yaml")}

    assert {name: str(read.distributed_type).split(".")[-1] for name, read in found.items()} == {
        "ddp": "MULTI_GPU",
        "fsdp2": "FSDP",
        "deepspeed_zero3": "DEEPSPEED",
    }
    assert found["fsdp2"].fsdp_config["fsdp_version"] == 2
    assert found["deepspeed_zero3"].deepspeed_config["zero_stage"] == 3
    assert all(read.mixed_precision == "bf16" for read in found.values())


@pytest.mark.slow
def test_two_processes_make_the_step_of_one(
    base: Path, rows: list[EncodedRow], tmp_path: Path
) -> None:
    pytest.importorskip("accelerate")
    torch: Any = pytest.importorskip("torch")
    safetensors: Any = pytest.importorskip("safetensors.torch")
    shards = tmp_path / "rows"
    shards.mkdir()
    builder = ShardBuilder()
    for row in rows[:4]:
        builder.add(row)
    builder.write(shards / "rows-00000.safetensors", {})
    write_index(shards, {"shards": [{"file": "rows-00000.safetensors"}], "job": {}})
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, "utf-8")

    for name, n, accumulate in (("one", 1, "4"), ("two", 2, "2")):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = ["-m", "torch.distributed.run", f"--nproc_per_node={n}", f"--master_port={port}"]
        words += [str(program), str(base), str(shards), str(tmp_path / name), accumulate]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]

    one, two = (
        safetensors.load_file(str(tmp_path / name / "model" / "model.safetensors"))
        for name in ("one", "two")
    )
    started = safetensors.load_file(str(base / "model.safetensors"))
    assert any(not torch.equal(one[key], started[key]) for key in one)
    for key in one:
        assert torch.allclose(one[key], two[key], rtol=1e-4, atol=1e-5), key
    losses = [
        [
            line["loss"]
            for line in json.loads((tmp_path / n / "history.json").read_text())
            if "loss" in line
        ]
        for n in ("one", "two")
    ]
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
