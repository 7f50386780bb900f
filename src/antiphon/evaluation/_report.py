"""Outcomes as a table with confidence intervals."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from antiphon.evaluation._cases import Outcome

_TITLES = {
    "single": "one call right",
    "chain": "two dependent calls, all right",
    "no_tool": "no tool needed, left alone",
}


def interval(n_right: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion.

    Args:
        n_right: Successes.
        n: Trials, at least 1.

    >>> low, high = interval(45, 50)
    >>> round(low, 2), round(high, 2)
    (0.79, 0.96)
    """
    z = 1.96
    share = n_right / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return middle - half, middle + half


def paired(one: Sequence[Outcome], other: Sequence[Outcome]) -> tuple[int, int, int, float]:
    """Two runs over the same cases.

    Args:
        one: The first run's outcomes.
        other: The second run's.

    Returns:
        How many cases both have, how many only the second got right, how many only the first, and
        the chance of so uneven a split between equals (McNemar's exact test, two-sided).
    """
    first = {o.case: o.right for o in one}
    both = [(first[o.case], o.right) for o in other if o.case in first]
    better, worse = both.count((False, True)), both.count((True, False))
    n = better + worse
    tail = sum(math.comb(n, k) for k in range(min(better, worse) + 1)) / 2**n
    return len(both), better, worse, min(1.0, 2 * tail)


def table(outcomes: Mapping[str, Sequence[Outcome]]) -> str:
    """A row for each kind of case, a column for each mode.

    Args:
        outcomes: Outcomes by mode.
    """
    modes = list(outcomes)
    kinds = list(dict.fromkeys(o.kind for mode in modes for o in outcomes[mode]))
    rows = [["", *modes]]
    for kind in kinds:
        rows.append([_TITLES.get(kind, kind), *(_cell(outcomes[m], kind) for m in modes)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows]
    lines.insert(1, "  ".join("-" * w for w in widths))
    mistakes = [f"{mode}: {_mistakes(outcomes[mode])}" for mode in modes]
    return "\n".join([line.rstrip() for line in lines] + ["", "mistakes", *mistakes])


def _cell(outcomes: Sequence[Outcome], kind: str) -> str:
    judged = [o for o in outcomes if o.kind == kind]
    if not judged:
        return "-"
    right = sum(o.right for o in judged)
    low, high = interval(right, len(judged))
    return f"{right}/{len(judged)} = {right / len(judged):.0%} ({low:.0%}-{high:.0%})"


def _mistakes(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(o.error for o in outcomes if not o.right)
    return ", ".join(f"{name} {n}" for name, n in counts.most_common()) or "none"
