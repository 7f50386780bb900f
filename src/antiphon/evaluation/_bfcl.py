"""The Berkeley Function-Calling Leaderboard's single-turn categories, from an installed package.

The data is read from the files of ``bfcl-eval``; none of its code is imported and none of its
dependencies is needed: ``pip install --no-deps bfcl-eval``.  Source: bfcl-eval 2026.3.23
(Apache-2.0), github.com/ShishirPatil/gorilla.
"""

import importlib.util
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from antiphon.errors import DataError, UnknownNameError, UsageError
from antiphon.evaluation._cases import Case
from antiphon.messages import Message, ToolSpec, message_from_row

WITH_ANSWERS = (
    "simple_python",
    "simple_java",
    "simple_javascript",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
"""Categories with accepted calls."""
WITHOUT_ANSWERS = ("irrelevance", "live_irrelevance", "live_relevance")
"""Categories where only whether a call is made counts."""
CATEGORIES = (*WITH_ANSWERS, *WITHOUT_ANSWERS)
GROUPS: dict[str, tuple[str, ...]] = {
    "ast": CATEGORIES,
    "non_live": tuple(c for c in CATEGORIES if not c.startswith("live_")),
    "live": tuple(c for c in CATEGORIES if c.startswith("live_")),
}
"""Names for several categories."""

_TYPES: dict[str, str] = {
    "dict": "object",
    "HashMap": "object",
    "float": "number",
    "double": "number",
    "tuple": "array",
    "ArrayList": "array",
    "Array": "array",
    "String": "string",
    "char": "string",
    "Boolean": "boolean",
    "long": "integer",
    "Bigint": "integer",
}
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def data_folder(folder: Path | str | None = None) -> Path:
    """Where the leaderboard's files are.

    Args:
        folder: The folder; that of an installed ``bfcl_eval`` by default.

    Raises:
        UsageError: There is none.
    """
    if folder is None:
        found = importlib.util.find_spec("bfcl_eval")
        places = list(found.submodule_search_locations or ()) if found else []
        folder = Path(places[0]) / "data" if places else None
    if folder is None or not Path(folder).is_dir():
        raise UsageError(
            "the data of the Berkeley leaderboard is not here; "
            "install it with: pip install --no-deps bfcl-eval"
        )
    return Path(folder)


def categories_of(name: str) -> tuple[str, ...]:
    """The categories that a name stands for.

    Raises:
        UnknownNameError: There is no such category or group.
    """
    if name in GROUPS:
        return GROUPS[name]
    if name not in CATEGORIES:
        known = ", ".join((*GROUPS, *CATEGORIES))
        raise UnknownNameError(f"no category bfcl/{name}; known: {known}")
    return (name,)


def bfcl_cases(
    name: str, *, folder: Path | str | None = None, safe_names: bool = True
) -> tuple[Case, ...]:
    """The cases of a category or group.

    Args:
        name: ``simple_python``, ``live_multiple``, ...; or ``ast``, ``live``, ``non_live``.
        folder: See `data_folder`.
        safe_names: Whether dots in the functions' names become underscores, as APIs want it.

    Raises:
        UnknownNameError: There is no such category.
        UsageError: The data is not installed.
        DataError: A file is damaged.
    """
    source = data_folder(folder)
    return tuple(
        case for one in categories_of(name) for case in _category(source, one, safe=safe_names)
    )


def _category(folder: Path, category: str, *, safe: bool) -> Iterator[Case]:
    answers: dict[str, list[Any]] = {}
    if category in WITH_ANSWERS:
        path = folder / "possible_answer" / f"BFCL_v4_{category}.json"
        answers = {row["id"]: row["ground_truth"] for row in read_lines(path)}
    for row in read_lines(folder / f"BFCL_v4_{category}.json"):
        functions = cast("list[dict[str, Any]]", row["function"])
        names = _names(functions, safe=safe)
        renamed = [dict(f) | {"name": names[f["name"]]} for f in functions]
        messages = tuple(_message(m) for m in row["question"][0])
        yield Case(
            id=row["id"],
            kind=category,
            question=next((m.text for m in reversed(messages) if m.role == "user"), ""),
            tools=tuple(spec_of(f, is_java="java" in category) for f in renamed),
            messages=messages,
            accepts=tuple(
                {names.get(str(name), str(name)): accepted for name, accepted in one.items()}
                for one in answers.get(row["id"], ())
            ),
            functions=tuple(renamed),
            language=category.removeprefix("simple_") if "java" in category else "python",
            wants_call=category == "live_relevance",
        )


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of one of the leaderboard's files.

    Raises:
        DataError: It cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)
                except ValueError as error:
                    raise DataError(f"is not JSON: {error}", path=path, line=number) from error
    except OSError as error:
        raise DataError(f"cannot be read: {(error.strerror or '').lower()}", path=path) from error


def _message(row: Mapping[str, Any]) -> Message:
    return message_from_row(row)


def _names(functions: Sequence[Mapping[str, Any]], *, safe: bool) -> dict[str, str]:
    """Names by the names of the documents, no two alike."""
    names: dict[str, str] = {}
    for function in functions:
        name = str(function["name"])
        made = _NOT_IN_A_NAME.sub("_", name)[:64] if safe else name
        while made in names.values():
            made += "_"
        names[name] = made
    return names


def spec_of(function: Mapping[str, Any], *, is_java: bool = False) -> ToolSpec:
    """The spec of one of the leaderboard's documents, as JSON Schema."""
    parameters = _schema(cast("Mapping[str, Any]", function.get("parameters") or {}))
    properties: dict[str, Any] = parameters.setdefault("properties", {})
    for inner in properties.values():
        if is_java and "type" not in inner:
            inner["type"] = "string"  # the name of a variable, or a literal as source text
    return ToolSpec(str(function["name"]), str(function.get("description") or ""), parameters)


def _schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of a document's; a Java or JavaScript variable may stand for an object."""
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type":
            if value not in ("any", ""):
                kind = _TYPES.get(value, value)
                made["type"] = [kind, "string"] if value in ("HashMap", "ArrayList") else kind
        elif key == "properties":
            properties = cast("Mapping[str, Mapping[str, Any]]", value)
            made[key] = {name: _schema(inner) for name, inner in properties.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, Mapping):
            made[key] = _schema(cast("Mapping[str, Any]", value))
        elif key != "optional":
            made[key] = value
    return made
