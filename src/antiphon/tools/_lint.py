"""What could be better in how tools are described: a model has nothing else to go by."""

import difflib
import inspect
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from antiphon.tools._docstring import parse_docstring
from antiphon.tools._names import valid_name
from antiphon.tools._schema import Schema
from antiphon.tools._signature import EMPTY, Parameter
from antiphon.tools._tool import Tool

MAX_SCHEMA_CHARS = 8_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that could be better."""

    where: str
    """``file:line`` of the function."""
    tool: str
    """The tool's name."""
    parameter: str
    """The parameter's name; empty where it is about the whole tool."""
    message: str
    """What it is, and what to do."""

    def __str__(self) -> str:
        subject = f"{self.tool}.{self.parameter}" if self.parameter else self.tool
        return f"{self.where}: {subject}: {self.message}"


def check_tools(tools: Iterable[Tool[..., Any]]) -> list[Finding]:
    """Look for missing descriptions, vague types, stale docstrings, clashing names, large schemas.

    Args:
        tools: Tools that would be offered together.
    """
    checked = list(tools)
    found = [finding for one in checked for finding in _check(one)]
    return found + _clashes(checked)


def _check(one: Tool[..., Any]) -> list[Finding]:
    where, name = one.signature.where, one.name
    found: list[Finding] = []

    def say(message: str, parameter: str = "") -> None:
        found.append(Finding(where, name, parameter, message))

    if not one.spec.description:
        say("has no description; begin the docstring with a sentence on what it does")
    if name != one.signature.name and name == valid_name(one.signature.name):
        say(f"is {one.signature.name!r} in Python, which APIs refuse; name it: tool(name=...)")
    shown = [p for p in one.signature.parameters if p.kind != "context"]
    for parameter in shown:
        for message in _parameter_problems(parameter, one.spec.parameters):
            say(message, parameter.name)
    for stale in _stale(one):
        say("is described in the docstring and is no parameter; remove or rename it", stale)
    size = len(json.dumps(one.spec.to_openai(), ensure_ascii=False))
    if size > MAX_SCHEMA_CHARS:
        say(f"takes {size} characters of every prompt; split it, or simplify its types")
    problem = one.spec.strict_problem()
    if problem:
        say(f"cannot be used in strict mode: {problem}")
    return found


def _parameter_problems(parameter: Parameter, schema: Schema) -> list[str]:
    shown: Schema = schema["properties"].get(parameter.name, {})
    found: list[str] = []
    if not shown.get("description"):
        found.append("has no description; add it to the docstring's Args")
    if parameter.annotation is Any or shown.keys() <= {"description", "default"}:
        found.append("may be any value; give it a type")
    elif shown.get("type") == "object" and shown.get("additionalProperties") in (True, {}):
        found.append("is an object of anything; use dict[str, T], a TypedDict or a dataclass")
    elif shown.get("type") == "array" and not shown.get("items", True):
        found.append("is a list of anything; use list[T]")
    if parameter.default not in (EMPTY, None) and "default" not in shown:
        found.append("has a default that JSON cannot show; say in its description what happens")
    return found


def _stale(one: Tool[..., Any]) -> list[str]:
    if isinstance(one.function, type):
        return []
    doc = parse_docstring(inspect.getdoc(one.function))
    known = {p.name for p in one.signature.parameters} | {p.group for p in one.signature.parameters}
    return [name for name in doc.parameters if name not in known and name.isidentifier()]


def _clashes(tools: Sequence[Tool[..., Any]]) -> list[Finding]:
    found: list[Finding] = []
    seen: dict[str, Tool[..., Any]] = {}
    for one in tools:
        other = seen.get(one.name)
        if other is not None and other is not one:
            message = (
                f"has the same name as the tool at {other.signature.where}; rename one of them"
            )
            found.append(Finding(one.signature.where, one.name, "", message))
        elif other is None:
            near = difflib.get_close_matches(one.name, seen, n=1, cutoff=0.93)
            if near and len(one.name) > 6:
                message = f"is easily taken for {near[0]!r}; give it a name that differs more"
                found.append(Finding(one.signature.where, one.name, "", message))
        seen.setdefault(one.name, one)
    return found
