"""A tool in the words of each API: what it takes, what it loses, and arguments back from it."""

import asyncio
import copy
import json
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from antiphon.errors import DataError, RenderError
from antiphon.messages import ToolSpec
from antiphon.messages._json_schema import children
from antiphon.tools import tool as make_tool
from tools.schema_cases import Bench, load

_OPENAI_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "description", "enum", "items",
    "anyOf", "$ref", "$defs", "pattern", "format", "minimum", "maximum", "exclusiveMinimum",
    "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
}  # fmt: skip


def obj(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return schema if required is None else {**schema, "required": required}


def spec(required: list[str] | None = None, **properties: Any) -> ToolSpec:
    return ToolSpec("t", "Does it.", obj(required, **properties))


def strict(of: ToolSpec) -> dict[str, Any]:
    made = of.to_openai(strict=True)["function"]
    assert made.get("strict") is True, of.strict_problem()
    return made["parameters"]


def lint(schema: dict[str, Any]) -> list[str]:
    """What an endpoint's strict mode would refuse."""
    found = [f"keyword {k}" for k in schema if k not in _OPENAI_KEYWORDS]
    if "$ref" in schema and len(schema) > 1:
        found.append("$ref with siblings")
    if schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            found.append("open object")
        if sorted(schema["required"]) != sorted(schema["properties"]):
            found.append("not all required")
    return found + [
        problem for child in children(schema) if child is not False for problem in lint(child)
    ]


def test_an_optional_parameter_of_strict_mode_is_nullable_and_tells_its_default() -> None:
    tool = spec(["city"], city={"type": "string"}, days={"type": "integer", "default": 3})

    schema = strict(tool)

    assert schema["required"] == ["city", "days"]
    assert schema["properties"]["days"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "description": "Default: 3.",
    }
    assert tool.restore_arguments({"city": "Lima", "days": None}) == {"city": "Lima"}


def test_a_map_is_a_list_of_pairs_in_strict_mode_and_a_map_again_behind_it() -> None:
    tool = spec(["prices"], prices={"type": "object", "additionalProperties": {"type": "number"}})

    schema = strict(tool)

    assert lint(schema) == []
    sent = {"prices": [{"key": "a", "value": 1.5}, {"key": "b", "value": 2}]}
    jsonschema.validate(sent, schema)  # pyright: ignore[reportUnknownMemberType]
    assert tool.restore_arguments(sent) == {"prices": {"a": 1.5, "b": 2}}


def test_a_map_in_a_union_is_told_from_a_list() -> None:
    tool = spec(
        where={
            "anyOf": [
                {"type": "array", "items": {"type": "integer"}},
                {"type": "object", "additionalProperties": {"type": "string"}},
                {"type": "null"},
            ]
        }
    )

    assert tool.restore_arguments({"where": [1, 2]}) == {"where": [1, 2]}
    assert tool.restore_arguments({"where": [{"key": "a", "value": "b"}]}) == {"where": {"a": "b"}}
    assert tool.restore_arguments({"where": None}) == {"where": None}


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (obj(x={}), "x may be anything"),
        (obj(x={"type": "object", "additionalProperties": True}), "x is an object with any keys"),
        (obj(x={"type": "object", "additionalProperties": {}}), "x is an object with any keys"),
        (obj(x={"type": "array"}), "x is a list of anything"),
        (obj(x={"allOf": [{"type": "string"}, {"minLength": 1}]}), "x is several schemas"),
        ({"type": "array"}, "not one object"),
    ],
)
def test_what_strict_mode_cannot_say_goes_out_plain_with_a_reason(
    schema: dict[str, Any], reason: str
) -> None:
    """openai-agents-python#3927"""
    tool = ToolSpec("t", "", schema)

    assert "strict" not in tool.to_openai(strict=True)["function"]
    assert reason in tool.strict_problem()


def test_what_is_lost_of_a_type_is_told_in_its_description() -> None:
    tool = spec(q={"type": "string", "minLength": 2, "description": "Query."})

    assert strict(tool)["properties"]["q"]["anyOf"][0] == {"type": "string"}
    assert strict(tool)["properties"]["q"]["description"] == "Query. (minLength: 2)"


