"""A run goes on where it was stopped, refuses what is not its own, and says how it is served."""

import json
import signal
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antiphon.encode import EncodedRow, Encoder
from antiphon.errors import DataError, UsageError
from antiphon.formats import get_format
from antiphon.train import (
    Architecture,
    TrainSettings,
    export_adapter,
    held_out_rows,
    train,
    write_adapter,
    write_serving,
)
from tiny_training import CONVERSATIONS

torch: Any = pytest.importorskip("torch")
safetensors: Any = pytest.importorskip("safetensors.torch")
pytest.importorskip("accelerate")

# peft's, of names of transformers that it still uses.
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")

QWEN = get_format("qwen2_5")


def settings(base: Path, out: Path, **changed: Any) -> TrainSettings:
    usual: dict[str, Any] = {"epochs": 4, "accumulate": 2, "learning_rate": 1e-2, "save_steps": 3}
    given: dict[str, Any] = usual | {"log_steps": 1} | changed
    return TrainSettings(f"hf/{base}", out, **given)


def weights(directory: Path) -> dict[str, Any]:
    return safetensors.load_file(str(next(directory.glob("model/*.safetensors"))))


class Stop(Exception):
    pass


def stop_at(step: int) -> Any:
    def progress(line: Mapping[str, Any]) -> None:
        if line["step"] == step:
            raise Stop

    return progress


@pytest.mark.parametrize("rank", [0, 4])
def test_a_run_that_was_stopped_ends_with_the_weights_of_one_that_was_not(
    base: Path, rows: list[EncodedRow], tmp_path: Path, rank: int
) -> None:
    if rank:
        pytest.importorskip("peft")
    train(settings(base, tmp_path / "whole", lora_rank=rank), rows)
    stopped = settings(base, tmp_path / "stopped", lora_rank=rank)
    with pytest.raises(Stop):
        train(stopped, rows, progress=stop_at(8))

    report = train(stopped, rows)

    assert report.resumed_at == 6
    assert report.n_steps == 12
    whole, resumed = weights(tmp_path / "whole"), weights(tmp_path / "stopped")
    assert whole.keys() == resumed.keys()
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


