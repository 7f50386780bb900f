"""A `Texts` grammar as one regular expression, for engines that take nothing else.

Plain syntax only: sets, groups, choices and counts; no look-around, no anchors.
"""

import re

from antiphon.errors import UsageError
from antiphon.formats._grammar import Alt, Chars, Free, Lit, Node, Ref, Rep, Seq, Texts


def to_regex(grammar: Texts) -> str:
    """The grammar as a regular expression.

    Raises:
        UsageError: It is not regular.
    """
    return _expand(grammar, grammar.rules["root"], ())


def _expand(grammar: Texts, node: Node, inside: tuple[str, ...]) -> str:
    match node:
        case Lit():
            return "".join(_escape(ch) for ch in node.text)
        case Chars():
            return _set(node)
        case Seq():
            return "".join(_expand(grammar, part, inside) for part in node.parts)
        case Alt():
            return f"(?:{'|'.join(_expand(grammar, part, inside) for part in node.options)})"
        case Rep():
            return f"(?:{_expand(grammar, node.node, inside)}){_times(node)}"
        case Free():
            raise UsageError("free text is no regular expression; use tool choice 'required'")
        case Ref():
            if node.rule in inside:
                raise UsageError(
                    f"rule {node.rule!r} refers to itself and is no regular expression; "
                    "use to_gbnf() or to_lark()"
                )
            return _expand(grammar, grammar.rules[node.rule], (*inside, node.rule))


def _escape(ch: str) -> str:
    return {"\n": r"\n", "\r": r"\r", "\t": r"\t"}.get(ch, re.escape(ch) if ch.isascii() else ch)


def _set(node: Chars) -> str:
    parts = [_in_set(a) + (f"-{_in_set(b)}" if a != b else "") for a, b in node.ranges]
    return f"[{'^' if node.negated else ''}{''.join(parts)}]"


def _in_set(ch: str) -> str:
    if ch in "\\]^[-":
        return "\\" + ch
    return f"\\x{ord(ch):02x}" if ord(ch) < 0x20 or ord(ch) == 0x7F else ch


def _times(node: Rep) -> str:
    if node.most is None:
        return "*" if not node.least else "+" if node.least == 1 else f"{{{node.least},}}"
    return "?" if (node.least, node.most) == (0, 1) else f"{{{node.least},{node.most}}}"
