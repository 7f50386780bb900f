"""A whole model as GGUF: llama.cpp computes what transformers does, from the same tokens."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.encode import load_tokenizer
from antiphon.encode._load import gguf_pre_tokenizer
from antiphon.errors import DataError, UsageError
from antiphon.train import export_model
from antiphon.train._gguf import gguf_file
from tiny_training import merging_tokenizer_json, tiny_model

torch: Any = pytest.importorskip("torch")
gguf: Any = pytest.importorskip("gguf")
pytest.importorskip("transformers")

IDS = [3, 1, 4, 1, 5, 92, 65, 35, 89, 79]
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LINEAR = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}


def saved(directory: Path, kind: str, **config: Any) -> Any:
    """A model whose every weight counts, in a directory with a tokenizer."""
    model = tiny_model(kind, **config).eval()
    torch.manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            drawn = torch.randn_like(weight)
            weight.copy_(1 + 0.3 * drawn if weight.dim() == 1 else 0.3 * drawn)
    model.save_pretrained(str(directory), max_shard_size="20KB")
    (directory / "tokenizer.json").write_text(merging_tokenizer_json(), "utf-8")
    (directory / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}', "utf-8")
    return model


def logprobs(path: Path) -> Any:
    """What llama.cpp thinks of every token behind `IDS`."""
    llama: Any = pytest.importorskip("xllamacpp")
    params = llama.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel, params.warmup = 256, 1, False
    params.cpuparams.n_threads = 1
    vocabulary = json.loads(merging_tokenizer_json())["model"]["vocab"]
    # Only behind a token that is a whole character are the chances told; those are before the bias.
    request = {"prompt": IDS, "max_tokens": 1, "logprobs": 264, "temperature": 0}
    answers: list[Any] = []
    server = llama.Server(params)
    server.handle_completions(request | {"logit_bias": [[vocabulary["a"], 1000]]}, answers.append)
    found = torch.full((264,), float("nan"))
    for one in answers[-1]["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
        found[one["id"]] = one["logprob"]
    return found


def of_transformers(model: Any) -> Any:
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([IDS]), use_cache=False).logits[0, -1]
    return torch.log_softmax(logits, dim=-1)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("qwen2", {}),
        ("qwen3", {"head_dim": 16}),
        ("llama", {"tie_word_embeddings": True}),
        ("llama", {"attention_bias": True, "rope_parameters": LLAMA3}),
        ("llama", {"rope_parameters": LINEAR}),
        ("mistral", {"sliding_window": None}),
    ],
)
def test_llama_cpp_gives_the_same_logits(tmp_path: Path, kind: str, config: dict[str, Any]) -> None:
    expected = of_transformers(saved(tmp_path, kind, **config))

    export_model(tmp_path, tmp_path / "model.gguf", type="float32")

    found = logprobs(tmp_path / "model.gguf")
    likely = expected > expected.max() - 8
    assert int(likely.sum()) > 20  # a test of few tokens would say little
    assert float((found - expected)[likely].abs().max()) < 0.02
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith(".")] == []


@pytest.mark.parametrize(
    ("type", "stored"), [("float16", "F16"), ("bfloat16", "BF16"), ("q8_0", "Q8_0")]
)
def test_matrices_have_the_numbers_that_are_asked_for(
    tmp_path: Path, type: Any, stored: str
) -> None:
    model = saved(tmp_path, "qwen2")

    export_model(tmp_path, tmp_path / "model.gguf", type=type, name="mine", license="mit")

    reader = gguf.GGUFReader(str(tmp_path / "model.gguf"))
    found = {t.name: t for t in reader.tensors}
    assert found["blk.0.attn_q.weight"].tensor_type.name == stored
    assert found["blk.0.attn_q.bias"].tensor_type.name == "F32"
    matrix = torch.tensor(
        gguf.quants.dequantize(found["output.weight"].data, found["output.weight"].tensor_type)
    )
    assert torch.allclose(matrix, model.lm_head.weight, rtol=1e-2, atol=1e-2)
    assert reader.fields["general.name"].contents() == "mine"


def test_the_vocabulary_is_read_back_as_it_was(tmp_path: Path) -> None:
    saved(tmp_path, "qwen2")
    export_model(tmp_path, tmp_path / "model.gguf")
    texts = ["that a path, 12 ways", "Über a\n\n  b"]

    ours, theirs = (load_tokenizer(p) for p in (tmp_path / "model.gguf", tmp_path))

    assert ours.encode_batch(texts) == theirs.encode_batch(texts)
    assert ours.mark_id("<|im_end|>") == theirs.mark_id("<|im_end|>") == 259
    fields = gguf.GGUFReader(str(tmp_path / "model.gguf")).fields
    assert fields["tokenizer.ggml.eos_token_id"].contents() == 259
    assert fields["tokenizer.ggml.tokens"].contents()[-1] == "[PAD263]"


def test_the_vocabulary_of_the_file_that_a_model_began_as_is_kept(tmp_path: Path) -> None:
    saved(tmp_path, "qwen2")
    export_model(tmp_path, tmp_path / "first.gguf")
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(DataError, match=r"no tokenizer\.json"):
        export_model(tmp_path, tmp_path / "second.gguf")

    export_model(tmp_path, tmp_path / "second.gguf", vocabulary_of=tmp_path / "first.gguf")

    first, second = (
        {
            key: (field.types, field.contents())
            for key, field in gguf.GGUFReader(str(tmp_path / name)).fields.items()
            if key.startswith("tokenizer.")
        }
        for name in ("first.gguf", "second.gguf")
    )
    assert len(first) > 5
    assert first == second


def test_what_is_not_written_exactly_is_refused(tmp_path: Path) -> None:
    saved(tmp_path, "mistral", sliding_window=8)
    out = tmp_path / "model.gguf"
    with pytest.raises(UsageError, match="sliding window"):
        export_model(tmp_path, out)
    (tmp_path / "config.json").write_text('{"model_type": "phi3"}', "utf-8")
    with pytest.raises(UsageError, match="'phi3' model is not exported whole"):
        export_model(tmp_path, out)
    yarn = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 2.0}
    saved(tmp_path / "yarn", "qwen2", rope_parameters=yarn)
    with pytest.raises(UsageError, match="positions of the kind 'yarn'"):
        export_model(tmp_path / "yarn", out)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="nothing to export"):
        export_model(tmp_path / "none", out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("cut", "name"),
    [
        ({"type": "ByteLevel", "add_prefix_space": False}, "gpt-2"),
        (
            {
                "type": "Sequence",
                "pretokenizers": [
                    {"type": "Digits", "individual_digits": True},
                    {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
                ],
            },
            "smollm",
        ),
        ({"type": "ByteLevel", "add_prefix_space": True}, ""),
        ({"type": "Whitespace"}, ""),
        (None, ""),
    ],
)
def test_how_text_is_cut_has_llama_cpps_name(cut: Any, name: str) -> None:
    assert gguf_pre_tokenizer({"pre_tokenizer": cut, "model": {}}) == name


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    def fill() -> None:
        with gguf_file(tmp_path / "a.gguf") as aside:
            aside.write_bytes(b"half")
            raise OSError(28, "No space left on device")

    with pytest.raises(DataError, match=r"a\.gguf: cannot be written: no space left"):
        fill()

    assert list(tmp_path.iterdir()) == []
