"""An adapter's layers on a CPU give what peft's own give."""

from pathlib import Path
from typing import Any

import pytest

from antiphon.encode import EncodedRow
from antiphon.train import Collator, TrainSettings
from antiphon.train._adapter import add_in_place
from antiphon.train._loss import token_losses
from antiphon.train._model import load_model

torch: Any = pytest.importorskip("torch")
peft: Any = pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")


def adapted(base: Path, dtype: Any) -> Any:
    """The tiny model with an adapter that changes what it says."""
    model = load_model(TrainSettings(f"hf/{base}", Path("unused"), lora_rank=4, dtype=dtype))
    torch.manual_seed(3)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return model.train()


def step(model: Any, row: EncodedRow) -> tuple[float, dict[str, Any]]:
    """The loss of a row and its gradients by name."""
    losses, weights, _, _ = token_losses(model, Collator(257, packed=False)([row]))
    loss = (losses * weights).sum() / weights.sum()
    loss.backward()
    named = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return float(loss.detach()), named


@pytest.mark.parametrize(("dtype", "limit"), [("float32", 1e-5), ("bfloat16", 4e-2)])
def test_loss_and_gradients_are_those_of_peft(
    base: Path, rows: list[EncodedRow], dtype: Any, limit: float
) -> None:
    loss, gradients = step(adapted(base, dtype), rows[0])
    model = adapted(base, dtype)
    add_in_place(model)

    own_loss, own = step(model, rows[0])

    assert own_loss == pytest.approx(loss, rel=limit / 10)
    assert own.keys() == gradients.keys()
    assert all("lora_" in name and g.dtype == torch.float32 for name, g in own.items())
    for name, expected in gradients.items():
        assert float((own[name] - expected).norm() / expected.norm()) < limit, name


@pytest.mark.filterwarnings("ignore:.*(lora_bias|LoRA tensor)")  # peft's, of an adapter's bias
@pytest.mark.parametrize("more", [{"use_dora": True}, {"lora_dropout": 0.5}, {"lora_bias": True}])
def test_an_earlier_adapter_that_does_more_is_computed_by_peft(
    base: Path, rows: list[EncodedRow], tmp_path: Path, more: dict[str, Any]
) -> None:
    plain = load_model(TrainSettings(f"hf/{base}", Path("unused")))
    lora = peft.LoraConfig(r=4, target_modules="all-linear", task_type="CAUSAL_LM", **more)
    peft.get_peft_model(plain, lora).save_pretrained(str(tmp_path))
    settings = TrainSettings(f"hf/{base}", Path("unused"), lora_rank=4, adapter=tmp_path)

    def stepped(*, in_place: bool) -> tuple[float, dict[str, Any]]:
        model = load_model(settings).train()
        if in_place:
            add_in_place(model)
        torch.manual_seed(5)
        return step(model, rows[0])

    loss, gradients = stepped(in_place=False)
    own_loss, own = stepped(in_place=True)

    assert own_loss == loss
    assert own.keys() == gradients.keys()
    assert all(torch.equal(own[name], gradients[name]) for name in own)


def test_what_computes_no_gradients_stays_exact(base: Path, rows: list[EncodedRow]) -> None:
    model = adapted(base, "bfloat16")
    ids = torch.tensor(rows[0].input_ids[None].tolist())
    with torch.no_grad():
        expected = model(input_ids=ids).logits
        add_in_place(model)
        assert torch.equal(model(input_ids=ids).logits, expected)
