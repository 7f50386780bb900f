"""The invented data of the demonstration tools, read from this package when first asked for."""

import json
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Any, TypedDict


class City(TypedDict):
    """A city of the demonstration weather."""

    name: str
    country: str
    timezone: str
    celsius: int
    sky: str


class Person(TypedDict):
    """An invented person of the address book."""

    name: str
    street: str
    city: str
    country: str


def _load(name: str) -> Any:
    return json.loads(files("antiphon.tools.builtin").joinpath(name).read_text("utf-8"))


@cache
def people() -> tuple[Person, ...]:
    """The address book, by name."""
    return tuple(_load("people.json"))


@cache
def rates() -> dict[str, float]:
    """Units of each currency for one US dollar."""
    return dict(_load("currencies.json"))


@cache
def cities() -> dict[str, City]:
    """Cities by folded name, other spellings included."""
    data = _load("cities.json")
    by_name: dict[str, City] = {fold(city["name"]): city for city in data["cities"]}
    return by_name | {fold(also): by_name[fold(name)] for also, name in data["also"].items()}


def fold(text: str) -> str:
    """A name for comparing: no accents, no case, single spaces.

    >>> fold("  São  Paulo ")
    'sao paulo'
    """
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(bare.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").casefold().split())


def find_city(name: str) -> City | None:
    """A city by name, also where its country follows a comma, as in ``Lima, Peru``."""
    known = cities()
    found = known.get(fold(name))
    if found is None and "," in name:
        city, _, rest = name.partition(",")
        found = known.get(fold(city))
        if found is not None and not _same_place(found, rest):
            return None
    return found


_COUNTRY_CODES = {
    "usa": "united states",
    "us": "united states",
    "uk": "united kingdom",
    "england": "united kingdom",
    "scotland": "united kingdom",
    "uae": "united arab emirates",
    "korea": "south korea",
    "czechia": "czech republic",
    "turkiye": "turkey",
    "the netherlands": "netherlands",
}


_WITH_STATES = frozenset(
    {"United States", "Canada", "Australia", "India", "Brazil", "China", "Mexico"}
)


def _same_place(city: City, rest: str) -> bool:
    country = fold(rest.rpartition(",")[2]).strip(". ")
    known = {fold(c["country"]) for c in cities().values()} | _COUNTRY_CODES.keys()
    if country not in known:
        return city["country"] in _WITH_STATES  # "Boston, MA", but not "Paris, Texas"
    return _COUNTRY_CODES.get(country, country) == fold(city["country"])
