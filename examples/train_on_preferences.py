"""DPO on pairs of answers: our ids, TRL's trainer, and only what the model wrote counts.

Rows are pairs in any spelling that `antiphon.datasets.read_preference` knows; the worse answer may
part from the better one at a call, and go on over a tool's result.  Needs the extra ``trl``.

    python examples/train_on_preferences.py MODEL_DIRECTORY pairs.jsonl
"""

import importlib
import sys
from pathlib import Path
from typing import Any

from antiphon import Encoder, get_format
from antiphon.datasets import iter_rows, read_preference
from antiphon.encode import load_tokenizer, pair_row
from antiphon.train import make_dpo_trainer


def encode(rows: Path, encoder: Encoder) -> list[dict[str, Any]]:
    """The pairs of a file as token ids."""
    pairs = (read_preference(row) for _, row in iter_rows(rows))
    return [pair_row(encoder, p.chosen, p.rejected, p.n_shared, margin=p.margin) for p in pairs]


def main(
    directory: Path, rows: Path, *, steps: int = 20, out: Path = Path("dpo")
) -> list[dict[str, Any]]:
    """Train, and give back what was logged."""
    trl: Any = importlib.import_module("trl")
    transformers: Any = importlib.import_module("transformers")
    datasets: Any = importlib.import_module("datasets")
    tokenizer = transformers.AutoTokenizer.from_pretrained(str(directory))
    encoder = Encoder(load_tokenizer(directory), get_format("qwen2_5"))
    trainer = make_dpo_trainer(
        pad_id=tokenizer.pad_token_id,
        model=str(directory),
        processing_class=tokenizer,
        train_dataset=datasets.Dataset.from_list(encode(rows, encoder)),
        args=trl.DPOConfig(
            output_dir=str(out),
            max_steps=steps,
            per_device_train_batch_size=2,
            learning_rate=1e-3,
            logging_steps=1,
            remove_unused_columns=False,
            save_strategy="no",
            report_to="none",
            bf16=False,
            use_cpu=True,
        ),
    )
    trainer.train()
    return list(trainer.state.log_history)


if __name__ == "__main__":
    for line in main(Path(sys.argv[1]), Path(sys.argv[2])):
        print({key: line[key] for key in ("loss", "rewards/margins") if key in line})
