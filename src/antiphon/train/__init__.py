"""Fine-tuning on encoded rows, with the exact weight of every token.

Start with `_train.py`; `_loss.py` is what is minimised, `_trainer.py` makes transformers' Trainer
use it, `_collate.py` makes its batches, `_held_out.py` measures.  `_gguf.py` writes an adapter for
llama.cpp, `_serving.py` says how the result is served.  Needs the extra ``train``; renders nothing
itself.
"""

from antiphon.train._collate import Collator
from antiphon.train._gguf import Architecture, export_adapter, write_adapter
from antiphon.train._held_out import HeldOutRow, held_out_rows, measure
from antiphon.train._serving import write_serving
from antiphon.train._settings import TrainSettings
from antiphon.train._train import TrainReport, train
from antiphon.train._trainer import make_trainer

__all__ = [
    "Architecture",
    "Collator",
    "HeldOutRow",
    "TrainReport",
    "TrainSettings",
    "export_adapter",
    "held_out_rows",
    "make_trainer",
    "measure",
    "train",
    "write_adapter",
    "write_serving",
]
