"""Values are checked as JSON Schema says: the same verdicts as the reference implementation."""

import copy
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.messages import find_problems, is_valid

names = st.sampled_from(["a", "b", "c"])
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, 2.0])
    | st.sampled_from(["", "a", "ab", "5"])
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array", "object"])
plain: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "type": kinds | st.lists(kinds, min_size=1, max_size=2, unique=True),
        "enum": st.lists(leaves, min_size=1, max_size=3),
        "const": leaves,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.integers(-2, 2),
        "multipleOf": st.sampled_from([0.5, 1, 2]),
        "minLength": st.integers(0, 2),
        "maxLength": st.integers(0, 2),
        "pattern": st.sampled_from(["a", "^b", "b$"]),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(0, 2),
        "uniqueItems": st.booleans(),
        "required": st.lists(names, max_size=2, unique=True),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(0, 2),
    },
)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    inside: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
        {},
        optional={
            "properties": st.dictionaries(names, inner, max_size=2),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", "b"]), inner, max_size=1),
            "additionalProperties": inner,
            "propertyNames": st.just({"pattern": "^[ab]$"}),
            "dependentRequired": st.dictionaries(names, st.lists(names, max_size=1), max_size=1),
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "contains": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "if": inner,
            "then": inner,
            "else": inner,
            "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
        },
    )
    return st.builds(_joined, plain, inside)


def _joined(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return first | second


schemas = st.recursive(plain | st.booleans(), nested, max_leaves=5)


@settings(max_examples=60, deadline=None)
@given(schemas, schemas, schemas, values)
def test_the_verdict_is_that_of_the_reference(root: Any, x: Any, y: Any, value: Any) -> None:
    schema: dict[str, Any] = {"allOf": [root]} if isinstance(root, bool) else root
    # References that lead in circles without looking at anything have no verdict.
    schema = {**schema, "$defs": {"x": _without_references(x), "y": _without_references(y)}}
    before = copy.deepcopy(schema)
    reference = jsonschema.Draft202012Validator(schema)

    assert is_valid(schema, value) is reference.is_valid(value)  # pyright: ignore[reportUnknownMemberType]
    assert schema == before


def _without_references(node: Any) -> Any:
    if isinstance(node, dict):
        return {k: _without_references(v) for k, v in node.items() if k != "$ref"}  # pyright: ignore[reportUnknownVariableType]
    return [_without_references(v) for v in node] if isinstance(node, list) else node  # pyright: ignore[reportUnknownVariableType]


def test_a_problem_names_its_place() -> None:
    schema = {
        "type": "object",
        "properties": {"rows": {"type": "array", "items": {"type": "integer"}}},
        "required": ["name"],
        "additionalProperties": False,
    }

    found = find_problems(schema, {"rows": [1, "two"], "other": 1})

    assert [(p.path, p.message) for p in found] == [
        (("name",), "is missing"),
        (("rows", 1), "should be integer"),
        (("other",), "is not a parameter"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/x", "$defs": {"x": {"$ref": "#/$defs/x"}}},
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]},
    ],
)
def test_a_schema_that_goes_in_circles_ends(schema: dict[str, Any]) -> None:
    assert not is_valid(schema, 1)


def test_a_pattern_that_python_cannot_read_refuses_nothing() -> None:
    assert is_valid({"pattern": "(?<é"}, "x")
