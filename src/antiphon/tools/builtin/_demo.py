"""The offline demonstration tools: an address book, weather and currency, all of it invented.

Their answers never change, need no network and no key, and depend on each other: the address book
gives the city that the weather is asked for.
"""

import difflib
from decimal import Decimal
from typing import Literal

from antiphon.errors import ToolError
from antiphon.tools._tool import tool
from antiphon.tools.builtin._data import Person, cities, find_city, fold, people, rates


@tool(threaded=False, idempotent=True)
def get_address(name: str) -> dict[str, str]:
    """Look up where a person lives.

    Args:
        name: The person's name.
    """
    found = _find_people(name)
    if len(found) == 1:
        return dict(found[0])  # type: ignore[arg-type]  # all of its values are text
    if found:
        names = ", ".join(person["name"] for person in found[:8])
        raise ToolError(f"more than one person is named {name!r}: {names}; give the full name")
    near = _near_people(name)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; check the spelling"
    raise ToolError(f"nobody named {name!r} is in the address book{hint}")


def _find_people(name: str) -> list[Person]:
    wanted = fold(name)
    exact = [p for p in people() if fold(p["name"]) == wanted]
    if exact or not wanted:
        return exact
    words = wanted.split()
    whole = [p for p in people() if set(words) <= set(fold(p["name"]).split())]
    if whole:
        return whole
    return [p for p in people() if f" {wanted}" in f" {fold(p['name'])}"]


def _near_people(name: str) -> list[str]:
    by_fold = {fold(p["name"]): p["name"] for p in people()}
    near = difflib.get_close_matches(fold(name), by_fold, n=3, cutoff=0.6)
    if near:
        return [by_fold[n] for n in near]
    first = {part: full for key, full in by_fold.items() for part in key.split()}
    return [first[n] for n in difflib.get_close_matches(fold(name), first, n=3, cutoff=0.75)]


@tool(threaded=False, idempotent=True)
def get_weather(
    city: str, unit: Literal["celsius", "fahrenheit"] = "celsius"
) -> dict[str, str | int]:
    """Current weather in a city.

    Args:
        city: City name, e.g. "Lima".
        unit: Unit of the temperature.
    """
    found = find_city(city)
    if found is None:
        near = difflib.get_close_matches(fold(city), cities(), n=1, cutoff=0.75)
        hint = f"; did you mean {cities()[near[0]]['name']}?" if near else ""
        raise ToolError(f"there is no weather for {city!r}: the city is not known{hint}")
    degrees = found["celsius"]
    if unit == "fahrenheit":
        degrees = round(degrees * 9 / 5 + 32)
    return {"city": found["name"], "temperature": degrees, "unit": unit, "sky": found["sky"]}


@tool(threaded=False, idempotent=True)
def convert_currency(amount: float, from_currency: str, to_currency: str) -> dict[str, str | float]:
    """Convert an amount of money to another currency.

    Args:
        amount: Amount of money.
        from_currency: Currency code, e.g. "USD".
        to_currency: Currency code, e.g. "EUR".
    """
    source, target = _code(from_currency), _code(to_currency)
    per_dollar = {code: Decimal(str(rates()[code])) for code in (source, target)}
    rate = per_dollar[target] / per_dollar[source]
    converted = Decimal(repr(amount)) * rate
    return {
        "amount": _number(round(converted, 2)),
        "currency": target,
        "rate": _number(Decimal(f"{rate:.6g}")),
    }


def _number(value: Decimal) -> float | int:
    return int(value) if value == value.to_integral_value() else float(value)


def _code(code: str) -> str:
    wanted = code.strip().upper()
    if wanted in rates():
        return wanted
    near = difflib.get_close_matches(wanted, rates(), n=4, cutoff=0.3) or sorted(rates())[:8]
    raise ToolError(
        f"there is no rate for currency {code!r}; give a three-letter code, such as "
        f"{', '.join(near)}"
    )
