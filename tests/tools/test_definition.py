"""What cannot be described exactly is refused when it is made, with the way to mend it."""

import functools
import inspect
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from antiphon.errors import ToolDefinitionError
from antiphon.tools import RunContext, check_tools, parse_docstring, tool
from antiphon.tools._names import valid_name
from antiphon.tools._signature import _raw  # pyright: ignore[reportPrivateUsage]

if TYPE_CHECKING:
    from nowhere import Thing  # pyright: ignore


def takes_connection(connection: sqlite3.Connection, sql: str) -> str:
    return sql


def takes_lock(lock: threading.Event | None = None) -> None:
    pass


def takes_function(then: Callable[[int], int]) -> None:
    pass


def takes_thing(thing: "Thing") -> None:  # pyright: ignore[reportUnknownParameterType]
    pass


@pytest.mark.parametrize(
    ("function", "parts"),
    [  # pyright: ignore[reportUnknownArgumentType]  # a name that nobody can import
        (takes_connection, ["'connection'", "sqlite3.Connection", "functools.partial"]),
        (takes_lock, ["'lock'"]),
        (takes_function, ["'then'"]),
        (takes_thing, ["'thing'", "NameError", "import the name at run time"]),
    ],
)
def test_a_parameter_that_no_json_can_carry_is_named_with_file_and_line(
    function: Callable[..., Any], parts: list[str]
) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(function)

    message = str(caught.value)
    line = inspect.getsourcelines(function)[1]
    assert message.startswith(f"{__file__}:{line}: ")
    assert "\n" not in message
    assert all(part in message for part in parts)


def test_a_bound_argument_mends_it() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        made = tool(functools.partial(takes_connection, connection))

    assert made.name == "takes_connection"
    assert list(made.spec.parameters["properties"]) == ["sql"]


@pytest.mark.parametrize(
    "options",
    [
        {"name": "get weather"},
        {"name": "a" * 65},
        {"name": ""},
        {"timeout": 0},
        {"timeout": -1.0},
        {"max_chars": 10},
        {"max_concurrent": 0},
    ],
)
def test_an_option_that_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ToolDefinitionError):
        tool(lambda: None, **{"name": "t", **options})


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ToolDefinitionError, match="needs a name"):
        tool(lambda: None)


def test_a_tool_stands_below_staticmethod() -> None:
    with pytest.raises(ToolDefinitionError, match="below @staticmethod"):

        class Shop:  # pyright: ignore[reportUnusedClass]
            @tool  # type: ignore[arg-type]
            @staticmethod
            def tax(amount: float) -> float:
                return amount


def test_a_builtin_without_a_signature_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="no signature"):
        tool(dict)  # pyright: ignore


def test_a_context_imported_for_type_checkers_only_is_still_a_context() -> None:
    def f(city: str, context: "RunContext[str] | None" = None) -> str:
        return city

    assert list(tool(f).spec.parameters["properties"]) == ["city"]


def test_a_local_class_that_only_the_annotation_names_is_found() -> None:
    class Mode(Enum):
        FAST = "fast"
        SLOW = "slow"

    @tool
    def f(mode: "Mode") -> str:
        return "ok"

    assert f.spec.parameters["properties"]["mode"]["enum"] == ["fast", "slow"]


def test_other_options_make_another_tool_of_the_same_function() -> None:
    @tool
    def f(city: str) -> str:
        """Weather."""
        return city

    g = f.with_options(name="weather", timeout=1.0)

    assert (g.name, g.timeout, g.spec.description) == ("weather", 1.0, "Weather.")
    assert (f.name, f.timeout) == ("f", 10.0)


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("get_weather", "get_weather"),
        ("\u043f\u043e\u0438\u0441\u043a", "poisk_d89cae"),
        ("\u5929\u6c14", "tool_"),
        ("gr\u00f6\u00dfe", "grosse_"),
        ("a.b", "a_b_"),
    ],
)
def test_a_name_of_any_language_becomes_a_valid_one(name: str, valid: str) -> None:
    made = valid_name(name)

    assert made.startswith(valid)
    assert len(made) <= 64


