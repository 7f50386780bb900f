"""A regular expression as a grammar: of the inside of a JSON string, or of text as it is.

Held: literals, sets, groups, choices, repetition and anchors at the ends.  Inside a JSON string
quotes, backslashes and control characters are escaped; of the latter a set holds those that have a
short escape.  Look-around, back references and other modes are not held.
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
_WITH_ESCAPES = '"\\\b\f\n\r\t'
_MOST = 256  # repetitions; beyond it engines get slow


class _NotHeld(Exception):
    """The pattern asks for what a grammar cannot say."""


def pattern_node(pattern: str, *, quoted: bool = True) -> Node | None:
    """The texts that match a pattern; ``None`` if it is not held.

    Args:
        pattern: A regular expression, as Python has it.
        quoted: Whether they stand inside a JSON string.

    >>> pattern_node("^[0-9]{2}$")
    Rep(node=Chars(ranges=(('0', '9'),), negated=False), least=2, most=2)
    """
    made = _Maker(quoted)
    try:
        items = list(sre_parser.parse(pattern))
        starts = bool(items) and items[0] == (sre.AT, sre.AT_BEGINNING)
        ends = bool(items) and items[-1] == (sre.AT, sre.AT_END)
        inner = made.sequence(items[starts : len(items) - ends])
    except (_NotHeld, ValueError, OverflowError, RecursionError, re.error):
        return None
    around = Rep(made.any)
    return seq(EMPTY if starts else around, inner, EMPTY if ends else around)


class _Maker:
    """Makes the nodes of one pattern."""

    def __init__(self, quoted: bool) -> None:
        self._quoted = quoted
        self._refused = _ESCAPED if quoted else list[tuple[int, int]]()
        self.any = self._chars([(0x0A, 0x0A)], negated=True)

    def sequence(self, items: Any) -> Node:
        nodes: list[Node] = []
        for op, value in items:
            node, last = self._item(op, value), nodes[-1] if nodes else None
            if isinstance(node, Lit) and isinstance(last, Lit):
                nodes[-1] = Lit(last.text + node.text)
            else:
                nodes.append(node)
        return seq(*nodes)

    def _item(self, op: Any, value: Any) -> Node:
        if op is sre.LITERAL:
            return Lit(dump_json(chr(value))[1:-1] if self._quoted else chr(value))
        if op is sre.NOT_LITERAL:
            return self._chars([(value, value)], negated=True)
        if op is sre.ANY:
            return self.any
        if op is sre.IN:
            negated = value[0] == (sre.NEGATE, None)
            return self._chars(_ranges(value[1:] if negated else value), negated=negated)
        if op is sre.SUBPATTERN:
            return self.sequence(value[3])
        if op is sre.BRANCH:
            return alt(*(self.sequence(option) for option in value[1]))
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            least, most, inner = value
            if least > _MOST or (most is not sre.MAXREPEAT and most > _MOST):
                raise _NotHeld
            return Rep(self.sequence(inner), least, None if most is sre.MAXREPEAT else most)
        raise _NotHeld

    def _chars(self, ranges: _Ranges, *, negated: bool) -> Node:
        """One character; one that JSON escapes, as its escape."""
        escapes = [
            Lit(dump_json(ch)[1:-1])
            for ch in (_WITH_ESCAPES if self._quoted else "")
            if negated != any(low <= ord(ch) <= high for low, high in ranges)
        ]
        if negated:
            return alt(Chars(_letters(ranges + self._refused), negated=True), *escapes)
        for refused in self._refused:
            ranges = [piece for a, b in ranges for piece in _without(refused, a, b)]
        plain = [Chars(_letters(ranges))] if ranges else []
        if not plain and not escapes:
            raise _NotHeld
        return alt(*plain, *escapes)


def _letters(ranges: _Ranges) -> tuple[tuple[str, str], ...]:
    return tuple((chr(a), chr(b)) for a, b in sorted(set(ranges)))


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


def _without(refused: tuple[int, int], first: int, last: int) -> _Ranges:
    low, high = refused
    parts = [(first, min(last, low - 1)), (max(first, high + 1), last)]
    return [part for part in parts if part[0] <= part[1]]
