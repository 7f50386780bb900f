"""The weighted loss: the sum of weight times cross entropy, over the sum of weights.

Labels are not shifted (house rule of `antiphon.encode`): position ``t`` holds the token at ``t``,
which the logits of ``t - 1`` predict.  The sum of weights is that of the whole optimizer step,
over its micro-batches and devices, so that neither decides how much a token counts.
"""

import inspect
from typing import Any

from antiphon.encode import IGNORE
from antiphon.train._libraries import library


def weight_sum(batch: dict[str, Any]) -> Any:
    """The weights that count in a micro-batch, summed; a tensor without shape."""
    targets, weights = batch["labels"][:, 1:], batch["loss_weights"][:, 1:]
    return (weights * (targets != IGNORE)).sum()


def token_losses(model: Any, batch: dict[str, Any]) -> tuple[Any, Any, Any, Any]:
    """Cross entropies of the tokens that count, and what they belong to.

    Logits are made only at the positions where some row's next token counts.

    Args:
        model: A causal language model.
        batch: What `Collator` gives.

    Returns:
        The losses, shape ``(B, K)``; their weights, 0 where a row's token does not count, the same
        shape; whether each token would have been the most likely one, the same shape; and the
        ``K`` positions of the tokens.
    """
    torch = library("torch")
    targets = batch["labels"][:, 1:]
    weights = batch["loss_weights"][:, 1:] * (targets != IGNORE)
    before = (weights > 0).any(dim=0).nonzero()[:, 0]
    if not len(before):
        before = torch.zeros(1, dtype=torch.long, device=targets.device)
    inputs = {k: v for k, v in batch.items() if k not in ("labels", "loss_weights")}
    logits = _logits(model, inputs, before).float()
    chosen = targets[:, before].clamp(min=0)
    losses = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), chosen.flatten(), reduction="none"
    ).view(chosen.shape)
    right = logits.detach().argmax(dim=-1) == chosen
    return losses, weights[:, before], right, before + 1


def _logits(model: Any, inputs: dict[str, Any], positions: Any) -> Any:
    """The logits at some positions; from the whole where the model cannot choose."""
    if "logits_to_keep" in _parameters(model):
        return model(**inputs, use_cache=False, logits_to_keep=positions).logits
    return model(**inputs, use_cache=False).logits[:, positions]


def _parameters(model: Any) -> set[str]:
    """The names of what the model's own forward takes, below what wraps it."""
    inner = model
    while hasattr(inner, "module"):  # DistributedDataParallel, DeepSpeed
        inner = inner.module
    if hasattr(inner, "get_base_model"):  # peft
        inner = inner.get_base_model()
    return set(inspect.signature(inner.forward).parameters)
