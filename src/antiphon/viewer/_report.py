"""A page of figures: curves, bars and tables as one HTML file without a script.

Used for what was counted or measured: a training run, a data set.  Every figure has its numbers
beside it as a table, and every text of the caller is escaped.  This module measures nothing.
"""

import base64
import hashlib
import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

import antiphon

_WIDTH, _HEIGHT = 640, 230
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 12, 30
_N_COLORS = 6
_MAX_TABLE_ROWS = 200


@dataclass(frozen=True, slots=True)
class Curve:
    """One line of a `Curves`."""

    name: str
    """What it is."""
    points: Sequence[tuple[float, float]]
    """``(x, y)``, in the order of x; a point that is not finite is left out."""


@dataclass(frozen=True, slots=True)
class Curves:
    """Lines over one axis."""

    title: str
    """What is shown."""
    x: str
    """What the axis counts."""
    curves: Sequence[Curve]
    """The lines; those without points are left out."""
    note: str = ""
    """What the reader has to know."""


@dataclass(frozen=True, slots=True)
class Bars:
    """A number for each of some names."""

    title: str
    """What is shown."""
    bars: Sequence[tuple[str, float]]
    """Name and number, in order; numbers from 0 up."""
    note: str = ""
    """What the reader has to know."""
    n_colors: int = 1
    """How many colours take turns, for bars that belong together."""
    full: float | None = None
    """The number of a full bar; the greatest one where it is not given."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell that is more than its text."""

    text: str
    """What it says."""
    tone: str = ""
    """``good`` or ``bad``, where it is one of them."""
    to: str = ""
    """The `id` of the cell that it leads to."""
    id: str = ""
    """What others lead here by; one word."""
    quote: str = ""
    """What somebody wrote, below the text, as it was written."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text."""

    title: str
    """What is shown."""
    head: Sequence[str]
    """The columns."""
    rows: Sequence[Sequence[object]]
    """The cells, each a value or a `Cell`; numbers are set to the right."""
    note: str = ""
    """What the reader has to know."""
    most: int = _MAX_TABLE_ROWS
    """How many rows are shown."""


Figure = Curves | Bars | Table


@dataclass(frozen=True, slots=True)
class Report:
    """A page."""

    title: str
    """The heading."""
    lead: str = ""
    """One sentence under it."""
    facts: Sequence[tuple[str, object]] = ()
    """The few numbers that matter most, each with its name."""
    figures: Sequence[Figure] = field(default_factory=list[Figure])
    """What follows."""


