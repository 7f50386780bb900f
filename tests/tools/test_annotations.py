"""Annotations that say the same in another way are read, described and checked the same."""

import asyncio
import dataclasses
import sys
import typing
import warnings
from enum import Enum
from typing import Annotated, Any, Literal, LiteralString, NamedTuple, NotRequired, Unpack

import pytest
from pydantic import BaseModel, Field
from typing_extensions import Doc

from antiphon.messages import ToolResult
from antiphon.tools import RunContext, Tool, tool


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Base:
    """A thing.

    Attributes:
        size: How large.
    """

    size: int
    weight: int
    """How heavy."""


@dataclasses.dataclass
class Ball(Base):
    colour: Annotated[str, "How it looks."]
    name: Annotated[str, Doc("What it is called.")] = ""


class Cube(BaseModel):
    size: Annotated[int, "The length of an edge."]
    weight: int = 0
    """In grams."""


class Place(NamedTuple):
    north: float
    """Latitude."""
    east: float = 0.0


class Query(typing.TypedDict):
    """A query.

    Attributes:
        words: What to look for.
    """

    words: list[str]
    limit: NotRequired[Annotated[int, "How many."]]


class Options(typing.TypedDict, total=False):
    limit: int
    """How many."""


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    bark: str


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]


def properties(made: Tool[..., Any]) -> dict[str, Any]:
    found: Any = made.spec.parameters["properties"]
    return found


def call(made: Tool[..., Any], arguments: Any) -> ToolResult:
    return asyncio.run(made.call(arguments))


def test_a_text_in_annotated_describes_wherever_it_stands() -> None:
    def f(
        names: list[Annotated[str, "A name."]],
        counts: dict[str, Annotated[int, Doc("A count.")]],
        unit: Annotated[str, "The unit."] | None = None,
        balls: list[Annotated[Ball, "A ball."]] | None = None,
    ) -> None:
        """Do it."""

    shown = properties(tool(f))

    assert shown["names"]["items"] == {"type": "string", "description": "A name."}
    assert shown["counts"]["additionalProperties"]["description"] == "A count."
    assert shown["unit"]["description"] == "The unit."
    assert shown["unit"]["anyOf"] == [{"type": "string"}, {"type": "null"}]
    assert "A ball." in str(shown["balls"])


def test_fields_are_described_by_class_base_and_annotation() -> None:
    def f(ball: Ball, cube: Cube, place: Place) -> None:
        """Do it."""

    shown = properties(tool(f))

    said = {name: field.get("description") for name, field in shown["ball"]["properties"].items()}
    assert said == {
        "size": "How large.",
        "weight": "How heavy.",
        "colour": "How it looks.",
        "name": "What it is called.",
    }
    assert shown["cube"]["properties"]["size"]["description"] == "The length of an edge."
    assert shown["cube"]["properties"]["weight"]["description"] == "In grams."
    assert [item["description"] for item in shown["place"]["prefixItems"]] == ["Latitude.", "east"]


def test_a_classs_own_sections_do_not_stand_in_its_description() -> None:
    def f(base: Base) -> None:
        """Do it."""

    assert properties(tool(f))["base"]["description"] == "A thing."


def test_typings_typed_dict_is_read() -> None:
    """pydantic refuses it before Python 3.12."""

    def f(query: Query, more: list[Query] | None = None, **options: Unpack[Options]) -> str:
        """Do it."""
        return f"{query} {more} {options}"

    made = tool(f)

    assert properties(made)["limit"]["description"] == "How many."
    assert "What to look for." in str(made.spec.parameters)
    sent: dict[str, Any] = {
        "query": {"words": ["a"]},
        "more": [{"words": [], "limit": "2"}],
        "limit": 3,
    }
    assert call(made, sent).text == ("{'words': ['a']} [{'words': [], 'limit': 2}] {'limit': 3}")
    assert call(made, {"query": {"limit": 1}}).is_error


def test_a_typed_dict_of_typing_is_a_tool_itself() -> None:
    query: Any = Query
    assert call(tool(query), {"words": ["a"]}).value == {"words": ["a"]}


def test_a_literal_of_enum_members_is_read_from_their_values() -> None:
    def f(colour: Literal[Colour.RED], other: Literal[Colour.BLUE, "none", 1, None] = None) -> str:
        """Do it."""
        return repr((colour, other))

    made = tool(f)

    assert call(made, {"colour": "red", "other": "blue"}).text == repr((Colour.RED, Colour.BLUE))
    assert call(made, {"colour": "red", "other": 1}).text == repr((Colour.RED, 1))
    assert call(made, {"colour": "blue"}).is_error


