"""A page of figures shows its numbers, is inert to its texts, and loads nothing."""

import math
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from antiphon.evaluation import Outcome, compare_page
from antiphon.viewer import Bars, Curve, Curves, Report, Table, render_report
from antiphon.viewer._report import _ticks  # pyright: ignore[reportPrivateUsage]
from chromium import opened

if TYPE_CHECKING:
    from playwright.sync_api import Page

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


# --- In a browser: the page of an evaluation


@pytest.fixture
def shown(tmp_path: Path) -> "Iterator[Page]":
    """Two runs beside each other, with hostile names and answers; nothing complains."""
    wrote = f"{HOSTILE}<img src=x onerror='window.broken=1'>" + " a long answer" * 40
    runs = {
        name: [
            Outcome(
                f"case {n}",
                ("single", "chain")[n % 2],
                right=n % every != 0,
                error="" if n % every else "no_call",
                wrote=wrote,
            )
            for n in range(1, 301)
        ]
        for name, every in ((f"old {HOSTILE}", 7), ("new", 11))
    }
    file = tmp_path / "evaluation.html"
    file.write_text(compare_page(runs, title=f"demo {HOSTILE}"), "utf-8", "replace")
    with opened() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        said: list[str] = []
        page.on("console", lambda m: said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on("request", lambda r: said.extend([] if r.url.startswith("file:") else [r.url]))
        page.goto(file.as_uri())
        yield page
        assert page.evaluate("window.broken") is None
        assert page.locator("script, img").count() == 0
        page.close()
        assert said == []


@pytest.mark.slow
def test_a_count_of_mistakes_leads_to_a_case_by_click_and_by_key(shown: "Page") -> None:
    links = shown.get_by_role("link")
    assert links.count() == 2

    for index, way in enumerate(("click", "key")):
        link = links.nth(index)
        place = str(link.get_attribute("href"))
        if way == "click":
            link.click()
        else:
            link.focus()
            shown.keyboard.press("Enter")
        target = shown.locator(place)
        assert "no_call" in target.inner_text()
        assert shown.evaluate(
            "place => { const box = document.querySelector(place).getBoundingClientRect();"
            " return box.top >= 0 && box.top < innerHeight }",
            place,
        )


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_evaluation_has_its_plot_and_fits_a_phone(scheme: Any, shown: "Page") -> None:
    shown.emulate_media(color_scheme=scheme)
    shown.set_viewport_size({"width": 360, "height": 740})

    widths = shown.locator(".bars rect").evaluate_all("rects => rects.map(r => r.getBBox().width)")
    colours = shown.locator(".bars rect").evaluate_all(
        "rects => rects.map(r => getComputedStyle(r).fill)"
    )
    assert len(widths) == 4  # two kinds of two runs
    assert all(80 < width < 100 for width in widths)  # a full bar is all that could be right
    assert colours[:2] == colours[2:]
    assert colours[0] != colours[1]
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
