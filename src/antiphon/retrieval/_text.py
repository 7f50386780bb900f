"""Texts as terms: words without case, accents and endings; names in code cut into their words.

Chinese, Japanese and Korean characters become overlapping pairs, since nothing marks their words.
"""

import re
import unicodedata
from functools import lru_cache

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_STOP_WORDS = """
a an and are as at be been by can could did do does for from give get had has have how i if in into
is it its me my of on or our please should so tell than that the their them then there these they
this to us use using want was we were what when where which who will with would you your need
"""
_STOP = frozenset(_STOP_WORDS.split())


def terms(text: str) -> list[str]:
    """The terms of a text, in order, with repetitions.

    >>> terms("getWeatherForecast: the forecasts for a city's weather")
    ['weather', 'forecast', 'forecast', 'city', 'weather']
    """
    if not text.isascii():
        text = "".join(
            c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c)
        )
        text = unicodedata.normalize("NFC", text)
    out: list[str] = []
    for word in _WORD.findall(_CAMEL.sub(" ", text)):
        if len(word) == 1 and word.isascii() and not word.isdigit():
            continue
        if not word.isascii() and _CJK.search(word):
            out.extend(_pairs(word))
            continue
        word = word.lower()
        if word not in _STOP:
            out.append(_stem(word))
    return out


def _pairs(word: str) -> list[str]:
    return [word[i : i + 2] for i in range(max(1, len(word) - 1))]


@lru_cache(maxsize=65536)
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
