"""Agents that make data: tasks are written, done for real, and recorded.

Start with `_config.py` (what a synthesis is told) and `_stages.py` (how it goes; `_work.py` is what
is done to a row).  A task (`_task.py`) is written by rule (`_catalog.py`, `_variants.py`,
`_draw.py`, `_kinds.py`) or by a model (`_writer.py`), and done by an agent (`_run.py`) whose model
is any, or the rule-based teacher (`_teacher.py`); its tools are real or simulated and marked as
such (`_worlds.py`).  This room checks nothing that it made: that is the work of `verification`.
"""

from antiphon.synthesis._ask import Meter, Metered, ask_text, find_object
from antiphon.synthesis._catalog import Catalog, load_catalog
from antiphon.synthesis._config import KINDS, SynthConfig, config_from, read_config
from antiphon.synthesis._ledger import Ledger
from antiphon.synthesis._stages import SynthReport, synthesize
from antiphon.synthesis._task import ScriptCall, ScriptTurn, Task, resolved, result_value
from antiphon.synthesis._teacher import rule_teacher
from antiphon.synthesis._work import RunTasks, TaskTools, WriteTasks
from antiphon.synthesis._worlds import real_tools, world_tools

__all__ = [
    "KINDS",
    "Catalog",
    "Ledger",
    "Meter",
    "Metered",
    "RunTasks",
    "ScriptCall",
    "ScriptTurn",
    "SynthConfig",
    "SynthReport",
    "Task",
    "TaskTools",
    "WriteTasks",
    "ask_text",
    "config_from",
    "find_object",
    "load_catalog",
    "read_config",
    "real_tools",
    "resolved",
    "result_value",
    "rule_teacher",
    "synthesize",
    "world_tools",
]
