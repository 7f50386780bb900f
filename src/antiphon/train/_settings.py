"""How a model is trained; plain values, written beside the result."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from antiphon.errors import UsageError, clip

Dtype = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How a model is trained."""

    model: str
    """What to begin with: ``hf/<directory or hub id>``, a directory, or ``gguf/<file>``."""
    out: Path
    """Where checkpoints and the result go."""
    lora_rank: int = 0
    """The rank of an adapter on every linear layer; 0 trains the whole model."""
    lora_alpha: float | None = None
    """What the adapter is scaled by, over its rank; twice the rank by default."""
    adapter: Path | None = None
    """What to begin the adapter with: the ``model`` of an earlier run, or an adapter in GGUF; a new
    one by default."""
    epochs: float = 1.0
    """How often each row is seen."""
    max_steps: int | None = None
    """How many optimizer steps at most; none by default."""
    learning_rate: float | None = None
    """The peak; 2e-4 for an adapter and 2e-5 for a whole model by default."""
    warmup: float = 0.03
    """The share of steps in which the learning rate rises; it falls in a cosine after that."""
    weight_decay: float = 0.0
    """AdamW's."""
    batch_rows: int = 1
    """Rows, or packs of rows, that a device sees at once."""
    accumulate: int = 8
    """Micro-batches of one optimizer step."""
    dtype: Dtype = "auto"
    """Numbers of the model: float32 on a CPU, bfloat16 on an accelerator by default."""
    gradient_checkpointing: bool = False
    """Whether activations are computed twice to need less memory."""
    seed: int = 7
    """Decides the order of rows and the adapter's first weights."""
    log_steps: int = 10
    """Steps between two logged losses."""
    save_steps: int = 100
    """Steps between two checkpoints, from which the same command goes on."""
    eval_steps: int = 100
    """Steps between two measurements on the held-out rows, where there are any."""
    trainer: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Further TrainingArguments of transformers by name: ``deepspeed``, ``fsdp``, ``optim``."""

    def __post_init__(self) -> None:
        for name in ("batch_rows", "accumulate", "log_steps", "save_steps", "eval_steps"):
            if getattr(self, name) < 1:
                raise UsageError(f"{name} must be 1 or more, got {getattr(self, name)}")
        if self.lora_rank < 0:
            raise UsageError(f"lora_rank must be 0 or more, got {self.lora_rank}")
        if self.adapter is not None and not self.lora_rank:
            raise UsageError("an adapter to begin with needs lora_rank, the rank that it has")
        if self.epochs <= 0 and self.max_steps is None:
            raise UsageError(f"epochs must be above 0, got {self.epochs:g}")
        own = sorted(set(self.trainer) & _OWN)
        if own:
            raise UsageError(
                f"{clip(own[0])} follows from the settings and cannot be given to the trainer too; "
                f"set {_OWN_NAMES.get(own[0], own[0])} instead"
            )

    @property
    def peak(self) -> float:
        """The highest learning rate."""
        if self.learning_rate is not None:
            return self.learning_rate
        return 2e-4 if self.lora_rank else 2e-5

    @property
    def alpha(self) -> float:
        """What the adapter is scaled by, over its rank."""
        return 2.0 * self.lora_rank if self.lora_alpha is None else self.lora_alpha

    def describe(self) -> dict[str, Any]:
        """What decides the result, as JSON."""
        row = asdict(self) | {"trainer": dict(self.trainer)}
        if row.pop("adapter") is not None:
            row["adapter"] = str(self.adapter)
        for beside in ("out", "log_steps", "save_steps", "eval_steps"):
            del row[beside]
        return row


_OWN_NAMES = {
    "output_dir": "out",
    "per_device_train_batch_size": "batch_rows",
    "gradient_accumulation_steps": "accumulate",
    "num_train_epochs": "epochs",
    "max_steps": "max_steps",
    "learning_rate": "learning_rate",
    "seed": "seed",
    "gradient_checkpointing": "gradient_checkpointing",
    "logging_steps": "log_steps",
    "save_steps": "save_steps",
    "eval_steps": "eval_steps",
    "bf16": "dtype",
}
_OWN = {*_OWN_NAMES, "remove_unused_columns", "average_tokens_across_devices", "use_cache"}
