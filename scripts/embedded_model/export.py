"""Write a trained adapter as GGUF, for llama.cpp.

python scripts/embedded_model/export.py build/adapter/checkpoint.pt --out a.gguf
"""

import argparse
from pathlib import Path

import torch

from antiphon.train import Architecture, write_adapter

SMOLLM2_135M = Architecture("llama", n_layers=30, n_heads=9, n_kv_heads=3)


def main() -> None:
    """Export one checkpoint."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    checkpoint = torch.load(arguments.checkpoint, weights_only=True)
    write_adapter(
        {name: tensor.float().numpy() for name, tensor in checkpoint["masters"].items()},
        arguments.out,
        SMOLLM2_135M,
        alpha=float(2 * checkpoint["rank"]),
        name="SmolLM2-135M-Instruct tool calling adapter",
        license="apache-2.0",
    )
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
