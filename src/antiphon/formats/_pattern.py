"""A ``pattern`` of a JSON Schema as a grammar of the inside of a JSON string.

Held: literals, sets, groups, choices, repetition and anchors at the ends.  A set loses quotes,
backslashes and control characters, which JSON would have to escape.  Look-around, back references
and other modes are not held.
"""

import re
from importlib import import_module
from typing import Any

from antiphon.formats._grammar import EMPTY, Chars, Lit, Node, Rep, alt, seq
from antiphon.messages import dump_json

sre: Any = import_module("re._constants")
sre_parser: Any = import_module("re._parser")

_Ranges = list[tuple[int, int]]
_CATEGORIES: dict[str, _Ranges] = {
    "CATEGORY_DIGIT": [(0x30, 0x39)],
    "CATEGORY_SPACE": [(0x20, 0x20)],
    "CATEGORY_WORD": [(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)],
}
_ESCAPED: _Ranges = [(0, 0x1F), (0x22, 0x22), (0x5C, 0x5C)]
_ANY: Node = Chars(tuple((chr(a), chr(b)) for a, b in _ESCAPED), negated=True)
_MOST = 256  # repetitions; beyond it engines get slow


class _NotHeld(Exception):
    """The pattern asks for what a grammar cannot say."""


def pattern_node(pattern: str) -> Node | None:
    """The texts that match a pattern, as they stand inside a JSON string; ``None`` if it is not
    held.

    >>> pattern_node("^[0-9]{2}$")
    Rep(node=Chars(ranges=(('0', '9'),), negated=False), least=2, most=2)
    """
    try:
        items = list(sre_parser.parse(pattern))
        starts = bool(items) and items[0] == (sre.AT, sre.AT_BEGINNING)
        ends = bool(items) and items[-1] == (sre.AT, sre.AT_END)
        inner = _sequence(items[starts : len(items) - ends])
    except (_NotHeld, ValueError, OverflowError, RecursionError, re.error):
        return None
    around = Rep(_ANY)
    return seq(EMPTY if starts else around, inner, EMPTY if ends else around)


def _sequence(items: Any) -> Node:
    return seq(*(_item(op, value) for op, value in items))


def _item(op: Any, value: Any) -> Node:
    if op is sre.LITERAL:
        return Lit(dump_json(chr(value))[1:-1])
    if op is sre.NOT_LITERAL:
        return _chars([(value, value)], negated=True)
    if op is sre.ANY:
        return _ANY
    if op is sre.IN:
        negated = value[0] == (sre.NEGATE, None)
        return _chars(_ranges(value[1:] if negated else value), negated=negated)
    if op is sre.SUBPATTERN:
        return _sequence(value[3])
    if op is sre.BRANCH:
        return alt(*(_sequence(option) for option in value[1]))
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
        least, most, inner = value
        if least > _MOST or (most is not sre.MAXREPEAT and most > _MOST):
            raise _NotHeld
        return Rep(_sequence(inner), least, None if most is sre.MAXREPEAT else most)
    raise _NotHeld


def _ranges(items: Any) -> _Ranges:
    found: _Ranges = []
    for op, value in items:
        if op is sre.LITERAL:
            found.append((value, value))
        elif op is sre.RANGE:
            found.append(value)
        elif op is sre.CATEGORY and str(value) in _CATEGORIES:
            found += _CATEGORIES[str(value)]
        else:
            raise _NotHeld
    return found


def _chars(ranges: _Ranges, *, negated: bool) -> Node:
    if negated:
        ranges = ranges + _ESCAPED
    else:
        ranges = [piece for a, b in ranges for piece in _without_escaped(a, b)]
        if not ranges:
            raise _NotHeld
    return Chars(tuple((chr(a), chr(b)) for a, b in sorted(set(ranges))), negated)


def _without_escaped(first: int, last: int) -> _Ranges:
    pieces = [(first, last)]
    for low, high in _ESCAPED:
        pieces = [
            part
            for a, b in pieces
            for part in ((a, min(b, low - 1)), (max(a, high + 1), b))
            if part[0] <= part[1]
        ]
    return pieces
