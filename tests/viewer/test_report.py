"""A page of figures shows its numbers, is inert to its texts, and loads nothing."""

import math
import re
from itertools import pairwise

import pytest

from antiphon.viewer import Bars, Curve, Curves, Report, Table, render_report
from antiphon.viewer._report import _ticks  # pyright: ignore[reportPrivateUsage]

HOSTILE = '</style><script>alert(1)</script>"onload="x \ud800'


def page(*figures: Curves | Bars | Table) -> str:
    return render_report(Report("A run", "one sentence", [("steps", 1200)], figures))


def test_every_number_of_a_figure_is_on_the_page() -> None:
    text = page(
        Curves("Loss", "step", [Curve("loss", [(1, 2.5), (2, 1.25)]), Curve("none", [])]),
        Bars("Tools", [("ferry", 3), ("hotel", 12000)]),
        Table("Rows", ["file", "line"], [["a.jsonl", 7]]),
    )

    for number in ("1,200", "2.5", "1.25", "12,000", "a.jsonl", ">7<"):
        assert number in text
    assert "loss: 1.25 at step 2" in text
    assert ">none<" not in text


def test_texts_are_text_and_nothing_is_loaded() -> None:
    figures = (
        Curves(HOSTILE, HOSTILE, [Curve(HOSTILE, [(0, 1)])], HOSTILE),
        Bars(HOSTILE, [(HOSTILE, 1)]),
        Table(HOSTILE, [HOSTILE], [[HOSTILE]]),
    )

    text = render_report(Report(HOSTILE, HOSTILE, [(HOSTILE, HOSTILE)], figures))

    text.encode()
    assert "<script" not in text
    assert not re.search(r'<[^>]*"onload', text)
    assert "default-src 'none'" in text
    assert not re.search(r"(?:src|href)=", text)


def test_a_point_that_is_not_finite_is_left_out() -> None:
    text = page(Curves("Loss", "step", [Curve("loss", [(1, 2.0), (2, math.nan), (3, math.inf)])]))

    assert "loss: 2 at step 1" in text
    assert "nan" not in text
    assert "inf" not in text


@pytest.mark.parametrize(
    "values", [[0.0], [5.0, 5.0], [1e-9, 3e-9], [-4.0, 7.5], [1e12, 9e12], [0.93, 0.97]]
)
def test_ticks_are_few_and_span_the_values(values: list[float]) -> None:
    ticks = _ticks(values)

    assert ticks[0] <= min(values)
    assert ticks[-1] >= max(values)
    assert 2 <= len(ticks) <= 8
    assert (
        len(
            {
                round(b / (ticks[1] - ticks[0]) - a / (ticks[1] - ticks[0]), 6)
                for a, b in pairwise(ticks)
            }
        )
        == 1
    )
