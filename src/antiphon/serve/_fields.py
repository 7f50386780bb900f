"""The JSON of a request: read once, checked field by field, with the place of what is wrong.

Whoever sends a request may send anything: nothing here trusts its types, its size or its depth.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from antiphon.errors import clip
from antiphon.serve._refusal import Refusal, bad

MAX_DEPTH = 96
"""How deep JSON may nest: more than any schema needs, less than any stack bears."""

MAX_ROWS = 10_000
"""How many objects a list of a request may have."""

Row = Mapping[str, Any]


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a request's body; half of a surrogate pair in it becomes U+FFFD.

    Raises:
        Refusal: There is none, or it nests deeper than `MAX_DEPTH`.
    """
    try:
        value = read_json(body.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise bad(f"the body is not UTF-8: byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise bad(f"the body is not JSON: {error.msg} at character {error.pos}") from error
    except (ValueError, RecursionError) as error:
        raise bad("the body is not JSON that can be read: a number or a nesting in it") from error
    if not isinstance(value, dict):
        raise bad("the body must be a JSON object")
    row = cast("dict[str, Any]", value)
    _check_depth(row)
    return _sendable(row) if _HALF.search(body) else row


def read_json(text: str) -> Any:
    """JSON as its grammar has it: Python's own reader takes NaN and infinite numbers, too.

    Raises:
        ValueError: It is none.
        RecursionError: It nests too deep.
    """
    return _decoder.decode(text)


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


_decoder = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite)
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")  # of a pair, perhaps of a whole one


def _sendable(value: Any) -> Any:
    """A value whose texts can be encoded; it nests no deeper than `MAX_DEPTH`."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_sendable(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {_sendable(k): _sendable(v) for k, v in cast("dict[str, Any]", value).items()}
    return value


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise bad(f"the body nests deeper than {MAX_DEPTH} levels")


def _inside(value: object) -> Iterator[object]:
    """The objects and lists directly in one."""
    inner: Any = value.values() if isinstance(value, dict) else value  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    for item in cast("list[object]", inner):
        if isinstance(item, dict | list):
            yield item  # pyright: ignore[reportUnknownVariableType]


class Fields:
    """One object of a request.  A field that is absent and one that is null are the same."""

    def __init__(self, row: Row, place: str = "") -> None:
        """Wrap an object.

        Args:
            row: The object.
            place: Where it stands, for messages: ``messages[2]``.
        """
        self.row = row
        self.place = place

    def name(self, key: str) -> str:
        """A field with its place."""
        return f"{self.place}.{key}" if self.place else key

    def refuse(self, key: str, wanted: str) -> Refusal:
        """What is told of a field that has not what it should."""
        name = self.name(key)
        given = self.row.get(key)
        if given is None:
            return bad(f"{name} is missing; it must be {wanted}", name)
        return bad(f"{name} must be {wanted}, got {clip(given, 80)}", name)

    def get(self, key: str) -> Any:
        """A field as it is; ``None`` where it is absent."""
        return self.row.get(key)

    def text(self, key: str, default: str | None = None) -> str:
        """A text.

        Raises:
            Refusal: It is none, or it is absent and there is no default.
        """
        value = self.row.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.refuse(key, "text")
        return value

    def one_of(self, key: str, *options: str, default: str) -> str:
        """One of some words.

        Raises:
            Refusal: It is another.
        """
        value = self.text(key, default)
        if value not in options:
            raise self.refuse(key, f"one of {', '.join(options)}")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false.

        Raises:
            Refusal: It is neither.
        """
        value = self.row.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(key, "true or false")
        return value

    def number(self, key: str, low: float, high: float) -> float | None:
        """A number within bounds, if there is one.

        Raises:
            Refusal: It is none, or out of bounds.
        """
        value = self.row.get(key)
        if value is None:
            return None
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not low <= value <= high
        ):
            raise self.refuse(key, f"a number from {low:g} to {high:g}")
        return float(value)

    def integer(self, key: str, low: int, high: int) -> int | None:
        """A whole number within bounds, if there is one.

        Raises:
            Refusal: It is none, or out of bounds.
        """
        value = self.row.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise self.refuse(key, f"a whole number from {low} to {high}")
        return value

    def object(self, key: str) -> "Fields | None":
        """An object, if there is one.

        Raises:
            Refusal: It is something else.
        """
        value = self.row.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.refuse(key, "an object")
        return Fields(cast("Row", value), self.name(key))

    def rows(self, key: str) -> "list[Fields]":
        """A list of objects; none where it is absent.

        Raises:
            Refusal: It is something else.
        """
        value = self.row.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.refuse(key, "a list of objects")
        items = cast("list[Any]", value)
        if len(items) > MAX_ROWS:
            raise bad(f"{self.name(key)} has {len(items)} entries; at most {MAX_ROWS:,} are read")
        for index, item in enumerate(items):
            if not isinstance(item, dict):
                place = f"{self.name(key)}[{index}]"
                raise bad(f"{place} must be an object, got {clip(item, 80)}", place)
        return [Fields(item, f"{self.name(key)}[{i}]") for i, item in enumerate(items)]

    def texts(self, key: str, at_most: int) -> tuple[str, ...]:
        """A text or a list of texts.

        Raises:
            Refusal: It is something else, or there are too many.
        """
        value = self.row.get(key)
        if value is None:
            return ()
        items: list[Any] = cast("list[Any]", value) if isinstance(value, list) else [value]
        if len(items) > at_most or not all(isinstance(item, str) for item in items):
            raise self.refuse(key, f"a text or a list of at most {at_most} texts")
        return tuple(items)
