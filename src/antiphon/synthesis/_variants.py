"""Tools about other things: each does what a tool of the catalog does, with another noun.

``museum_hours`` and *When does the museum {museum} open?* become ``stable_hours`` and *When does
the stable {museum} open?*.  A model that has seen both has to read which one is on offer.  The
nouns are those that other tools of the catalog are about.
"""

import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from antiphon.synthesis._catalog import Catalog, Entry, Parameter

_WORDS = re.compile(r"[A-Z]?[a-z]+")
_SHORTEST = 4
"""Letters of the shortest noun; shorter words stand in too many others."""
_NOUN = (
    r"\b(?:an?|the|my|our|your|this|which) {}"
    r"(?=[.,?!;:]|$| (?:in|of|at|for|on|to|from|with|by|and|or|is|was|has|near)\b| \{{)"
)
"""Where a word is a noun of its own: behind an article, and before nothing that it describes."""


def with_variants(catalog: Catalog, n: int, draw: random.Random) -> Catalog:
    """A catalog with tools about other things beside its own.

    Args:
        catalog: What there is. Tools that no noun can be found for stay alone.
        n: How many are made of each tool.
        draw: Draws the nouns.
    """
    subjects = {id: noun for id, entry in catalog.tools.items() if (noun := _subject(entry))}
    nouns = sorted(set(subjects.values()))
    tools = dict(catalog.tools)
    kin: dict[str, tuple[str, ...]] = {}
    for id, noun in subjects.items():
        others = [other for other in nouns if other != noun and not _used(other, catalog.tools[id])]
        family = [id]
        for other in draw.sample(others, min(n, len(others))):
            made = _about(catalog.tools[id], noun, other)
            tools[made.id] = made
            family.append(made.id)
        kin |= {one: tuple(k for k in family if k != one) for one in family if len(family) > 1}
    return replace(catalog, tools=tools, kin=kin)


def _subject(entry: Entry) -> str:
    """The noun that a tool is about: it is in a name, a description and two questions."""
    if entry.worded:
        return ""
    descriptions = " ".join(entry.descriptions).lower()
    questions = [question.lower() for question in entry.questions]
    for noun in sorted(_words(entry.names), key=lambda word: (-len(word), word)):
        word = _whole(noun)
        asked = sum(1 for question in questions if word.search(question))
        if len(noun) >= _SHORTEST and noun[-1] != "s" and asked > 1 and word.search(descriptions):
            stands = re.compile(_NOUN.format(noun))
            texts = [descriptions, *questions]
            if any(map(stands.search, texts)) and not any(f"to {noun}" in t for t in texts):
                return noun
    return ""


def _words(names: Iterable[str]) -> set[str]:
    return {word.lower() for name in names for word in _WORDS.findall(name)}


def _whole(noun: str) -> re.Pattern[str]:
    """A noun in a text or in a name, alone or in the plural, but not in a placeholder."""
    return re.compile(rf"(?i)(?<![a-z{{.]){noun}(?=s?(?![a-z}}.]))")


def _used(noun: str, entry: Entry) -> bool:
    texts = (*entry.names, *entry.descriptions, *entry.questions)
    return any(noun in text.lower() for text in texts)


def _about(entry: Entry, noun: str, other: str) -> Entry:
    """A tool with one noun in place of another; what does not name it is left out."""
    word = _whole(noun)

    def said(text: str) -> str:
        text = word.sub(lambda m: other.capitalize() if m[0][0].isupper() else other, text)
        return re.sub(rf"\b([Aa])n? (?={other})", rf"\1{'n' if other[0] in 'aeiou' else ''} ", text)

    def naming(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(said(text) for text in texts if word.search(text))

    return replace(
        entry,
        id=f"{entry.id}~{other}",
        names=tuple(_renamed(name, noun, other) for name in entry.names if noun in _words([name])),
        descriptions=naming(entry.descriptions),
        parameters=tuple(_parameter(one, noun, other) for one in entry.parameters),
        questions=naming(entry.questions),
        missing=tuple((said(q), said(a)) for q, a in entry.missing if word.search(q)),
        result=_result(entry.result, noun, other),
        cases=tuple((when, _result(result, noun, other)) for when, result in entry.cases),
        answers=tuple(said(text) for text in entry.answers),
    )


def _renamed(name: str, noun: str, other: str) -> str:
    def one(match: re.Match[str]) -> str:
        if match[0].lower() != noun:
            return match[0]
        return other.capitalize() if match[0][0].isupper() else other

    return _WORDS.sub(one, name)


def _parameter(one: Parameter, noun: str, other: str) -> Parameter:
    word = _whole(noun)
    return replace(
        one,
        names=tuple(dict.fromkeys(_renamed(name, noun, other) for name in one.names)),
        descriptions=tuple(word.sub(other, text) for text in one.descriptions),
    )


def _result(result: Any, noun: str, other: str) -> Any:
    """What it answers; a field keeps its name, since answers name it."""
    if isinstance(result, Mapping):
        items = cast("Mapping[str, Any]", result).items()
        return {key: _result(value, noun, other) for key, value in items}
    if isinstance(result, list):
        return [_result(value, noun, other) for value in cast("list[Any]", result)]
    return _whole(noun).sub(other, result) if isinstance(result, str) else result
