"""Texts as terms: words without case, accents and endings; names in code cut into their words.

Chinese, Japanese and Korean characters become overlapping pairs, since nothing marks their words.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import chain

_PIECE = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W_a-zA-Z0-9]+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_MAX_KNOWN = 200_000
_MAX_WORD_CHARS = 64
_STOP_WORDS = """
a an and are as at be been by can could did do does for from give get had has have how i if in into
is it its me my of on or our please should so tell than that the their them then there these they
this to us use using want was we were what when where which who will with would you your need
"""
_STOP = frozenset(_STOP_WORDS.split())


class _Known(dict[str, str]):
    """Pieces of text and the terms they stand for; empty for those that say nothing."""

    def __missing__(self, piece: str) -> str:
        if len(self) > _MAX_KNOWN:
            self.clear()
        word = piece.lower()
        term = "" if word in _STOP or (len(word) == 1 and word.isalpha()) else _stem(word)
        self[piece] = term
        return term


_KNOWN = _Known()


class _Words(dict[str, tuple[str, ...]]):
    """What stands between two spaces, and its terms: texts repeat their words, marks included."""

    def __missing__(self, word: str) -> tuple[str, ...]:
        if len(self) > _MAX_KNOWN:
            self.clear()
        made = tuple(_cut(word))
        if len(word) <= _MAX_WORD_CHARS:
            self[word] = made
        return made


_WORDS = _Words()


def terms(text: str) -> list[str]:
    """The terms of a text, in order, with repetitions: stems, which need not be words.

    >>> terms("getCityForecast: the forecasts for several cities")
    ['city', 'forecast', 'forecast', 'several', 'city']
    """
    return list(chain.from_iterable(map(_WORDS.__getitem__, text.split())))


def _cut(word: str) -> Iterator[str]:
    if word.isascii():
        yield from (term for term in map(_KNOWN.__getitem__, _PIECE.findall(word)) if term)
        return
    bare = (c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    for piece in _PIECE.findall(unicodedata.normalize("NFC", "".join(bare))):
        if not piece.isascii() and _CJK.search(piece):
            yield from _pairs(piece)
        elif term := _KNOWN[piece]:
            yield term


def _pairs(word: str) -> list[str]:
    return [word[i : i + 2] for i in range(max(1, len(word) - 1))]


def _stem(word: str) -> str:
    """A light stemmer: endings of number, tense and agent that seldom change what a word means."""
    if len(word) < 4 or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "xes", "ches", "shes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ational", "ization", "ations", "ation", "ating", "ated", "ator", "ate"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    for ending in ("ing", "ed", "ion", "er", "or", "ment", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    if word.endswith("e") and len(word) > 4:
        word = word[:-1]
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "ls":
        word = word[:-1]
    return word
