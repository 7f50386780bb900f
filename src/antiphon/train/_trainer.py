"""transformers' Trainer with our loss: exact weights under any accumulation and on any devices.

Overrides what a Trainer counts by (`_get_num_items_in_batch`), its loss and its evaluation, and
says that the loss is scaled already.  Source: transformers 5.24, ``trainer.py``.
"""

from collections.abc import Callable
from typing import Any

from antiphon.train._libraries import library
from antiphon.train._loss import token_losses, weight_sum

Measure = Callable[[Any], dict[str, float]]
"""Measures a model on held-out rows: the numbers by name."""


def make_trainer(*, measure: Measure | None = None, **arguments: Any) -> Any:
    """A Trainer.

    Args:
        measure: Measures the model at each evaluation; every process calls it.
        arguments: What transformers' Trainer takes.
    """
    base: Any = library("transformers").Trainer

    class WeightedTrainer(base):
        """Trains on `Collator`'s batches."""

        model_accepts_loss_kwargs = True
        loss_is_scaled_for_ga = True

        def _get_num_items_in_batch(self, batch_samples: list[Any], device: Any) -> Any:
            if not batch_samples:
                return None
            sums: list[Any] = [weight_sum(batch) for batch in batch_samples]
            total: Any = library("torch").stack(sums).sum().to(device)
            if self.args.world_size > 1:
                total = self.accelerator.gather(total).sum()
            return total / self.get_tp_size()

        def compute_loss(
            self,
            model: Any,
            inputs: dict[str, Any],
            return_outputs: bool = False,
            num_items_in_batch: Any = None,
        ) -> Any:
            losses, weights, _, _ = token_losses(model, inputs)
            total = weights.sum() if num_items_in_batch is None else num_items_in_batch
            loss = (losses * weights).sum() / total.clamp(min=1e-9)
            if self.model.training:  # gradients are averaged over the devices
                loss = loss * (self.accelerator.num_processes // self.get_tp_size())
            return (loss, None) if return_outputs else loss

        def evaluate(self, *_: Any, metric_key_prefix: str = "eval", **__: Any) -> dict[str, float]:
            assert measure is not None
            was_training = self.model.training
            self.model.eval()
            numbers = measure(self.model_wrapped)
            self.model.train(was_training)
            named = {f"{metric_key_prefix}_{key}": value for key, value in numbers.items()}
            self.log(dict(named))
            self.control = self.callback_handler.on_evaluate(
                self.args, self.state, self.control, named
            )
            return named

    return WeightedTrainer(**arguments)
