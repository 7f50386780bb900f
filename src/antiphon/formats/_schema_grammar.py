"""JSON Schema as a grammar of JSON text, spaced as `dump_json` writes it.

Held: types, enum, const, required and optional properties in the schema's order, nested objects,
arrays with their bounds and with items
of several schemas, anyOf, oneOf, allOf of objects, ``$ref`` (recursive too), string lengths
up to `MAX_LENGTH`, patterns without look-around or back references, and the sign of numbers.  What
is not held is listed by path in `Rules.unheld`, so that checking the arguments stays somebody's
task.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from antiphon.formats._grammar import (
    EMPTY,
    Alt,
    Chars,
    Lit,
    Node,
    Ref,
    Rep,
    Rules,
    alt,
    optional,
    seq,
)
from antiphon.messages import ToolSpec, dump_json

MAX_LENGTH = 256  # characters; longer bounds on strings make engines slow and are left to the check
_DIGITS = 20  # of integers, fractions; more than any number that a double or a 64-bit integer needs

_CONTROL = (("\x00", "\x1f"),)
_HEX = Chars((("0", "9"), ("a", "f"), ("A", "F")))
_ANY_D = Chars((("d", "d"), ("D", "D")))


def code_unit(digit: Chars) -> Node:
    """Four hexadecimal digits that are no half of a surrogate pair."""
    ranges = tuple(("e", "f") if r == ("a", "f") else ("E", "F") for r in digit.ranges[1:])
    below_d = tuple((a, "c" if a == "a" else "C") for a, _ in digit.ranges[1:])
    any_d = Chars(tuple(("d", "d") if a == "a" else ("D", "D") for a, _ in digit.ranges[1:]))
    first = Chars((("0", "9"), *below_d, *ranges))
    return alt(seq(first, Rep(digit, 3, 3)), seq(any_d, Chars((("0", "7"),)), Rep(digit, 2, 2)))


STRING_CHAR: Node = Alt(
    (
        Chars((('"', '"'), ("\\", "\\"), *_CONTROL), negated=True),
        seq("\\", Chars(tuple((ch, ch) for ch in '"\\/bfnrt'))),
        seq("\\u", code_unit(_HEX)),
        seq(
            "\\u", _ANY_D, Chars((("8", "9"), ("a", "b"), ("A", "B"))), Rep(_HEX, 2, 2),
            "\\u", _ANY_D, Chars((("c", "f"), ("C", "F"))), Rep(_HEX, 2, 2),
        ),
    )
)  # fmt: skip
_DIGIT = Chars((("0", "9"),))
_UNSIGNED = alt(Lit("0"), seq(Chars((("1", "9"),)), Rep(_DIGIT, 0, _DIGITS - 1)))
_FRACTION = seq(".", Rep(_DIGIT, 1, _DIGITS))
_EXPONENT = seq(
    Chars((("e", "e"), ("E", "E"))), optional(Chars((("+", "+"), ("-", "-")))), Rep(_DIGIT, 1, 3)
)
_ANNOTATIONS = {
    "$comment", "$defs", "$id", "$schema", "default", "definitions", "deprecated", "description",
    "examples", "readOnly", "title", "writeOnly", "nullable",
}  # fmt: skip


def arguments_node(
    spec: ToolSpec, rules: Rules, *, maker: "type[SchemaMaker] | None" = None
) -> Node:
    """The arguments of one tool as a JSON object."""
    made_by = (maker or SchemaMaker)(spec.parameters, rules, spec.name)
    return made_by.node({"type": "object"} | spec.parameters, "")


class SchemaMaker:
    """Makes the rules of one schema."""

    value_rule = "value"
    comma: Node | str = ", "
    colon = ": "
    margin: Node = EMPTY
    """What stands inside brackets that hold something."""

    def __init__(self, root: Mapping[str, Any], rules: Rules, tool: str) -> None:
        self.root = root
        self.rules = rules
        self.tool = tool
        self.references: dict[str, Ref] = {}

    def literal(self, value: Any) -> Lit:
        """One value."""
        return Lit(dump_json(value))

    def key(self, name: str, path: str) -> str:
        """A key and what stands between it and its value."""
        return self.literal(name).text + self.colon

    def any_key(self) -> Node:
        """A key that the schema does not name, likewise."""
        return seq(self.string({}, ""), self.colon)

    def brackets(self, path: str) -> tuple[str, str]:
        """What stands around the members of an object."""
        return "{", "}"

    def members(self, properties: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """The members of an object in the order in which they are written."""
        return list(properties.items())

    def quoted(self, inside: Node) -> Node:
        """A string, whose inside needs no escaping beyond JSON's."""
        return seq('"', inside, '"')

    def unheld(self, path: str, *keywords: str) -> None:
        """Say what is left to the check."""
        self.rules.unheld += [f"{self.tool}{path}: {word}" for word in keywords]

    def node(self, schema: Any, path: str) -> Node:
        """The texts of one schema."""
        if schema is True or schema == {} or not isinstance(schema, Mapping):
            return self.any_value()
        fields = cast("Mapping[str, Any]", schema)
        if fields.get("nullable") is True:
            rest = {k: v for k, v in fields.items() if k != "nullable"}
            return alt(self.node(rest, path), self.literal(None))
        if "$ref" in fields:
            return self.reference(str(fields["$ref"]), path)
        if "const" in fields:
            return self.literal(fields["const"])
        if "enum" in fields:
            return alt(*(self.literal(value) for value in fields["enum"]))
        for key in ("anyOf", "oneOf"):
            if key in fields:
                rest = {k: v for k, v in fields.items() if k != key}
                options = cast("Sequence[Any]", fields[key])
                return alt(*(self.node(_merged(rest, option), path) for option in options))
        if "allOf" in fields:
            merged: dict[str, Any] = {k: v for k, v in fields.items() if k != "allOf"}
            for option in cast("Sequence[Any]", fields["allOf"]):
                merged = _merged(merged, self.resolved(option))
            return self.node(merged, path)
        return self.typed(fields, path)

    def typed(self, schema: Mapping[str, Any], path: str) -> Node:
        """The texts of a schema that says its type."""
        kind = schema.get("type")
        if isinstance(kind, list):
            return alt(*(self.typed({**schema, "type": k}, path) for k in cast("list[str]", kind)))
        if kind is None:
            kind = "object" if "properties" in schema else "array" if "items" in schema else None
        match kind:
            case "object":
                return self.object(schema, path)
            case "array":
                return self.array(schema, path)
            case "string":
                return self.string(schema, path)
            case "integer" | "number":
                return self.number(schema, path, whole=kind == "integer")
            case "boolean":
                return alt(self.literal(True), self.literal(False))
            case "null":
                return self.literal(None)
            case _:
                self.check_all(schema, path, set())
                return self.any_value()

    def check_all(self, schema: Mapping[str, Any], path: str, held: set[str]) -> None:
        """Name the keywords that are not held."""
        self.unheld(path, *(k for k in schema if k not in held | _ANNOTATIONS | {"type"}))

    def object(self, schema: Mapping[str, Any], path: str) -> Node:
        """An object: its properties in order, optional ones left out or not."""
        properties = cast("Mapping[str, Any]", schema.get("properties") or {})
        opening, closing = self.brackets(path)
        required = set(cast("Sequence[str]", schema.get("required") or ()))
        others = schema.get("additionalProperties")
        self.check_all(schema, path, {"properties", "required", "additionalProperties"})
        if not properties:
            if others is False or (others is None and path == ""):
                return Lit(opening + closing)
            member = seq(self.any_key(), self.node(others or {}, f"{path}.*"))
            more = Rep(seq(self.comma, member))
            full = seq(opening, self.margin, member, more, self.margin, closing)
            return alt(Lit(opening + closing), full)
        if others not in (None, False):
            self.unheld(path, "additionalProperties")
        first: Node = EMPTY
        later: Node = EMPTY
        for key, value in reversed(self.members(properties)):
            pair = seq(self.key(key, path), self.node(value, f"{path}.{key}"))
            name = f"{self.tool}{path}.{key}"
            now, then = seq(pair, later), seq(self.comma, pair, later)
            if key not in required:
                now, then = alt(now, first), alt(then, later)
            first = self.rule(f"{name}.a", now)
            later = self.rule(f"{name}.b", then)
        return seq(opening, self.margin, first, self.margin, closing)

    def rule(self, name: str, node: Node) -> Node:
        """A rule of its own where that keeps the grammar small."""
        return node if isinstance(node, Lit) else self.rules.add(rule_name(name), node)

    def array(self, schema: Mapping[str, Any], path: str) -> Node:
        """An array with bounds."""
        self.check_all(schema, path, {"items", "minItems", "maxItems", "prefixItems"})
        prefix = cast("Sequence[Any]", schema.get("prefixItems") or ())
        least = int(schema.get("minItems") or 0)
        most = schema.get("maxItems")
        if prefix:
            return self.listed(prefix[:most], schema.get("items", False), path, least, most)
        item = self.node(schema.get("items", {}), f"{path}[]")
        if most == 0:
            return Lit("[]")
        more = self.further(item, least - 1, None if most is None else int(most) - 1)
        full = seq("[", self.margin, item, more, self.margin, "]")
        return full if least else alt(Lit("[]"), full)

    def listed(
        self, prefix: Sequence[Any], items: Any, path: str, least: int, most: int | None
    ) -> Node:
        """An array of which each item has a schema of its own, and more where `items` allows it."""
        n, end = len(prefix), seq(self.margin, "]")
        tail = end
        if items is not False:
            item = self.node(items, f"{path}[]")
            tail = seq(self.further(item, least - n, None if most is None else most - n), end)
        for i in reversed(range(n)):
            item = self.node(prefix[i], f"{path}[{i}]")
            tail = seq(self.comma if i else self.margin, item, tail)
            if i >= least:
                tail = alt(tail, end if i else Lit("]"))
            tail = self.rule(f"{self.tool}{path}.{i}", tail)
        return seq("[", tail)

    def further(self, item: Node, least: int, most: int | None) -> Node:
        """Items behind others."""
        return EMPTY if most == 0 else Rep(seq(self.comma, item), max(least, 0), most)

    def string(self, schema: Mapping[str, Any], path: str) -> Node:
        """A string with bounds or a pattern."""
        from antiphon.formats._pattern import pattern_node

        held = {"minLength", "maxLength", "pattern"}
        self.check_all(schema, path, held)
        pattern = schema.get("pattern")
        if pattern is not None:
            node = pattern_node(str(pattern))
            if node is not None:
                self.unheld(path, *(k for k in ("minLength", "maxLength") if k in schema))
                return self.quoted(node)
            self.unheld(path, "pattern")
        least, most = schema.get("minLength") or 0, schema.get("maxLength")
        if max(least, most or 0) > MAX_LENGTH:
            self.unheld(path, *(k for k in ("minLength", "maxLength") if k in schema))
            least, most = 0, None
        return self.quoted(Rep(self.rules.add("char", STRING_CHAR), least, most))

    def number(self, schema: Mapping[str, Any], path: str, *, whole: bool) -> Node:
        """A number; of its bounds only the sign is held."""
        self.check_all(schema, path, {"minimum", "exclusiveMinimum"})
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        sign: Node = optional(Lit("-"))
        if isinstance(low, int | float):
            if low >= 0:
                sign = EMPTY
            if low != 0 or "exclusiveMinimum" in schema:
                self.unheld(path, *(k for k in ("minimum", "exclusiveMinimum") if k in schema))
        if whole:
            return seq(sign, self.rules.add("digits", _UNSIGNED))
        plain = seq(self.rules.add("digits", _UNSIGNED), optional(_FRACTION), optional(_EXPONENT))
        return seq(sign, self.rules.add("unsigned", plain))

    def reference(self, ref: str, path: str) -> Node:
        """What ``$ref`` points to, as a rule, so that it may refer to itself."""
        if ref not in self.references:
            name = rule_name(f"{self.tool}.{ref.rsplit('/', 1)[-1]}.ref")
            while name in self.rules.rules:
                name += "-x"
            self.references[ref] = Ref(name)
            self.rules.rules[name] = EMPTY
            self.rules.rules[name] = self.node(self.resolve(ref), path or f".{ref}")
        return self.references[ref]

    def resolved(self, schema: Any) -> Any:
        """A schema, or what its reference points to."""
        if not isinstance(schema, Mapping):
            return {}
        fields = cast("Mapping[str, Any]", schema)
        return self.resolve(str(fields["$ref"])) if "$ref" in fields else fields

    def resolve(self, ref: str) -> Any:
        """What a local reference points to; anything if it points nowhere."""
        node: Any = self.root
        for key in ref.removeprefix("#").strip("/").split("/"):
            if not key:
                continue
            if not isinstance(node, Mapping):
                return {}
            node = cast("Mapping[str, Any]", node).get(
                key.replace("~1", "/").replace("~0", "~"), {}
            )
        return node

    def any_value(self) -> Node:
        """Any JSON value."""
        value = Ref(self.value_rule)
        if self.value_rule not in self.rules.rules:
            self.rules.rules[self.value_rule] = EMPTY
            text = self.string({}, "")
            member = seq(self.any_key(), value)
            items = seq("[", self.margin, value, Rep(seq(self.comma, value)), self.margin, "]")
            more = Rep(seq(self.comma, member))
            members = seq("{", self.margin, member, more, self.margin, "}")
            self.rules.rules[self.value_rule] = alt(
                text, self.number({}, "", whole=False), self.literal(True), self.literal(False),
                self.literal(None), Lit("[]"), items, Lit("{}"), members,
            )  # fmt: skip
        return value


class IndentedMaker(SchemaMaker):
    """Makes the rules of JSON on several lines, indented by any number of spaces."""

    value_rule = "indented-value"
    margin = seq("\n", Rep(Chars(((" ", " "),))))
    comma = seq(",", margin)


def _merged(base: Mapping[str, Any], option: Any) -> dict[str, Any]:
    """Two schemas that must both hold, as one."""
    if not isinstance(option, Mapping):
        return dict(base)
    other = cast("Mapping[str, Any]", option)
    merged = {**base, **other}
    for key in ("properties",):
        if key in base and key in other:
            merged[key] = {**base[key], **other[key]}
    if "required" in base and "required" in other:
        merged["required"] = [*base["required"], *other["required"]]
    return merged


def rule_name(text: str) -> str:
    """A name that every engine takes."""
    return "".join(ch if ch.isascii() and ch.isalnum() else "-" for ch in text).strip("-").lower()
