"""Plan and execute, reflect and try again: strategies on top of the loop.

Start with `_plan.py` (what a Plan is) and `_plan_and_execute.py` (the settings of a run of one);
`_plan_course.py` is how it goes (`_planning.py`, `_executing.py`), `_schedule.py` what runs when,
`_dialects.py` how planners write, `_held.py` what they may write where they can be held to it.
`_reflexion.py` has the settings of trying again, `_evaluators.py` who judges an attempt.
`_strategy.py` and `_course.py` are what all strategies share: their parts are runs of agents, and
their record is those runs together, which `_model_calls.py` takes apart.
"""

from antiphon.agent import Runnable
from antiphon.strategies._dialects import Dialect
from antiphon.strategies._evaluators import (
    Evaluator,
    Verdict,
    all_of,
    contains,
    exact,
    heuristic,
    judge,
    predicate,
    unit_tests,
)
from antiphon.strategies._model_calls import ModelCall, model_calls
from antiphon.strategies._plan import Plan, Task, TaskStatus
from antiphon.strategies._plan_and_execute import Opinion, PlanAndExecute, Review, Watch
from antiphon.strategies._react import ReAct
from antiphon.strategies._reflexion import Reflexion
from antiphon.strategies._strategy import Strategy
from antiphon.strategies._virtual_time import VirtualTimeLoop, run_in_virtual_time

__all__ = [
    "Dialect",
    "Evaluator",
    "ModelCall",
    "Opinion",
    "Plan",
    "PlanAndExecute",
    "ReAct",
    "Reflexion",
    "Review",
    "Runnable",
    "Strategy",
    "Task",
    "TaskStatus",
    "Verdict",
    "VirtualTimeLoop",
    "Watch",
    "all_of",
    "contains",
    "exact",
    "heuristic",
    "judge",
    "model_calls",
    "predicate",
    "run_in_virtual_time",
    "unit_tests",
]
