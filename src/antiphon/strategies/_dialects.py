"""How planners write plans: JSON, ReWOO's lines, LLMCompiler's calls.

A reader takes text as it arrives and gives each task as soon as its text is whole, so that it can
start while the rest is still being written.  What is no plan is a `PlanError` that a planner can
mend its answer by.

    json          {"tasks": [{"id": "a", "tool": "search", "arguments": {"q": "x"}}, ...]}
    rewoo         Plan: find it            (billxbf/ReWOO; arXiv 2305.18323)
                  #E1 = search[x]
    llmcompiler   1. search("x")           (SqueezeAILab/LLMCompiler; arXiv 2312.04511)
                  2. compare($1)
                  3. join()

In the last two a reference is ``#E1`` or ``$1``, by whole number; an amount of money such as
``$1.50`` is none.  They are rewritten here, and nothing behind this module knows them.
"""

import ast
import json
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, cast

from antiphon.errors import DataError, PlanError, clip
from antiphon.messages import JsonObject, JsonValue
from antiphon.strategies._plan import Task
from antiphon.strategies._references import escape

Dialect = Literal["json", "rewoo", "llmcompiler"]

Parameters = Mapping[str, Sequence[str]]
"""Names of each tool's parameters, in order, for calls that give arguments by position."""


class PlanReader(Protocol):
    """Reads one plan from text."""

    def feed(self, text: str) -> list[Task]:
        """Take more text.

        Raises:
            PlanError: A task in it cannot be read.
        """
        ...

    def finish(self) -> list[Task]:
        """The text is over: the tasks that were still open.

        Raises:
            PlanError: What was written is no plan.
        """
        ...


def plan_reader(dialect: Dialect, parameters: Parameters) -> PlanReader:
    """A reader.

    Args:
        dialect: How the planner writes.
        parameters: The tools' parameters.
    """
    if dialect == "json":
        return JsonPlanReader()
    return RewooReader(parameters) if dialect == "rewoo" else CompilerReader(parameters)


# JSON

_TASKS = re.compile(r'(?<!\\)"(?:tasks|steps)"\s*:\s*\[|(?:^|\n)\s*\[(?=\s*[{\]])')
_SPACE = re.compile(r"[\s,]*")
_STRUCTURE = re.compile(r'["{}]')
_STRING_END = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)


class JsonPlanReader:
    """Reads ``{"tasks": [...]}``, or the list alone, with or without text and a fence around it."""

    def __init__(self) -> None:
        self._text = ""
        self._at = 0
        self._inside = False
        self._closed = False
        self._depth = 0
        self._scan = 0

    def feed(self, text: str) -> list[Task]:
        """Take more text; tasks whose closing brace it brings.

        Raises:
            PlanError: An object is no task.
        """
        self._text += text
        if not self._inside and not self._closed:
            found = _TASKS.search(self._text, max(0, self._at - 20))
            if found is None:
                self._at = len(self._text)
                return []
            self._inside, self._at = True, found.end()
        tasks: list[Task] = []
        while self._inside:
            whole = self._next_object()
            if whole is None:
                break
            tasks.append(_task(whole))
        return tasks

    def _next_object(self) -> str | None:
        """The next whole object of the list, where its end has arrived."""
        if self._depth == 0:
            space = _SPACE.match(self._text, self._at)
            self._at = space.end() if space else self._at
            if self._at >= len(self._text):
                return None
            if self._text[self._at] == "]":
                self._inside, self._closed = False, True
                return None
            if self._text[self._at] != "{":
                raise PlanError(f"a task must be an object, got {clip(self._text[self._at :])}")
            self._scan = self._at
        while True:
            mark = _STRUCTURE.search(self._text, self._scan)
            if mark is None:
                self._scan = len(self._text)
                return None
            if mark[0] == '"':
                end = _STRING_END.match(self._text, mark.end())
                if end is None:
                    self._scan = mark.start()
                    return None
                self._scan = end.end()
                continue
            self._scan = mark.end()
            self._depth += 1 if mark[0] == "{" else -1
            if self._depth == 0:
                whole, self._at = self._text[self._at : self._scan], self._scan
                return whole

    def finish(self) -> list[Task]:
        """The text is over.

        Raises:
            PlanError: There is no list of tasks in it, or it breaks off.
        """
        if self._closed:
            return []
        if self._inside:
            raise PlanError("the plan breaks off inside its list of tasks; write it again, whole")
        if not self._text.strip():
            raise PlanError("the answer is empty and no plan")
        raise PlanError(
            f"the answer is no plan: {clip(self._text.strip())}; write JSON with a list of 'tasks'"
        )


