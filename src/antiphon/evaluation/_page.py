"""Runs of one benchmark beside each other, as one HTML page that needs nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from antiphon.evaluation._cases import Outcome
from antiphon.evaluation._report import interval, paired
from antiphon.viewer import Bars, Cell, Figure, Report, Table, render_report

_MOST_CASES = 400
_QUOTED_CHARS = 300

Runs = Mapping[str, Sequence[Outcome]]


def compare_page(runs: Runs, *, title: str = "Evaluation") -> str:
    """The page: how many cases each run got right, which mistakes it made, and each case that some
    run got wrong, a click away from the count of its mistake.

    Args:
        runs: Outcomes by the name of the run.
        title: Its heading.
    """
    facts = [(name, _share(outcomes)) for name, outcomes in runs.items()]
    parts = (_bars(runs), _right(runs), _mistakes(runs), _pairs(runs), _cases(runs))
    figures = [part for part in parts if part is not None]
    return render_report(Report(title, "How many cases were right, and which not.", facts, figures))


def _kinds(runs: Runs) -> list[str]:
    return list(dict.fromkeys(o.kind for outcomes in runs.values() for o in outcomes))


def _bars(runs: Runs) -> Figure:
    bars: list[tuple[str, float]] = []
    for kind in _kinds(runs):
        for name, outcomes in runs.items():
            told = [o.right for o in outcomes if o.kind == kind]
            share = 100 * sum(told) / len(told) if told else 0.0
            bars.append((f"{kind} · {name}" if len(runs) > 1 else kind, round(share, 1)))
    return Bars("Right, in per cent", bars, n_colors=max(1, len(runs)), full=100.0)


def _right(runs: Runs) -> Figure:
    rows: list[Sequence[object]] = [
        [kind, *(_share([o for o in runs[name] if o.kind == kind]) for name in runs)]
        for kind in _kinds(runs)
    ]
    rows.append(["all", *(_share(outcomes) for outcomes in runs.values())])
    return Table("Right", ["", *runs], rows, "in brackets: the 95 % interval (Wilson)")


def _share(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "-"
    right = sum(o.right for o in outcomes)
    low, high = interval(right, len(outcomes))
    return f"{right / len(outcomes):.1%} ({low:.1%} to {high:.1%}), {right} of {len(outcomes)}"


def _mistakes(runs: Runs) -> Figure | None:
    counts = {name: Counter(o.error for o in runs[name] if not o.right) for name in runs}
    errors = sorted({error for counter in counts.values() for error in counter})
    places = _places(runs)
    rows: list[Sequence[object]] = []
    for error in errors:
        cells: list[object] = [error]
        for name in runs:
            n = counts[name][error]
            cells.append(Cell(str(n), "bad", places.get((name, error), "")) if n else "")
        rows.append(cells)
    note = "a number leads to the first such case"
    return Table("Mistakes", ["", *runs], rows, note) if rows else None


def _pairs(runs: Runs) -> Figure | None:
    rows: list[list[object]] = []
    for one, other in combinations(runs, 2):
        n, better, worse, chance = paired(runs[one], runs[other])
        if n:
            rows.append([one, other, n, worse, better, f"{chance:.3f}"])
    head = ("run", "beside", "cases in both", "only the first right", "only the second", "chance")
    note = (
        "chance: how often cases that differ would fall so unevenly if the runs were equally good "
        "(McNemar, exact)"
    )
    return Table("Case by case", head, rows, note) if rows else None


def _wrong(runs: Runs) -> list[tuple[str, dict[str, Outcome]]]:
    """The cases that some run got wrong."""
    by_case: dict[str, dict[str, Outcome]] = {}
    for name, outcomes in runs.items():
        for outcome in outcomes:
            by_case.setdefault(outcome.case, {})[name] = outcome
    return [(c, found) for c, found in by_case.items() if not all(o.right for o in found.values())]


def _places(runs: Runs) -> dict[tuple[str, str], str]:
    """Where the first case of each mistake of each run stands, if it is shown."""
    places: dict[tuple[str, str], str] = {}
    for row, (_, found) in enumerate(_wrong(runs)[:_MOST_CASES]):
        for column, name in enumerate(runs):
            outcome = found.get(name)
            if outcome is not None and not outcome.right:
                places.setdefault((name, outcome.error), _id(row, column))
    return places


def _id(row: int, column: int) -> str:
    return f"case-{row}-{column}"


def _cases(runs: Runs) -> Figure | None:
    rows: list[Sequence[object]] = [
        [case, *(_cell(found.get(name), _id(row, n)) for n, name in enumerate(runs))]
        for row, (case, found) in enumerate(_wrong(runs))
    ]
    title = "Cases that some run got wrong"
    return Table(title, ["case", *runs], rows, most=_MOST_CASES) if rows else None


def _cell(outcome: Outcome | None, id: str) -> Cell:
    if outcome is None:
        return Cell("")
    if outcome.right:
        return Cell("right", "good", id=id)
    return Cell(outcome.error, "bad", id=id, quote=outcome.wrote[:_QUOTED_CHARS])
