"""The loop: an agent asks its model, executes the calls together, hands over, and answers.

Start with `_agent.py` (what an Agent is), then `_run.py` (one execution: awaited it is the result,
iterated it is the events) and `_loop.py` (how it goes); `_course.py` is what it shares with the
runs of strategies.  `_execution.py` answers the calls of one reply, `_telling.py` tells what
happens, `_record.py` keeps it.  The other modules are their parts.
"""

from antiphon.agent._agent import Agent, Handoff, InputFilter, Instructions
from antiphon.agent._hooks import Again, Ask, Guardrail, Hooks, Replace, Stop
from antiphon.agent._nested import undecided_calls
from antiphon.agent._output import OutputMode
from antiphon.agent._recall import Recall
from antiphon.agent._run import Input, Run, RunResult, run_sync
from antiphon.agent._runnable import Runnable
from antiphon.agent._select import Retrieve
from antiphon.agent._start import ApproveFunction, Decision
from antiphon.agent._telemetry import Telemetry

__all__ = [
    "Again",
    "Agent",
    "ApproveFunction",
    "Ask",
    "Decision",
    "Guardrail",
    "Handoff",
    "Hooks",
    "Input",
    "InputFilter",
    "Instructions",
    "OutputMode",
    "Recall",
    "Replace",
    "Retrieve",
    "Run",
    "RunResult",
    "Runnable",
    "Stop",
    "Telemetry",
    "run_sync",
    "undecided_calls",
]
