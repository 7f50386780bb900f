"""A trained adapter as GGUF, for llama.cpp, and one in GGUF as what training goes on from.

llama.cpp stores the rows of the query and key projections of Llama and Mistral models in another
order than transformers (its rotary embedding pairs neighbours instead of halves), so the ``B``
matrices of both are reordered as the base's weights were.  Where tensors have their names from is
gguf's own map.  Source: llama.cpp ``convert_lora_to_gguf.py`` and ``LlamaModel.permute``.
"""

import json
import re
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from antiphon.encode._numpy import np
from antiphon.errors import DataError, UsageError, clip
from antiphon.events import written_whole
from antiphon.train._libraries import library

_ARCHITECTURES = {
    "llama": "llama",
    "mistral": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma3_text": "gemma3",
    "phi3": "phi3",
}
"""transformers' model type to gguf's architecture."""
BASE_CONFIG = "base_config.json"
"""The base's ``config.json`` beside an adapter, which exporting needs."""
PERMUTED = ("llama",)
"""The architectures whose query and key rows are in another order."""
_LORA = re.compile(r"(?:base_model\.model\.)?(?P<module>.+)\.lora_(?P<half>[AB])(?:\.\w+)*$")


@dataclass(frozen=True, slots=True)
class Architecture:
    """What of a model decides where an adapter's matrices go."""

    name: str
    """gguf's name."""
    n_layers: int
    """Blocks."""
    n_heads: int = 0
    """Query heads; only where rows are reordered."""
    n_kv_heads: int = 0
    """Key heads; only where rows are reordered."""

    @classmethod
    def of_config(
        cls, config: Mapping[str, Any], *, what: str = "an adapter of a model"
    ) -> "Architecture":
        """The architecture of transformers' ``config.json``.

        Args:
            config: Its content.
            what: What is exported, for the message.

        Raises:
            UsageError: The model type is none that this knows how to export.
        """
        kind = str(config.get("model_type", ""))
        if kind not in _ARCHITECTURES:
            known = ", ".join(_ARCHITECTURES)
            raise UsageError(
                f"{what} of type {clip(kind)} cannot be exported; known: {known}; "
                "use llama.cpp's own scripts"
            )
        heads = int(config["num_attention_heads"])
        return cls(
            _ARCHITECTURES[kind],
            int(config["num_hidden_layers"]),
            heads,
            int(config.get("num_key_value_heads") or heads),
        )

    def reordered(self, module: str) -> int:
        """How many heads a module's rows are reordered by; 0 where they stay."""
        if self.name not in PERMUTED:
            return 0
        if module.endswith("q_proj"):
            return self.n_heads
        return self.n_kv_heads if module.endswith("k_proj") else 0


@dataclass(frozen=True, slots=True)
class GgufAdapter:
    """An adapter that was read from a GGUF file."""

    matrices: Mapping[str, Any]
    """The ``A`` and ``B`` of each module, ``MODULE.lora_A``, as float32 arrays in transformers'
    order."""
    rank: int
    """Its rank."""
    alpha: float
    """What it is scaled by, over its rank."""


def export_adapter(directory: Path, out: Path, *, name: str = "", license: str = "") -> None:
    """Write the adapter that `train` or peft saved as one GGUF file.

    Args:
        directory: Where ``adapter_model.safetensors`` is.
        out: The file.
        name: What the file calls itself.
        license: Its licence.

    Raises:
        DataError: There is no adapter, or its base's configuration is not beside it.
        UsageError: The architecture is none that this knows how to export.
        MissingExtraError: gguf or safetensors is not installed.
    """
    weights = directory / "adapter_model.safetensors"
    if not weights.exists():
        raise DataError(
            "there is no adapter_model.safetensors; only an adapter is exported", path=directory
        )
    adapter = read_json(directory / "adapter_config.json")
    config = read_json(directory / BASE_CONFIG)
    tensors = library("safetensors.torch").load_file(str(weights))
    write_adapter(
        {key: tensor.float().numpy() for key, tensor in tensors.items()},
        out,
        Architecture.of_config(config),
        alpha=float(adapter["lora_alpha"]),
        name=name,
        license=license,
    )


def write_adapter(
    matrices: Mapping[str, Any],
    out: Path,
    architecture: Architecture,
    *,
    alpha: float,
    name: str = "",
    license: str = "",
) -> None:
    """Write an adapter's matrices as GGUF, in float16.

    Args:
        matrices: The ``A`` and ``B`` of each module under peft's names, as float arrays.
        out: The file; written whole or not at all.
        architecture: Of the base.
        alpha: What the adapter is scaled by, over its rank.
        name: What the file calls itself.
        license: Its licence.

    Raises:
        DataError: A matrix has no place in the architecture, or the file cannot be written.
        MissingExtraError: gguf is not installed.
    """
    gguf = library("gguf", what="writing GGUF")
    tensors = _tensors(matrices, architecture, gguf)
    with gguf_file(out) as aside:
        writer = gguf.GGUFWriter(str(aside), architecture.name)
        try:
            writer.add_type(gguf.GGUFType.ADAPTER)
            writer.add_string("adapter.type", "lora")
            writer.add_float32("adapter.lora.alpha", alpha)
            if name:
                writer.add_name(name)
            if license:
                writer.add_license(license)
            for key, matrix in sorted(tensors.items()):
                writer.add_tensor(key, matrix)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
        finally:
            writer.close()