def _task(text: str) -> Task:
    try:
        row: Any = json.loads(text, strict=False)
        return Task.from_row(row)
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, DataError) else f"it is not JSON ({error})"
        raise PlanError(f"a task cannot be read: {what}: {clip(text)}") from error


# ReWOO

_EVIDENCE = re.compile(
    r"^[ \t]*(?:Plan\s*:[^\n]*?\s(?=#E\d+\s*=\s*[\w.-]+\s*\[))?#E(\d+)\s*=\s*", re.MULTILINE
)  # on a line of its own, or behind the words of its plan
_LINE = re.compile(r"^[ \t]*(?:Plan\s*:|#E\d+\s*=)", re.MULTILINE)
_REWOO_CALL = re.compile(r"\s*([A-Za-z_][\w.-]*)\s*\[(.*)\]\s*$", re.DOTALL)
_REWOO_REFERENCE = re.compile(r"#E(\d+)(?![\w])")


class RewooReader:
    """Reads ``Plan: ...`` and ``#E1 = Tool[input]`` lines; a task's id is ``E1``."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._text = ""
        self._n_tasks = 0

    def feed(self, text: str) -> list[Task]:
        """Take more text; a task is whole when the next line of the plan begins.

        Raises:
            PlanError: A line is no call.
        """
        self._text += text
        tasks: list[Task] = []
        while ":" in text or "=" in text:
            first = _EVIDENCE.search(self._text)
            following = None if first is None else _LINE.search(self._text, first.end())
            if first is None or following is None:
                break
            tasks.append(self._read(self._text[: following.start()]))
            self._text = self._text[following.start() :]
        return tasks

    def finish(self) -> list[Task]:
        """The text is over.

        Raises:
            PlanError: There is no evidence line in it.
        """
        tasks = [self._read(self._text)] if _EVIDENCE.search(self._text) else []
        if not tasks and not self._n_tasks:
            raise PlanError(
                f"the answer is no plan: {clip(self._text.strip())}; write lines such as "
                "'Plan: why' and '#E1 = Tool[input]'"
            )
        return tasks

    def _read(self, text: str) -> Task:
        found = _EVIDENCE.search(text)
        assert found is not None
        said = text[: found.start(1) - len("#E")].rpartition("Plan:")[2]
        call = _REWOO_CALL.match(text[found.end() :].split("\nPlan:")[0].rstrip())
        if call is None:
            raise PlanError(
                f"#E{found[1]} is no call: {clip(text[found.end() :].strip())}; "
                "write #E1 = Tool[input]"
            )
        self._n_tasks += 1
        id = f"E{found[1]}"
        arguments = _one_input(call[1], call[2], self._parameters)
        return Task(
            id,
            call[1],
            cast("JsonObject", _rewritten(arguments, _from_rewoo)),
            title=" ".join(said.split()),
        )


def _one_input(tool: str, text: str, parameters: Parameters) -> JsonObject:
    """The arguments that one input in brackets stands for."""
    names = list(parameters.get(tool, ()))
    if not names and not text.strip():
        return {}
    if text.strip().startswith("{"):
        try:
            whole: Any = json.loads(text)
        except (ValueError, RecursionError):
            whole = None
        if isinstance(whole, dict):
            given = cast("JsonObject", whole)
            if not names or set(given) <= set(names):
                return given
    if len(names) > 1:
        try:
            return _arguments(tool, text, parameters, "#E")
        except PlanError:
            pass  # one text for the first parameter, as the dialect has it
    return {(names[0] if names else "input"): text}


def _from_rewoo(text: str) -> str:
    """A text whose ``#E1`` are references and whose dollars are dollars.

    >>> _from_rewoo("older of #E1 and #E10 for $5")
    'older of ${E1} and ${E10} for $$5'
    """
    return _REWOO_REFERENCE.sub(r"${E\1}", escape(text))


# LLMCompiler

_CALL_LINE = re.compile(r"^[ \t]*(\d+)[.)]\s*([A-Za-z_][\w.-]*)\s*\(", re.MULTILINE)
_END = re.compile(r"<END_OF_PLAN>")
_COMPILER_REFERENCE = re.compile(r"\$\$|\$\{(\d+)\}|\$(\d+)(?![\w]|[.,]\d)|\$\{")


class CompilerReader:
    """Reads ``1. tool(arguments)`` lines up to ``join()``; a task's id is its number."""

    def __init__(self, parameters: Parameters) -> None:
        self._parameters = parameters
        self._text = ""
        self._over = False
        self._n_tasks = 0

    def feed(self, text: str) -> list[Task]:
        """Take more text; a task is whole when its line is.

        Raises:
            PlanError: Arguments cannot be read.
        """
        self._text += text
        return self._read(whole=False) if "\n" in text else []

    def finish(self) -> list[Task]:
        """The text is over.

        Raises:
            PlanError: There is no call in it.
        """
        tasks = self._read(whole=True)
        if not self._n_tasks and not self._over:
            raise PlanError(
                f"the answer is no plan: {clip(self._text.strip())}; write lines such as "
                "'1. tool(\"input\")', and join() last"
            )
        return tasks

    def _read(self, *, whole: bool) -> list[Task]:
        tasks: list[Task] = []
        while not self._over:
            line = _CALL_LINE.search(self._text)
            if line is None:
                break
            following = _CALL_LINE.search(self._text, line.end())
            end = _call_end(self._text, line.end())
            if end is None and following is not None:
                end = self._text.rindex(")", line.end(), following.start())
            if end is None and whole:
                end = self._text.rfind(")", line.end())
                if end < 0:
                    raise PlanError(f"task {line[1]!r} breaks off: {clip(line[0].strip())}")
            if end is None or (not whole and "\n" not in self._text[end:]):
                break
            inside, self._text = self._text[line.end() : end], self._text[end + 1 :]
            if line[2] in ("join", "join_finish", "finish"):
                self._over = True
                break
            tasks.append(self._task(line[1], line[2], inside))
        return tasks

    def _task(self, id: str, tool: str, inside: str) -> Task:
        self._n_tasks += 1
        arguments = _arguments(tool, inside, self._parameters, "$")
        return Task(id, tool, cast("JsonObject", _rewritten(arguments, _from_compiler)))


