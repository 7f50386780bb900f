"""Arguments as a family spells them, for the grammar: JSON Schema as texts that are no JSON.

A `Spelling` says how values are written; what a schema holds is `_schema_grammar.py`'s.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from antiphon.formats._grammar import Chars, Lit, Node, Rep, Rules, alt, seq
from antiphon.formats._schema_grammar import SchemaMaker, code_unit
from antiphon.messages import ToolSpec


@dataclass(frozen=True, slots=True)
class Spelling:
    """How values are written."""

    name: str
    """What its rules are called."""
    value: Callable[[Any], str]
    """A constant."""
    string: Node
    """Any string."""
    comma: str = ", "
    """What stands between members and items."""
    colon: str = ": "
    """What stands between a key and its value."""
    bare_keys: bool = False
    """Whether keys stand without quotes."""
    order: Callable[[str], Any] | None = None
    """What members are sorted by, where the family sorts them."""
    inside: tuple[type[SchemaMaker] | None, type[SchemaMaker] | None] = (None, None)
    """What makes an argument that is an object, and one that is an array, where that differs."""


class SpelledMaker(SchemaMaker):
    """Makes the rules of one schema in a `Spelling`."""

    def __init__(
        self,
        root: Mapping[str, Any],
        rules: Rules,
        tool: str,
        spelling: Spelling,
        *,
        around: tuple[str, str] = ("{", "}"),
        sign: str = "",
    ) -> None:
        super().__init__(root, rules, tool)
        self.spelling = spelling
        self.around = around
        self.sign = sign
        self.comma, self.colon = spelling.comma, spelling.colon
        self.value_rule = f"{spelling.name}-value"

    def literal(self, value: Any) -> Lit:
        """One value."""
        return Lit(self.spelling.value(value))

    def key(self, name: str, path: str) -> str:
        """A key and what stands between it and its value."""
        if not path and self.sign:
            return name + self.sign
        return (name if self.spelling.bare_keys else self.literal(name).text) + self.colon

    def any_key(self) -> Node:
        """A key that the schema does not name, likewise."""
        if not self.spelling.bare_keys:
            return super().any_key()
        letters = (("a", "z"), ("A", "Z"), ("_", "_"))
        return seq(Chars(letters), Rep(Chars((*letters, ("0", "9")))), self.colon)

    def brackets(self, path: str) -> tuple[str, str]:
        """What stands around the members of an object."""
        return self.around if not path else ("{", "}")

    def members(self, properties: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """The members of an object in the order in which they are written."""
        order = self.spelling.order
        items = list(properties.items())
        return items if order is None else sorted(items, key=lambda item: order(item[0]))

    def string(self, schema: Mapping[str, Any], path: str) -> Node:
        """A string; its bounds and pattern are not held."""
        self.check_all(schema, path, set())
        return self.spelling.string

    def object(self, schema: Mapping[str, Any], path: str) -> Node:
        """An object, spelled as the inside of an argument is."""
        maker = self.spelling.inside[0] if path else None
        return super().object(schema, path) if maker is None else self._by(maker, schema, path)

    def array(self, schema: Mapping[str, Any], path: str) -> Node:
        """An array, likewise."""
        maker = self.spelling.inside[1] if path else None
        return super().array(schema, path) if maker is None else self._by(maker, schema, path)

    def any_value(self) -> Node:
        """Any value."""
        maker = self.spelling.inside[0]
        if maker is None:
            return super().any_value()
        plain = [self.literal(value) for value in (True, False, None)]
        return alt(
            self.spelling.string, *plain, maker(self.root, self.rules, self.tool).any_value()
        )

    def _by(self, maker: type[SchemaMaker], schema: Mapping[str, Any], path: str) -> Node:
        return maker(self.root, self.rules, self.tool).typed(schema, path)


def spelled_arguments(
    spec: ToolSpec,
    rules: Rules,
    spelling: Spelling,
    *,
    around: tuple[str, str] = ("{", "}"),
    sign: str = "",
) -> Node:
    """The arguments of one tool as the family spells them.

    Args:
        spec: The tool.
        rules: Takes the rules.
        spelling: How values are written.
        around: What stands around the arguments.
        sign: What stands between an argument and its value, where it is not the spelling's colon.
    """
    maker = SpelledMaker(spec.parameters, rules, spec.name, spelling, around=around, sign=sign)
    return maker.object({"type": "object"} | spec.parameters, "")


def quoted(quote: str, *, escapes: str) -> Node:
    """A string in quotes, as Python reads it.

    Args:
        quote: The quote.
        escapes: What may follow a backslash.
    """
    special = ((quote, quote), ("\\", "\\"), ("\x00", "\x1f"))
    digit = Chars((("0", "9"), ("a", "f")))
    char = alt(
        Chars(special, negated=True),
        seq("\\", Chars(tuple((ch, ch) for ch in escapes))),
        seq("\\x", Rep(digit, 2, 2)),
        seq("\\u", code_unit(digit)),
        seq("\\U000", Chars((("1", "9"), ("a", "f"))), Rep(digit, 4, 4)),
        seq("\\U0010", Rep(digit, 4, 4)),
    )
    return seq(quote, Rep(char), quote)
