"""The grammar of calls whose arguments stand each in a tag of its own.

Strings are free text up to the mark behind them, so that of a string's bounds only choices and
patterns are held; every other value obeys its schema as JSON, or as the Python that some families
write.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from antiphon.formats._grammar import (
    EMPTY,
    CallForm,
    Chars,
    Free,
    Lit,
    Node,
    Rep,
    Rules,
    Seq,
    alt,
    optional,
    seq,
)
from antiphon.formats._pattern import pattern_node
from antiphon.formats._schema_grammar import SchemaMaker, code_unit, rule_name
from antiphon.formats._tagged import CDATA, Tagged
from antiphon.formats._typing import kind_of, kinds
from antiphon.messages import ToolSpec

_BOUNDS = ("minLength", "maxLength", "format")
_PYTHON_CHAR: Node = alt(
    Chars((("'", "'"), ("\\", "\\"), ("\x00", "\x1f")), negated=True),
    seq("\\", Chars(tuple((ch, ch) for ch in "'\\nrt"))),
    seq("\\x", Rep(Chars((("0", "9"), ("a", "f"))), 2, 2)),
    seq("\\u", code_unit(Chars((("0", "9"), ("a", "f"))))),
)


class PythonMaker(SchemaMaker):
    """Makes the rules of one schema for values as Python prints them."""

    value_rule = "python-value"

    def literal(self, value: Any) -> Lit:
        """One value."""
        return Lit(repr(value))

    def string(self, schema: Mapping[str, Any], path: str) -> Node:
        """A string in either quotes."""
        self.check_all(schema, path, set())
        single = seq("'", Rep(self.rules.add("python-char", _PYTHON_CHAR)), "'")
        other = Chars((('"', '"'), ("\\", "\\"), ("\x00", "\x1f")), negated=True)
        return alt(single, seq('"', Rep(other), '"'))


def tagged_form(
    tags: Tagged,
    specials: frozenset[str],
    *,
    before: str,
    end: Sequence[str],
    always: bool = False,
    thinking: tuple[str, str] | None = None,
    forbidden: tuple[str, ...] = (),
) -> CallForm:
    """The form of a family's calls.

    Args:
        tags: The family's tags.
        specials: Marks that are single tokens.
        before: What stands between text and the first block.
        end: Marks that end the family's turns.
        always: Whether `before` stands there without text, too.
        thinking: What stands before and behind reasoning.
        forbidden: More marks that text must not hold.
    """

    def call(spec: ToolSpec, rules: Rules) -> Node:
        node = _call(tags, spec, rules)
        return node if tags.several else seq(tags.open, node, tags.close)

    first = tags.open.strip() or tags.call.strip()
    return CallForm(
        call,
        open=(before if always else "") + (tags.open if tags.several else ""),
        close=tags.close if tags.several else "",
        between="" if tags.several else tags.between,
        before="" if always else before,
        forbidden=tuple(dict.fromkeys((first, *forbidden, *end))),
        thinking=thinking,
        specials=specials,
    )


def _call(tags: Tagged, spec: ToolSpec, rules: Rules) -> Node:
    """One call: its arguments in the schema's order, optional ones left out or not."""
    properties = cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
    required = set(cast("Sequence[str]", spec.parameters.get("required") or ()))
    later: Node = EMPTY
    for key, schema in reversed(list(properties.items())):
        node = seq(_argument(tags, spec, key, schema, rules), later)
        if key not in required:
            node = alt(node, later)
        later = rules.add(rule_name(f"{spec.name}.{key}.from"), node)
    if tags.empty and not required:
        later = seq(optional(Lit(tags.empty)), later)
    head = tags.call + spec.name + tags.named
    if "{index}" in tags.named:
        before, _, after = head.partition("{index}")
        digits = Rep(Chars((("0", "9"),)), 1, 3)
        return seq(before, digits, after, later, tags.call_close)
    return seq(head, later, tags.call_close)


def _argument(tags: Tagged, spec: ToolSpec, key: str, schema: Any, rules: Rules) -> Node:
    """One argument in its tag, in each of the types that it may have."""
    values = _values(tags, spec, key, schema, rules)
    options: list[Node] = []
    for kind, node in values:
        keyed = tags.keyed.replace("{type}", _said(tags, kind))
        options.append(seq(f"{tags.key}{key}{keyed}{tags.value}", node, tags.value_close))
    return rules.add(rule_name(f"{spec.name}.{key}"), alt(*options))


def _said(tags: Tagged, kind: str) -> str:
    if tags.types == "string":
        return "true" if kind == "string" else "false"
    return "number" if kind == "integer" else kind


def _values(
    tags: Tagged, spec: ToolSpec, key: str, schema: Any, rules: Rules
) -> list[tuple[str, Node]]:
    """What a value may be, by type."""
    path = f".{key}"
    allowed = kinds(schema, spec.parameters)
    json, python = (
        maker(spec.parameters, rules, spec.name) for maker in (SchemaMaker, PythonMaker)
    )
    found: list[tuple[str, Node]] = []
    if not allowed or "string" in allowed:
        found.append(("string", _string(_breaks(tags, spec), schema, path, json)))
    if not allowed and tags.types != "schema":
        found.append(("object", json.any_value()))
    for kind in sorted(allowed - {"string"}):
        maker = python if kind in tags.python else json
        found.append((kind, maker.node(_only(schema, kind, spec.parameters), path)))
    return found


def _only(schema: Any, kind: str, root: Mapping[str, Any]) -> Any:
    """The part of a schema that is of one type."""
    fields: Mapping[str, Any] = (
        cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    )
    for key in ("anyOf", "oneOf"):
        if key in fields:
            options = [o for o in cast("list[Any]", fields[key]) if kind in kinds(o, root)]
            return {**fields, key: [_only(option, kind, root) for option in options]}
    if "enum" in fields:
        values = cast("list[Any]", fields["enum"])
        return {**fields, "enum": [v for v in values if kind_of(v) == kind]}
    if isinstance(fields.get("type"), list):
        return {**fields, "type": kind}
    return fields


def _breaks(tags: Tagged, spec: ToolSpec) -> tuple[str, ...]:
    """Texts that a string must not hold, because the parser ends it there: see `ValueEnd`."""
    keys = cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
    opened = tags.keyed.partition("{type}")[0]
    return (
        tags.value_close.strip(),
        tags.call_close.strip() or tags.close.strip(),
        *(f"{tags.key.strip()}{key}{opened}".rstrip() for key in keys),
        *((CDATA,) if tags.cdata else ()),
    )


def _string(breaks: tuple[str, ...], schema: Any, path: str, maker: SchemaMaker) -> Node:
    """A string as it stands between its marks."""
    fields: Mapping[str, Any] = (
        cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}
    )
    if isinstance(fields.get("const"), str):
        return Lit(fields["const"])
    if "enum" in fields:
        values = cast("list[Any]", fields["enum"])
        return alt(*(Lit(value) for value in values if isinstance(value, str)))
    if "pattern" in fields:
        node = pattern_node(str(fields["pattern"]))
        if node is not None and not _escapes(node):
            return node
        maker.unheld(path, "pattern")
    maker.unheld(path, *(word for word in _BOUNDS if word in fields))
    return Free(breaks)


def _escapes(node: Node) -> bool:
    """Whether a node holds what JSON escapes."""
    if isinstance(node, Lit):
        return "\\" in node.text
    if isinstance(node, Seq):
        return any(map(_escapes, node.parts))
    inner = getattr(node, "options", None) or ((node.node,) if isinstance(node, Rep) else ())
    return any(map(_escapes, inner))
