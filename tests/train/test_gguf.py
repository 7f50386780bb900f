"""An adapter as GGUF: each matrix has its place, and the order of rows that llama.cpp reads."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from antiphon.errors import DataError, UsageError
from antiphon.train import Architecture, export_adapter, write_adapter
from antiphon.train._gguf import permute, read_adapter, unpermute

gguf: Any = pytest.importorskip("gguf")

LLAMA = Architecture("llama", n_layers=1, n_heads=2, n_kv_heads=1)
MODULES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def read(path: Path) -> dict[str, Any]:
    return {tensor.name: np.array(tensor.data) for tensor in gguf.GGUFReader(str(path)).tensors}


@pytest.mark.parametrize("suffix", [".weight", ".default.weight", ""])
def test_each_matrix_has_its_place(tmp_path: Path, suffix: str) -> None:
    made = {
        f"base_model.model.model.layers.0.{module}.lora_{half}{suffix}": np.full((4, 4), i + 0.5)
        for i, module in enumerate(MODULES)
        for half in "AB"
    }

    write_adapter(made, tmp_path / "a.gguf", LLAMA, alpha=8.0)

    assert {name: float(data[0, 0]) for name, data in read(tmp_path / "a.gguf").items()} == {
        f"blk.0.{place}.weight.lora_{half}": i + 0.5
        for i, place in enumerate(MODULES.values())
        for half in "ab"
    }
    assert [file.name for file in tmp_path.iterdir()] == ["a.gguf"]


def test_rows_of_queries_and_keys_are_paired_as_neighbours() -> None:
    rows = np.arange(8.0)[:, None]

    assert permute(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]
    assert permute(rows, 1)[:, 0].tolist() == [0, 4, 1, 5, 2, 6, 3, 7]
    assert unpermute(permute(rows, 2), 2).tolist() == rows.tolist()


@pytest.mark.parametrize("kind", ["F32", "F16", "BF16", "Q8_0"])
def test_an_adapter_is_read_back_whatever_numbers_it_is_written_in(
    tmp_path: Path, kind: str
) -> None:
    file, numbers = tmp_path / "a.gguf", np.arange(-64.0, 64.0, dtype=np.float32)
    dtype = gguf.GGMLQuantizationType[kind]
    writer = gguf.GGUFWriter(str(file), "llama")
    writer.add_float32("adapter.lora.alpha", 6.0)
    matrices = {"a": numbers.reshape(4, 32), "b": np.flip(numbers).reshape(4, 32)}
    for half, matrix in matrices.items():
        data = gguf.quants.quantize(matrix, dtype)
        writer.add_tensor(f"blk.0.attn_q.weight.lora_{half}", data, raw_dtype=dtype)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    q = "model.layers.0.self_attn.q_proj"
    llama = {"model_type": "llama", "num_hidden_layers": 1, "num_attention_heads": 2}

    adapter = read_adapter(file, llama, ["model.layers.0.mlp.up_proj", q])

    assert (adapter.rank, adapter.alpha) == (4, 6.0)
    assert set(adapter.matrices) == {f"{q}.lora_A", f"{q}.lora_B"}
    close = 0.5 if kind == "Q8_0" else 0.0
    assert np.abs(adapter.matrices[f"{q}.lora_A"] - matrices["a"]).max() <= close
    b = adapter.matrices[f"{q}.lora_B"]
    assert np.abs(permute(b, 2) - matrices["b"]).max() <= close


@pytest.mark.parametrize(("name", "reordered"), [("llama", True), ("qwen2", False)])
def test_only_the_families_that_llama_cpp_reorders_are(
    tmp_path: Path, name: str, reordered: bool
) -> None:
    rows = np.arange(8.0)[:, None].repeat(4, axis=1)
    made = {f"model.layers.0.self_attn.q_proj.lora_{half}.weight": rows for half in "AB"}

    write_adapter(made, tmp_path / "a.gguf", Architecture(name, 1, 2, 1), alpha=1.0)

    written = read(tmp_path / "a.gguf")
    assert written["blk.0.attn_q.weight.lora_a"][:, 0].tolist() == rows[:, 0].tolist()
    assert (
        written["blk.0.attn_q.weight.lora_b"][:, 0].tolist() != rows[:, 0].tolist()
    ) == reordered


def test_what_has_no_place_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no place in the GGUF for .*layers\.0\.gate\.lora_A"):
        write_adapter(
            {"model.layers.0.gate.lora_A": np.ones((2, 2))}, tmp_path / "a", LLAMA, alpha=1
        )
    with pytest.raises(
        UsageError, match="an adapter of a model of type 'mamba' cannot be exported"
    ):
        Architecture.of_config({"model_type": "mamba"})
    with pytest.raises(DataError, match="only an adapter is exported"):
        export_adapter(tmp_path, tmp_path / "a.gguf")


def test_a_trained_adapter_is_exported_as_it_was_saved(tmp_path: Path) -> None:
    torch: Any = pytest.importorskip("torch")
    safetensors: Any = pytest.importorskip("safetensors.torch")
    key = "base_model.model.model.layers.1.mlp.up_proj.lora_A.weight"
    matrix = torch.arange(8.0).reshape(2, 4)
    safetensors.save_file({key: matrix}, str(tmp_path / "adapter_model.safetensors"))
    (tmp_path / "adapter_config.json").write_text('{"lora_alpha": 6}', "utf-8")
    config = {"model_type": "qwen2", "num_hidden_layers": 2, "num_attention_heads": 4}
    (tmp_path / "base_config.json").write_text(json.dumps(config), "utf-8")

    export_adapter(tmp_path, tmp_path / "a.gguf", name="mine", license="mit")

    assert read(tmp_path / "a.gguf")["blk.1.ffn_up.weight.lora_a"].tolist() == matrix.tolist()
    fields = gguf.GGUFReader(str(tmp_path / "a.gguf")).fields
    assert fields["adapter.lora.alpha"].contents() == 6.0
    assert fields["general.license"].contents() == "mit"