def render_report(report: Report) -> str:
    """A report as one HTML page: self-contained, without a script, inert to its texts."""
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    body = "\n".join(_body(report))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="antiphon {antiphon.__version__}">
<title>{_text(report.title)}</title>
<style>{style}</style>
</head>
<body><main>
{body}
</main></body>
</html>
"""


@cache
def _style() -> str:
    return files("antiphon.viewer").joinpath("report.css").read_text("utf-8")


def _body(report: Report) -> Iterator[str]:
    yield f"<h1>{_text(report.title)}</h1>"
    if report.lead:
        yield f'<p class="lead">{_text(report.lead)}</p>'
    if report.facts:
        cells = (
            f"<div><dt>{_text(name)}</dt><dd>{_text(_number(value))}</dd></div>"
            for name, value in report.facts
        )
        yield f'<dl class="facts">{"".join(cells)}</dl>'
    for figure in report.figures:
        yield f"<figure><figcaption>{_text(figure.title)}</figcaption>"
        match figure:
            case Curves():
                yield from _curves(figure)
            case Bars():
                yield from _bars(figure)
            case Table():
                yield _table(figure.head, figure.rows, figure.most)
        if figure.note:
            yield f'<p class="note">{_text(figure.note)}</p>'
        yield "</figure>"


# ---- curves -----------------------------------------------------------------------------------


def _curves(figure: Curves) -> Iterator[str]:
    drawn = [
        Curve(c.name, [p for p in c.points if all(map(math.isfinite, p))]) for c in figure.curves
    ]
    drawn = [curve for curve in drawn if curve.points]
    if not drawn:
        yield '<p class="note">nothing was measured</p>'
        return
    ticks_x = _ticks([x for c in drawn for x, _ in c.points])
    ticks_y = _ticks([y for c in drawn for _, y in c.points])

    def place(x: float, y: float) -> tuple[float, float]:
        share_x = (x - ticks_x[0]) / (ticks_x[-1] - ticks_x[0])
        share_y = (y - ticks_y[0]) / (ticks_y[-1] - ticks_y[0])
        return (
            _LEFT + share_x * (_WIDTH - _LEFT - _RIGHT),
            _HEIGHT - _BOTTOM - share_y * (_HEIGHT - _TOP - _BOTTOM),
        )

    yield f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{_text(figure.title)}">'
    for tick in ticks_y:
        x, y = place(ticks_x[0], tick)
        yield f'<path class="grid" d="M{x:.1f} {y:.1f}H{_WIDTH - _RIGHT}"/>'
        yield f'<text class="tick end" x="{x - 6:.1f}" y="{y + 4:.1f}">{_number(tick)}</text>'
    for tick in ticks_x:
        x, y = place(tick, ticks_y[0])
        yield f'<text class="tick mid" x="{x:.1f}" y="{y + 18:.1f}">{_number(tick)}</text>'
    for i, curve in enumerate(drawn):
        kind = i % _N_COLORS
        path = "L".join("{:.1f} {:.1f}".format(*place(x, y)) for x, y in curve.points)
        yield f'<path class="curve c{kind}" d="M{path}"/>'
        for x, y in curve.points if len(curve.points) <= 60 else curve.points[-1:]:
            cx, cy = place(x, y)
            said = _text(f"{curve.name}: {_number(y)} at {figure.x} {_number(x)}")
            dot = f'<circle class="c{kind}" cx="{cx:.1f}" cy="{cy:.1f}" r="2.6">'
            yield f"{dot}<title>{said}</title></circle>"
    yield "</svg>"
    keys = (f'<li class="c{i % _N_COLORS}">{_text(c.name)}</li>' for i, c in enumerate(drawn))
    yield f'<ul class="keys">{"".join(keys)}<li class="axis">{_text(figure.x)} →</li></ul>'
    yield _details(_numbers_of(figure.x, drawn))


def _ticks(values: Sequence[float]) -> list[float]:
    """Round numbers that span the values; at least two."""
    low, high = min(values), max(values)
    if low >= 0 and low <= 0.5 * high:
        low = 0.0
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span / 4))
    step = next((m * power for m in (1, 2, 2.5, 5, 10) if m * power >= span / 4), 10 * power)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [step * k for k in range(first, last + 1)]


def _numbers_of(x: str, curves: Sequence[Curve]) -> str:
    known: dict[float, dict[str, float]] = {}
    for curve in curves:
        for at, value in curve.points:
            known.setdefault(at, {})[curve.name] = value
    names = [curve.name for curve in curves]
    rows = [[at, *(known[at].get(name, "") for name in names)] for at in sorted(known)]
    return _table([x, *names], rows)


# ---- bars and tables --------------------------------------------------------------------------


def _bars(figure: Bars) -> Iterator[str]:
    if not figure.bars:
        yield '<p class="note">none</p>'
        return
    most = figure.full or max(value for _, value in figure.bars) or 1.0
    rows = (
        f'<tr><th scope="row">{_text(name)}</th><td class="n">{_text(_number(value))}</td>'
        f'<td class="bar"><svg viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="c{n % figure.n_colors % _N_COLORS}" width="{100 * value / most:.2f}" '
        f'height="1"/></svg></td></tr>'
        for n, (name, value) in enumerate(figure.bars)
    )
    yield f'<table class="bars">{"".join(rows)}</table>'


def _table(
    head: Sequence[str], rows: Sequence[Sequence[object]], most: int = _MAX_TABLE_ROWS
) -> str:
    names = "".join(f'<th scope="col">{_text(name)}</th>' for name in head)
    lines = [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:most]]
    more = len(rows) - len(lines)
    note = f'<p class="note">and {more:,} more rows</p>' if more else ""
    body = f"<thead><tr>{names}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="wide"><table>{body}</table></div>{note}'


def _cell(value: object) -> str:
    if isinstance(value, Cell):
        return _rich_cell(value)
    kind = ' class="n"' if isinstance(value, int | float) else ""
    return f"<td{kind}>{_text(_number(value))}</td>"


def _rich_cell(cell: Cell) -> str:
    text = _text(cell.text)
    if cell.to:
        text = f'<a href="#{_text(cell.to)}">{text}</a>'
    if cell.quote:
        text += f"<pre>{_text(cell.quote)}</pre>"
    id = f' id="{_text(cell.id)}"' if cell.id else ""
    tone = f' class="{_text(cell.tone)}"' if cell.tone else ""
    return f"<td{id}{tone}>{text}</td>"


def _details(inside: str) -> str:
    return f"<details><summary>the numbers</summary>{inside}</details>"


def _number(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int) or (value.is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def _text(value: str) -> str:
    return html.escape(value.encode("utf-8", "replace").decode())
