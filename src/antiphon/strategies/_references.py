"""References of a task to results of other tasks: ``${id}``, ``${id.key}``, ``${id.list[0]}``.

A text that is one reference and nothing else takes the result as it is, with its type; inside other
text a result that is no text is written as JSON.  ``$$`` is a dollar sign.  Substitution is one
pass over what the plan says: a result is never looked through for references.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from antiphon.messages import JsonValue, dump_json

_MARK = re.compile(r"\$\$|\$\{([^{}]*)\}")
_FORM = re.compile(r"([A-Za-z0-9_-]+)((?:\.[^.\[\]]+|\[\d+\])*)")
_PATH = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


class ReferenceFailed(Exception):
    """A reference to a place that a result does not have."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One reference."""

    text: str
    """As it stands in the plan."""
    id: str
    """The task it refers to; empty where the text is no reference."""
    path: tuple[str | int, ...] = ()
    """Keys and positions in that task's result."""


def references_in(value: JsonValue) -> Iterator[Reference]:
    """Every reference in a value, at any depth, in order.

    >>> [r.id for r in references_in({"a": ["${x.rows[0]}", "cost $$5 and ${y}"]})]
    ['x', 'y']
    """
    if isinstance(value, str):
        if "$" in value:
            yield from (_read(m) for m in _MARK.finditer(value) if m[1] is not None)
    elif isinstance(value, dict):
        for item in value.values():
            yield from references_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from references_in(item)


def substitute(value: JsonValue, results: Mapping[str, JsonValue]) -> JsonValue:
    """A value with its references replaced by results.

    Args:
        value: What a task says.
        results: By task id.

    Raises:
        ReferenceFailed: A result lacks what is referred to.

    >>> substitute({"n": "${a.n}", "note": "n=${a.n}!", "cost": "$$5"}, {"a": {"n": 2}})
    {'n': 2, 'note': 'n=2!', 'cost': '$5'}
    """
    if isinstance(value, str):
        return _filled(value, results) if "$" in value else value
    if isinstance(value, dict):
        return {key: substitute(item, results) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, results) for item in value]
    return value


def escape(text: str) -> str:
    """A text that, after substitution, is what it was.

    >>> substitute(escape("${HOME} costs $5"), {})
    '${HOME} costs $5'
    """
    return text.replace("$", "$$")


def _read(match: re.Match[str]) -> Reference:
    form = _FORM.fullmatch(match[1])
    if form is None:
        return Reference(match[0], "")
    path = tuple(key or int(n) for key, n in _PATH.findall(form[2]))
    return Reference(match[0], form[1], path)


def _filled(text: str, results: Mapping[str, JsonValue]) -> JsonValue:
    whole = _MARK.fullmatch(text)
    if whole is not None and whole[1] is not None:
        return _value(_read(whole), results)

    def fill(match: re.Match[str]) -> str:
        if match[1] is None:
            return "$"
        value = _value(_read(match), results)
        return value if isinstance(value, str) else "" if value is None else dump_json(value)

    return _MARK.sub(fill, text)


def _value(reference: Reference, results: Mapping[str, JsonValue]) -> JsonValue:
    if reference.id not in results:
        raise ReferenceFailed(f"{reference.text} refers to no result")
    value: Any = results[reference.id]
    if reference.path and isinstance(value, str):
        value = _parsed(value)
    for place in reference.path:
        value = _step(reference, value, place)
    return cast("JsonValue", value)


def _step(reference: Reference, value: Any, place: str | int) -> Any:
    if isinstance(place, int):
        if isinstance(value, list) and place < len(cast("list[Any]", value)):
            return cast("list[Any]", value)[place]
        has = f"{len(cast('list[Any]', value))} items" if isinstance(value, list) else "no list"
        raise ReferenceFailed(f"{reference.text} asks for item {place} and there is {has}")
    if isinstance(value, dict):
        known = cast("dict[str, Any]", value)
        if place in known:
            return known[place]
        keys = ", ".join(list(known)[:20]) or "none"
        raise ReferenceFailed(f"{reference.text} asks for {place!r} and the keys are: {keys}")
    kind = "null" if value is None else "a list" if isinstance(value, list) else "no object"
    raise ReferenceFailed(f"{reference.text} asks for {place!r} of what is {kind}")


def _parsed(text: str) -> Any:
    """The JSON that a tool returned as text, for a reference to a part of it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
