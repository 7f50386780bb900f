"""Map a function over many rows: here, in several processes, or on a Ray cluster.

Start with `_map.py`: rows go in, rows come out in the same order, and what is done is done,
whenever the process is killed (`_journal.py`).  Where the rows are worked on is an engine's
business: `_engines.py` for this machine, `_ray.py` for a cluster.  This room knows no model and no
tool.
"""

from antiphon.batch._engines import Engine, LocalEngine, ProcessEngine
from antiphon.batch._journal import write_rows, write_split, write_text
from antiphon.batch._map import Failure, Report, engine_named, map_rows
from antiphon.batch._ray import RayEngine, RayPool
from antiphon.batch._work import RowFunction, Work, iterate

__all__ = [
    "Engine",
    "Failure",
    "LocalEngine",
    "ProcessEngine",
    "RayEngine",
    "RayPool",
    "Report",
    "RowFunction",
    "Work",
    "engine_named",
    "iterate",
    "map_rows",
    "write_rows",
    "write_split",
    "write_text",
]
