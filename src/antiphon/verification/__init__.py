"""Whether rows are right: each by itself, then all of them together.

Start with `_verdict.py` (what a check says and what becomes of a row), then `_layers.py` (one row,
and its reward) and `_stages.py` (a whole file).  The layers, cheapest first: `_format.py`,
`_execution.py`, `_answers.py`, `_tests.py`, `_judge.py`; of all rows together `_contamination.py`
and `_near.py`.  This room makes no data and trains nothing.
"""

from antiphon.verification._answers import check_answers
from antiphon.verification._contamination import Benchmarks
from antiphon.verification._execution import check_execution
from antiphon.verification._format import check_format
from antiphon.verification._judge import RUBRIC, Judge, check_by_judge
from antiphon.verification._layers import check_sample, reward
from antiphon.verification._near import NearDuplicates
from antiphon.verification._report import page, save_report
from antiphon.verification._stages import Checks, VerifyReport, verify_file
from antiphon.verification._tests import check_by_tests, load_tests
from antiphon.verification._verdict import Sample, Verdict, decided

__all__ = [
    "RUBRIC",
    "Benchmarks",
    "Checks",
    "Judge",
    "NearDuplicates",
    "Sample",
    "Verdict",
    "VerifyReport",
    "check_answers",
    "check_by_judge",
    "check_by_tests",
    "check_execution",
    "check_format",
    "check_sample",
    "decided",
    "load_tests",
    "page",
    "reward",
    "save_report",
    "verify_file",
]
