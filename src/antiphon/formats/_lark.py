"""A `Texts` grammar in llguidance's Lark.

Rules become rules, character sets and free text become terminals; free text is an intersection with
"does not hold the mark".  Marks that are single tokens are written as llguidance's special tokens.
"""

import json
import re

from antiphon.formats._grammar import Alt, Chars, Free, Lit, Node, Ref, Rep, Seq, Texts


def to_lark(grammar: Texts, specials: frozenset[str]) -> str:
    """The grammar as Lark text, rule ``start``."""
    return _Lark(specials).write(grammar)


class _Lark:
    def __init__(self, specials: frozenset[str]) -> None:
        marks = sorted(specials, key=len, reverse=True)
        self.split = re.compile("(" + ("|".join(map(re.escape, marks)) or r"(?!)") + ")")
        self.terminals: dict[str, str] = {}

    def write(self, grammar: Texts) -> str:
        rules = [
            f"{_name(name)}: {self.node(node, top=True)}" for name, node in grammar.rules.items()
        ]
        terminals = [f"{name}: {text}" for text, name in self.terminals.items()]
        return "\n".join(["%llguidance {}", "", *rules, *terminals]) + "\n"

    def node(self, node: Node, *, top: bool = False) -> str:
        match node:
            case Lit():
                return self.literal(node.text)
            case Chars():
                return self.terminal(f"/{_char_class(node)}/", "CHARS")
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
                return self.free(node)

    def literal(self, text: str) -> str:
        parts = [
            _special(part) if i % 2 else json.dumps(part, ensure_ascii=False)
            for i, part in enumerate(self.split.split(text))
            if part
        ]
        return " ".join(parts) if len(parts) < 2 else "(" + " ".join(parts) + ")"

    def terminal(self, text: str, kind: str) -> str:
        return self.terminals.setdefault(text, f"{kind}_{len(self.terminals)}")

    def free(self, node: Free) -> str:
        anything = "/(?s:.+)/"
        parts = [anything] + [f"~/(?s:.*){_escape(mark)}(?s:.*)/" for mark in node.without if mark]
        text = self.terminal(" & ".join(parts), "TEXT")
        return text if node.least else f"({text})?"


def _special(mark: str) -> str:
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


def _escape(text: str) -> str:
    return re.sub(r"([\\/.\[\](){}*+?|^$&~<>#\"-])", r"\\\1", text).replace("\n", "\\n")


def _char_class(node: Chars) -> str:
    parts = [
        _class_char(a) if a == b else f"{_class_char(a)}-{_class_char(b)}" for a, b in node.ranges
    ]
    return f"[{'^' if node.negated else ''}{''.join(parts)}]"


def _class_char(ch: str) -> str:
    if ch in "\\]^[-/&~":
        return "\\" + ch
    return f"\\x{ord(ch):02x}" if ord(ch) < 0x20 or ord(ch) == 0x7F else ch
