"""Arguments of tools that others describe by a JSON Schema: MCP servers and web APIs.

The same promises as for Python functions: what is right passes, harmless slips are mended with a
record, all else is answered so that the model can mend its call.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

from antiphon.messages import Problem, find_problems
from antiphon.messages._json_schema import Schema, as_schema
from antiphon.messages._restore import restore
from antiphon.tools._answers import article, brief, clip_json, kind_of, path_text, rejection

Values = dict[str, Any]
_MAX_PASSES = 3  # JSON text in JSON text in JSON text


class SchemaReader:
    """Reads the arguments of one tool by its JSON Schema.

    Args:
        name: The tool's name, for answers.
        schema: The schema of its arguments.
    """

    def __init__(self, name: str, schema: Schema) -> None:
        self.name = name
        self.schema = schema

    def read(self, arguments: str | bytes | Mapping[str, Any] | None) -> tuple[Values, list[str]]:
        """The arguments as an object that the schema accepts, and what was mended to get it.

        Raises:
            Rejected: They cannot be used.
        """
        given = self._object(arguments)
        repairs: list[str] = []
        restored = restore(self.schema, given)
        if restored != given:
            repairs.append("arguments: brought to the plain form of the schema")
        problems = find_problems(self.schema, restored)
        for _ in range(_MAX_PASSES):
            n_mended = sum(_mended(restored, problem, repairs) for problem in problems)
            if not n_mended:
                break
            problems = find_problems(self.schema, restored)
        if not problems:
            return restored, repairs
        raise rejection(self.name, self.schema, [_sentence(p) for p in problems], arguments)

    def _object(self, arguments: str | bytes | Mapping[str, Any] | None) -> Values:
        if arguments is None:
            return {}
        given: Any = arguments
        if isinstance(arguments, str | bytes):
            given = self._parsed(arguments)
            if isinstance(given, str) and given.lstrip().startswith("{"):
                given = self._parsed(given)
        if not isinstance(given, Mapping):
            problem = f"they must be one JSON object, not {article(kind_of(given))}"
            raise rejection(self.name, self.schema, [problem], arguments)
        # A copy made through JSON: mending must not change the record of the call.
        try:
            return json.loads(json.dumps(dict(cast("Mapping[str, Any]", given)), allow_nan=False))
        except (ValueError, TypeError, RecursionError) as error:
            problem = f"they cannot be written as JSON ({error})"
            raise rejection(self.name, self.schema, [problem], arguments) from error

    def _parsed(self, text: str | bytes) -> Any:
        if not text.strip():
            return {}

        def refuse(name: str) -> Any:
            raise ValueError(f"{name} is not JSON")

        try:
            return json.loads(text, parse_constant=refuse)
        except (ValueError, RecursionError) as error:
            problem = f"they are not valid JSON ({error})"
            raise rejection(self.name, self.schema, [problem], text) from error


def _sentence(problem: Problem) -> str:
    path = path_text(problem.path)
    if problem.kind in ("required", "additionalProperties"):
        return f"'{path}' {problem.message}"
    if problem.kind in ("anyOf", "oneOf"):
        return f"'{path}' should be {brief(problem.schema)}, got {clip_json(problem.value)}"
    return f"'{path}' {problem.message}, got {clip_json(problem.value)}"


def _mended(root: Values, problem: Problem, repairs: list[str]) -> bool:
    """Mend one slip in place, where it is a harmless one; whether it was."""
    if not problem.path or problem.kind not in ("type", "anyOf", "oneOf"):
        return False
    holder: Any = root
    for part in problem.path[:-1]:
        holder = holder[part]
    key = problem.path[-1]
    variants: list[Any] = problem.schema.get("anyOf") or problem.schema.get("oneOf") or []
    for schema in [problem.schema, *variants]:
        kinds: Any = as_schema(schema).get("type")
        for kind in cast("list[str]", kinds if isinstance(kinds, list) else [kinds]):
            found, value = _as_kind(holder[key], kind)
            if found:
                repairs.append(f"{path_text(problem.path)}: {kind_of(holder[key])} read as {kind}")
                holder[key] = value
                return True
    return False


def _as_kind(value: Any, kind: str | None) -> tuple[bool, Any]:
    if not isinstance(value, str):
        return False, None
    text = value.strip()
    if kind == "boolean" and text.lower() in ("true", "false"):
        return True, text.lower() == "true"
    if kind not in ("integer", "number", "array", "object"):
        return False, None
    try:
        made: Any = json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return False, None
    wanted: dict[str, Any] = {"integer": int, "number": (int, float), "array": list, "object": dict}
    return isinstance(made, wanted[kind]) and not isinstance(made, bool), made
