"""The loop: an agent asks its model, executes the calls together, hands over, and answers.

Start with `_agent.py` (what an Agent is), then `_run.py` (one execution: awaited it is the result,
iterated it is the events) and `_loop.py` (how it goes).  `_calls.py`, `_history.py`, `_offer.py`
and `_record.py` are the loop's parts.
"""

from antiphon.agent._agent import Agent, Handoff, InputFilter, Instructions
from antiphon.agent._loop import ApproveFunction, Decision
from antiphon.agent._run import Input, Run, RunResult, run_sync

__all__ = [
    "Agent",
    "ApproveFunction",
    "Decision",
    "Handoff",
    "Input",
    "InputFilter",
    "Instructions",
    "Run",
    "RunResult",
    "run_sync",
]
