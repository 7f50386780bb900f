"""The ids of a text word by word, each word encoded when it is first seen.

A byte-level engine cuts a text into words by patterns and encodes each word by itself, so that the
ids of a word are the same wherever it stands.  Most words of a data set were there before; those
are looked up, and only new ones go through the engine.

Python's patterns know no ``\\p{L}``.  Within ASCII it is ``A-Za-z``, so the engine's patterns are
translated for ASCII; a stretch with other characters, from a space to a space, goes to the engine
as one.  Whether a translation cuts as the engine does is tried on a text of all kinds of
neighbours when it is made; an engine that it does not fit is left to do everything by itself.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any, cast

from antiphon.encode._byte_level import spell

_KEPT_WORDS = 1 << 17
_KEPT_CHARS = 64

_ASCII = {
    r"\p{L}": "A-Za-z",
    r"\p{Lu}": "A-Z",
    r"\p{Ll}": "a-z",
    r"\p{Lt}": "",
    r"\p{Lm}": "",
    r"\p{Lo}": "",
    r"\p{M}": "",
    r"\p{N}": "0-9",
    r"\p{P}": r"!-#%-*,-/:;?@\[-\]_{}",
    r"\p{S}": r"$+<->\^`|~",
}
"""What of a kind of characters is ASCII, as the inside of a set."""

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SPACE = re.compile(r"(?<=[!-~])(?= )")
_SET = re.compile(r"\[(?:[^\]\\]|\\p\{\w+\}|\\.)*\]")
_KIND = re.compile(r"\\[pP]\{\^?\w+\}")
_FOREIGN = re.compile(r"\((?!\?:|\?i:|\?!\\S\))|\\[XRKGhH]|(?<!\\)[\^$]")
_FOREIGN_SET = re.compile(r"&&|(?<!\\)\[|\A\^?\Z")


def make_words(engine: Any) -> "Words | None":
    """The words of an engine; ``None`` where its words do not stand alone, or its patterns cannot
    be translated."""
    if type(engine.model).__name__ != "BPE" or engine.model.dropout is not None:
        return None
    if engine.normalizer is not None and _state(engine.normalizer)["type"] != "NFC":
        return None
    if engine.pre_tokenizer is None or engine.get_added_tokens_decoder():
        return None
    patterns = _patterns(_state(engine.pre_tokenizer))
    if patterns is None:
        return None
    words = Words(engine, patterns)
    return words if words.cut_as(engine.pre_tokenizer) else None


class Words:
    """An engine with the words that it has encoded.

    Args:
        engine: Encodes byte-level words.
        patterns: Each cuts what the one before has cut; every character is in a match.
    """

    def __init__(self, engine: Any, patterns: Sequence[re.Pattern[str]]) -> None:
        self._engine = engine
        self._model = engine.model
        self._patterns = tuple(patterns)
        self._known: dict[str, list[int]] = {}

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, as the engine gives them."""
        known = self._known
        cut = [self._cut(text) for text in texts]
        long = self._learn({word for words in cut for word in words if word not in known}, known)
        if len(known) > _KEPT_WORDS:
            self._known = {}
        if not long:
            return [[*chain.from_iterable(map(known.__getitem__, words))] for words in cut]
        return [
            [i for word in words for i in (known[word] if word in known else long[word])]
            for words in cut
        ]

    def _learn(self, new: set[str], known: dict[str, list[int]]) -> dict[str, list[int]]:
        """Encode what is new; gives what is too long to be kept."""
        long: dict[str, list[int]] = {}
        stretches: list[str] = []
        for word in new:
            if word.isascii():
                ids = [token.id for token in self._model.tokenize(spell(word.encode()))]
                (known if len(word) <= _KEPT_CHARS else long)[word] = ids
            else:
                stretches.append(word)
        if stretches:
            encoded = self._engine.encode_batch_fast(stretches, add_special_tokens=False)
            for stretch, encoding in zip(stretches, encoded, strict=True):
                (known if len(stretch) <= _KEPT_CHARS else long)[stretch] = encoding.ids
        return long

    def _cut(self, text: str) -> list[str]:
        """The words of a text; a stretch that is not ASCII is one."""
        if text.isascii():
            return self._cut_ascii(text)
        words: list[str] = []
        for stretch in _SPACE.split(text):
            if stretch.isascii():
                words += self._cut_ascii(stretch)
            else:
                words.append(stretch)
        return words

    def _cut_ascii(self, text: str) -> list[str]:
        words = self._patterns[0].findall(text)
        for pattern in self._patterns[1:]:
            words = [part for word in words for part in pattern.findall(word)]
        return words

    def cut_as(self, pre_tokenizer: Any) -> bool:
        """Whether the words are those of the engine, in a text and in what is cut at its spaces."""
        text = _neighbours()
        theirs = [start for _, (start, _) in pre_tokenizer.pre_tokenize_str(text)]
        whole = self._cut_ascii(text)
        stretches = [word for part in _SPACE.split(text) for word in self._cut_ascii(part)]
        return whole == stretches and theirs == list(_starts(whole))


def _starts(words: Sequence[str]) -> Iterator[int]:
    at = 0
    for word in words:
        yield at
        at += len(word)


@cache
def _neighbours() -> str:
    """A text in which characters of every kind stand beside each other, the same each time."""
    kinds = [*"aabBsS3'' \n\r\t\v.-_/{$^|\x1c\x7f", "  ", "\n\n", "'ll", "'RE", "1234"]
    return "".join(random.Random(0).choices(kinds, k=20_000))


def _state(part: Any) -> dict[str, Any]:
    return json.loads(part.__getstate__())


def _patterns(state: dict[str, Any]) -> list[re.Pattern[str]] | None:
    """The patterns that a pre-tokenizer cuts by, for ASCII; ``None`` where it does more."""
    parts: list[dict[str, Any]] = state.get("pretokenizers") or [state]
    sources = [_source(part) for part in parts]
    if parts[-1]["type"] != "ByteLevel" or None in sources:
        return None
    made = [_compiled(source) for source in cast("list[str]", sources) if source]
    return None if None in made or not made else cast("list[re.Pattern[str]]", made)


def _source(part: dict[str, Any]) -> str | None:
    """The engine's pattern of a step; empty where it cuts nothing, ``None`` where it does more."""
    match part:
        case {"type": "Split", "pattern": {"Regex": str(source)}, "behavior": "Isolated"}:
            return None if part.get("invert") else source
        case {"type": "Digits", "individual_digits": bool(each)}:
            return r"\p{N}" if each else r"\p{N}+"
        case {"type": "ByteLevel", "add_prefix_space": False}:
            return _GPT2 if part.get("use_regex", True) else ""
        case _:
            return None


def _compiled(source: str) -> re.Pattern[str] | None:
    """An engine's pattern for ASCII texts, with what it leaves uncut as matches too."""
    in_sets = _SET.sub(lambda match: _in_ascii(match[0]), source)
    ascii_only = _KIND.sub(lambda match: f"[{_in_ascii(match[0])}]", in_sets)
    if _FOREIGN.search(_SET.sub("", ascii_only)) or _KIND.search(ascii_only):
        return None
    if any(_FOREIGN_SET.search(found[1:-1]) for found in _SET.findall(ascii_only)):
        return None
    try:
        return re.compile(rf"(?:{ascii_only})|(?:(?!{ascii_only})[\s\S])+", re.ASCII)
    except re.error:
        return None


def _in_ascii(text: str) -> str:
    return _KIND.sub(lambda match: _ASCII.get(match[0], match[0]), text)
