"""A whole model as one GGUF file, for llama.cpp and Ollama.

Written are the weights under gguf's names, the numbers of ``config.json`` that llama.cpp computes
with, and the vocabulary: that of a ``tokenizer.json``, or of the GGUF file that the model began as.
What this does not know how to write exactly is refused by name: the same tokens give the same
logits, or there is no file.  Source: llama.cpp ``convert_hf_to_gguf.py``.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from antiphon.encode._load import gguf_pre_tokenizer
from antiphon.encode._numpy import np
from antiphon.errors import DataError, UsageError, clip
from antiphon.train._gguf import PERMUTED, Architecture, gguf_file, permute, read_json
from antiphon.train._libraries import library

GgufType = Literal["float32", "float16", "bfloat16", "q8_0"]
"""Numbers of the matrices in a file; vectors are always float32."""

_TYPES = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "q8_0": "Q8_0"}
_WHOLE = ("llama", "qwen2", "qwen3")
"""The architectures that are written whole."""
_NORMAL, _CONTROL, _USER_DEFINED, _UNUSED = 1, 3, 4, 5


def export_model(
    directory: Path,
    out: Path,
    *,
    type: GgufType = "float16",
    vocabulary_of: Path | None = None,
    name: str = "",
    license: str = "",
) -> None:
    """Write the model that `train` or transformers saved as one GGUF file.

    Args:
        directory: Where ``config.json``, the safetensors and ``tokenizer.json`` are.
        out: The file; written whole or not at all.
        type: The numbers of its matrices.
        vocabulary_of: The GGUF file that the model began as, where there is no ``tokenizer.json``.
        name: What the file calls itself.
        license: Its licence.

    Raises:
        DataError: There is no model, a weight has no place in the architecture or does not fit the
            numbers, or the file cannot be written.
        UsageError: The architecture, its positions or its vocabulary is none that this writes.
        MissingExtraError: gguf, safetensors or transformers is not installed.
    """
    gguf = library("gguf", what="writing GGUF")
    if type not in get_args(GgufType):
        raise UsageError(f"no numbers {clip(type)}; known: {', '.join(get_args(GgufType))}")
    files = sorted(directory.glob("model*.safetensors"))
    if not files:
        raise DataError("there is no model.safetensors; nothing to export", path=directory)
    config = library("transformers").AutoConfig.from_pretrained(str(directory)).to_dict()
    architecture = _architecture(config)
    weights = _Weights(files, architecture, gguf, type)
    with gguf_file(out) as aside:
        writer = gguf.GGUFWriter(str(aside), architecture.name)
        try:
            writer.add_type(gguf.GGUFType.MODEL)
            writer.add_name(name or out.stem)
            if license:
                writer.add_license(license)
            writer.add_file_type(gguf.LlamaFileType[_FILE_TYPES[type]])
            writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
            _add_numbers(writer, config, architecture)
            if vocabulary_of is None:
                _add_vocabulary(writer, gguf, directory, int(config["vocab_size"]))
            else:
                _copy_vocabulary(writer, gguf, vocabulary_of)
            weights.write(writer, _rope_factors(config))
        finally:
            writer.close()


_FILE_TYPES = {
    "float32": "ALL_F32",
    "float16": "MOSTLY_F16",
    "bfloat16": "MOSTLY_BF16",
    "q8_0": "MOSTLY_Q8_0",
}


def _architecture(config: Mapping[str, Any]) -> Architecture:
    architecture = Architecture.of_config(config, what="a model")
    kind = str(config["model_type"])
    if architecture.name not in _WHOLE:
        raise UsageError(
            f"a {clip(kind)} model is not exported whole; known: llama, mistral, qwen2, qwen3; "
            "use llama.cpp's convert_hf_to_gguf.py"
        )
    slides = "sliding_attention" in (config.get("layer_types") or ())
    if slides or (kind == "mistral" and config.get("sliding_window")):
        raise UsageError(
            f"this {clip(kind)} model attends within a sliding window, which is not exported; "
            "use llama.cpp's convert_hf_to_gguf.py"
        )
    return architecture


# ---- numbers ----------------------------------------------------------------------------------


def _rope(config: Mapping[str, Any]) -> dict[str, Any]:
    """What its positions are made with, in the spelling of transformers 5 and of those before."""
    none: dict[str, Any] = {}
    found = config.get("rope_parameters") or config.get("rope_scaling") or none
    rope: dict[str, Any] = {"rope_theta": config.get("rope_theta") or 10_000.0, **found}
    rope["rope_type"] = rope.get("rope_type") or rope.get("type") or "default"
    return rope


def _head_dim(config: Mapping[str, Any]) -> int:
    return int(config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"])


def _add_numbers(writer: Any, config: Mapping[str, Any], architecture: Architecture) -> None:
    rope, head = _rope(config), _head_dim(config)
    writer.add_vocab_size(int(config["vocab_size"]))
    writer.add_context_length(int(config["max_position_embeddings"]))
    writer.add_embedding_length(int(config["hidden_size"]))
    writer.add_block_count(architecture.n_layers)
    writer.add_feed_forward_length(int(config["intermediate_size"]))
    writer.add_head_count(architecture.n_heads)
    writer.add_head_count_kv(architecture.n_kv_heads)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_layer_norm_rms_eps(float(config["rms_norm_eps"]))
    writer.add_rope_dimension_count(head)
    writer.add_rope_freq_base(float(rope["rope_theta"]))
    match rope["rope_type"]:
        case "default" | "llama3":  # llama3's are in a tensor of their own
            pass
        case "linear":
            writer.add_rope_scaling_type(library("gguf").RopeScalingType.LINEAR)
            writer.add_rope_scaling_factor(float(rope["factor"]))
        case other:
            raise UsageError(
                f"positions of the kind {clip(str(other))} are not exported; "
                "use llama.cpp's convert_hf_to_gguf.py"
            )


def _rope_factors(config: Mapping[str, Any]) -> dict[str, Any]:
    """What Llama 3.1 divides each frequency by: 1 for short waves, `factor` for long ones."""
    rope = _rope(config)
    if rope["rope_type"] != "llama3":
        return {}
    head, factor = _head_dim(config), float(rope["factor"])
    low, high = float(rope["low_freq_factor"]), float(rope["high_freq_factor"])
    waves = 2 * np.pi * float(rope["rope_theta"]) ** (np.arange(0, head, 2) / head)
    context = float(rope["original_max_position_embeddings"])
    smooth = np.clip((context / waves - low) / (high - low), 0.0, 1.0)
    divisors = 1.0 / ((1.0 - smooth) / factor + smooth)
    return {"rope_freqs.weight": divisors.astype(np.float32)}


# ---- vocabulary -------------------------------------------------------------------------------


def _add_vocabulary(writer: Any, gguf: Any, directory: Path, n_tokens: int) -> None:
    if not (directory / "tokenizer.json").exists():
        raise DataError("there is no tokenizer.json beside the weights", path=directory)
    definition = read_json(directory / "tokenizer.json")
    pre = gguf_pre_tokenizer(definition)
    if not pre or definition["model"].get("type") != "BPE":
        raise UsageError(
            f"the vocabulary of {clip(str(directory))} cuts text in a way that is not exported; "
            "use llama.cpp's convert_hf_to_gguf.py"
        )
    tokens = [f"[PAD{i}]" for i in range(n_tokens)]
    types = [_UNUSED] * n_tokens
    vocabulary: dict[str, int] = definition["model"]["vocab"]
    found = [(text, i, _NORMAL) for text, i in vocabulary.items()]
    found += [
        (one["content"], one["id"], _CONTROL if one["special"] else _USER_DEFINED)
        for one in definition.get("added_tokens") or ()
    ]
    for text, i, kind in found:
        if i >= n_tokens:
            raise DataError(
                f"the vocabulary has token {i}, and the model knows {n_tokens}", path=directory
            )
        tokens[i], types[i] = text, kind
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    special = gguf.SpecialVocab(str(directory), load_merges=True, n_vocab=n_tokens)
    special.add_to_gguf(writer, quiet=True)


def _copy_vocabulary(writer: Any, gguf: Any, source: Path) -> None:
    fields: Mapping[str, Any] = gguf.GGUFReader(str(source)).fields
    for key, field in fields.items():
        if key.startswith("tokenizer."):
            kind, *inner = field.types
            writer.add_key_value(key, field.contents(), kind, inner[-1] if inner else None)


# ---- weights ----------------------------------------------------------------------------------


class _Weights:
    """The tensors of safetensors files, one in memory at a time."""

    def __init__(
        self, files: list[Path], architecture: Architecture, gguf: Any, type: GgufType
    ) -> None:
        self._gguf = gguf
        self._architecture = architecture
        self._type = type
        self._places: dict[str, tuple[Path, str]] = {}
        names = {text: arch for arch, text in gguf.MODEL_ARCH_NAMES.items()}
        known = gguf.get_tensor_name_map(names[architecture.name], architecture.n_layers)
        for file in files:
            with _opened(file) as tensors:
                for key in tensors.keys():  # noqa: SIM118  # it is no mapping
                    place = known.get_name(key, try_suffixes=(".weight", ".bias"))
                    if place is None:
                        raise DataError(f"no place in the GGUF for the weight {clip(key)}")
                    self._places[place] = file, key

    def write(self, writer: Any, more: Mapping[str, Any]) -> None:
        """Write the head of the file, some more tensors by name, and the weights."""
        quants = self._gguf.quants
        for place, tensor in more.items():
            writer.add_tensor_info(place, tensor.shape, tensor.dtype, tensor.nbytes)
        for place, (file, key) in self._places.items():
            with _opened(file) as tensors:
                shape = tuple(tensors.get_slice(key).get_shape())
            kind = self._kind(place, shape)
            stored = quants.quant_shape_to_byte_shape(shape, kind)
            plain = kind in (self._kinds.F32, self._kinds.F16)
            writer.add_tensor_info(
                place,
                shape if plain else stored,
                np.dtype(_NUMPY.get(kind.name, "uint8")),
                math.prod(stored),
                raw_dtype=kind,
            )
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for tensor in more.values():
            writer.write_tensor_data(tensor)
        for place, (file, key) in self._places.items():
            with _opened(file) as tensors:
                matrix = tensors.get_tensor(key).float().numpy()
            writer.write_tensor_data(self._stored(place, key, matrix))

    @property
    def _kinds(self) -> Any:
        return self._gguf.GGMLQuantizationType

    def _kind(self, place: str, shape: tuple[int, ...]) -> Any:
        """The numbers of a tensor: rows that are no whole number of blocks stay in float16."""
        if len(shape) == 1:
            return self._kinds.F32
        if self._type == "q8_0" and shape[-1] % 32:
            return self._kinds.F16
        return self._kinds[_TYPES[self._type]]

    def _stored(self, place: str, key: str, matrix: Any) -> Any:
        kind = self._kind(place, matrix.shape)
        if self._architecture.name in PERMUTED:
            for module, n_heads in (
                ("q_proj", self._architecture.n_heads),
                ("k_proj", self._architecture.n_kv_heads),
            ):
                if f".{module}." in key:
                    matrix = permute(matrix.reshape(len(matrix), -1), n_heads).reshape(matrix.shape)
        stored = self._gguf.quants.quantize(np.ascontiguousarray(matrix), kind)
        if kind == self._kinds.F16 and not np.isfinite(stored).all():
            raise DataError(f"the weight {clip(key)} does not fit float16; choose another type")
        return stored


_NUMPY = {"F32": "float32", "F16": "float16"}


def _opened(file: Path) -> Any:
    return library("safetensors").safe_open(str(file), framework="pt")
