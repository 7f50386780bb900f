"""Encoded rows as the tensors of one micro-batch.

Rows that hold one example each are padded to one shape ``(B, T)``, with a mask.  Packed rows become
one row ``(1, T)`` without a mask and without padding: attention tells examples apart by positions
that restart, and looks at them only where there is no mask.  Rows that share their beginning have a
mask of their own, ``(1, 1, T, T)``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from antiphon.encode import EncodedRow, batch
from antiphon.encode._numpy import np
from antiphon.train._libraries import library
from antiphon.train._share import paths


@dataclass(frozen=True, slots=True)
class Collator:
    """Makes a micro-batch of rows."""

    pad_id: int
    """The token to pad with; told by its place, so that an end mark may serve."""
    packed: bool
    """Whether any row holds several examples."""
    mask: Literal["", "bool", "float"] = ""
    """How the model's attention takes the mask of rows with branches; empty where none has any."""

    def __call__(self, rows: Sequence[EncodedRow]) -> dict[str, Any]:
        """Token ids, labels, loss weights and positions as tensors."""
        torch = library("torch")
        arrays = _flat(rows) if self.packed else batch(rows, pad_id=self.pad_id)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        if self.mask:
            seen = torch.from_numpy(paths(arrays["position_ids"][0]))[None, None]
            hidden = torch.finfo(torch.float32).min
            tensors["attention_mask"] = seen if self.mask == "bool" else (~seen).float() * hidden
        return tensors


def is_packed(row: EncodedRow) -> bool:
    """Whether a row holds several examples."""
    return int(np.count_nonzero(np.asarray(row.position_ids) == 0)) > 1


def _flat(rows: Sequence[EncodedRow]) -> dict[str, Any]:
    """Rows behind each other; the first token of each predicts nothing of the row before."""
    starts = np.cumsum([0, *(len(row) for row in rows[:-1])])
    labels = np.concatenate([row.labels for row in rows]).astype(np.int64)
    weights = np.concatenate([row.loss_weights for row in rows]).astype(np.float32)
    labels[starts] = -100
    weights[starts] = 0.0
    return {
        "input_ids": np.concatenate([row.input_ids for row in rows]).astype(np.int64)[None],
        "labels": labels[None],
        "loss_weights": weights[None],
        "position_ids": np.concatenate([row.position_ids for row in rows]).astype(np.int64)[None],
    }
