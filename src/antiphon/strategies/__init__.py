"""Plan and execute, reflect and try again: strategies on top of the loop.

Start with `_virtual_time.py`, a clock for trying them out.
"""

from antiphon.strategies._virtual_time import VirtualTimeLoop, run_in_virtual_time

__all__ = ["VirtualTimeLoop", "run_in_virtual_time"]
