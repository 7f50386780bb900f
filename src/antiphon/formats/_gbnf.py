"""A `Texts` grammar in llama.cpp's GBNF.

Marks that are single tokens of the vocabulary are written as token literals (``<|im_end|>``):
spelled as text they would be sampled as other tokens than the model knows.  Free text is written
as an automaton that never completes one of the marks it must not hold.
"""

import re
from collections.abc import Iterator

from antiphon.formats._grammar import Alt, Chars, Free, Lit, Node, Ref, Rep, Seq, Texts, automaton

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# llama.cpp knows no other escapes in a set; what else means something there is written by its code.
_CLASS_ESCAPES = {
    "]": "\\]",
    "[": "\\[",
    "\\": "\\\\",
    "^": "\\x5E",
    "-": "\\x2D",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def to_gbnf(grammar: Texts, specials: frozenset[str]) -> str:
    """The grammar as GBNF text, rule ``root`` first."""
    return _Gbnf(specials).write(grammar)


class _Gbnf:
    def __init__(self, specials: frozenset[str]) -> None:
        self.specials = specials
        marks = sorted(specials, key=len, reverse=True)
        self.split = re.compile("(" + ("|".join(map(re.escape, marks)) or r"(?!)") + ")")
        self.extra: list[str] = []
        self.free: dict[Free, str] = {}
        self.counted: dict[Node, str] = {}

    def write(self, grammar: Texts) -> str:
        lines = [f"{name} ::= {self.node(node, top=True)}" for name, node in grammar.rules.items()]
        return "\n".join([*lines, *self.extra]) + "\n"

    def node(self, node: Node, *, top: bool = False) -> str:
        match node:
            case Lit():
                return self.literal(node.text)
            case Chars():
                return _char_class(node)
            case Ref():
                return node.rule
            case Seq():
                text = " ".join(self.node(part) for part in node.parts) or '""'
                return text if top or len(node.parts) < 2 else f"({text})"
            case Alt():
                text = " | ".join(self.node(option) for option in node.options)
                return text if top else f"({text})"
            case Rep():
                return self.repeated(node) + _times(node)
            case Free():
                return self.free_text(node)

    def repeated(self, node: Rep) -> str:
        """What is repeated; as a rule where it is counted, as llama.cpp writes it out that often
        and refuses to write out much."""
        inner = node.node
        if isinstance(inner, Chars | Ref) or (node.least, node.most) in _UNCOUNTED:
            text = self.node(inner)
            return f"({text})" if isinstance(inner, Rep | Lit) else text
        if inner not in self.counted:
            self.counted[inner] = name = f"each{len(self.counted) or ''}"
            self.extra.append(f"{name} ::= {self.node(inner, top=True)}")
        return self.counted[inner]

    def literal(self, text: str) -> str:
        parts = [
            part if i % 2 else '"' + "".join(_ESCAPES.get(ch, ch) for ch in part) + '"'
            for i, part in enumerate(self.split.split(text))
            if part
        ]
        return " ".join(parts) if len(parts) < 2 else "(" + " ".join(parts) + ")"

    def free_text(self, node: Free) -> str:
        if node not in self.free:
            name = f"text{len(self.free) or ''}"
            self.free[node] = name
            self.extra += _automaton(node, name)
        return self.free[node]


_UNCOUNTED = {(0, None), (1, None), (0, 1), (1, 1)}


def _times(node: Rep) -> str:
    match (node.least, node.most):
        case (0, None):
            return "*"
        case (1, None):
            return "+"
        case (0, 1):
            return "?"
        case (least, None):
            return f"{{{least},}}"
        case (least, most):
            return f"{{{least},{most}}}"


def _char_class(node: Chars) -> str:
    parts = [
        _class_char(a) if a == b else f"{_class_char(a)}-{_class_char(b)}" for a, b in node.ranges
    ]
    return f"[{'^' if node.negated else ''}{''.join(parts)}]"


def _class_char(ch: str) -> str:
    if ch in _CLASS_ESCAPES:
        return _CLASS_ESCAPES[ch]
    code = ord(ch)
    if code < 0x20 or 0x7F <= code < 0xA0:
        return f"\\x{code:02X}"
    return ch


def _automaton(node: Free, name: str) -> Iterator[str]:
    """Rules of text in which none of the marks is ever complete: one rule a state."""
    states, moves = automaton(node)
    names = {state: f"{name}-s{i}" for i, state in enumerate(states)}
    for state in states:
        steps = [f"{_char_class(chars)} {names[target]}" for chars, target in moves[state]]
        if not state:
            yield f"{name} ::= {' | '.join(steps)}" + ("" if node.least else ' | ""')
        yield f'{names[state]} ::= {" | ".join(steps)} | ""'