@contextmanager
def gguf_file(out: Path) -> Generator[Path]:
    """Where to write a GGUF file; see `written_whole`.

    Raises:
        DataError: The file cannot be written.
    """
    try:
        with written_whole(out) as aside:
            yield aside
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise DataError(f"cannot be written: {reason}", path=out) from error


def permute(rows: Any, n_heads: int) -> Any:
    """Rows from transformers' order (halves) to llama.cpp's (neighbours)."""
    out, width = rows.shape
    return rows.reshape(n_heads, 2, out // n_heads // 2, width).swapaxes(1, 2).reshape(out, width)


def unpermute(rows: Any, n_heads: int) -> Any:
    """Rows from llama.cpp's order to transformers': what `permute` undoes."""
    out, width = rows.shape
    return rows.reshape(n_heads, out // n_heads // 2, 2, width).swapaxes(1, 2).reshape(out, width)


def read_adapter(file: Path, config: Mapping[str, Any], modules: Iterable[str]) -> GgufAdapter:
    """Read an adapter in GGUF, as `write_adapter` and llama.cpp's scripts write it.

    Args:
        file: The file.
        config: The ``config.json`` of the base.
        modules: The names of the base's modules.

    Raises:
        DataError: It is no adapter, or one of another model.
        UsageError: The base's architecture is none that this knows.
        MissingExtraError: gguf is not installed.
    """
    gguf = library("gguf", what="reading GGUF")
    architecture = Architecture.of_config(config)
    try:
        reader = gguf.GGUFReader(str(file))
        alpha = reader.get_field("adapter.lora.alpha")
    except (OSError, ValueError, IndexError) as error:
        raise DataError(f"this is no GGUF file: {clip(str(error), 200)}", path=file) from error
    if alpha is None or not reader.tensors:
        raise DataError("this GGUF file holds no adapter", path=file)
    places = _places(architecture, gguf)
    found = {f"{places.get_name(module)}.weight": module for module in modules}
    matrices: dict[str, Any] = {}
    for tensor in reader.tensors:
        place, _, half = tensor.name.rpartition(".lora_")
        module = found.get(place)
        if module is None:
            raise DataError(f"the model has no place for {clip(tensor.name)}", path=file)
        matrix = _numbers(tensor, gguf, file)
        heads = architecture.reordered(module)
        if half == "b" and heads:
            matrix = unpermute(matrix, heads)
        matrices[f"{module}.lora_{half.upper()}"] = matrix
    ranks = {matrix.shape[0] for key, matrix in matrices.items() if key.endswith("A")}
    if len(ranks) != 1:
        raise DataError(f"the adapter has matrices of the ranks {sorted(ranks)}", path=file)
    return GgufAdapter(matrices, ranks.pop(), float(alpha.contents()))


def _numbers(tensor: Any, gguf: Any, file: Path) -> Any:
    """A tensor in float32, of whatever numbers the file has: llama.cpp writes four kinds."""
    try:
        return gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
    except NotImplementedError as error:
        kind = tensor.tensor_type.name
        raise DataError(f"numbers of the type {kind} cannot be read", path=file) from error


def _places(architecture: Architecture, gguf: Any) -> Any:
    names = {text: arch for arch, text in gguf.MODEL_ARCH_NAMES.items()}
    return gguf.get_tensor_name_map(names[architecture.name], architecture.n_layers)


def _tensors(matrices: Mapping[str, Any], architecture: Architecture, gguf: Any) -> dict[str, Any]:
    places = _places(architecture, gguf)
    found: dict[str, Any] = {}
    for key, matrix in matrices.items():
        match = _LORA.match(key)
        place = match and places.get_name(match["module"])
        if not match or not place:
            raise DataError(f"no place in the GGUF for the adapter's tensor {clip(key)}")
        heads = architecture.reordered(match["module"])
        if heads and match["half"] == "B":
            matrix = permute(matrix, heads)
        found[f"{place}.weight.lora_{match['half'].lower()}"] = matrix.astype(np.float16)
    return found


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object of a file.

    Raises:
        DataError: It cannot be read.
    """
    try:
        return cast("dict[str, Any]", json.loads(path.read_text("utf-8")))
    except OSError as error:
        raise DataError(f"cannot be read: {(error.strerror or '').lower()}", path=path) from error
    except ValueError as error:
        raise DataError("not JSON", path=path) from error
