"""Measure a model or an agent on a benchmark.

Start with `_cases.py` (what a case is and when an answer is right), then `_run.py` (all cases of a
benchmark against one model, resumable) and `_report.py` (the table).  `_bfcl.py` reads the Berkeley
leaderboard's cases and `_accepted.py` judges calls by what they accept; `_desk.py` and
`_bfcl_turns.py` are conversations that are judged by the state they end in.  This room trains
nothing.
"""

from antiphon.evaluation._accepted import calls_error, first_answer
from antiphon.evaluation._benchmarks import held_out, load_benchmark
from antiphon.evaluation._bfcl import bfcl_cases
from antiphon.evaluation._bfcl_turns import TurnCase, turn_cases
from antiphon.evaluation._cases import Case, Outcome, load_cases, same_call
from antiphon.evaluation._desk import DeskCase, Library, desk_cases
from antiphon.evaluation._page import compare_page
from antiphon.evaluation._report import interval, paired, table
from antiphon.evaluation._retrieval import Found, retrieve
from antiphon.evaluation._round_trip import right_calls, round_trip
from antiphon.evaluation._run import Mode, OwnCase, evaluate, judge

__all__ = [
    "Case",
    "DeskCase",
    "Found",
    "Library",
    "Mode",
    "Outcome",
    "OwnCase",
    "TurnCase",
    "bfcl_cases",
    "calls_error",
    "compare_page",
    "desk_cases",
    "evaluate",
    "first_answer",
    "held_out",
    "interval",
    "judge",
    "load_benchmark",
    "load_cases",
    "paired",
    "retrieve",
    "right_calls",
    "round_trip",
    "same_call",
    "table",
    "turn_cases",
]
