"""Train the embedded model's LoRA adapter on encoded conversations, on a CPU.

    python scripts/embedded_model/train.py build/train.jsonl --base BASE.gguf --out build/adapter

Rows of one group share their prompt's beginning (the tools).  They are laid out as a tree: the
common
tokens once, then each row's own, with positions that go on after the common part and an
attention mask
that hides the rows from each other.  Logits and gradients are those of separate rows (a test
compares
them); the common part is computed once instead of seven times, and logits only where a token is
trained.

The trees of one step are shared out to worker processes of one thread each, whose gradients are
added: on two cores this is half again as fast as two threads in one process.  A checkpoint is
written every few steps; the same command goes on from it.  The base is the dequantised
GGUF that the runtime loads, so the adapter corrects exactly the weights that it will run on.
"""

import argparse
import json
import math
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as distributed
import torch.multiprocessing
from peft import LoraConfig, get_peft_model
from peft.tuners.lora import Linear as LoraLinear
from transformers import AttentionInterface, AutoModelForCausalLM, GgufConfig

from antiphon.datasets import read_row
from antiphon.encode import Encoder, TrainingExample, load_tokenizer
from antiphon.formats import get_format

FORMATS: dict[str, Any] = {
    "smollm2": lambda: get_format("smollm2", compact=True),
    "react_en": lambda: get_format("react_en", frame="smollm2"),
}


@dataclass(frozen=True)
class Tree:
    """Rows of one group, laid out with their common prefix once.  ``T`` tokens in all."""

    token_ids: np.ndarray
    """Shape (T,)."""
    positions: np.ndarray
    """Shape (T,): as if each row stood alone."""
    labels: np.ndarray
    """Shape (T,): the token to predict *at the next position* of the same row; -100 elsewhere."""
    weights: np.ndarray
    """Shape (T,): the weight of that prediction."""
    row: np.ndarray
    """Shape (T,): which row a token belongs to; -1 for the common prefix."""

    @property
    def n_shared(self) -> int:
        """Tokens of the common prefix."""
        return int((self.row == -1).sum())

    def mask(self) -> torch.Tensor:
        """Which token the rows' own tokens see, added to scores; shape (1, 1, T - n_shared, T)."""
        row = torch.from_numpy(self.row)
        own = row[self.n_shared :]
        seen = (own[:, None] == row[None, :]) | (row[None, :] == -1)
        seen &= torch.ones_like(seen).tril(self.n_shared)
        return torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)[None, None]


def lay_out(examples: Sequence[TrainingExample]) -> Tree:
    """Lay out rows as a tree.  What any row trains is in its own branch, and never shared."""
    trained = [np.nonzero(e.labels != -100)[0] for e in examples]
    common = _common_prefix([e.token_ids for e in examples])
    shared = min([common, *(int(places[0]) for places in trained if len(places))])
    # The first token after the prefix is predicted by the prefix's last token, once for each row:
    # keep one prompt token in every branch, so that each branch makes its own predictions.
    shared = max(0, shared - 1)
    ids = [examples[0].token_ids[:shared]]
    positions = [np.arange(shared)]
    labels = [np.full(shared, -100)]
    weights = [np.zeros(shared, dtype=np.float32)]
    rows = [np.full(shared, -1)]
    for number, example in enumerate(examples):
        own = example.token_ids[shared:]
        ids.append(own)
        positions.append(np.arange(shared, shared + len(own)))
        labels.append(np.append(example.labels[shared + 1 :], -100))
        weights.append(np.append(example.loss_weights[shared + 1 :], 0).astype(np.float32))
        rows.append(np.full(len(own), number))
    return Tree(*(np.concatenate(parts) for parts in (ids, positions, labels, weights, rows)))


def _common_prefix(rows: Sequence[np.ndarray]) -> int:
    length = min(len(r) for r in rows)
    for other in rows[1:]:
        different = np.nonzero(rows[0][:length] != other[:length])[0]
        if len(different):
            length = int(different[0])
    return length


def read_trees(path: Path, tokenizer: Any, max_tokens: int) -> Iterator[Tree]:
    """Encode a file and lay out its groups; a group over `max_tokens` is split."""
    encoders = {name: Encoder(tokenizer, make()) for name, make in FORMATS.items()}
    group: list[TrainingExample] = []
    current: Any = None
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            conversation = read_row(row)
            if row["group"] != current or sum(len(e.token_ids) for e in group[1:]) > 8 * max_tokens:
                if group:
                    yield from _split(group, max_tokens)
                group, current = [], row["group"]
            group.append(encoders[row["format"]].encode(conversation))
    if group:
        yield from _split(group, max_tokens)


