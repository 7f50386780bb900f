"""What a model is shown of a long result fits its budget, says so, and cuts no value of JSON."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.errors import ModelError, UsageError
from antiphon.memory import Observations, extract, head_tail, n_tokens, shorten, thin_json

LOG = "\n".join([*["INFO served"] * 5000, "WARN payment gateway answered 402", *["INFO x"] * 5000])


def shortened(text: str, n: int, **how: Any) -> str:
    return asyncio.run(shorten(text, n, **how))


@given(st.text(max_size=3000), st.integers(60, 300), st.sampled_from(["head_tail", "extract"]))
@settings(max_examples=80, deadline=None)
def test_whatever_the_text_the_budget_holds(text: str, n: int, mode: Any) -> None:
    shown = shortened(text, n, mode=mode, query="payment", name="c1")

    assert n_tokens(shown) <= n
    assert shown == text if n_tokens(text) <= n else "omitted" in shown


def test_head_and_tail_stay_and_the_note_counts_what_does_not() -> None:
    shown = head_tail("a" * 5000 + "z" * 5000, 100, name="c1")

    left = int(shown.split("[")[1].split()[0])
    assert shown.startswith("aaaa")
    assert shown.endswith("zzzz")
    assert left + shown.count("a", 0, 150) + shown.count("z") >= 10_000 - 5
    assert 'read_result("c1")' in shown


def test_short_lines_stay_whole_at_both_ends() -> None:
    """A row that is cut may say something else, as a number that lost its first digits."""
    lines = [f'{{"row": {n}}}' for n in range(10_000, 30_000)]

    shown = head_tail("\n".join(lines), 100).split("\n")

    assert [line for line in shown if line not in lines and "omitted" not in line] == []
    assert (shown[0], shown[-1]) == (lines[0], lines[-1])
    head = next(n for n, line in enumerate(shown) if "omitted" in line)
    assert 1 < head < len(shown) - head


def test_an_extract_is_whole_lines_that_fit_the_question_in_their_order() -> None:
    shown = extract(LOG, "Why did the payment fail?", 100)

    assert "WARN payment gateway answered 402" in shown.splitlines()


def test_json_stays_json_with_its_lists_sampled_and_counted() -> None:
    rows = [{"id": n, "name": f"person {n}"} for n in range(5000)]

    shown = thin_json(json.dumps({"rows": rows, "total": 5000}), 500)

    assert shown is not None
    made = json.loads(shown)
    assert made["total"] == 5000
    assert all(row in rows for row in made["rows"] if isinstance(row, dict))
    assert [row for row in made["rows"] if isinstance(row, str)] == [
        f"... {5000 - len(made['rows']) + 1} of 5000 items omitted ..."
    ]


def test_json_that_cannot_be_thinned_enough_is_shown_as_text() -> None:
    text = json.dumps({f"key {n} {'x' * 50}": n for n in range(2)} | {"y" * 3000: 1})

    shown = shortened(text, 100)

    assert thin_json(text, 100) is None
    assert n_tokens(shown) <= 100


@pytest.mark.parametrize("summary", ["", "x" * 10_000, ModelError("offline")])
def test_a_summary_that_fails_or_runs_over_leaves_head_and_tail(summary: str | ModelError) -> None:
    def summarise(text: str, query: str) -> str:
        if isinstance(summary, ModelError):
            raise summary
        return summary

    shown = shortened(LOG, 200, mode="summary", summarise=summarise)

    assert shown.startswith("INFO served")
    assert "characters omitted here" in shown


def test_a_summary_says_how_much_it_stands_for() -> None:
    def summarise(text: str, query: str) -> str:
        return "402 from the gateway"

    shown = shortened(LOG, 200, mode="summary", summarise=summarise)

    assert shown == f"[summary of {len(LOG)} characters, the rest omitted]\n402 from the gateway"


def test_small_results_leave_their_share_of_a_step_to_the_large() -> None:
    how = Observations(max_tokens=1000, max_step_tokens=1200)

    budgets = how.budgets([5000, 100, 900])

    assert budgets == [550, 100, 550]
    assert how.budgets([300, 100]) == [300, 100]


def test_a_budget_that_shows_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="max_tokens of Observations must be 50 or more: 10"):
        Observations(max_tokens=10)
