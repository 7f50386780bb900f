"""What constrained decoding may write (GBNF, Lark, structural tags): made from a format and its tools."""

from typing import Protocol


class Grammar(Protocol):
    """A grammar of one assistant message, in the spellings that engines take."""

    def to_gbnf(self) -> str:
        """llama.cpp's GBNF, rule ``root``.  Special tokens are token literals."""
        ...
