"""Several processes make the step that one would, and the launcher's files are what it reads."""

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from antiphon.encode import EncodedRow
from antiphon.encode._shards import ShardBuilder, write_index, write_whole

LAUNCH = Path(__file__).parents[2] / "docs" / "guides" / "launch"

PROGRAM = """
import json, sys
from pathlib import Path
from antiphon.encode import EncodedRows, Encoder, load_tokenizer
from antiphon.formats import get_format
from antiphon.messages import Conversation, Message
from antiphon.train import TrainSettings, held_out_rows, train

directory, rows, out, accumulate, rank, trainer = sys.argv[1:]
trainer = json.loads(trainer)
pack = trainer.pop("pack", None)
settings = TrainSettings(
    f"hf/{directory}", Path(out), max_steps=3, accumulate=int(accumulate), learning_rate=1e-2,
    lora_rank=int(rank), log_steps=1, save_steps=2, eval_steps=3,
    trainer={"max_grad_norm": 0.0, "data_seed": 3} | trainer,
)
encoder = Encoder(load_tokenizer(directory), get_format("qwen2_5"))
asked = Conversation((Message.user("Ferry?"), Message.assistant("At nine.")))
held_out = held_out_rows(encoder, [asked])
report = train(settings, EncodedRows(rows), held_out=held_out, pack_tokens=pack)
print(report.resumed_at)
"""

SHARDED = """
from accelerate import PartialState
from accelerate.utils import DistributedType
from torch.distributed.fsdp import FSDPModule
from antiphon.train import _train

# accelerate spreads weights over devices only; here each process stands for one.
PartialState(cpu=True)
PartialState._shared_state["distributed_type"] = DistributedType.MULTI_GPU
make_trainer = _train.make_trainer


def checked(**arguments):
    trainer = make_trainer(**arguments)
    training_step = trainer.training_step

    def step(model, *rest):
        assert isinstance(trainer.accelerator.unwrap_model(model), FSDPModule)
        spread = [p for p in model.parameters() if hasattr(p, "to_local")]
        here = sum(p.to_local().numel() for p in spread)
        assert here < 0.7 * sum(p.numel() for p in spread)
        return training_step(model, *rest)

    trainer.training_step = step
    return trainer


_train.make_trainer = checked
"""

FSDP: dict[str, Any] = {
    "accelerator_config": {"use_configured_state": True},
    "fsdp": True,
    "fsdp_config": {"version": 2, "transformer_layer_cls_to_wrap": "Qwen2DecoderLayer"},
}


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


