"""What a docstring says of a function's parameters.

Reads Google, NumPy, reST and epydoc, also mixed in one text, in one pass over the lines.  Sections
that are for people who read the code (arguments, returns, raises) leave the description; all other
text stays in it as it is.  This module knows docstrings only: no signature and no type.
"""

import ast
import inspect
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

_PARAMETERS = frozenset(
    {
        "args",
        "arg",
        "arguments",
        "parameters",
        "params",
        "parameter",
        "keyword args",
        "keyword arguments",
        "keyword parameters",
        "other parameters",
        "other args",
        "kwargs",
        "attributes",
        "fields",
        "inputs",
    }
)
_RETURNS = frozenset({"returns", "return", "yields", "yield"})
_DROPPED = frozenset({"raises", "raise", "throws", "except", "exceptions", "warns", "receives"})
_NUMPY_ONLY = frozenset({"see also", "notes", "references", "examples", "methods", "warnings"})
_PARAMETER_FIELDS = frozenset(
    {"param", "parameter", "arg", "argument", "key", "keyword", "kwarg", "kwparam", "ivar", "cvar"}
)
_RETURN_FIELDS = frozenset({"return", "returns", "yield", "yields"})
_DROPPED_FIELDS = frozenset(
    {"type", "rtype", "raise", "raises", "except", "exception", "vartype", "kwtype", "ytype"}
)

