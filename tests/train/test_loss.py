"""The loss and its gradient are those of a slow reference, however a step is cut into batches."""

from dataclasses import replace
from typing import Any

import pytest

from antiphon.encode import EncodedRow, Encoder, pack, to_row, unpack
from antiphon.errors import UsageError
from antiphon.train import Collator, TrainSettings, make_trainer, share
from antiphon.train._attention import Tree, trees
from antiphon.train._loss import token_losses, weight_sum
from antiphon.train._model import share_in
from antiphon.train._share import branches, is_shared
from antiphon.train._train import _arguments  # pyright: ignore[reportPrivateUsage]
from tiny_training import FERRY, conversation, tiny_model

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


def trained_step(
    rows: list[EncodedRow], batch_rows: int, tmp_path: Any, *, attention: str = "sdpa"
) -> tuple[float, Any]:
    """Loss and gradient of one optimizer step, as the Trainer makes them."""
    model = tiny_model(attn_implementation=attention).train()
    settings = TrainSettings("unused", tmp_path, batch_rows=batch_rows)
    packed = any((row.position_ids == 0).sum() > 1 for row in rows)
    shared = next(filter(is_shared, rows), None)
    collate = Collator(257, packed, "" if shared is None else share_in(model, shared))
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


@pytest.fixture(scope="module")
def alike(encoder: Encoder) -> list[EncodedRow]:
    """Two groups of rows, each with the same tool in its prompts."""
    other = replace(FERRY, name="boat", description="When the boat leaves, and from which pier.")
    asked = [(FERRY, "Holm", "9"), (FERRY, "Elba", ""), (FERRY, "Rab", "10"), (other, "Ven", "8")]
    asked += [(other, "Texel", "7")]
    made = [replace(conversation(place, answer), tools=(t,)) for t, place, answer in asked]
    return [to_row(encoder.encode(c), i) for i, c in enumerate(made)]


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize(("max_tokens", "n"), [(4000, 1), (1500, 2)])
def test_what_rows_begin_with_is_computed_once_and_a_step_stays_the_same(
    alike: list[EncodedRow], max_tokens: int, n: int, attention: str, tmp_path: Any
) -> None:
    model = tiny_model().train()
    expected = reference(model, alike)
    expected.backward()
    given = pack(share(alike, max_tokens), max_tokens)

    loss, grad = trained_step(given, 1, tmp_path, attention=attention)

    assert len(given) == n
    assert sum(map(len, given)) < 0.7 * sum(map(len, alike))
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    expected_grad = gradient(model)
    assert float((grad - expected_grad).norm() / expected_grad.norm()) < 1e-4


def test_shared_rows_come_apart_again(alike: list[EncodedRow]) -> None:
    joined = share(alike, 4000)

    apart = [one for row in joined for one in branches(row)]

    assert [is_shared(row) for row in joined] == [True, True]
    assert [one.input_ids.tolist() for one in apart] == [row.input_ids.tolist() for row in alike]
    assert [one.labels.tolist() for one in apart] == [row.labels.tolist() for row in alike]
    assert not is_shared(alike[0])
    assert [len(share(alike[:n], 10)) for n in (0, 2)] == [0, 2]
    with pytest.raises(UsageError, match="rows that are packed cannot share"):
        share(pack(alike, 4000), 4000)


def test_a_row_with_branches_is_trees_behind_each_other(alike: list[EncodedRow]) -> None:
    (row,) = pack(share(alike, 4000), 4000)

    first, second = trees(row.position_ids) or []

    assert (len(first.lengths), len(second.lengths)) == (3, 2)
    apart = [tree.n_shared + n for tree in (first, second) for n in tree.lengths]
    assert apart == [len(one) for one in alike]
    assert trees([0, 1, 2, 0, 1]) == [Tree(0, (3,)), Tree(0, (2,))]
    assert trees([0, 1, 2, 3, 2, 3, 1]) is None


def test_padded_rows_are_measured_with_the_attention_that_rows_with_branches_need(
    alike: list[EncodedRow],
) -> None:
    model = tiny_model().eval()
    padded = Collator(257, packed=False)(alike[:3])
    inputs = {k: v for k, v in padded.items() if k not in ("labels", "loss_weights")}
    expected = model(**inputs).logits

    assert share_in(model, share(alike, 4000)[0]) == ""

    there = inputs["attention_mask"].bool()
    assert torch.allclose(model(**inputs).logits[there], expected[there], atol=1e-5)


def test_a_model_whose_attention_has_a_window_takes_a_mask(alike: list[EncodedRow]) -> None:
    (row, *_) = share(alike, 4000)
    transformers: Any = pytest.importorskip("transformers")
    sizes = {k: v for k, v in tiny_model().config.to_dict().items() if isinstance(v, int)}
    config = transformers.MistralConfig(**sizes, sliding_window=4000)

    assert share_in(transformers.MistralForCausalLM(config), row) == "bool"


def test_a_model_that_heeds_no_mask_is_refused(alike: list[EncodedRow]) -> None:
    (row, *_) = share(alike, 4000)
    model = tiny_model()
    model.config._attn_implementation = "flash_attention_2"
    with pytest.raises(UsageError, match="needs sdpa or eager attention"):
        share_in(model, row)
    model.config._attn_implementation = "eager"
    forward = model.model.forward

    def heedless(attention_mask: Any = None, **given: Any) -> Any:
        return forward(**given)

    model.model.forward = heedless

    with pytest.raises(UsageError, match="does not heed a mask of its own"):
        share_in(model, row)


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
