"""A `Texts` grammar in llguidance's Lark.

Every terminal is one character, because llguidance's lexer takes the longest terminal and never
goes back.  Free text is an automaton that never completes a mark, written left-linear, which an
Earley parser reads in constant time a character.  Marks that are single tokens of the vocabulary
are written as llguidance's special tokens.
"""

import json
import re
from collections.abc import Iterator

from antiphon.formats._grammar import Alt, Chars, Free, Lit, Node, Ref, Rep, Seq, Texts, automaton


def to_lark(grammar: Texts, specials: frozenset[str]) -> str:
    """The grammar as Lark text, rule ``start``."""
    return _Lark(specials).write(grammar)


class _Lark:
    def __init__(self, specials: frozenset[str]) -> None:
        marks = sorted(specials, key=len, reverse=True)
        self.split = re.compile("(" + ("|".join(map(re.escape, marks)) or r"(?!)") + ")")
        self.terminals: dict[str, str] = {}
        self.free: dict[Free, str] = {}
        self.extra: list[str] = []

    def write(self, grammar: Texts) -> str:
        rules = [f"{_name(n)}: {self.node(node, top=True)}" for n, node in grammar.rules.items()]
        terminals = [f"{name}: {text}" for text, name in self.terminals.items()]
        return "\n".join(["%llguidance {}", "", *rules, *self.extra, *terminals]) + "\n"

    def node(self, node: Node, *, top: bool = False) -> str:
        match node:
            case Lit():
                return self.literal(node.text)
            case Chars():
                return self.chars(node)
            case Ref():
                return _name(node.rule)
            case Seq():
                text = " ".join(self.node(part) for part in node.parts) or '""'
                return text if len(node.parts) < 2 else f"({text})"
            case Alt():
                text = " | ".join(self.node(option) for option in node.options)
                return text if top else f"({text})"
            case Rep():
                return f"({self.node(node.node)}){_times(node)}"
            case Free():
                return self.free_text(node)

    def literal(self, text: str) -> str:
        parts: list[str] = []
        for i, part in enumerate(self.split.split(text)):
            parts += (
                [_special(part)] if i % 2 else [json.dumps(c, ensure_ascii=False) for c in part]
            )
        return " ".join(parts) if len(parts) < 2 else "(" + " ".join(parts) + ")"

    def chars(self, node: Chars) -> str:
        return self.terminals.setdefault(f"/{_char_class(node)}/", f"C{len(self.terminals)}")

    def free_text(self, node: Free) -> str:
        if node not in self.free:
            self.free[node] = name = f"text{len(self.free)}"
            self.extra += self.automaton(node, name)
        return self.free[node]

    def automaton(self, node: Free, name: str) -> Iterator[str]:
        """One rule a state: the texts that lead there."""
        states, moves = automaton(node)
        names = {state: f"{name}_s{i}" for i, state in enumerate(states)}
        ways: dict[str, list[str]] = {state: [] if state else ['""'] for state in states}
        for state, steps in moves.items():
            for chars, target in steps:
                ways[target].append(f"{names[state]} {self.chars(chars)}")
        whole = " | ".join(names[state] for state in states)
        if node.least:
            whole = " | ".join(
                f"{names[state]} {self.chars(chars)}"
                for state in states
                for chars, _ in moves[state]
            )
        yield f"{name}: {whole}"
        for state in states:
            yield f"{names[state]}: {' | '.join(ways[state])}"


def _special(mark: str) -> str:
    """A special token; llguidance names those in angle brackets by their text."""
    return mark if mark.startswith("<") and mark.endswith(">") else json.dumps(mark)


def _name(rule: str) -> str:
    return "start" if rule == "root" else "r_" + rule.replace("-", "_")


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
    parts = [_class_char(a) + (f"-{_class_char(b)}" if a != b else "") for a, b in node.ranges]
    return f"[{'^' if node.negated else ''}{''.join(parts)}]"


def _class_char(ch: str) -> str:
    if ch in "\\]^[-/&~":
        return "\\" + ch
    return f"\\x{ord(ch):02x}" if ord(ch) < 0x20 or ord(ch) == 0x7F else ch
