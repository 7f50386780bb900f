"""Cases of a tool-calling benchmark, and when a call is the right one.

A case is a question, the tools on offer, and for each step the calls that are right with the
results they get.  A case without steps is a question that needs no tool.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from antiphon.errors import DataError, UnknownNameError, clip
from antiphon.messages import Message, ToolCall, ToolSpec
from antiphon.tools.builtin import calculate

BENCHMARKS = ("demo",)


@dataclass(frozen=True, slots=True)
class Case:
    """One question with its right calls."""

    id: str
    """The case's name."""
    kind: str
    """``single``, ``chain`` or ``no_tool``."""
    question: str
    """What the user asks."""
    tools: tuple[ToolSpec, ...]
    """What is on offer."""
    steps: tuple[tuple[ToolCall, ...], ...] = ()
    """The right calls of each step; none where no tool is needed."""
    results: tuple[tuple[str, ...], ...] = ()
    """What the calls of each step answer, as the model reads it."""
    messages: tuple[Message, ...] = ()
    """The whole conversation before the answer, where it is more than the question."""
    accepts: tuple[Mapping[str, Mapping[str, Sequence[Any]]], ...] = ()
    """In place of `steps`, for one step: calls with all the values that are accepted, in any
    order; see `_accepted.py`."""
    functions: tuple[Mapping[str, Any], ...] = ()
    """With `accepts`: the tools as the benchmark describes them."""
    language: str = "python"
    """With `accepts`: whose values they are."""
    wants_call: bool = False
    """Whether any call at all is right."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a model did with one case."""

    case: str
    """The case's id."""
    kind: str
    """The case's kind."""
    right: bool
    """Whether every step was right."""
    error: str = ""
    """Why not; empty where right.  Of format: ``invalid_call``, ``empty``.  Of calls:
    ``no_call``, ``missing_call``, ``extra_call``, ``needless_call``.  Of names: ``wrong_tool``,
    ``hallucinated_tool`` (not on offer).  Of arguments: ``missing_argument``, ``extra_argument``,
    ``wrong_type``, ``wrong_arguments``.  ``refused``: the model or its provider declined."""
    step: int = 0
    """The step that went wrong."""
    wrote: str = ""
    """What the model wrote in that step."""
    seconds: float = 0.0
    """Time of all model calls."""


def load_cases(benchmark: str) -> tuple[Case, ...]:
    """The cases of a benchmark.

    Args:
        benchmark: Its name: ``demo``, which ships with the package, or ``bfcl/<category>`` of the
            Berkeley leaderboard, whose data is installed apart; or a ``.json`` file of cases of the
            shape that `read_cases` takes.

    Raises:
        UnknownNameError: There is no such benchmark.
        UsageError: Its data is not installed.
        DataError: The file holds no cases.
    """
    return _of_file(Path(benchmark)) if benchmark.endswith(".json") else _named(benchmark)


@cache
def _named(benchmark: str) -> tuple[Case, ...]:
    source, _, category = benchmark.partition("/")
    if source == "bfcl":
        from antiphon.evaluation._bfcl import bfcl_cases  # reads its cases with this module's

        return bfcl_cases(category or "ast")
    if benchmark not in BENCHMARKS:
        known = ", ".join((*BENCHMARKS, "bfcl/<category>", "a .json file of cases"))
        raise UnknownNameError(f"no benchmark named {benchmark!r}; known: {known}")
    text = files("antiphon.evaluation").joinpath(f"data/{benchmark}.json").read_text("utf-8")
    return read_cases(json.loads(text))


def read_cases(content: Mapping[str, Any]) -> tuple[Case, ...]:
    """Cases from their JSON: ``{"toolsets": {name: [spec]}, "cases": [...]}``.

    Raises:
        DataError: A case names tools that are not there.
    """
    toolsets = {
        name: tuple(ToolSpec.from_openai(spec) for spec in specs)
        for name, specs in content["toolsets"].items()
    }
    return tuple(_case(one, toolsets) for one in content["cases"])


def _of_file(path: Path) -> tuple[Case, ...]:
    try:
        return read_cases(json.loads(path.read_text("utf-8")))
    except OSError as error:
        raise DataError(f"cannot be read: {(error.strerror or '').lower()}", path=path) from error
    except DataError as error:
        raise DataError(str(error), path=path) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"holds no cases ({clip(repr(error))}); they are "
            '{"toolsets": {name: [tool]}, "cases": [{"id", "kind", "tools", "question"}]}',
            path=path,
        ) from error


def _case(one: Mapping[str, Any], toolsets: Mapping[str, tuple[ToolSpec, ...]]) -> Case:
    if one["tools"] not in toolsets:
        raise DataError(f"case {one['id']!r} names the unknown tool set {one['tools']!r}")
    return Case(
        id=one["id"],
        kind=one["kind"],
        question=one["question"],
        tools=toolsets[one["tools"]],
        steps=tuple(
            tuple(ToolCall(call["name"], call["arguments"]) for call in step)
            for step in one.get("steps", ())
        ),
        results=tuple(tuple(step) for step in one.get("results", ())),
    )


def same_call(wanted: ToolCall, got: ToolCall, tools: Sequence[ToolSpec]) -> bool:
    """Whether a call does what the wanted one does.

    Arguments are equal as JSON (``5`` is ``5.0``); an argument that only repeats its default may be
    left out or given; an arithmetic expression is right when it has the same value.
    """
    if wanted.name != got.name:
        return False
    if wanted.arguments == got.arguments:
        return True
    properties = _properties(wanted.name, tools)
    given, asked = (_without_defaults(c.arguments, properties) for c in (got, wanted))
    if given == asked:
        return True
    if set(given) == set(asked) == {"expression"}:
        return _same_value(str(asked["expression"]), str(given["expression"]))
    return False


def _properties(name: str, tools: Sequence[ToolSpec]) -> Mapping[str, Any]:
    for spec in tools:
        if spec.name == name:
            return cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
    return {}


def _without_defaults(
    arguments: Mapping[str, Any], properties: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        name: value
        for name, value in arguments.items()
        if not (
            name in properties
            and "default" in properties[name]
            and properties[name]["default"] == value
        )
    }


def _same_value(wanted: str, got: str) -> bool:
    try:
        return calculate(wanted) == calculate(got)
    except ValueError:
        return False
