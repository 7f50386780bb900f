"""The form of Gemma's calls, for the grammar: their strings are verbatim up to the delimiter."""

from antiphon.formats import _gemma as gemma
from antiphon.formats._grammar import CallForm, Free, Node, Rules, seq
from antiphon.formats._spelled_grammar import Spelling, spelled_arguments
from antiphon.messages import ToolSpec


def call_form(
    specials: frozenset[str],
    *,
    thinking: tuple[str, str] | None = None,
    marks: tuple[str, str] = (gemma.CALL, gemma.CALL_END),
    quote: str = gemma.QUOTE,
) -> CallForm:
    """How calls stand in the text.

    Args:
        specials: Marks that are single tokens.
        thinking: What stands before and behind reasoning.
        marks: What stands before and behind a call.
        quote: What stands before and behind a string.
    """
    objects = Spelling(
        "gemma",
        lambda value: gemma.written(value, quote=quote),
        seq(quote, Free((quote,)), quote),
        comma=",",
        colon=":",
        bare_keys=True,
        order=str.lower,
    )

    def call(spec: ToolSpec, rules: Rules) -> Node:
        arguments = spelled_arguments(spec, rules, objects)
        return seq(f"{marks[0]}call:{spec.name}", arguments, marks[1])

    return CallForm(
        call,
        forbidden=tuple(sorted(specials)),
        thinking=thinking,
        specials=specials,
    )