def test_two_long_names_stay_two() -> None:
    assert valid_name("x" * 70) != valid_name("x" * 71)


def test_docstring_styles_may_be_mixed_and_odd() -> None:
    doc = parse_docstring(
        """Do it.

        Args:
            - `a` (int): the first
            **b**: the second
            c -- the third
            *rest: more

        :param d: the fourth
        @param e: the fifth

        Returns:
            the sum
        """
    )

    assert doc.description == "Do it."
    assert doc.parameters == {
        "a": "the first",
        "b": "the second",
        "c": "the third",
        "rest": "more",
        "d": "the fourth",
        "e": "the fifth",
    }
    assert doc.returns == "the sum"


def badly(x, y: list, z: dict[str, Any], day: Annotated[object, "any day"] = object()):  # type: ignore[no-untyped-def] # pyright: ignore
    """
    Args:
        w: is gone
    """


@pytest.mark.parametrize(
    "text",
    [
        "Go.\n\nArgs\n    a: first\n    b: second",
        "Go.\n\nParameters:\n    a: int\n        first\n    b: list[str], optional\n        second",
        "Go.\n\nArgs:\n    a：first\n    b : second",  # noqa: RUF001
        "Go.\r\n\r\nArgs:\r\n\ta: first\r\n\tb: second",
    ],
)
def test_relatives_of_known_styles_are_read(text: str) -> None:
    doc = parse_docstring(text)

    assert doc.parameters == {"a": "first", "b": "second"}
    assert doc.description == "Go."


def test_a_line_that_is_a_word_of_a_header_is_none_without_entries() -> None:
    text = "Go.\n\nParameters\n    are read from the file."

    assert parse_docstring(text).description == text


def test_the_lint_names_what_a_model_would_miss() -> None:
    found = {(f.parameter, f.message.split(";")[0]) for f in check_tools([tool(badly)])}  # pyright: ignore

    assert ("", "has no description") in found
    assert ("x", "has no description") in found
    assert ("x", "may be any value") in found
    assert ("y", "is a list of anything") in found
    assert ("z", "is an object of anything") in found
    assert ("day", "has a default that JSON cannot show") in found
    assert ("w", "is described in the docstring and is no parameter") in found
    assert ("", "cannot be used in strict mode: x may be anything") in found


def test_the_lint_finds_names_that_clash() -> None:
    one = tool(lambda: None, name="search_documents", description="Search.")
    two = tool(lambda: None, name="search_documents", description="Search.")
    near = tool(lambda: None, name="search_document", description="Search.")

    messages = [f.message for f in check_tools([one, two, near])]

    assert any("same name" in m for m in messages)
    assert any("easily taken for" in m for m in messages)


def test_metadata_that_cannot_be_hashed_is_no_obstacle() -> None:
    def f(n: Annotated[int, {"unit": "m"}], m: "Annotated[int | None, ['x']]" = None) -> str:
        return f"{n} {m}"

    properties = tool(f).spec.parameters["properties"]

    assert properties["n"]["type"] == "integer"
    assert "anyOf" in properties["m"]


def many(a: int, b: "str" = "x", /, c: Any = 1, *rest: int, d: float, e: bool = True, **more: str):
    """Every kind of parameter, and no word on what comes back."""


def keywords(*, k: int = 2, **more: Any) -> None: ...


def by_place(a: int, b: int = 1, /) -> int:
    return a + b


@pytest.mark.parametrize("function", [many, keywords, by_place])
def test_a_plain_functions_parameters_are_those_that_inspect_reads(
    function: Callable[..., Any],
) -> None:
    raw, returns = _raw(function)

    known = inspect.signature(function)
    assert [tuple(parameter) for parameter in raw] == [
        (p.name, p.kind, p.annotation, p.default) for p in known.parameters.values()
    ]
    assert returns is known.return_annotation
