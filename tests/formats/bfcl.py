"""The calls that the Berkeley Function-Calling Leaderboard holds for right, as messages.

Read from the installed package (``pip install --no-deps bfcl-eval``: only its data is needed); see
https://gorilla.cs.berkeley.edu/leaderboard.html.  Of several right values the first is taken; a
call that does not fit its own schema is left out.
"""

import ast
import importlib.util
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import jsonschema

from antiphon.messages import Message, ToolCall, ToolSpec

_TYPES = {  # as bfcl_eval.constants.type_mappings has them
    **dict.fromkeys(("array", "tuple", "list", "ArrayList", "Array", "Queue", "Stack"), "array"),
    **dict.fromkeys(("object", "dict", "HashMap", "Hashtable"), "object"),
    **dict.fromkeys(("number", "float", "double"), "number"),
    **dict.fromkeys(("integer", "byte", "short", "long", "Bigint"), "integer"),
    **dict.fromkeys(("boolean", "bool", "Boolean"), "boolean"),
}
_APIS = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}


def folder() -> Path | None:
    """Where the data is; ``None`` where the package is not installed."""
    spec = importlib.util.find_spec("bfcl_eval")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(spec.submodule_search_locations[0]) / "data"


@cache
def answers() -> tuple[tuple[Message, tuple[ToolSpec, ...]], ...]:
    """Each step's calls as one message, with the tools of its task; without doubles."""
    root = folder()
    assert root is not None, "bfcl_eval is not installed"
    found: dict[str, tuple[Message, tuple[ToolSpec, ...]]] = {}
    for path in sorted((root / "possible_answer").glob("*.json")):
        tasks = {row["id"]: row for row in _rows(root / path.name)}
        for row in _rows(path):
            task = tasks[row["id"]]
            tools = _tools(root, task)
            for calls in _steps(row["ground_truth"], tools):
                usable = [call for call in calls if _fits(call, tools)]
                if usable:
                    message = Message.assistant(tool_calls=usable)
                    key = repr([(c.name, c.arguments) for c in usable])
                    found.setdefault(key, (message, tuple(tools.values())))
    return tuple(found.values())


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def _tools(root: Path, task: dict[str, Any]) -> dict[str, ToolSpec]:
    functions = cast("list[dict[str, Any]]", task.get("function", []))
    for api in task.get("involved_classes", ()):
        if api in _APIS:
            functions = [*functions, *_rows(root / "multi_turn_func_doc" / f"{_APIS[api]}.json")]
    specs = [
        ToolSpec(f["name"], f.get("description", ""), _schema(f["parameters"])) for f in functions
    ]
    return {spec.name: spec for spec in specs}


def _schema(schema: Any) -> Any:
    """A schema with JSON Schema's names of types; what is no other type is a string."""
    if isinstance(schema, list):
        return [_schema(item) for item in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    fields = {key: _schema(value) for key, value in cast("dict[str, Any]", schema).items()}
    if isinstance(fields.get("type"), str):
        fields["type"] = _TYPES.get(fields["type"], "string")
    return fields


def _steps(truth: list[Any], tools: dict[str, ToolSpec]) -> Iterator[list[ToolCall]]:
    if truth and isinstance(truth[0], dict):
        yield [
            ToolCall(
                name,
                {key: _value(options) for key, options in arguments.items() if _given(options)},
            )
            for call in truth
            for name, arguments in call.items()
        ]
    elif truth and isinstance(truth[0], list):
        for turn in truth:
            for text in turn:
                call = _python_call(text, tools)
                if call is not None:
                    yield [call]


def _given(options: list[Any]) -> bool:
    """Whether a parameter has a value; an empty string among the options means that it may lack."""
    return bool(options) and options[0] != ""


def _value(options: Any) -> Any:
    return _plain(options[0] if isinstance(options, list) else options)


def _plain(value: Any) -> Any:
    """A value without the lists of options inside it."""
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    return {key: _value(options) if options else options for key, options in fields.items()}


def _python_call(text: str, tools: dict[str, ToolSpec]) -> ToolCall | None:
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    spec = tools.get(node.func.id)
    if spec is None:
        return None
    names = list(spec.parameters.get("properties", {}))
    arguments = {
        name: ast.literal_eval(value) for name, value in zip(names, node.args, strict=False)
    }
    for keyword in node.keywords:
        arguments[str(keyword.arg)] = ast.literal_eval(keyword.value)
    return ToolCall(spec.name, json.loads(json.dumps(arguments)))


def _fits(call: ToolCall, tools: dict[str, ToolSpec]) -> bool:
    spec = tools.get(call.name)
    return spec is not None and _validator(json.dumps(spec.parameters)).is_valid(call.arguments)


@cache
def _validator(schema: str) -> Any:
    return jsonschema.Draft202012Validator(json.loads(schema))
