"""TRL's trainers of preferences on our rows: the ids that we encoded, and only what a model wrote.

TRL encodes every row itself, and counts every token of an answer, a tool's result in the middle of
it too.  Here rows stay as they are, and ``chosen_mask`` and ``rejected_mask`` say what counts.
Source: trl 1.16, ``dpo_trainer.py``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.encode._numpy import np
from antiphon.train._libraries import library


@dataclass(frozen=True, slots=True)
class PairCollator:
    """Makes a batch of `antiphon.encode.pair_row`'s rows: first all better answers, then all
    worse."""

    pad_id: int
    """The token to pad with."""

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """``input_ids``, ``attention_mask`` and ``completion_mask``, shape ``(2 B, T)``."""
        torch = library("torch")
        sides = [(row, side) for side in ("chosen", "rejected") for row in rows]
        width = max(len(row["prompt_ids"]) + len(row[f"{side}_ids"]) for row, side in sides)
        ids = np.full((len(sides), width), self.pad_id, dtype=np.int64)
        attention = np.zeros_like(ids)
        counts = np.zeros_like(ids)
        for i, (row, side) in enumerate(sides):
            start = len(row["prompt_ids"])
            whole = [*row["prompt_ids"], *row[f"{side}_ids"]]
            ids[i, : len(whole)] = whole
            attention[i, : len(whole)] = 1
            counts[i, start : len(whole)] = row[f"{side}_mask"]
        named = {"input_ids": ids, "attention_mask": attention, "completion_mask": counts}
        return {name: torch.from_numpy(array) for name, array in named.items()}


def make_dpo_trainer(*, pad_id: int, **arguments: Any) -> Any:
    """A DPOTrainer that takes rows of `antiphon.encode.pair_row` as they are.

    Args:
        pad_id: The token to pad with.
        arguments: What TRL's DPOTrainer takes; ``args.remove_unused_columns`` must be off.

    Raises:
        MissingExtraError: trl is not installed.
    """
    base: Any = library("trl", extra="trl", what="training on preferences").DPOTrainer

    class PairTrainer(base):
        """Encodes nothing again."""

        def _prepare_dataset(self, dataset: Any, *_: Any, **__: Any) -> Any:
            return dataset

    return PairTrainer(data_collator=PairCollator(pad_id), **arguments)