def _split(group: list[TrainingExample], max_tokens: int) -> Iterator[Tree]:
    tree = lay_out(group)
    if len(tree.token_ids) <= max_tokens or len(group) == 1:
        yield tree
        return
    yield from _split(group[: len(group) // 2], max_tokens)
    yield from _split(group[len(group) // 2 :], max_tokens)


def tree_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    *,
    scaling: float,
    n_shared: int,
    **_: object,
) -> tuple[torch.Tensor, None]:
    """Attention of one tree: the prefix over itself, then every row over the prefix and itself.

    Half the work of one square mask, and on a CPU a batched product with its softmax is faster
    than the fused kernel with a mask.
    """
    groups = query.shape[1] // key.shape[1]
    key, value = (x.repeat_interleave(groups, dim=1) for x in (key, value))
    shared = torch.nn.functional.scaled_dot_product_attention(
        query[:, :, :n_shared],
        key[:, :, :n_shared],
        value[:, :, :n_shared],
        is_causal=True,
        scale=scaling,
    )
    mask = attention_mask[0].to(query.dtype).expand(query.shape[1], -1, -1)
    scores = torch.baddbmm(mask, query[0, :, n_shared:], key[0].transpose(1, 2), alpha=scaling)
    own = torch.softmax(scores, dim=-1) @ value[0]
    return torch.cat([shared, own[None]], dim=2).transpose(1, 2).contiguous(), None


def tree_loss(model: Any, tree: Tree) -> tuple[torch.Tensor, float]:
    """Weighted sum of cross entropies of one tree, and the sum of weights."""
    body = model.base_model.model.model
    hidden = body(
        input_ids=torch.from_numpy(tree.token_ids)[None],
        attention_mask=tree.mask(),
        position_ids=torch.from_numpy(tree.positions)[None],
        use_cache=False,
        n_shared=tree.n_shared,
    ).last_hidden_state[0]
    trained = torch.from_numpy(np.nonzero(tree.labels != -100)[0])
    logits = model.base_model.model.lm_head(hidden[trained]).float()
    labels = torch.from_numpy(tree.labels)[trained]
    weights = torch.from_numpy(tree.weights)[trained]
    losses = torch.nn.functional.cross_entropy(logits, labels, reduction="none")
    return (losses * weights).sum(), float(weights.sum())


def shares(trees: Sequence[Tree], n_workers: int) -> list[list[Tree]]:
    """The trees of one step by worker, so that all have about as many tokens."""
    parts: list[list[Tree]] = [[] for _ in range(n_workers)]
    for tree in sorted(trees, key=lambda t: -len(t.token_ids)):
        min(parts, key=lambda part: sum(len(t.token_ids) for t in part)).append(tree)
    return parts


def learning_rate(step: int, n_steps: int, peak: float) -> float:
    """Linear warm-up over 15 steps, then a cosine down to a twentieth."""
    if step < 15:
        return peak * (step + 1) / 15
    done = (step - 15) / max(1, n_steps - 15)
    return peak * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))


def lora_forward(layer: Any, x: torch.Tensor) -> torch.Tensor:
    """One linear layer with its adapter: two products, and a third that adds in place."""
    (name,) = layer.active_adapters
    base = layer.base_layer(x)
    inner = layer.lora_A[name](x).flatten(0, -2)
    outer = layer.lora_B[name].weight.T
    return torch.addmm(base.flatten(0, -2), inner, outer, alpha=layer.scaling[name]).view_as(base)


def load_model(base: Path, rank: int) -> Any:
    """The dequantised base with a fresh adapter on every linear layer, in bfloat16."""
    model = AutoModelForCausalLM.from_pretrained(
        str(base.parent),
        gguf_file=base.name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(dequantize=True),
    )
    return adapted(model, rank)


def adapted(model: Any, rank: int) -> Any:
    """A model with a fresh adapter that computes trees."""
    AttentionInterface.register("tree", tree_attention)
    model.set_attn_implementation("tree")
    lora = LoraConfig(r=rank, lora_alpha=2 * rank, target_modules="all-linear", lora_dropout=0.0)
    with_adapter = get_peft_model(model, lora, autocast_adapter_dtype=False)
    for layer in with_adapter.modules():
        if isinstance(layer, LoraLinear):
            layer.forward = partial(lora_forward, layer)
    return with_adapter


class Trainer:
    """One run of training: model, masters in float32, step count, all of it in checkpoints."""

    def __init__(self, model: Any, trees: Sequence[Tree], arguments: argparse.Namespace) -> None:
        self.model = model
        self.rank = distributed.get_rank()
        self.trees = trees
        self.arguments = arguments
        self.parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self.masters = {
            n: p.detach().float().clone().requires_grad_() for n, p in self.parameters.items()
        }
        self.optimizer = torch.optim.AdamW(
            self.masters.values(), lr=arguments.lr, weight_decay=0.0, betas=(0.9, 0.98)
        )
        self.step = 0
        self.n_steps = math.ceil(len(trees) * arguments.epochs / arguments.trees_per_step)
        self.losses: list[float] = []

    @property
    def checkpoint(self) -> Path:
        return self.arguments.out / "checkpoint.pt"

    def resume(self) -> None:
        """Go on from a checkpoint, if there is one, or start from another adapter's weights."""
        if self.checkpoint.exists():
            state = torch.load(self.checkpoint, weights_only=True)
            self.step, self.losses = state["step"], state["losses"]
            self.optimizer.load_state_dict(state["optimizer"])
            self._load(state["masters"])
            self.say(f"resumed at step {self.step}")
        elif self.arguments.init:
            self._load(torch.load(self.arguments.init, weights_only=True)["masters"])

    def _load(self, masters: dict[str, torch.Tensor]) -> None:
        with torch.no_grad():
            for name, master in self.masters.items():
                master.copy_(masters[name])
        self._publish()

    def _publish(self) -> None:
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(self.masters[name].to(parameter.dtype))

    def say(self, text: str) -> None:
        """Print one line, once for all workers."""
        if self.rank == 0:
            print(text, flush=True)

    def save(self) -> None:
        """Write the checkpoint whole or not at all."""
        if self.rank != 0:
            return
        state = {
            "step": self.step,
            "losses": self.losses,
            "optimizer": self.optimizer.state_dict(),
            "masters": {n: m.detach() for n, m in self.masters.items()},
            "rank": self.arguments.rank,
        }
        part = self.checkpoint.with_suffix(".part")
        torch.save(state, part)
        part.replace(self.checkpoint)

    def train(self) -> None:
        """All steps that are left."""
        order = self._order()
        began = time.monotonic()
        while self.step < self.n_steps:
            k = self.arguments.trees_per_step
            loss = self._one_step([self.trees[i] for i in order[self.step * k : self.step * k + k]])
            self.losses.append(loss)
            self.step += 1
            if self.step % 10 == 0 or self.step == self.n_steps:
                mean = sum(self.losses[-10:]) / len(self.losses[-10:])
                spent = time.monotonic() - began
                self.say(f"step {self.step}/{self.n_steps}  loss {mean:.4f}  {spent:.0f} s")
            if self.step % 25 == 0 or self.step == self.n_steps:
                self.save()

    def _order(self) -> list[int]:
        generator = random.Random(self.arguments.seed)
        order: list[int] = []
        while len(order) < self.n_steps * self.arguments.trees_per_step:
            epoch = list(range(len(self.trees)))
            generator.shuffle(epoch)
            order.extend(epoch)
        return order

    def _one_step(self, trees: Sequence[Tree]) -> float:
        total = sum(float(t.weights[t.labels != -100].sum()) for t in trees)
        loss_sum = torch.zeros(1)
        for tree in shares(trees, distributed.get_world_size())[self.rank]:
            loss, _ = tree_loss(self.model, tree)
            (loss / total).backward()
            loss_sum += float(loss.detach())
        self._add_up(loss_sum)
        torch.nn.utils.clip_grad_norm_(self.masters.values(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self.n_steps, self.arguments.lr)
        self.optimizer.step()
        self._publish()
        return float(loss_sum) / total

    def _add_up(self, loss_sum: torch.Tensor) -> None:
        """Add losses and gradients over the workers; every worker then makes the same step."""
        flat = torch.cat(
            [
                torch.zeros(p.numel()) if p.grad is None else p.grad.float().flatten()
                for p in self.parameters.values()
            ]
        )
        distributed.all_reduce(flat)
        distributed.all_reduce(loss_sum)
        start = 0
        for name, parameter in self.parameters.items():
            parameter.grad = None
            end = start + parameter.numel()
            self.masters[name].grad = flat[start:end].view_as(parameter)
            start = end


def main() -> None:
    """Encode, train, leave a checkpoint for `export.py`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("--base", type=Path, required=True, help="the base model's GGUF")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--init", type=Path, help="start from this checkpoint's adapter")
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--lr", type=float, default=6e-4)
    parser.add_argument("--epochs", type=float, default=1.0)
    parser.add_argument("--trees-per-step", type=int, default=4)
    parser.add_argument("--max-tokens", type=int, default=1100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--workers", type=int, default=2, help="processes of one thread each")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    meeting = (arguments.out / f"workers-{os.getpid()}").absolute()
    # A signal becomes an exit, and daemons end with their parent: nothing trains on unseen.
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        torch.multiprocessing.spawn(
            _work, (arguments, f"file://{meeting}"), arguments.workers, daemon=True
        )
    finally:
        meeting.unlink(missing_ok=True)


def _work(rank: int, arguments: argparse.Namespace, meeting: str) -> None:
    """One worker: the same data, model and steps as the others, its share of each step's trees."""
    torch.set_num_threads(1)
    torch.manual_seed(arguments.seed)
    distributed.init_process_group("gloo", meeting, rank=rank, world_size=arguments.workers)
    began = time.monotonic()
    trees = list(
        read_trees(arguments.data, load_tokenizer(str(arguments.base)), arguments.max_tokens)
    )
    trainer = Trainer(load_model(arguments.base, arguments.rank), trees, arguments)
    trainer.say(
        f"{len(trees)} trees, {sum(len(t.token_ids) for t in trees)} tokens, "
        f"{sum(int((t.labels != -100).sum()) for t in trees)} trained, "
        f"encoded in {time.monotonic() - began:.0f} s"
    )
    trainer.resume()
    trainer.train()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
