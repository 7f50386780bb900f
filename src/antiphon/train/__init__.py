"""Fine-tuning on encoded rows, with the exact weight of every token.

Start with `_train.py`; `_loss.py` is what is minimised, `_trainer.py` makes transformers' Trainer
use it, `_collate.py` makes its batches, `_share.py` computes once what rows begin with,
`_held_out.py` measures.  On a CPU `_attention.py` and `_adapter.py` take the place of layers of
transformers and peft.  `_gguf.py` writes an adapter and reads one, `_gguf_model.py` writes a whole
model for llama.cpp, `_serving.py` says how the result is served; these need the extra ``train``.

For trainers that learn from rewards: `_rollouts.py` gives the exact tokens of recorded runs as
others expect them, `_audit.py` tells whether they are what the format says.  `_trl.py` trains on
pairs of answers with TRL (extra ``trl``).
"""

from antiphon.train._audit import DEFECTS, Drift, TokenAudit, verify_tokens
from antiphon.train._collate import Collator
from antiphon.train._gguf import Architecture, export_adapter, write_adapter
from antiphon.train._gguf_model import GgufType, export_model
from antiphon.train._held_out import HeldOutRow, held_out_rows, measure
from antiphon.train._rollouts import (
    Rollout,
    Turn,
    rollouts_of,
    to_trl,
    to_verifiers,
    to_verl,
)
from antiphon.train._serving import write_serving
from antiphon.train._settings import TrainSettings
from antiphon.train._share import share
from antiphon.train._train import TrainReport, train
from antiphon.train._trainer import make_trainer
from antiphon.train._trl import PairCollator, make_dpo_trainer

__all__ = [
    "DEFECTS",
    "Architecture",
    "Collator",
    "Drift",
    "GgufType",
    "HeldOutRow",
    "PairCollator",
    "Rollout",
    "TokenAudit",
    "TrainReport",
    "TrainSettings",
    "Turn",
    "export_adapter",
    "export_model",
    "held_out_rows",
    "make_dpo_trainer",
    "make_trainer",
    "measure",
    "rollouts_of",
    "share",
    "to_trl",
    "to_verifiers",
    "to_verl",
    "train",
    "verify_tokens",
    "write_adapter",
    "write_serving",
]
