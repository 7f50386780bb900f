"""Calls that a data set holds as text: in tags, as Python calls, or as ReAct's lines.

Each reader gives the calls and the text around them; a text in which there is no call is that text.
Nothing is evaluated.
"""

import ast
import json
import re
from dataclasses import dataclass, field
from typing import Any, cast

from antiphon.datasets._literal import parse_literal
from antiphon.errors import DataError, clip
from antiphon.messages import JsonValue, ToolCall

_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_FUNCTION = re.compile(r"<function=([^>\n]+)>(.*?)</function>", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>\n?(.*?)\n?</parameter>", re.DOTALL)
_REACT = re.compile(
    r"\s*(?:Thought:(?P<thought>.*?))?\n?\s*Action:(?P<name>[^\n]*)\n\s*Action Input:(?P<input>.*)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class CallText:
    """A text, read."""

    text: str
    """What is said beside the calls."""
    calls: tuple[ToolCall, ...] = ()
    """The calls, in order, each with its exact text."""
    thought: str = ""
    """What was thought before a ReAct action."""


def read_tagged(value: str) -> CallText:
    """Hermes' calls: JSON or a Python literal in ``<tool_call>``.

    Raises:
        DataError: What stands in a tag is no call.
    """
    calls: list[ToolCall] = []
    for match in _TAGGED.finditer(value):
        call = parse_literal(match[1], "a tool call")
        if not isinstance(call, dict) or not isinstance(call.get("name"), str):
            raise DataError(f"a tool call needs a name, got {clip(match[1])}")
        calls.append(ToolCall(str(call["name"]), _arguments(call), raw=match[0]))
    return CallText(_TAGGED.sub("", value).strip() if calls else value, tuple(calls))


def _arguments(call: dict[str, JsonValue]) -> dict[str, JsonValue]:
    given = call.get("arguments", call.get("parameters"))
    if isinstance(given, str):
        given = parse_literal(given, f"arguments of call {call.get('name')!r}") if given else {}
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise DataError(
            f"arguments of call {call.get('name')!r} must be an object, got {clip(given)}"
        )
    return given


def read_functions(value: str) -> CallText:
    """SWE-agent's XML: ``<function=name>`` with ``<parameter=key>`` values, which are text."""
    calls = tuple(
        ToolCall(
            match[1].strip(),
            {key.strip(): text for key, text in _PARAMETER.findall(match[2])},
            raw=match[0],
        )
        for match in _FUNCTION.finditer(value)
    )
    return CallText(_FUNCTION.sub("", value).strip() if calls else value, calls)


def read_react(value: str) -> CallText:
    """ReAct's lines: ``Thought:``, ``Action:``, ``Action Input:``.

    Raises:
        DataError: The input of the action is no object.
    """
    match = _REACT.match(value)
    if match is None:
        return CallText(value)
    name = match["name"].strip()
    given = parse_literal(match["input"].strip() or "{}", f"the input of action {name!r}")
    if not isinstance(given, dict):
        raise DataError(f"the input of action {name!r} must be an object, got {clip(given)}")
    thought = (match["thought"] or "").strip()
    return CallText("", (ToolCall(name, given, raw=value),), thought)


# ---- Python calls -----------------------------------------------------------------------------


def read_python_calls(value: str) -> CallText:
    """``[Name(key=value, ...), ...]`` with names that need be no identifiers; else the text itself.

    >>> read_python_calls('[Ferry Status(route="Holm", days=[1, 2])]').calls[0].arguments
    {'route': 'Holm', 'days': [1, 2]}
    """
    body = value.strip()
    inside = body[1:-1] if body.startswith("[") and body.endswith("]") else body
    try:
        calls = _PythonCalls(inside).calls()
    except ValueError:
        return CallText(value)
    return CallText("", tuple(calls)) if calls else CallText(value)


@dataclass(slots=True)
class _PythonCalls:
    """Reads calls one after the other."""

    text: str
    place: int = 0
    found: list[ToolCall] = field(default_factory=list[ToolCall])

    def calls(self) -> list[ToolCall]:
        """All calls.

        Raises:
            ValueError: There is something else.
        """
        while self._skip(", \t\r\n;"):
            start = self.place
            name = self._until("(").strip()
            if not name or "\n" in name or len(name) > 200:
                raise ValueError
            arguments = self._arguments()
            self.found.append(ToolCall(name, arguments, raw=self.text[start : self.place]))
        return self.found

    def _skip(self, characters: str) -> bool:
        """Whether anything is left behind these characters."""
        while self.place < len(self.text) and self.text[self.place] in characters:
            self.place += 1
        return self.place < len(self.text)

    def _until(self, end: str) -> str:
        stop = self.text.find(end, self.place)
        if stop < 0:
            raise ValueError
        part = self.text[self.place : stop]
        self.place = stop + 1
        return part

    def _arguments(self) -> dict[str, JsonValue]:
        arguments: dict[str, JsonValue] = {}
        while True:
            if not self._skip(", \t\r\n"):
                raise ValueError
            if self.text[self.place] == ")":
                self.place += 1
                return arguments
            key = self._until("=").strip()
            arguments[key.strip("\"'")] = self._value()

    def _value(self) -> JsonValue:
        start, depth, quote = self.place, 0, ""
        while self.place < len(self.text):
            character = self.text[self.place]
            if quote:
                if character == "\\":
                    self.place += 1
                elif character == quote:
                    quote = ""
            elif character in "\"'":
                quote = character
            elif character in "([{":
                depth += 1
            elif character in ")]}" and depth:
                depth -= 1
            elif character in ")," and not depth:
                return _python_value(self.text[start : self.place].strip())
            self.place += 1
        raise ValueError


def _python_value(text: str) -> JsonValue:
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        value: Any = ast.literal_eval(text)
        json.dumps(value)
    except (SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise ValueError from error
    return cast("JsonValue", list(cast("Any", value)) if isinstance(value, tuple) else value)
