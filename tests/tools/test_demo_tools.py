"""The demonstration tools answer exactly, offline, and refuse in a sentence."""

import asyncio
from typing import Any

import pytest

from antiphon.messages import ToolResult
from antiphon.tools import Tool
from antiphon.tools.builtin import (
    DEMO_TOOLS,
    calculate,
    calculator,
    convert_currency,
    current_time,
    get_address,
    get_weather,
)
from antiphon.tools.builtin._data import cities, find_city, people


def call(tool: Tool[..., Any], **arguments: Any) -> ToolResult:
    return asyncio.run(tool.call(arguments))


def test_the_demonstration_set_has_the_names_and_parameters_that_the_model_is_trained_on() -> None:
    shown = {t.name: list(t.spec.parameters["properties"]) for t in DEMO_TOOLS}

    assert shown == {
        "calculator": ["expression"],
        "current_time": ["timezone"],
        "get_address": ["name"],
        "get_weather": ["city", "unit"],
        "convert_currency": ["amount", "from_currency", "to_currency"],
    }


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("17.5% of 2340", "409.5"),
        ("2340 * 17.5%", "409.5"),
        ("2340 + 10%", "2574"),
        ("100 - 15%", "85"),
        ("10% + 5%", "0.15"),
        ("1,250 * 3", "3750"),
        ("(3 + 4) * 12", "84"),
        ("0.1 + 0.2", "0.3"),
        ("1/3", "0.333333333333"),
        ("2^10", "1024"),
        ("2 ** 0.5", "1.41421356237"),
        ("-2^2", "-4"),
        ("2^3^2", "512"),
        ("17 % 5", "2"),
        ("7 mod 3", "1"),
        ("7 // 2", "3"),
        ("$1,200 \u00d7 3", "3600"),
        ("10 \u00f7 4", "2.5"),
        ("5 \u2212 7", "-2"),
        ("\u20ac80 / 5 = ?", "16"),
        ("sqrt(16) + abs(-3)", "7"),
        ("\u221a16", "4"),
        ("log(100)", "2"),
        ("log(8, 2)", "3"),
        ("ln(e)", "1"),
        ("sin(pi/6)", "0.5"),
        ("round(2.345, 2)", "2.35"),
        ("max(1, 2, 3) - min(4, 5)", "-1"),
        ("5!", "120"),
        ("2(3 + 4)", "14"),
        ("8^(1/3)", "2"),
        ("123456789 * 987654321", "121932631112635269"),
        ("1e3 + .5", "1000.5"),
        ("50 percent of 30", "15"),
    ],
)
def test_arithmetic_is_exact(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    ("expression", "part"),
    [
        ("", "empty"),
        ("1/0", "division by zero"),
        ("sqrt(-1)", "no real value"),
        ("9^9^9", "exponent"),
        ("(1 + 2", "closing parenthesis"),
        ("1 +", "ends too early"),
        ("__import__('os')", "cannot read"),
        ("1.1.1", "cannot read"),
        ("(" * 200 + "1" + ")" * 200, "deep"),
        ("1" * 600, "longer"),
        ("5000!", "factorial"),
        ("1e999999", "too large"),
        ("-" * 300 + "(" * 60, "deep"),
        ("sqrt(1, 2)", "takes"),
    ],
)
def test_what_is_no_arithmetic_is_refused_in_a_sentence(expression: str, part: str) -> None:
    result = call(calculator, expression=expression)

    assert result.is_error
    assert part in result.text


def test_the_time_in_a_city_is_that_of_its_zone() -> None:
    result = call(current_time, timezone="tokyo")

    assert '"timezone": "Asia/Tokyo"' in result.text
    assert '+09:00"' in result.text


def test_an_unknown_zone_is_an_answer() -> None:
    result = call(current_time, timezone="Mars/Olympus")

    assert result.is_error
    assert "Mars/Olympus" in result.text


def test_everybody_in_the_address_book_lives_where_there_is_weather() -> None:
    assert len(people()) >= 60
    assert all(find_city(person["city"]) is not None for person in people())


def test_a_part_of_a_name_is_enough_where_it_names_one_person() -> None:
    result = call(get_address, name="amara")

    assert result.text == (
        '{"name": "Amara Okafor", "street": "Palm Grove Road 8", '
        '"city": "Lagos", "country": "Nigeria"}'
    )


def test_an_ambiguous_name_lists_whom_it_may_mean() -> None:
    result = call(get_address, name="an")

    assert result.is_error
    assert "Ana Sousa" in result.text
    assert "Anders Lindqvist" in result.text


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    result = call(get_address, name="Marie Gonzales")

    assert result.is_error
    assert "Maria Gonzalez" in result.text


def test_the_weather_never_changes_and_knows_both_units() -> None:
    assert call(get_weather, city="lima").value == {
        "city": "Lima",
        "temperature": 18,
        "unit": "celsius",
        "sky": "overcast",
    }
    assert call(get_weather, city="Lima, Peru", unit="fahrenheit").text == (
        '{"city": "Lima", "temperature": 64, "unit": "fahrenheit", "sky": "overcast"}'
    )


@pytest.mark.parametrize("city", ["Atlantis", "Paris, Texas", "Paris, USA", ""])
def test_an_unknown_city_is_an_answer_that_says_so(city: str) -> None:
    result = call(get_weather, city=city)

    assert result.is_error
    assert "not known" in result.text


def test_there_are_about_120_cities() -> None:
    assert 110 <= len({city["name"] for city in cities().values()}) <= 140


def test_money_is_converted_at_fixed_rates_whatever_the_case_of_the_code() -> None:
    result = call(convert_currency, amount=100, from_currency="usd", to_currency="Eur")

    assert result.text == '{"amount": 92, "currency": "EUR", "rate": 0.92}'


def test_an_unknown_currency_lists_near_codes() -> None:
    result = call(convert_currency, amount=1, from_currency="USD", to_currency="EURO")

    assert result.is_error
    assert "EUR" in result.text
