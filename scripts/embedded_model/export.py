"""Write a trained adapter as GGUF, for llama.cpp.

    python scripts/embedded_model/export.py build/adapter/checkpoint.pt --out a.gguf

llama.cpp stores the rows of the query and key projections in another order than transformers (its
rotary embedding pairs neighbours instead of halves), so the ``B`` matrices of both are reordered
as the
base's weights were.  Source: llama.cpp ``convert_lora_to_gguf.py`` and ``LlamaModel.permute``.
"""

import argparse
import re
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

N_HEADS, N_KV_HEADS = 9, 3  # SmolLM2-135M
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def permute(rows: np.ndarray, n_heads: int) -> np.ndarray:
    """Rows from transformers' order (halves) to llama.cpp's (neighbours)."""
    out, width = rows.shape
    return rows.reshape(n_heads, 2, out // n_heads // 2, width).swapaxes(1, 2).reshape(out, width)


def tensors(masters: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    """The adapter's matrices under llama.cpp's names, float16."""
    result: dict[str, np.ndarray] = {}
    for name, tensor in masters.items():
        match = re.search(r"layers\.(\d+)\.([a-z_]+\.[a-z_]+)\.lora_([AB])", name)
        if match is None:
            raise SystemExit(f"no place in the GGUF for adapter tensor {name!r}")
        layer, module, half = match.groups()
        matrix = tensor.float().numpy()
        if half == "B" and module.endswith(("q_proj", "k_proj")):
            matrix = permute(matrix, N_HEADS if module.endswith("q_proj") else N_KV_HEADS)
        result[f"blk.{layer}.{NAMES[module]}.weight.lora_{half.lower()}"] = matrix.astype(
            np.float16
        )
    return result


def write(checkpoint: dict[str, Any], out: Path) -> None:
    """Write the adapter with the metadata that llama.cpp asks for."""
    writer = gguf.GGUFWriter(str(out), "llama")
    writer.add_type(gguf.GGUFType.ADAPTER)
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(2 * checkpoint["rank"]))
    writer.add_name("SmolLM2-135M-Instruct tool calling adapter")
    writer.add_license("apache-2.0")
    for name, matrix in sorted(tensors(checkpoint["masters"]).items()):
        writer.add_tensor(name, matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    """Export one checkpoint."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    write(torch.load(arguments.checkpoint, weights_only=True), arguments.out)
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