def test_a_run_begins_with_the_adapter_of_an_earlier_one(
    base: Path, rows: list[EncodedRow], tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    first = train(settings(base, tmp_path / "first", lora_rank=4), rows)
    again = {"lora_rank": 4, "max_steps": 1, "learning_rate": 0.0, "adapter": first.model}

    second = train(settings(base, tmp_path / "second", **again), rows)

    assert second.history[0]["loss"] < first.history[0]["loss"]
    kept, begun = weights(tmp_path / "second"), weights(tmp_path / "first")
    assert all(torch.equal(kept[key], begun[key]) for key in begun)
    for adapter in (first.model, exported(first.model)):
        other = again | {"lora_rank": 8, "adapter": adapter}
        with pytest.raises(UsageError, match="has the rank 4, not 8"):
            train(settings(base, tmp_path / adapter.name, **other), rows)
    with pytest.raises(DataError, match="this is no adapter to begin with"):
        train(settings(base, tmp_path / "fourth", **again | {"adapter": base}), rows)


def exported(model: Path) -> Path:
    pytest.importorskip("gguf")
    export_adapter(model, model / "adapter.gguf")
    return model / "adapter.gguf"


def test_a_run_begins_with_an_adapter_in_gguf(
    base: Path, rows: list[EncodedRow], tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    first = train(settings(base, tmp_path / "first", lora_rank=4, lora_alpha=6), rows)
    file = exported(first.model)
    again = {"lora_rank": 4, "max_steps": 1, "learning_rate": 0.0, "adapter": file}

    second = train(settings(base, tmp_path / "second", **again), rows)

    kept, begun = weights(tmp_path / "second"), weights(tmp_path / "first")
    assert kept.keys() == begun.keys()
    assert all(torch.equal(kept[key], begun[key].half().float()) for key in begun)
    said = json.loads((tmp_path / "second" / "model" / "adapter_config.json").read_text())
    assert (said["r"], said["lora_alpha"]) == (4, 6)
    assert second.history[0]["loss"] < first.history[0]["loss"]


def test_what_is_no_adapter_in_gguf_is_named(
    base: Path, rows: list[EncodedRow], tmp_path: Path
) -> None:
    pytest.importorskip("peft")
    pytest.importorskip("gguf")
    torn, other, wide = (tmp_path / f"{name}.gguf" for name in ("torn", "other", "wide"))
    torn.write_bytes(b"GGUF")
    llama = Architecture("llama", n_layers=9, n_heads=2, n_kv_heads=1)
    for layer, file in ((8, other), (0, wide)):
        name = f"model.layers.{layer}.mlp.up_proj.lora_"
        write_adapter({name + half: np.ones((4, 4)) for half in "AB"}, file, llama, alpha=8)
    for file, said in (
        (torn, "is no GGUF file"),
        (other, "has no place for 'blk.8.ffn_up"),
        (wide, "no adapter to begin with: .*size mismatch for .* the shape in current model"),
    ):
        with pytest.raises(DataError, match=said):
            train(settings(base, tmp_path / file.stem, lora_rank=4, adapter=file), rows)


def test_training_lowers_the_loss_of_what_is_trained_and_measures_what_is_held_out(
    base: Path, rows: list[EncodedRow], encoder: Encoder, tmp_path: Path
) -> None:
    held_out = held_out_rows(encoder, CONVERSATIONS)

    report = train(
        settings(base, tmp_path, epochs=8, eval_steps=8, accumulate=1),
        rows[:2],
        held_out=held_out,
        pack_tokens=600,
    )

    measured = [line for line in report.history if "eval_loss" in line]
    assert [line["step"] for line in measured] == [8]
    assert measured[0]["eval_loss"] < 0.8 * report.history[0]["loss"]
    assert {f"eval_loss_{kind}" for kind in ("text", "call", "end")} < measured[0].keys()
    assert 0 <= measured[0]["eval_calls_right"] <= 1
    assert json.loads((tmp_path / "history.json").read_text()) == report.history


@pytest.mark.parametrize("allowed", [100, 60_000])
def test_a_disk_that_fills_is_named_and_the_run_goes_on_from_its_last_checkpoint(
    base: Path, rows: list[EncodedRow], tmp_path: Path, allowed: int
) -> None:
    """The limit on a file's size stands in for the disk's: a write is cut in the same way."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    def fill(line: Mapping[str, Any]) -> None:
        if line["step"] == 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, (allowed, before[1]))

    train(settings(base, tmp_path / "whole"), rows)
    try:
        with pytest.raises(DataError, match=r"filled: a file cannot be written: .*goes on from"):
            train(settings(base, tmp_path / "filled"), rows, progress=fill)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)

    assert train(settings(base, tmp_path / "filled"), rows).resumed_at == 3
    whole, resumed = weights(tmp_path / "whole"), weights(tmp_path / "filled")
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


def test_rows_that_begin_alike_make_the_step_that_they_make_apart(
    base: Path, rows: list[EncodedRow], tmp_path: Path
) -> None:
    once = {"max_steps": 1, "log_steps": 1}
    apart = train(settings(base, tmp_path / "apart", accumulate=len(rows), **once), rows)

    shared = train(
        settings(base, tmp_path / "shared", accumulate=1, **once), rows, share_tokens=4000
    )

    assert (apart.n_rows, shared.n_rows) == (6, 1)
    assert shared.history[0]["loss"] == pytest.approx(apart.history[0]["loss"], rel=1e-5)


def test_another_run_is_not_gone_on_with(
    base: Path, rows: list[EncodedRow], tmp_path: Path
) -> None:
    train(settings(base, tmp_path, max_steps=1), rows[:2])

    with pytest.raises(UsageError, match="run with other learning_rate"):
        train(settings(base, tmp_path, max_steps=1, learning_rate=1.0), rows[:2])
    with pytest.raises(UsageError, match="run with other the rows"):
        train(settings(base, tmp_path, max_steps=1), rows[1:3])


def test_a_checkpoint_that_was_being_written_is_not_gone_on_from(
    base: Path, rows: list[EncodedRow], tmp_path: Path
) -> None:
    with pytest.raises(Stop):
        train(settings(base, tmp_path), rows, progress=stop_at(8))
    (tmp_path / "checkpoints" / "checkpoint-6" / "complete").unlink()

    assert train(settings(base, tmp_path), rows).resumed_at == 3


def test_the_result_says_how_it_is_served(
    base: Path, rows: list[EncodedRow], tmp_path: Path
) -> None:
    report = train(settings(base, tmp_path, max_steps=1), rows, format=QWEN)

    said = json.loads((report.model / "antiphon.json").read_text())
    assert said["serve"]["antiphon"] == f"hf/{report.model}?format=qwen2_5"
    assert said["serve"]["vllm"][-3:] == [
        "--tool-call-parser",
        "hermes",
        "--enable-auto-tool-choice",
    ]
    assert (report.model / "tokenizer.json").read_bytes() == (base / "tokenizer.json").read_bytes()
    assert 'PARAMETER stop "<|im_end|>"' in (report.model / "Modelfile").read_text()


def test_variants_of_the_format_are_in_the_models_spec(tmp_path: Path) -> None:
    said = write_serving(
        tmp_path, get_format("qwen3", thinking=False, edition="hybrid"), base="b.gguf", adapter=4
    )

    assert said["serve"]["antiphon"] == (
        f"gguf/b.gguf?format=qwen3&thinking=false&lora={tmp_path / 'adapter.gguf'}"
    )
    said = write_serving(tmp_path, get_format("qwen3"), base="b.gguf", adapter=0)
    assert said["serve"]["antiphon"].startswith(f"gguf/{tmp_path / 'model.gguf'}?format=qwen3")
    said = write_serving(tmp_path, get_format("qwen3", edition="instruct"), base="b", adapter=0)
    assert said["serve"]["antiphon"] == f"hf/{tmp_path}?format=qwen3&edition=instruct"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"batch_rows": 0}, "batch_rows must be 1 or more, got 0"),
        ({"epochs": 0}, "epochs must be above 0"),
        ({"adapter": Path("run/model")}, "an adapter to begin with needs lora_rank"),
        ({"trainer": {"learning_rate": 1}}, "'learning_rate' follows from the settings"),
    ],
)
def test_settings_that_cannot_be_are_refused(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        settings(Path("base"), Path("out"), **changed)


def test_what_cannot_be_trained_is_named(
    base: Path, rows: list[EncodedRow], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no rows to train on"):
        train(settings(base, tmp_path), [])
    with pytest.raises(UsageError, match="cannot be trained; give hf/"):
        train(TrainSettings("openai/gpt", tmp_path / "a"), rows)
    foreign = replace(rows[0], input_ids=rows[0].input_ids + 8)
    with pytest.raises(UsageError, match="token 267 and the model knows 264"):
        train(settings(base, tmp_path / "d"), [foreign])
    with pytest.raises(DataError, match="the model cannot be loaded"):
        train(TrainSettings(f"hf/{tmp_path}", tmp_path / "b"), rows)
    with pytest.raises(UsageError, match="the trainer refuses its arguments"):
        train(settings(base, tmp_path / "c", trainer={"no_such_argument": 1}), rows)
