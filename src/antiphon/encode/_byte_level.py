"""Byte-level BPE: how its vocabularies spell bytes, and its merges from ranks.

GPT-2's byte-level BPE writes each byte as one printable character, so that a vocabulary is text.
A tiktoken file has no merges, only tokens in the order in which they were merged; the merges follow
from the order.  This module reads no file and knows no tokenizer engine.
"""

from collections.abc import Mapping
from itertools import pairwise


def _alphabet() -> dict[int, str]:
    # As in GPT-2's encoder.py: printable bytes stand for themselves, the others move past 255.
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    moved = [byte for byte in range(256) if byte not in set(printable)]
    return {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(moved)}


_TO_CHAR = _alphabet()
_TO_BYTE = {char: byte for byte, char in _TO_CHAR.items()}


def spell(token: bytes) -> str:
    """Bytes as a byte-level vocabulary writes them.

    >>> spell(b" a")
    'Ġa'
    """
    return "".join(map(_TO_CHAR.__getitem__, token))


def unspell(token: str) -> bytes:
    """The bytes of a vocabulary entry; an entry that is no byte-level spelling is its own UTF-8.

    >>> unspell("Ġa"), unspell("<|im end|>")
    (b' a', b'<|im end|>')
    """
    try:
        return bytes(map(_TO_BYTE.__getitem__, token))
    except KeyError:
        return token.encode("utf-8", "surrogatepass")


def merges_from_ranks(ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    """The merge that made each token, in rank order.

    A token was made from the two parts that its bytes had come to when only lower ranks existed.
    Mostly a single split into two known lower tokens is possible; otherwise the merging is
    replayed.  Where that does not end in two parts, the ranks are not in the order of the merges:
    tokens were added to a vocabulary later.  Then any two parts are merged, as tiktoken does, and
    a token that no two others make has no merge: only a word that is the token is encoded as it.

    Args:
        ranks: Token to rank, complete: every byte, and both parts of every longer token.

    >>> merges_from_ranks({b"a": 0, b"b": 1, b"ab": 2, b"abb": 3})
    [(b'a', b'b'), (b'ab', b'b')]
    """
    get = ranks.get
    merges: list[tuple[bytes, bytes]] = []
    for token, rank in sorted(ranks.items(), key=lambda item: item[1]):
        if len(token) < 2:
            continue
        splits = [
            (token[:i], token[i:])
            for i in range(1, len(token))
            if get(token[:i], rank) < rank and get(token[i:], rank) < rank
        ]
        merges += splits if len(splits) == 1 else _replay(token, rank, ranks)
    return merges


def _replay(token: bytes, limit: int, ranks: Mapping[bytes, int]) -> list[tuple[bytes, bytes]]:
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        joined = [ranks.get(a + b, limit) for a, b in pairwise(parts)]
        best = min(joined)
        if best >= limit:
            break
        at = joined.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    if len(parts) == 2:
        return [(parts[0], parts[1])]
    splits = [(token[:i], token[i:]) for i in range(1, len(token))]
    return [(a, b) for a, b in splits if a in ranks and b in ranks]
