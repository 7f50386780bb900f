"""Prices are the user's own, and a wrong table is told."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import DataError
from antiphon.messages import Usage
from antiphon.models import Price, read_prices


def test_cached_tokens_have_their_own_price() -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)

    assert Price(1.0, 10.0, 0.1).of(usage) == pytest.approx(1.64)
    assert Price(1.0, 10.0).of(usage) == pytest.approx(2.0)


def test_a_table_is_read(tmp_path: Path) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps({"m": {"input": 1, "output": 2.5}}))

    assert read_prices(path) == {"m": Price(1, 2.5)}


@pytest.mark.parametrize(
    "table",
    [
        [],
        {"m": 3},
        {"m": {"input": 1}},
        {"m": {"input": "1", "output": 2}},
        {"m": {"input": -1, "output": 2}},
    ],
)
def test_a_wrong_table_names_the_file(tmp_path: Path, table: Any) -> None:
    path = tmp_path / "prices.json"
    path.write_text(json.dumps(table))

    with pytest.raises(DataError, match=r"prices\.json"):
        read_prices(path)
