"""The loss and its gradient are those of a slow reference, however a step is cut into batches."""

from typing import Any

import pytest

from antiphon.encode import EncodedRow, pack, unpack
from antiphon.train import Collator, TrainSettings, make_trainer
from antiphon.train._loss import token_losses, weight_sum
from antiphon.train._train import _arguments  # pyright: ignore[reportPrivateUsage]
from tiny_training import tiny_model

torch: Any = pytest.importorskip("torch")
pytest.importorskip("accelerate")


def reference(model: Any, rows: list[EncodedRow]) -> Any:
    """Row by row and token by token: the sum of weight times cross entropy over that of weights."""
    total, weights = torch.zeros(()), 0.0
    for row in (part for packed in rows for part in unpack(packed)):
        ids = torch.tensor(row.input_ids.tolist())
        logits = model(input_ids=ids[None], use_cache=False).logits[0].double()
        for place in range(1, len(row)):
            weight = float(row.loss_weights[place])
            if row.labels[place] != -100 and weight:
                logprob = torch.log_softmax(logits[place - 1], dim=-1)[int(row.labels[place])]
                total = total - weight * logprob
                weights += weight
    return total / weights


def gradient(model: Any) -> Any:
    return torch.cat([p.grad.flatten() for p in model.parameters()]).double()


_REFERRED: list[tuple[float, Any]] = []


def referred(rows: list[EncodedRow]) -> tuple[float, Any]:
    """The reference's loss and gradient, made once."""
    if not _REFERRED:
        model = tiny_model().train()
        loss = reference(model, rows)
        loss.backward()
        _REFERRED.append((float(loss.detach()), gradient(model)))
    return _REFERRED[0]


def trained_step(rows: list[EncodedRow], batch_rows: int, tmp_path: Any) -> tuple[float, Any]:
    """Loss and gradient of one optimizer step, as the Trainer makes them."""
    model = tiny_model().train()
    settings = TrainSettings("unused", tmp_path, batch_rows=batch_rows)
    packed = any((row.position_ids == 0).sum() > 1 for row in rows)
    collate = Collator(pad_id=257, packed=packed)
    trainer = make_trainer(
        model=model,
        args=_arguments(settings, has_held_out=False),
        train_dataset=rows,
        data_collator=collate,
    )
    batches = [collate(rows[i : i + batch_rows]) for i in range(0, len(rows), batch_rows)]
    trainer.current_gradient_accumulation_steps = len(batches)
    items, total = trainer.get_batch_samples(iter(batches), len(batches), "cpu")
    loss = sum(float(trainer.training_step(model, batch, total)) for batch in items)
    return loss, gradient(model)


@pytest.mark.parametrize("batch_rows", [1, 2, 3, 6])
@pytest.mark.parametrize("packed", [False, True])
def test_a_step_is_the_reference_under_any_cut(
    rows: list[EncodedRow], batch_rows: int, packed: bool, tmp_path: Any
) -> None:
    expected, expected_grad = referred(rows)
    given = pack(rows, 600) if packed else rows

    loss, grad = trained_step(given, batch_rows, tmp_path)

    assert {0.0, 1.0, 2.0} == {float(w) for row in rows for w in row.loss_weights}
    assert len(given) == (3 if packed else 6)
    assert loss == pytest.approx(expected, rel=1e-5)
    assert float((grad - expected_grad).norm() / expected_grad.norm()) < 1e-4


def test_logits_are_made_only_where_a_token_counts(rows: list[EncodedRow]) -> None:
    made: list[int] = []
    model = tiny_model()

    def count(_module: Any, _inputs: Any, out: Any) -> None:
        made.append(out.shape[1])

    model.lm_head.register_forward_hook(count)

    losses, weights, _, places = token_losses(model, Collator(0, packed=False)(rows[:1]))

    assert made == [int((rows[0].labels[1:] != -100).sum())] == [len(places)]
    assert losses.shape == weights.shape == (1, made[0])


def test_a_batch_without_a_token_that_counts_has_no_loss(rows: list[EncodedRow]) -> None:
    batch = Collator(0, packed=False)(rows[:2])
    batch["labels"][:] = -100

    losses, weights, _, _ = token_losses(tiny_model(), batch)

    assert float(weight_sum(batch)) == float((losses * weights).detach().sum()) == 0.0