_HEADER = re.compile(r"(?:#+\s*)?[*_]{0,2}([A-Za-z][A-Za-z ]{2,20}?)[*_]{0,2}\s*:\s*[*_]{0,2}\s*$")
_BARE_HEADERS = frozenset({"args", "arguments", "parameters", "params"})
_TYPE = re.compile(
    r"(?:(?:None|[Ss]tr|[Ii]nt|[Ff]loat|[Bb]ool|[Bb]ytes|[Ll]ist|[Dd]ict|[Tt]uple|[Ss]et|Any|Optional|Union|"
    r"Literal|Sequence|Iterable|Mapping|Callable)\b(?:\[.*\])?(?:\s*(?:\||or)\s*)?)+"
    r"(?:,\s*optional)?(?:,?\s*(?:=|default:?)\s*\S+)?$"
)
_UNDERLINE = re.compile(r"\s*(?:-{3,}|={3,}|~{3,})\s*$")
_FIELD = re.compile(r"\s*[:@](\w+)(?:\s+((?:[^:`]|`[^`]*`|:(?=\w))*?))?\s*:(?:\s+(.*))?$")
_FIELD_MARKS = (":", "@")
_NAME = r"[`*\\]*\w[\w.]*[`*]*"
_ENTRY = re.compile(
    rf"(?:[-+•*]\s+)?(?P<names>{_NAME}(?:\s*(?:,|/)\s*{_NAME})*)\s*"
    r"(?:\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\[[^\]]*\])?\s*"
    r"(?::(?!:)|：|--|[–—]|(?<=\s)-(?=\s))\s*(?P<text>.*)$"  # noqa: RUF001
)
_NUMPY_ENTRY = re.compile(
    rf"(?P<names>{_NAME}(?:\s*,\s*{_NAME})*)\s*(?:(?:\s:|:(?=\s))(?P<kind>\s.*)?|:)?$"
)
_BULLET = re.compile(r"(?:[-+•*]|\d+[.)])\s")
_Entry = tuple[Sequence[str], str, str]  # names, the text beside them, and their type
_CHOICES = re.compile(r"\s*\(choices:\s*(.*?)\)\s*(?=\.?$)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring, taken apart."""

    description: str = ""
    """The text without the sections about parameters, results and errors."""
    parameters: dict[str, str] = field(default_factory=dict[str, str])
    """Name (without stars) to description."""
    choices: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    """Name to the values of ``(choices: [...])`` at the end of its description."""
    returns: str = ""
    """What is said of the result."""


def parse_docstring(text: str | None) -> Docstring:
    """Take a docstring apart, whatever style it is written in.

    Args:
        text: A docstring as ``__doc__`` has it, with or without its indentation.

    >>> parse_docstring("Add.\\n\\n    Args:\\n        a: first\\n        b: second").parameters
    {'a': 'first', 'b': 'second'}
    """
    if not text:
        return Docstring()
    if "\n" in text:
        text = inspect.cleandoc(text)
    text = text.strip()
    if not text or ("\n" not in text and text[0] not in ":@"):
        return Docstring(text)
    return _Reader(text).read()


class _Reader:
    """One pass over the lines; `position` is the next line that nobody has taken."""

    def __init__(self, text: str) -> None:
        self.lines = text.splitlines()
        self.indents = [len(line) - len(line.lstrip()) for line in self.lines]
        self.position = 0
        self._may_be_numpy = "---" in text or "===" in text or "~~~" in text
        self.description: list[str] = []
        self.parameters: dict[str, str] = {}
        self.choices: dict[str, tuple[Any, ...]] = {}
        self.returns = ""

    def read(self) -> Docstring:
        while self.position < len(self.lines):
            line = self.lines[self.position]
            begins_field = line.lstrip()[:1] in _FIELD_MARKS
            ends_header = line.rstrip(" *_")[-1:] == ":" or line.lower().strip() in _BARE_HEADERS
            if not (
                (self._may_be_numpy and self._numpy())
                or (ends_header and self._google(line))
                or (begins_field and self._field(line))
            ):
                self.description.append(line.rstrip())
                self.position += 1
        return Docstring(_squeeze(self.description), self.parameters, self.choices, self.returns)

    def _numpy(self) -> bool:
        here = self.position
        if here + 1 >= len(self.lines) or not _UNDERLINE.match(self.lines[here + 1]):
            return False
        title = self.lines[here].strip().rstrip(":").lower()
        if title not in _PARAMETERS | _RETURNS | _DROPPED | _NUMPY_ONLY:
            return False
        end = here + 2
        while end < len(self.lines) and not self._numpy_header(end):
            end += 1
        body = self.lines[here + 2 : end]
        if title in _PARAMETERS:
            self._entries(body, _numpy_entry)
        elif title in _RETURNS:
            self.returns = _join(body)
        elif title in _NUMPY_ONLY:
            return False
        self.position = end
        return True

    def _numpy_header(self, at: int) -> bool:
        return (
            at + 1 < len(self.lines)
            and bool(self.lines[at].strip())
            and bool(_UNDERLINE.match(self.lines[at + 1]))
        )

    def _google(self, line: str) -> bool:
        header = _HEADER.match(line.strip())
        title = header.group(1).strip().lower() if header else line.strip().lower()
        if title not in _PARAMETERS and title not in _RETURNS and title not in _DROPPED:
            return False
        body = self._indented(self.position + 1, self.indents[self.position])
        if header is None and not _ENTRY.match(body[0].strip() if body else ""):
            return False
        if not body:
            body = self._flat(self.position + 1) if title in _PARAMETERS else []
            if not body:
                return False
        if title in _PARAMETERS:
            self._entries(body, _google_entry)
        elif title in _RETURNS:
            self.returns = _join(body)
        self.position += 1 + len(body)
        return True

    def _indented(self, start: int, indent: int) -> list[str]:
        """The lines from `start` that are blank or deeper than `indent`."""
        end, filled = start, False
        for at in range(start, len(self.lines)):
            if self.indents[at] < len(self.lines[at]):
                if self.indents[at] <= indent:
                    break
                filled = True
            end = at + 1
        return self.lines[start:end] if filled else []

    def _flat(self, start: int) -> list[str]:
        """Entries that somebody forgot to indent: up to the next blank line."""
        end = start
        while end < len(self.lines) and self.lines[end].strip():
            end += 1
        body = list(self.lines[start:end])
        return body if body and _ENTRY.match(body[0].strip()) else []

    def _entries(self, body: Sequence[str], read: "Callable[[str], _Entry | None]") -> None:
        stripped = [line.strip() for line in body]
        indents = [len(line) - len(line.lstrip()) for line in body]
        base = min([n for n, bare in zip(indents, stripped, strict=True) if bare], default=0)
        names: Sequence[str] = ()
        text: list[str] = []
        kind = ""
        for indent, bare in zip(indents, stripped, strict=True):
            entry = read(bare) if bare and indent <= base else None
            if entry is None:
                text.append(bare)
                continue
            self._keep(names, text, kind)
            names, first, kind = entry
            text = [first]
        self._keep(names, text, kind)

    def _field(self, line: str) -> bool:
        match = _FIELD.match(line)
        if match is None:
            return False
        kind, argument, text = match.group(1).lower(), match.group(2) or "", match.group(3) or ""
        known = kind in _PARAMETER_FIELDS or kind in _RETURN_FIELDS or kind in _DROPPED_FIELDS
        if not known:
            return False
        body = [text, *self._continuation(self.position + 1, self.indents[self.position])]
        if kind in _PARAMETER_FIELDS and argument:
            self._keep([argument.split()[-1].strip("*`\\")], body)
        elif kind in _RETURN_FIELDS:
            self.returns = _join(body)
        self.position += len(body)
        return True

    def _continuation(self, start: int, indent: int) -> list[str]:
        """A field's further lines: deeper ones, or unindented ones up to a blank line."""
        body = self._indented(start, indent)
        while body and not body[-1].strip():
            body.pop()
        if body:
            return body
        end = start
        while (
            end < len(self.lines)
            and self.lines[end].strip()
            and self.lines[end].lstrip()[:1] not in _FIELD_MARKS
        ):
            end += 1
        return list(self.lines[start:end])

    def _keep(self, names: Sequence[str], lines: Sequence[str], kind: str = "") -> None:
        """Keep a description; where there is none, a type that says more than its name."""
        if len(lines) > 1 and _TYPE.match(lines[0]) and any(lines[1:]):
            lines = lines[1:]  # a type stands where the text does, and the text below it
        text = _join(lines) or (kind if len(kind.split()) > 2 else "")
        for name in names:
            choices = _CHOICES.search(text) if "(" in text else None
            values = None if choices is None else _literal_list(choices.group(1))
            if choices is not None and values is not None:
                self.choices[name] = values
                text = (text[: choices.start()] + text[choices.end() :]).strip()
            if text and not self.parameters.get(name):
                self.parameters[name] = text


def _google_entry(line: str) -> _Entry | None:
    name, colon, text = line.partition(": ")
    if colon and name.isidentifier():  # what most lines are needs no pattern
        return (name,), text.lstrip(), ""
    match = _ENTRY.match(line)
    return None if match is None else (_names(match), match["text"], "")


def _numpy_entry(line: str) -> _Entry | None:
    match = _NUMPY_ENTRY.match(line)
    if match is None:
        return _google_entry(line)
    return _names(match), "", (match["kind"] or "").removesuffix(", optional").strip()


def _names(match: re.Match[str]) -> Sequence[str]:
    found = match["names"]
    return (found,) if found.isidentifier() else re.findall(r"\w[\w.]*", found)


def _literal_list(text: str) -> tuple[Any, ...] | None:
    for read in (json.loads, ast.literal_eval):
        try:
            values: Any = read(text)
        except (ValueError, SyntaxError):
            continue
        if isinstance(values, list | tuple):
            return tuple(values)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return None


def _join(lines: Sequence[str]) -> str:
    """Wrapped lines become one; paragraphs and bullets keep their own."""
    if len(lines) == 1:
        return lines[0].strip()
    out: list[str] = []
    fresh = True
    for line in lines:
        line = line.strip()
        if not line:
            fresh = True
        elif not out:
            out.append(line)
            fresh = False
        else:
            out.append(("\n" if fresh or _BULLET.match(line) else " ") + line)
            fresh = False
    return "".join(out)


def _squeeze(lines: Sequence[str]) -> str:
    """The description without the holes that removed sections left."""
    text = "\n".join(lines).strip()
    return re.sub(r"\n{3,}", "\n\n", text) if "\n\n\n" in text else text
