"""JSON that is nearly JSON: objects in Python's notation, and nulls that a table has added.

Data sets hold calls and schemas as text; some of it was printed by Python.  Reading here is strict
about everything else, and evaluates nothing.
"""

import ast
import json
from typing import Any, cast

from antiphon.errors import DataError, clip
from antiphon.messages import JsonValue

_NULLS_THAT_MEAN_SOMETHING = ("default", "const", "enum", "examples")


def parse_literal(text: str, what: str) -> JsonValue:
    """The value of JSON text, or of a Python literal with JSON's kinds of values.

    Args:
        text: The text.
        what: What it is, for the message.

    Raises:
        DataError: It is neither.

    >>> parse_literal("{'city': 'Lima', 'warm': True}", "arguments")
    {'city': 'Lima', 'warm': True}
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        pass
    try:
        value = ast.literal_eval(text.strip())
        json.dumps(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise DataError(f"{what} must be JSON, got {clip(text)}") from error
    return cast("JsonValue", value)


def parse_object(value: object, what: str) -> dict[str, Any]:
    """An object, given as one or as its text.

    Raises:
        DataError: It is neither.
    """
    if isinstance(value, str):
        value = parse_literal(value, what)
    if not isinstance(value, dict):
        raise DataError(f"{what} must be an object, got {clip(value)}")
    return cast("dict[str, Any]", value)


def without_added_nulls(value: Any) -> Any:
    """A schema without the nulls that a column of unified structs adds.

    Nulls stay where they mean something: as ``default``, ``const``, in ``enum`` and ``examples``,
    and under ``x-`` keys.
    """
    if isinstance(value, list):
        return [without_added_nulls(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    return {
        key: item
        if key in _NULLS_THAT_MEAN_SOMETHING or key.startswith("x-")
        else without_added_nulls(item)
        for key, item in cast("dict[str, Any]", value).items()
        if item is not None or key in _NULLS_THAT_MEAN_SOMETHING or key.startswith("x-")
    }
