"""Texts by meaning: the vectors of a small model in this process, and an index over vectors."""

import asyncio
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from antiphon.errors import DataError, UsageError
from antiphon.retrieval import SentenceModel, VectorIndex

WORDS = ["[PAD]", "[UNK]", "weather", "in", "lima", "time", "pay", "the", "bill"]
WIDTH, HEADS, INNER, LAYERS, PLACES = 8, 2, 12, 2, 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with random weights, in the files that real ones have."""
    path = tmp_path_factory.mktemp("tiny")
    config = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "max_position_embeddings": PLACES,
        "layer_norm_eps": 1e-12,
    }
    (path / "config.json").write_text(json.dumps(config))
    level = models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="[UNK]")
    tokenizer = Tokenizer(level)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()  # pyright: ignore[reportAttributeAccessIssue]
    tokenizer.save(str(path / "tokenizer.json"))
    save(path / "model.safetensors", weights())
    return path


def weights() -> dict[str, Any]:
    chance = np.random.default_rng(7)
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
        "embeddings.position_embeddings.weight": (PLACES, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
        "embeddings.LayerNorm.weight": (WIDTH,),
        "embeddings.LayerNorm.bias": (WIDTH,),
    }
    for n in range(LAYERS):
        layer = f"encoder.layer.{n}"
        pairs = [(f"attention.self.{x}", (WIDTH, WIDTH)) for x in ("query", "key", "value")]
        pairs += [("attention.output.dense", (WIDTH, WIDTH))]
        pairs += [("intermediate.dense", (INNER, WIDTH)), ("output.dense", (WIDTH, INNER))]
        for name, shape in pairs:
            shapes[f"{layer}.{name}.weight"] = shape
            shapes[f"{layer}.{name}.bias"] = shape[:1]
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"{layer}.{name}.weight"] = shapes[f"{layer}.{name}.bias"] = (WIDTH,)
    return {k: chance.normal(size=shape).astype(np.float32) for k, shape in shapes.items()}


def save(path: Path, tensors: dict[str, Any]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, tensor in tensors.items():
        offsets = [len(data), len(data) + tensor.nbytes]
        header[f"bert.{name}"] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": offsets,
        }
        data += tensor.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def slowly(text: str) -> list[float]:
    """The same, number by number, as the papers write it."""
    w = {name: tensor.tolist() for name, tensor in weights().items()}
    ids = [WORDS.index(word) if word in WORDS else 1 for word in text.split()]

    def linear(x: list[float], name: str) -> list[float]:
        rows, bias = w[f"{name}.weight"], w[f"{name}.bias"]
        return [
            sum(a * b for a, b in zip(row, x, strict=True)) + c
            for row, c in zip(rows, bias, strict=True)
        ]

    def normed(x: list[float], name: str) -> list[float]:
        mean = sum(x) / len(x)
        spread = math.sqrt(sum((a - mean) ** 2 for a in x) / len(x) + 1e-12)
        scale, shift = w[f"{name}.weight"], w[f"{name}.bias"]
        return [(a - mean) / spread * b + c for a, b, c in zip(x, scale, shift, strict=True)]

    def added(*vectors: list[float]) -> list[float]:
        return [sum(numbers) for numbers in zip(*vectors, strict=True)]

    place, kind = (
        w["embeddings.position_embeddings.weight"],
        w["embeddings.token_type_embeddings.weight"],
    )
    states = [
        normed(
            added(w["embeddings.word_embeddings.weight"][id], place[at], kind[0]),
            "embeddings.LayerNorm",
        )
        for at, id in enumerate(ids)
    ]
    size = WIDTH // HEADS
    for n in range(LAYERS):
        layer = f"encoder.layer.{n}"
        q, k, v = (
            [linear(x, f"{layer}.attention.self.{name}") for x in states]
            for name in ("query", "key", "value")
        )
        after: list[list[float]] = []
        for t, x in enumerate(states):
            seen: list[float] = []
            for head in range(HEADS):
                part = slice(head * size, (head + 1) * size)
                scores = [
                    math.exp(
                        sum(a * b for a, b in zip(q[t][part], key[part], strict=True))
                        / math.sqrt(size)
                    )
                    for key in k
                ]
                for d in range(head * size, (head + 1) * size):
                    seen.append(
                        sum(s * row[d] for s, row in zip(scores, v, strict=True)) / sum(scores)
                    )
            x = normed(
                added(x, linear(seen, f"{layer}.attention.output.dense")),
                f"{layer}.attention.output.LayerNorm",
            )
            inner = [
                a * 0.5 * (1 + math.erf(a / math.sqrt(2)))
                for a in linear(x, f"{layer}.intermediate.dense")
            ]
            after.append(
                normed(
                    added(x, linear(inner, f"{layer}.output.dense")), f"{layer}.output.LayerNorm"
                )
            )
        states = after
    pooled = [a / len(states) for a in added(*states)]
    length = math.sqrt(sum(a * a for a in pooled))
    return [a / length for a in pooled]


TEXTS = ["weather in lima", "pay", "the time in lima the weather in lima", "unheard of words"]


def test_vectors_are_those_of_the_slow_way(folder: Path) -> None:
    made = SentenceModel(folder).encode(TEXTS)

    for text, vector in zip(TEXTS, made, strict=True):
        assert vector == pytest.approx(slowly(text), abs=1e-5)


def test_a_text_has_one_vector_whatever_stands_beside_it(folder: Path) -> None:
    model = SentenceModel(folder)

    together = model.encode([*TEXTS, ""])

    for text, vector in zip([*TEXTS, ""], together, strict=True):
        assert model.encode([text])[0] == pytest.approx(vector, abs=1e-6)
    assert asyncio.run(SentenceModel(folder)(TEXTS[:1]))[0] == pytest.approx(together[0], abs=1e-6)


def test_a_long_text_is_cut(folder: Path) -> None:
    model = SentenceModel(folder, max_tokens=4)

    assert model.encode(["pay the bill in " + "lima " * 50])[0] == pytest.approx(
        model.encode(["pay the bill in"])[0]
    )


def test_another_kind_of_model_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no sentence model"):
        SentenceModel(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(DataError, match="'gpt2' with None; known: 'bert'"):
        SentenceModel(tmp_path)
    config = (folder / "config.json").read_text()
    (tmp_path / "config.json").write_text(config)
    (tmp_path / "model.safetensors").write_bytes(b"\x09\0\0\0\0\0\0\0{broken")
    with pytest.raises(DataError, match="cannot read the weights"):
        SentenceModel(tmp_path)


async def letters(texts: Any) -> list[list[float]]:
    return [[text.count(letter) + 0.01 for letter in "abc"] for text in texts]


def test_texts_are_ranked_by_the_direction_of_their_vectors() -> None:
    async def main() -> list[list[str]]:
        index: VectorIndex[str] = VectorIndex(letters)
        await index.add_all([("a", "aaaa"), ("b", "b"), ("ab", "aabb"), ("c", "cc")])
        first = [hit.key for hit in await index.search("aaab", 3)]
        index.remove("ab")
        await index.add_all([("b", "aaab")])
        return [first, [hit.key for hit in await index.search("aaab", 3)]]

    assert asyncio.run(main()) == [["a", "ab", "b"], ["b", "a", "c"]]


def test_a_function_that_gives_too_few_vectors_is_told() -> None:
    async def none(texts: Any) -> list[list[float]]:
        return []

    with pytest.raises(UsageError, match="0 vectors for 1 texts"):
        asyncio.run(VectorIndex[str](none).add_all([("a", "a")]))
