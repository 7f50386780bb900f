"""Every scenario of the cases comes out exactly as it says: prompts, calls, times and outcome."""

from typing import Any

import pytest

from strategies.expectations import differences
from strategies.scenarios import load_cases, play


@pytest.mark.parametrize("case", load_cases(), ids=lambda case: case["id"])
def test_a_scenario_comes_out_as_it_says(case: dict[str, Any]) -> None:
    assert differences(case, play(case)) == []
