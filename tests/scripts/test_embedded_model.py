"""The embedded model's data is drawn by seed, fits its tools, and leaks nothing of its test."""

import json
import os
import subprocess
import sys
from copy import deepcopy
from importlib import import_module
from math import isclose
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

from antiphon.datasets import read_row
from antiphon.encode import Encoder, TrainingExample, load_tokenizer
from antiphon.evaluation import load_cases

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "embedded_model"))

# Scripts and torch's packages are outside what the type checker knows.
make_data: Any = import_module("make_data")


def _rows(n: int, seed: int) -> list[dict[str, Any]]:
    catalog = make_data.load_catalog(make_data.TRAINING)
    make_data.hold_out(catalog, make_data.held_out_values())
    drawer = make_data.Drawer(catalog, seed)
    return [dict(row) for group in make_data.groups(drawer, n) for row in group]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return _rows(400, seed=5)


def test_the_same_seed_draws_the_same_conversations(rows: list[dict[str, Any]]):
    assert _rows(400, seed=5) == rows
    assert _rows(40, seed=6) != rows[:42]


def test_another_process_draws_the_same_conversations(tmp_path: Path):
    drawn: set[bytes] = set()
    for hash_seed in ("1", "2"):
        out = tmp_path / f"{hash_seed}.jsonl"
        command = [sys.executable, make_data.__file__, "--seed", "3", "--conversations", "120"]
        subprocess.run(
            [*command, "--out", str(out)],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            check=True,
            capture_output=True,
        )
        drawn.add(out.read_bytes())
    assert len(drawn) == 1


def test_every_call_fits_the_schema_of_a_tool_on_offer(rows: list[dict[str, Any]]):
    for row in rows:
        schemas = {t["function"]["name"]: t["function"]["parameters"] for t in row["tools"]}
        for message in row["messages"]:
            for call in message.get("tool_calls", ()):
                validate(call["function"]["arguments"], schemas[call["function"]["name"]])


def test_every_kind_of_task_is_drawn(rows: list[dict[str, Any]]):
    assert {row["kind"] for row in rows} == set(make_data.KINDS)


def test_nothing_that_is_measured_is_trained(rows: list[dict[str, Any]]):
    """Questions, invented tools and people of `antiphon eval demo` are in no training row."""
    text = json.dumps(rows, ensure_ascii=False)
    demo = {"calculator", "current_time", "get_address", "get_weather", "convert_currency"}

    for case in load_cases("demo"):
        assert case.question not in text
        for step in case.steps:
            for call in step:
                if call.name == "get_address":
                    assert str(call.arguments["name"]) not in text
                if call.name not in demo:
                    assert f'"name": "{call.name}"' not in text


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")  # transformers' own, about itself
@pytest.mark.parametrize("n_rows", [1, 7])
def test_a_tree_of_rows_has_the_loss_of_the_rows_apart(rows: list[dict[str, Any]], n_rows: int):
    """Against peft's and transformers' own layers, row by row, in float32; needs ``train``."""
    torch: Any = pytest.importorskip("torch")
    peft: Any = pytest.importorskip("peft")
    transformers: Any = import_module("transformers")
    train: Any = import_module("train")
    tokenizer = load_tokenizer("qwen2_5")
    encoders = {name: Encoder(tokenizer, make()) for name, make in train.FORMATS.items()}
    group = [r for r in rows if r["group"] == rows[0]["group"]][:n_rows]
    examples = [encoders[row["format"]].encode(read_row(row)) for row in group]
    config = transformers.LlamaConfig(
        vocab_size=152000,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
    )
    torch.manual_seed(0)
    plain = transformers.LlamaForCausalLM(config)
    model = train.adapted(deepcopy(plain), 4)
    lora = peft.LoraConfig(r=4, lora_alpha=8, target_modules="all-linear")
    reference = peft.get_peft_model(plain, lora)
    with torch.no_grad():  # a fresh adapter adds nothing
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.2)
    reference.load_state_dict(model.state_dict())

    loss, weight = train.tree_loss(model, train.lay_out(examples))
    apart = [_loss_of(torch, reference, example) for example in examples]

    assert weight == sum(float(e.loss_weights[e.labels != -100].sum()) for e in examples)
    assert isclose(float(loss.detach()), sum(apart), rel_tol=1e-5)


def _loss_of(torch: Any, model: Any, example: TrainingExample) -> float:
    """The weighted loss of one row by itself, token by token."""
    with torch.no_grad():
        logits = model(input_ids=torch.from_numpy(example.token_ids)[None]).logits[0]
    chances = torch.log_softmax(logits.double(), dim=-1)
    return -sum(
        float(weight) * float(chances[place - 1, label])
        for place, (label, weight) in enumerate(
            zip(example.labels, example.loss_weights, strict=True)
        )
        if label != -100
    )
