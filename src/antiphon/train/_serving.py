"""How a trained model is served: what `antiphon.json` beside the weights says.

The format that wrote the training text is the one to serve with; for vLLM and SGLang its parser is
named, where they have one for the family.  Source: the parsers of vLLM 0.33 and SGLang 0.5.23.
"""

import ast
import json
from pathlib import Path
from typing import Any

from antiphon.formats import Format, describe

SERVING = "antiphon.json"
"""The file beside the weights."""

_PARSERS: dict[str, tuple[str, str]] = {
    "deepseek_v3": ("deepseek_v3", "deepseekv3"),
    "deepseek_v3_1": ("deepseek_v31", "deepseekv31"),
    "deepseek_v3_2": ("deepseek_v32", "deepseekv32"),
    "deepseek_v4": ("deepseek_v4", "deepseekv4"),
    "gemma4": ("gemma4", "gemma4"),
    "glm4_5": ("glm45", "glm45"),
    "glm4_7": ("glm47", "glm47"),
    "glm5": ("glm47", "glm47"),
    "gpt_oss": ("openai", "gpt-oss"),
    "granite4": ("granite4", ""),
    "hermes": ("hermes", "hermes"),
    "kimi_k2": ("kimi_k2", "kimi_k2"),
    "kimi_k3": ("kimi_k3", "kimi_k3"),
    "lfm2": ("lfm2", "lfm2"),
    "ling3": ("ling3", "ling3"),
    "llama3_1": ("llama3_json", "llama3"),
    "minicpm5": ("minicpm5", "minicpm5"),
    "minimax_m2": ("minimax_m2", "minimax-m2"),
    "minimax_m3": ("minimax_m3", "minimax_m3"),
    "mistral": ("mistral", "mistral"),
    "mistral_v13": ("mistral", "mistral"),
    "pythonic": ("pythonic", "pythonic"),
    "qwen2_5": ("hermes", "qwen25"),
    "qwen3": ("hermes", "qwen25"),
    "qwen3_5": ("qwen3_coder", "qwen3_coder"),
    "qwen3_coder": ("qwen3_coder", "qwen3_coder"),
    "seed_oss": ("seed_oss", ""),
}
"""Format to the names of its tool call parser in vLLM and in SGLang; empty where there is none."""


def write_serving(out: Path, format: Format, *, base: str, adapter: int = 0) -> dict[str, Any]:
    """Write how to serve the model of a directory.

    Args:
        out: The directory with weights or adapter; ``Modelfile`` goes there too.
        format: What the training text was written with.
        base: What the adapter is for, or the model began as.
        adapter: The adapter's rank; 0 for a whole model.

    Returns:
        What was written.
    """
    vllm, sglang = _PARSERS.get(format.name, ("", ""))
    served = base if adapter else str(out)
    row: dict[str, Any] = {
        "antiphon": 1,
        "format": describe(format),
        "stop": list(format.stop),
        "base": base,
        "adapter_rank": adapter,
        "serve": {
            "antiphon": _antiphon(out, format, base, adapter),
            "vllm": _engine(["vllm", "serve", served], vllm, adapter and out, vllm=True),
            "sglang": _engine(
                ["python", "-m", "sglang.launch_server", "--model-path", served],
                sglang,
                adapter and out,
                vllm=False,
            ),
        },
    }
    (out / SERVING).write_text(json.dumps(row, ensure_ascii=False, indent=1) + "\n", "utf-8")
    (out / "Modelfile").write_text(_modelfile(format, base, adapter), "utf-8")
    return row


def _antiphon(out: Path, format: Format, base: str, adapter: int) -> str:
    call = ast.parse(describe(format), mode="eval").body
    variants = call.keywords if isinstance(call, ast.Call) else []
    words = "".join(f"&{v.arg}={_spelled(ast.literal_eval(v.value))}" for v in variants)
    if base.endswith(".gguf") and adapter:
        return f"gguf/{base}?format={format.name}{words}&lora={out / 'adapter.gguf'}"
    if base.endswith(".gguf"):  # there is no tokenizer but the one in the file
        return f"gguf/{out / 'model.gguf'}?format={format.name}{words}"
    return f"hf/{out}?format={format.name}{words}"


def _spelled(value: object) -> str:
    """A variant's value as a model's spec has it."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def _engine(command: list[str], parser: str, adapter: Path | int, *, vllm: bool) -> list[str]:
    """A server's command; without its own parser, Antiphon asks it for raw completion."""
    if parser:
        command = [*command, "--tool-call-parser", parser]
        command += ["--enable-auto-tool-choice"] * vllm
    if adapter and vllm:
        command += ["--enable-lora", "--lora-modules", f"trained={adapter}"]
    elif adapter:
        command += ["--lora-paths", f"trained={adapter}"]
    return command


def _modelfile(format: Format, base: str, adapter: int) -> str:
    """What Ollama reads; it is asked for raw completion, with the format here."""
    lines = [f"FROM {base if adapter else './model.gguf'}"]
    lines += ["ADAPTER ./adapter.gguf"] if adapter else []
    lines += [f"PARAMETER stop {json.dumps(mark, ensure_ascii=False)}" for mark in format.stop]
    return "\n".join(lines) + "\n"
