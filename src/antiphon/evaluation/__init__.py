"""Measure a model or an agent on a benchmark.

Start with `_cases.py` (what a case is and when an answer is right), then `_run.py` (all cases of a
benchmark against one model, resumable) and `_report.py` (the table).  This room trains nothing and
knows no model family.
"""

from antiphon.evaluation._cases import Case, Outcome, load_cases, same_call
from antiphon.evaluation._report import interval, table
from antiphon.evaluation._run import Mode, evaluate, judge

__all__ = [
    "Case",
    "Mode",
    "Outcome",
    "evaluate",
    "interval",
    "judge",
    "load_cases",
    "same_call",
    "table",
]