def test_the_older_names_of_containers_are_read() -> None:
    def f(a: Any, b: Any, c: Any, d: LiteralString) -> str:
        """Do it."""
        return repr((a, b, c, d))

    f.__annotations__ |= {"a": typing.List, "b": typing.Dict, "c": typing.Tuple}  # noqa: UP006
    made = tool(f)

    assert [p["type"] for p in properties(made).values()] == ["array", "object", "array", "string"]
    assert call(made, {"a": [1], "b": {"x": 1}, "c": [1], "d": "t"}).text == (
        "([1], {'x': 1}, (1,), 't')"
    )


def test_a_fields_alias_is_what_a_call_names_it() -> None:
    def f(from_: Annotated[str, Field(alias="from")], to: str = "here") -> str:
        """Do it."""
        return f"{from_} {to}"

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = tool(f)
        result = call(made, {"from": "there"})

    assert result.text == "there here"
    assert made.spec.parameters["required"] == ["from"]


@pytest.mark.parametrize("name", ["ctx", "a", "b"])
def test_what_is_sent_in_a_double_star_stands_for_no_other_parameter(name: str) -> None:
    """A context among them would be forged by the model."""

    def f(ctx: RunContext, a: int, *, b: int = 0, **more: Any) -> str:
        """Do it."""
        return f"{type(ctx).__name__} {a} {b} {more}"

    made = tool(f)

    assert call(made, {"a": 1, "more": {"c": 2}}).text == "RunContext 1 0 {'c': 2}"
    refused = call(made, {"a": 1, "more": {name: 5}})
    assert refused.is_error
    assert f"'more' may not hold '{name}'" in refused.text


def test_a_positional_only_name_is_free_in_a_double_star() -> None:
    def f(a: int, /, **more: int) -> str:
        """Do it."""
        return f"{a} {more}"

    assert call(tool(f), {"a": 1, "more": {"a": 2}}).text == "1 {'a': 2}"


@tool
def adopt(pet: Pet, others: list[Pet] | None = None, either: Base | Place | None = None) -> str:
    """Take animals."""
    return repr((pet, others, either))


@pytest.mark.parametrize(
    ("sent", "parts"),
    [
        ({"pet": {"kind": "cow"}}, ["'pet'", "'cat', 'dog'"]),
        ({"pet": {"kind": "dog"}}, ["'pet.bark' is missing"]),
        (
            {"pet": {"kind": "cat"}, "others": [{"kind": "dog", "bark": 1}]},
            ["'others[0].bark'", "string"],
        ),
        ({"pet": {"kind": "cat"}, "either": 3}, ["'either' should be", '"size": integer']),
    ],
)
def test_a_wrong_variant_is_answered_with_what_is_wrong_in_it(
    sent: dict[str, Any], parts: list[str]
) -> None:
    result = call(adopt, sent)

    assert result.is_error
    assert [part for part in parts if part not in result.text] == []
    assert "got" in result.text or "missing" in result.text


def test_an_empty_list_of_pairs_is_an_empty_object() -> None:
    """What a strict rendering asks for in a map's place."""

    def f(scores: dict[str, int], more: dict[str, str] | None = None) -> str:
        """Do it."""
        return f"{scores} {more}"

    made = tool(f)

    assert made.spec.restore_arguments({"scores": [], "more": []}) == {"scores": {}, "more": {}}
    assert call(made, {"scores": [], "more": []}).text == "{} {}"


def test_null_is_no_arguments_where_there_are_none_to_send() -> None:
    @tool
    def now() -> str:
        """The time."""
        return "noon"

    @tool
    def pay(account: str = "house", amount: int = 1000) -> str:
        """Pay."""
        return f"{account} {amount}"

    assert call(now, "null").text == "noon"
    assert call(pay, "null").is_error


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 695")
def test_a_wrong_value_of_a_named_union_is_answered_once() -> None:
    names: dict[str, Any] = {}
    exec(
        "type Either = int | list[Either]\ndef f(x: Either) -> str: 'Do it.'; return repr(x)", names
    )

    assert "'x' should be integer | [" in call(tool(names["f"]), {"x": None}).text
