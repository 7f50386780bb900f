"""The benchmark that ships is whole and fair: every right call fits the tools on offer."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from jsonschema import validate

from antiphon.errors import DataError
from antiphon.evaluation import load_cases, same_call
from antiphon.messages import ToolCall, ToolSpec


def test_the_demo_benchmark_has_fifty_single_twenty_five_chained_and_twenty_five_free_questions():
    kinds = [case.kind for case in load_cases("demo")]

    assert {k: kinds.count(k) for k in set(kinds)} == {"single": 50, "chain": 25, "no_tool": 25}


def test_a_file_of_cases_is_a_benchmark_and_one_without_any_is_refused(tmp_path: Path):
    path = tmp_path / "cases.json"
    spec = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    asked = {"id": "1", "kind": "single", "tools": "all", "question": "Do f.", "results": [["1"]]}
    asked |= {"steps": [[{"name": "f", "arguments": {}}]]}
    path.write_text(json.dumps({"toolsets": {"all": [spec]}, "cases": [asked]}), "utf-8")

    assert load_cases(str(path))[0].steps == ((ToolCall("f", {}),),)
    for text in ("no JSON", "[]", '{"toolsets": {}}', '{"toolsets": {}, "cases": [{"id": 1}]}'):
        path.write_text(text, "utf-8")
        with pytest.raises(DataError, match=r"cases\.json: holds no cases"):
            load_cases(str(path))
    path.write_text(json.dumps({"toolsets": {}, "cases": [asked]}), "utf-8")
    with pytest.raises(DataError, match=r"cases\.json: case '1' names the unknown tool set 'all'"):
        load_cases(str(path))
    with pytest.raises(DataError, match="cannot be read: no such file"):
        load_cases(str(tmp_path / "none.json"))


def test_every_right_call_names_a_tool_on_offer_and_fits_its_schema():
    for case in load_cases("demo"):
        schemas = {spec.name: spec.parameters for spec in case.tools}
        for step in case.steps:
            for call in step:
                validate(call.arguments, schemas[call.name])


def test_every_argument_of_a_first_call_can_be_read_in_the_question():
    """A case is fair when the model can know the values: from the question or an earlier result."""
    for case in load_cases("demo"):
        known = case.question
        for step, results in zip(case.steps, case.results, strict=True):
            for call in step:
                for value in call.arguments.values():
                    if isinstance(value, str) and call.name != "calculator" and len(value) > 3:
                        assert value in known or _is_a_choice(value, call, case.tools), case.id
            known += " ".join(results)


def _is_a_choice(value: str, call: ToolCall, tools: Sequence[ToolSpec]) -> bool:
    spec = next(s for s in tools if s.name == call.name)
    properties: dict[str, dict[str, list[str]]] = spec.parameters["properties"]
    return call.name == "convert_currency" or any(
        value in schema.get("enum", ()) for schema in properties.values()
    )


def test_an_expression_is_right_when_its_value_is():
    wanted = ToolCall("calculator", {"expression": "17.5% of 2340"})

    assert same_call(wanted, ToolCall("calculator", {"expression": "2340 * 0.175"}), ())
    assert not same_call(wanted, ToolCall("calculator", {"expression": "2340 * 17.5"}), ())
