"""Fine-tuning on encoded rows, in checkpoints: the same call goes on where it was stopped.

A run leaves ``run.json`` (settings, digest of the rows), ``checkpoints/``, ``history.json`` (all
that was logged) and ``model/`` (weights or adapter, tokenizer, ``antiphon.json``).
"""

import hashlib
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from antiphon.encode import EncodedRow, make_directory, pack
from antiphon.errors import DataError, UsageError, clip
from antiphon.events import written_whole
from antiphon.formats import Format, Kept, keep_history_in
from antiphon.train._adapter import add_in_place
from antiphon.train._collate import Collator, is_packed
from antiphon.train._held_out import HeldOutRow, measure
from antiphon.train._libraries import library
from antiphon.train._model import (
    check_packing,
    check_vocabulary,
    load_model,
    save_beside,
    share_in,
    source_of,
)
from antiphon.train._serving import write_serving
from antiphon.train._settings import TrainSettings
from antiphon.train._share import is_shared, share
from antiphon.train._trainer import make_trainer

_COMPLETE = "complete"
"""The file that tells a whole checkpoint from one that was being written when the run ended."""

Progress = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class TrainReport:
    """What a run did."""

    n_rows: int
    """Rows, or packs of rows."""
    n_steps: int
    """Optimizer steps, those before an interruption too."""
    seconds: float
    """Time of this part of the run."""
    model: Path
    """Where the result is."""
    resumed_at: int = 0
    """The step that this part of the run began at."""
    history: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What was logged: ``step`` with ``loss``, ``learning_rate``, ``grad_norm``, and ``eval_...``
    at each measurement."""


def train(
    settings: TrainSettings,
    rows: Sequence[EncodedRow],
    *,
    format: Format | None = None,
    held_out: Sequence[HeldOutRow] = (),
    pack_tokens: int | None = None,
    share_tokens: int | None = None,
    progress: Progress | None = None,
) -> TrainReport:
    """Train a model, or an adapter, on encoded rows.

    Args:
        settings: How.
        rows: The rows; packed or not.
        format: The format that they were encoded with, to be written beside the result.
        held_out: Rows to measure on; see `held_out_rows`.
        pack_tokens: Pack the rows up to so many tokens.
        share_tokens: The same, and compute what consecutive rows begin with only once.
        progress: Takes each line that is logged.

    Raises:
        UsageError: The directory holds a run of other settings or rows, there are no rows, or the
            model cannot be trained as it is asked for.
        DataError: The model cannot be loaded, or a file cannot be written.
        MissingExtraError: The extra ``train`` is not installed.
    """
    if share_tokens:
        rows = pack(share(rows, share_tokens), share_tokens)
    elif pack_tokens:
        rows = pack(rows, pack_tokens)
    if not len(rows):
        raise UsageError("there are no rows to train on; encode some first")
    shared = next(filter(is_shared, rows), None)
    packed = shared is not None or any(map(is_packed, rows))
    began = perf_counter()
    arguments = _arguments(settings, has_held_out=bool(held_out))
    if arguments.n_gpu > 1:
        raise UsageError(
            f"this process sees {arguments.n_gpu} devices; start one process for each, "
            "with accelerate launch"
        )
    _claim(settings, rows)
    model = load_model(settings)
    check_vocabulary(model, rows)
    if packed and shared is None:
        check_packing(model, next(filter(is_packed, rows)))
    mask = "" if shared is None else share_in(model, shared)
    pad_id = getattr(model.config, "pad_token_id", None) or 0
    trainer = make_trainer(
        measure=lambda wrapped: measure(wrapped, held_out, pad_id=pad_id),
        model=model,
        args=arguments,
        train_dataset=rows,
        eval_dataset=held_out or None,
        data_collator=Collator(pad_id, packed, mask),
        callbacks=[_callback(settings, progress)],
    )
    trainer.remove_callback(library("transformers").PrinterCallback)
    if settings.lora_rank and _whole_on_a_cpu(trainer):
        add_in_place(model)
    last = _last_checkpoint(settings.out)
    out = settings.out / "model"
    with _named(settings.out):
        trainer.train(resume_from_checkpoint=str(last) if last else None)
        if held_out and not _measured_last(trainer.state):
            trainer.evaluate()
        # All processes take part where the weights are spread over them.
        trainer.save_model(str(out))
    report = TrainReport(
        n_rows=len(rows),
        n_steps=trainer.state.global_step,
        seconds=perf_counter() - began,
        model=out,
        resumed_at=int(last.name.partition("-")[2]) if last else 0,
        history=[line for line in trainer.state.log_history if "train_runtime" not in line],
    )
    if trainer.is_world_process_zero():
        unwrapped = trainer.accelerator.unwrap_model(trainer.model)
        save_beside(unwrapped, source_of(settings.model), out)
        if isinstance(format, Kept):
            keep_history_in(out)
        if format is not None:
            write_serving(out, format, base=source_of(settings.model), adapter=settings.lora_rank)
        _write(settings.out / "history.json", report.history)
    return report


def _whole_on_a_cpu(trainer: Any) -> bool:
    """Whether each process holds the model as it is, and computes in its numbers."""
    spread = trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled
    mixed = trainer.args.bf16 or trainer.args.fp16
    return trainer.args.device.type == "cpu" and not spread and not mixed


def _arguments(settings: TrainSettings, *, has_held_out: bool) -> Any:
    torch, transformers = library("torch"), library("transformers")
    on_device = torch.accelerator.is_available()
    try:
        return transformers.TrainingArguments(
            output_dir=str(settings.out / "checkpoints"),
            per_device_train_batch_size=settings.batch_rows,
            gradient_accumulation_steps=settings.accumulate,
            num_train_epochs=settings.epochs,
            max_steps=settings.max_steps or -1,
            learning_rate=settings.peak,
            seed=settings.seed,
            logging_steps=settings.log_steps,
            save_steps=settings.save_steps,
            eval_steps=settings.eval_steps,
            bf16=on_device and settings.dtype in ("auto", "bfloat16"),
            remove_unused_columns=False,
            average_tokens_across_devices=True,
            **{
                "warmup_steps": settings.warmup,
                "weight_decay": settings.weight_decay,
                "lr_scheduler_type": "cosine",
                "eval_strategy": "steps" if has_held_out else "no",
                "save_total_limit": 2,
                "disable_tqdm": True,
                "report_to": "none",
                "use_cpu": not on_device,
                **_recomputed(settings, transformers),
                **settings.trainer,
            },
        )
    except TypeError as error:
        raise UsageError(f"the trainer refuses its arguments: {error}") from error


def _recomputed(settings: TrainSettings, transformers: Any) -> dict[str, Any]:
    """Gradient checkpointing by the name that this transformers gives it."""
    if not settings.gradient_checkpointing:
        return {}
    known = transformers.TrainingArguments.__dataclass_fields__
    name = "activation_checkpointing" if "activation_checkpointing" in known else ""
    return {name or "gradient_checkpointing": True}


def _callback(settings: TrainSettings, progress: Progress | None) -> Any:
    base: Any = library("transformers").TrainerCallback

    class Callback(base):
        """Tells what is logged, and marks checkpoints that are whole."""

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            if progress is not None and state.is_world_process_zero and logs:
                progress({"step": state.global_step, "n_steps": state.max_steps} | logs)

        def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                done = settings.out / "checkpoints" / f"checkpoint-{state.global_step}" / _COMPLETE
                done.touch()

    return Callback()


@contextmanager
def _named(out: Path) -> Generator[None]:
    """Say of a disk that fills what it is: each library that writes has an error of its own."""
    try:
        yield
    except (OSError, RuntimeError, library("safetensors").SafetensorError) as error:
        if isinstance(error, RuntimeError) and "PytorchStreamWriter" not in str(error):
            raise
        reason = error.strerror if isinstance(error, OSError) else str(error).partition("\n")[0]
        raise DataError(
            f"a file cannot be written: {clip(str(reason).lower(), 200)}; "
            "the same command goes on from the last whole checkpoint",
            path=out,
        ) from error


def _measured_last(state: Any) -> bool:
    return any(
        line["step"] == state.global_step and "eval_loss" in line for line in state.log_history
    )


def _last_checkpoint(out: Path) -> Path | None:
    whole = [done.parent for done in (out / "checkpoints").glob(f"checkpoint-*/{_COMPLETE}")]
    return max(whole, key=lambda path: int(path.name.partition("-")[2]), default=None)


def _claim(settings: TrainSettings, rows: Sequence[EncodedRow]) -> None:
    """Say whose run the directory holds, and refuse to go on with another one."""
    make_directory(settings.out)
    path = settings.out / "run.json"
    # As it will be read again.
    claim = json.loads(json.dumps({"settings": settings.describe(), "rows": _digest(rows)}))
    try:
        known = cast("dict[str, Any]", json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        _write(path, claim)
        return
    except (OSError, ValueError) as error:
        raise DataError(
            "this is no record of a run; remove the directory or choose another one", path=path
        ) from error
    if known != claim:
        old, new = known.get("settings", {}), claim["settings"]
        differing = [key for key in new if old.get(key) != new[key]] or ["the rows"]
        raise UsageError(
            f"{settings.out} holds a run with other {', '.join(differing)}; "
            "choose another directory or remove this one"
        )


def _digest(rows: Sequence[EncodedRow]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(len(row).to_bytes(8, "little"))
        for array in (row.input_ids, row.labels, row.position_ids):
            digest.update(array.astype("<i4").tobytes())
        digest.update(row.loss_weights.astype("<f4").tobytes())
    return digest.hexdigest()


def _write(path: Path, value: object) -> None:
    try:
        with written_whole(path) as aside:
            aside.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", "utf-8")
    except OSError as error:
        reason = (error.strerror or "").lower()
        raise DataError(f"cannot be written: {reason}", path=path) from error
