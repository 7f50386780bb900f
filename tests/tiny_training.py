"""A tiny model of random weights with a vocabulary of its own, and conversations to train it on."""

import json
from importlib import import_module
from typing import Any

import pytest
import tokenizers
from tokenizers import decoders, models, pre_tokenizers

from antiphon.messages import Conversation, Message, ToolCall, ToolSpec

MARKS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
_WHOLE = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)

FERRY = ToolSpec(
    "ferry",
    "When the ferry leaves.",
    {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]},
)


def conversation(place: str, answer: str) -> Conversation:
    """A question, a call, its result and an answer."""
    return Conversation(
        (
            Message.user(f"Ferry to {place}?"),
            Message.assistant(tool_calls=[ToolCall("ferry", {"to": place}, "c0")]),
            Message.tool(answer, call_id="c0", name="ferry"),
            Message.assistant(f"At {answer}."),
        ),
        (FERRY,),
    )


CONVERSATIONS = [conversation("Holm", "9"), conversation("Elba", "10:30"), conversation("Rab", "")]


def tokenizer_json() -> str:
    engine = tokenizers.Tokenizer(
        models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, [])
    )
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    definition = json.loads(engine.to_str())
    definition["added_tokens"] = [
        {"id": 256 + i, "content": mark, "special": i < 2, **_WHOLE} for i, mark in enumerate(MARKS)
    ]
    return json.dumps(definition)


def merging_tokenizer_json() -> str:
    """The same vocabulary with two merges, which a GGUF file must have; marks come behind them."""
    definition = json.loads(tokenizer_json())
    definition["model"]["merges"] = [["t", "h"], ["Ġ", "a"]]
    for text in ("th", "Ġa"):
        definition["model"]["vocab"][text] = len(definition["model"]["vocab"])
    for mark in definition["added_tokens"]:
        mark["id"] += 2
    return json.dumps(definition)


def tiny_model(kind: str = "qwen2", **config: Any) -> Any:
    """A causal language model of two small layers, the same each time."""
    torch: Any = pytest.importorskip("torch")
    transformers: Any = import_module("transformers")
    torch.set_num_threads(1)  # two threads wait for each other where others work too
    torch.manual_seed(0)
    usual: dict[str, Any] = {
        "vocab_size": 264,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 2048,
        "eos_token_id": 257,
        "pad_token_id": 257,
        "tie_word_embeddings": False,
    }
    made = transformers.AutoConfig.for_model(kind, **usual | config)
    return transformers.AutoModelForCausalLM.from_config(made)