def test_a_schema_that_contains_itself_keeps_its_definition_in_openais_strict_mode() -> None:
    node = {
        "type": "object",
        "properties": {
            "label": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
        },
        "required": ["label"],
    }
    tool = ToolSpec(
        "t", "", {**obj(["root"], root={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}
    )

    schema = strict(tool)

    assert lint(schema) == []
    assert schema["properties"]["root"] == {"$ref": "#/$defs/Node"}
    assert "contains itself" in tool.strict_problem("anthropic")


def test_anthropics_strict_mode_keeps_optional_parameters_optional() -> None:
    tool = spec(["a"], a={"type": "integer", "minimum": 1}, b={"type": "string"})

    made = tool.to_anthropic(strict=True)

    assert made["strict"] is True
    assert made["input_schema"] == {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "(minimum: 1)"},
            "b": {"type": "string"},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_gemini_has_upper_case_types_nullable_and_no_references() -> None:
    tool = ToolSpec(
        "t",
        "Does it.",
        {
            **obj(
                ["mode"],
                mode={"enum": ["a", "b"]},
                level={"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3},
                spot={"$ref": "#/$defs/Spot", "description": "Where."},
                any={},
            ),
            "$defs": {"Spot": obj(["x"], x={"type": "number"})},
        },
    )

    assert tool.to_gemini()["parameters"] == {
        "type": "OBJECT",
        "properties": {
            "mode": {"type": "STRING", "enum": ["a", "b"]},
            "level": {"type": "INTEGER", "nullable": True, "description": "Default: 3."},
            "spot": {
                "type": "OBJECT",
                "properties": {"x": {"type": "NUMBER"}},
                "propertyOrdering": ["x"],
                "required": ["x"],
                "description": "Where.",
            },
            "any": {"type": "STRING", "description": "Any value, as JSON text."},
        },
        "propertyOrdering": ["mode", "level", "spot", "any"],
        "required": ["mode"],
    }


def test_mcp_closes_a_tool_without_parameters() -> None:
    tool = ToolSpec("now", "Time.", returns={"type": "string"})

    assert tool.to_mcp() == {
        "name": "now",
        "description": "Time.",
        "inputSchema": {"type": "object", "additionalProperties": False},
        "outputSchema": {"type": "string"},
    }


def test_a_spec_is_read_back_from_anthropic_and_mcp() -> None:
    tool = spec(["city"], city={"type": "string"})

    assert ToolSpec.from_anthropic(tool.to_anthropic()) == tool
    assert ToolSpec.from_mcp(tool.to_mcp()) == tool
    with pytest.raises(DataError, match="needs a name"):
        ToolSpec.from_mcp({"inputSchema": {}})
    with pytest.raises(DataError, match="must be a JSON Schema object"):
        ToolSpec.from_anthropic({"name": "t", "input_schema": []})


def test_a_schema_ten_thousand_levels_deep_is_refused_at_once() -> None:
    """openai-agents-python#4358"""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(10_000):
        schema = {"type": "array", "items": schema}
    tool = spec(x=schema)
    started = time.monotonic()

    for render in (
        lambda: tool.to_openai(strict=True),
        lambda: tool.to_anthropic(strict=True),
        tool.to_gemini,
    ):
        with pytest.raises(RenderError, match="more than 64 levels"):
            render()
    assert time.monotonic() - started < 1


def signature_specs(folder: Path) -> list[ToolSpec]:
    """The specs of every signature among the cases that is a tool."""
    cases = [c for c in load("signatures.jsonl") if not c["expect"].get("build_error")]
    return [Bench(case, folder).tool().spec for case in cases]


def test_no_rendering_of_any_signature_changes_it_or_breaks_the_rules(tmp_path: Path) -> None:
    """fastmcp#4492"""
    specs = signature_specs(tmp_path)
    assert len(specs) > 100

    for tool in specs:
        before = copy.deepcopy(tool)
        shown = [
            tool.to_openai(strict=True),
            tool.to_anthropic(strict=True),
            tool.to_gemini(),
            tool.to_mcp(),
        ]
        assert tool == before
        json.dumps(shown, allow_nan=False)
        if shown[0]["function"].get("strict"):
            assert lint(shown[0]["function"]["parameters"]) == []


def test_most_signatures_can_be_strict(tmp_path: Path) -> None:
    specs = signature_specs(tmp_path)

    refused = {tool.name: tool.strict_problem() for tool in specs if tool.strict_problem()}

    assert len(refused) <= 12, refused


def test_arguments_come_back_as_the_function_wants_them() -> None:
    @make_tool(threaded=False)
    def f(prices: dict[str, float], day: str = "mon", n: int = 3) -> str:
        return f"{prices} {day} {n}"

    sent = {"prices": [{"key": "a", "value": 1.5}], "day": None, "n": 4}
    jsonschema.validate(sent, strict(f.spec))  # pyright: ignore[reportUnknownMemberType]

    result = asyncio.run(f.call(f.spec.restore_arguments(sent)))

    assert result.text == "{'a': 1.5} mon 4"
    assert result.repairs == ()