def _call_end(text: str, start: int) -> int | None:
    """Where the bracket that was opened before `start` closes, outside of quotes."""
    depth, at, quote = 1, start, ""
    while at < len(text):
        c = text[at]
        if quote:
            if c == "\\":
                at += 1
            elif c == quote:
                quote = ""
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return None


_BARE = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(\$\{\d+\}|\$\d+|#E\d+)", re.DOTALL)


def _arguments(tool: str, inside: str, parameters: Parameters, mark: str) -> JsonObject:
    """What stands between a call's brackets, as arguments by name."""
    quoted = _BARE.sub(lambda m: json.dumps(m[1]) if m[1] else m[0], inside.strip())
    names = list(parameters.get(tool, ()))
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes in a model's text
            call = ast.parse(f"f({quoted})", mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            raise ValueError("it is more than a call")
        by_position = [_literal(node) for node in call.args]
        arguments: JsonObject = {
            str(keyword.arg): _literal(keyword.value) for keyword in call.keywords
        }
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if mark == "$" and len(names) <= 1 and "=" not in inside.partition("(")[0][:20]:
            return {(names[0] if names else "input"): _unquoted(inside.strip())}
        raise PlanError(
            f"the arguments of {tool} cannot be read: {clip(inside)}; write values as in Python"
        ) from error
    if not names and len(by_position) == 1:
        names = ["input"]
    if len(by_position) > len(names):
        raise PlanError(
            f"{tool} takes {len(names)} arguments and is given {len(by_position)}: {clip(inside)}"
        )
    return dict(zip(names, by_position, strict=False)) | arguments


def _unquoted(text: str) -> str:
    """A text that cannot be read as a value, without the quotes around it."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text


def _literal(node: ast.expr) -> JsonValue:
    """A value as Python or JSON write it."""
    if isinstance(node, ast.Name) and node.id in ("true", "false", "null"):
        return {"true": True, "false": False, "null": None}[node.id]
    if isinstance(node, ast.List | ast.Tuple):
        return [_literal(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {str(_literal(k)): _literal(v) for k, v in _pairs(node)}
    value: Any = ast.literal_eval(node)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise ValueError(f"{type(value).__name__} is no JSON value")


def _pairs(node: ast.Dict) -> list[tuple[ast.expr, ast.expr]]:
    if any(key is None for key in node.keys):
        raise ValueError("** cannot stand in a plan")
    return [(key, value) for key, value in zip(node.keys, node.values, strict=True) if key]


def _from_compiler(text: str) -> str:
    """A text whose ``$1`` are references; money and other dollars stay.

    >>> _from_compiler("$1 and ${12} for $1.50, not ${HOME}")
    '${1} and ${12} for $1.50, not $${HOME}'
    """

    def rewrite(match: re.Match[str]) -> str:
        number = match[1] or match[2]
        if number:
            return f"${{{number}}}"
        return match[0] if match[0] == "$$" else "$${"

    return _COMPILER_REFERENCE.sub(rewrite, text)


def _rewritten(value: JsonValue, rewrite: Any) -> JsonValue:
    if isinstance(value, str):
        return rewrite(value)
    if isinstance(value, dict):
        return {key: _rewritten(item, rewrite) for key, item in value.items()}
    if isinstance(value, list):
        return [_rewritten(item, rewrite) for item in value]
    return value