@pytest.fixture(scope="module")
def shards(rows: list[EncodedRow], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four rows, as `antiphon encode` writes them."""
    directory = tmp_path_factory.mktemp("rows")
    builder = ShardBuilder()
    for row in rows[:4]:
        builder.add(row)
    write_whole(directory / "rows-00000.safetensors", builder.to_bytes("safetensors", {}))
    write_index(directory, {"shards": [{"file": "rows-00000.safetensors"}], "job": {}})
    return directory


def launched(
    n: int,
    program: str,
    out: Path,
    *given: Path,
    rank: int = 0,
    launcher: Sequence[str] = (),
    **trainer: Any,
) -> str:
    """Train in some processes, as one step of four rows; what they print."""
    file = out.with_suffix(".py")
    file.write_text(program, "utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["-m", "torch.distributed.run", f"--nproc_per_node={n}", f"--master_port={port}"]
    if launcher:
        words = ["-m", "accelerate.commands.launch", *launcher, f"--num_processes={n}"]
        words += [f"--main_process_port={port}"]
    words += [str(file), *map(str, given), str(out), str(4 // n), str(rank), json.dumps(trainer)]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def alone(base: Path, shards: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process."""
    out = tmp_path_factory.mktemp("launched") / "one"
    launched(1, PROGRAM, out, base, shards)
    return out


def weights(out: Path) -> dict[str, Any]:
    safetensors: Any = pytest.importorskip("safetensors.torch")
    return safetensors.load_file(str(next((out / "model").glob("*.safetensors"))))


def losses(out: Path) -> list[float]:
    lines = json.loads((out / "history.json").read_text())
    return [line[key] for line in lines for key in ("loss", "eval_loss") if key in line]


def resumed_at(said: str) -> list[int]:
    """Where each process went on; DeepSpeed, where it is installed, prints among that."""
    return [int(line) for line in said.splitlines() if line.isdigit()]


def assert_alike(one: Path, two: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    ours, theirs = weights(one), weights(two)
    assert ours.keys() == theirs.keys()
    for key, matrix in ours.items():
        assert torch.allclose(matrix, theirs[key], rtol=1e-4, atol=1e-5), key
    assert losses(one) == pytest.approx(losses(two), rel=1e-4)


@pytest.mark.slow
def test_two_processes_make_the_step_of_one(
    base: Path, shards: Path, alone: Path, tmp_path: Path
) -> None:
    torch: Any = pytest.importorskip("torch")
    safetensors: Any = pytest.importorskip("safetensors.torch")
    launched(2, PROGRAM, tmp_path / "two", base, shards)

    assert_alike(alone, tmp_path / "two")
    started = safetensors.load_file(str(base / "model.safetensors"))
    ended = weights(alone)
    assert any(not torch.equal(ended[key], started[key]) for key in ended)


@pytest.mark.slow
def test_weights_that_are_spread_over_two_processes_end_as_those_of_one(
    base: Path, shards: Path, alone: Path, tmp_path: Path
) -> None:
    """PyTorch's FSDP2 itself, on gloo."""
    out = tmp_path / "spread"
    launched(2, SHARDED + PROGRAM, out, base, shards, **FSDP)
    assert_alike(alone, out)

    ended = weights(out)
    shutil.rmtree(out / "model")
    shutil.rmtree(out / "checkpoints" / "checkpoint-3")
    said = launched(2, SHARDED + PROGRAM, out, base, shards, **FSDP)

    assert resumed_at(said) == [2, 2]
    assert all(bool((ended[key] == matrix).all()) for key, matrix in weights(out).items())


@pytest.mark.slow
def test_an_adapter_of_weights_that_are_spread_ends_as_that_of_one_process(
    base: Path, shards: Path, tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    launched(1, PROGRAM, tmp_path / "one", base, shards, rank=4)

    launched(2, SHARDED + PROGRAM, tmp_path / "spread", base, shards, rank=4, **FSDP)

    assert_alike(tmp_path / "one", tmp_path / "spread")


ZERO = ("--config_file", str(LAUNCH / "deepspeed_zero3.yaml"), "--mixed_precision=no")


@pytest.mark.slow
def test_weights_that_deepspeed_spreads_end_as_those_of_one_process(
    base: Path, shards: Path, alone: Path, tmp_path: Path
) -> None:
    """DeepSpeed's third stage under accelerate's launcher with our file, on gloo."""
    pytest.importorskip("deepspeed")
    out = tmp_path / "spread"
    launched(2, PROGRAM, out, base, shards, launcher=ZERO)
    assert_alike(alone, out)

    ended = weights(out)
    shutil.rmtree(out / "model")
    shutil.rmtree(out / "checkpoints" / "checkpoint-3")
    said = launched(2, PROGRAM, out, base, shards, launcher=ZERO)

    assert resumed_at(said) == [2, 2]
    assert all(bool((ended[key] == matrix).all()) for key, matrix in weights(out).items())


@pytest.mark.slow
def test_an_adapter_and_packed_rows_that_deepspeed_spreads_end_as_those_of_one_process(
    base: Path, shards: Path, tmp_path: Path
) -> None:
    """Gradients are cut at a norm that they pass, so that both cut alike."""
    pytest.importorskip("deepspeed")
    pytest.importorskip("peft")
    given: dict[str, Any] = {"rank": 4, "max_grad_norm": 0.01, "pack": 256}
    launched(1, PROGRAM, tmp_path / "one", base, shards, **given)

    launched(2, PROGRAM, tmp_path / "spread", base, shards, launcher=ZERO, **given)

    assert_alike(tmp_path / "one", tmp_path / "spread")
