"""Tool names that every API takes: ``[a-zA-Z0-9_-]``, one to 64 characters.

A name that is none already is transliterated where Unicode says how, shortened, and given a short
hash of the original, so that two originals never meet in one name.
"""

import hashlib
import re
import unicodedata

VALID = re.compile(r"[a-zA-Z0-9_-]{1,64}\Z")
MAX_CHARS = 64


def valid_name(name: str) -> str:
    """The name itself where every API takes it, else a valid one made from it.

    >>> valid_name("get_weather"), valid_name("größe")
    ('get_weather', 'grosse_d353a2')
    """
    if VALID.match(name):
        return name
    mark = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    ascii_name = "".join(_letters(c) for c in unicodedata.normalize("NFKD", name))
    ascii_name = re.sub(r"[^a-zA-Z0-9_-]+", "_", ascii_name)
    ascii_name = re.sub(r"__+", "_", ascii_name).strip("_-")[: MAX_CHARS - len(mark) - 1]
    return f"{ascii_name or 'tool'}_{mark}"


_CYRILLIC = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
        [
            "a",
            "b",
            "v",
            "g",
            "d",
            "e",
            "yo",
            "zh",
            "z",
            "i",
            "y",
            "k",
            "l",
            "m",
            "n",
            "o",
            "p",
            "r",
            "s",
            "t",
            "u",
            "f",
            "kh",
            "ts",
            "ch",
            "sh",
            "shch",
            "_",
            "y",
            "_",
            "e",
            "yu",
            "ya",
        ],
        strict=True,
    )
)
_OTHERS = {"ß": "ss", "æ": "ae", "ø": "o", "đ": "d", "ł": "l", "þ": "th", "œ": "oe"}


def _letters(char: str) -> str:
    if char.isascii():
        return char
    if unicodedata.combining(char):
        return ""
    lower = char.lower()
    return (_CYRILLIC.get(lower) or _OTHERS.get(lower) or "_").strip("_") or (
        "" if lower in _CYRILLIC else "_"
    )
