"""The form of Gemma's calls, for the grammar: their strings are verbatim up to the delimiter."""

from antiphon.formats import _gemma as gemma
from antiphon.formats._grammar import CallForm, Free, Node, Rules, seq
from antiphon.formats._spelled_grammar import Spelling, spelled_arguments
from antiphon.messages import ToolSpec

_OBJECTS = Spelling(
    "gemma",
    gemma.written,
    seq(gemma.QUOTE, Free((gemma.QUOTE,)), gemma.QUOTE),
    comma=",",
    colon=":",
    bare_keys=True,
    order=str.lower,
)


def call_form(specials: frozenset[str], *, thinking: tuple[str, str]) -> CallForm:
    """How calls stand in the text.

    Args:
        specials: Marks that are single tokens.
        thinking: What stands before and behind reasoning.
    """

    def call(spec: ToolSpec, rules: Rules) -> Node:
        arguments = spelled_arguments(spec, rules, _OBJECTS)
        return seq(f"{gemma.CALL}call:{spec.name}", arguments, gemma.CALL_END)

    return CallForm(
        call,
        forbidden=tuple(sorted(specials)),
        thinking=thinking,
        specials=specials,
    )
