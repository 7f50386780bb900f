"""Runs of one benchmark beside each other, as one HTML page that needs nothing else."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from itertools import combinations

from antiphon.evaluation._cases import Outcome
from antiphon.evaluation._report import interval, paired

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem;
  color: #222; background: #fff }
table { border-collapse: collapse; margin: .5rem 0 1.5rem }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .8rem; text-align: left;
  vertical-align: top }
small { color: #777 } code { white-space: pre-wrap; overflow-wrap: anywhere }
.right { color: #157f3b } .wrong { color: #b3261e }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 }
  th, td { border-color: #444 } .right { color: #6fcf97 } .wrong { color: #ff8a80 } }
"""
_MOST_CASES = 400


def compare_page(runs: Mapping[str, Sequence[Outcome]], *, title: str = "Evaluation") -> str:
    """The page.

    Args:
        runs: Outcomes by the name of the run.
        title: Its heading.
    """
    parts = [_summary(runs), _errors(runs), _pairs(runs), _differences(runs)]
    body = "\n".join(part for part in parts if part)
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>\n<h1>{escape(title)}</h1>\n"
        f"{body}\n</html>\n"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are markup already."""
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = ["<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows]
    return f"<table><tr>{names}</tr>\n" + "\n".join(lines) + "\n</table>"


def _summary(runs: Mapping[str, Sequence[Outcome]]) -> str:
    kinds = list(dict.fromkeys(o.kind for outcomes in runs.values() for o in outcomes))
    rows = [
        [escape(kind), *(_share([o for o in runs[r] if o.kind == kind]) for r in runs)]
        for kind in kinds
    ]
    rows.append(["<b>all</b>", *(_share(runs[r]) for r in runs)])
    return "<h2>Right</h2>\n" + _table(["", *runs], rows)


def _share(outcomes: Sequence[Outcome]) -> str:
    if not outcomes:
        return "-"
    right = sum(o.right for o in outcomes)
    low, high = interval(right, len(outcomes))
    share = f"{right / len(outcomes):.1%}"
    return f"{share} <small>{low:.1%} to {high:.1%}, {right} of {len(outcomes)}</small>"


def _errors(runs: Mapping[str, Sequence[Outcome]]) -> str:
    counts = {name: Counter(o.error for o in runs[name] if not o.right) for name in runs}
    errors = sorted({error for counter in counts.values() for error in counter})
    rows = [[escape(e), *(str(counts[name][e] or "") for name in runs)] for e in errors]
    return "<h2>Mistakes</h2>\n" + _table(["", *runs], rows) if rows else ""


def _pairs(runs: Mapping[str, Sequence[Outcome]]) -> str:
    rows: list[list[str]] = []
    for one, other in combinations(runs, 2):
        n, better, worse, chance = paired(runs[one], runs[other])
        if n:
            rows.append(
                [escape(one), escape(other), str(n), str(worse), str(better), f"{chance:.3f}"]
            )
    head = ("run", "beside", "cases in both", "only the first right", "only the second", "chance")
    note = (
        "<p><small>chance: how often cases that differ would fall so unevenly if the runs were "
        "equally good (McNemar, exact)</small></p>"
    )
    return "<h2>Case by case</h2>\n" + _table(head, rows) + note if rows else ""


def _differences(runs: Mapping[str, Sequence[Outcome]]) -> str:
    by_case: dict[str, dict[str, Outcome]] = {}
    for name, outcomes in runs.items():
        for outcome in outcomes:
            by_case.setdefault(outcome.case, {})[name] = outcome
    rows = [
        [escape(case), *(_cell(found.get(name)) for name in runs)]
        for case, found in by_case.items()
        if not all(o.right for o in found.values())
    ]
    more = f"<p>and {len(rows) - _MOST_CASES} more</p>" if len(rows) > _MOST_CASES else ""
    table = _table(["case", *runs], rows[:_MOST_CASES])
    return f"<h2>Cases that some run got wrong</h2>\n{table}{more}" if rows else ""


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return ""
    if outcome.right:
        return '<span class="right">right</span>'
    wrote = f"<br><code>{escape(outcome.wrote[:300])}</code>" if outcome.wrote else ""
    return f'<span class="wrong">{escape(outcome.error)}</span>{wrote}'
