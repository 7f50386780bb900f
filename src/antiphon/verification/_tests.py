"""Unit tests of a row: functions of the user's that are given the record.

A function of two parameters is also given the tools, by name, in the state that the recorded calls
left them in: by calling them it looks at the world that the run ended in.
"""

import asyncio
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from antiphon.errors import UsageError
from antiphon.events import Trajectory
from antiphon.tools import Tool
from antiphon.verification._verdict import Sample, Verdict, passed

LAYER = "tests"

Tools = Mapping[str, Tool[..., Any]]
TestFunction = Callable[..., object]
"""Looks at a record.  It is right unless the function raises `AssertionError`, or gives ``False``
or a text, which is the reason."""


def load_tests(names: Sequence[str]) -> list[tuple[str, TestFunction]]:
    """The functions that texts name, ``MODULE:FUNCTION``.

    Raises:
        UsageError: There is no such function.
    """
    return [(name.rpartition(":")[2], _function(name)) for name in names]


def _function(name: str) -> TestFunction:
    module, _, attribute = name.rpartition(":")
    try:
        function: Any = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"no test {name!r}: {error}; name it MODULE:FUNCTION") from error
    if not callable(function):
        raise UsageError(f"test {name!r} is no function")
    return function


async def check_by_tests(
    sample: Sample, tests: Sequence[tuple[str, TestFunction]], tools: Tools | None = None
) -> list[Verdict]:
    """Run the tests on a row, each in a thread.

    Args:
        sample: The row.
        tests: Functions with their names.
        tools: The tools after the recorded calls were made again.
    """
    record = sample.trajectory or Trajectory(sample.conversation)
    return [await _verdict(name, test, record, tools or {}) for name, test in tests]


async def _verdict(name: str, test: TestFunction, record: Trajectory, tools: Tools) -> Verdict:
    given = (record, tools)[: len(inspect.signature(test).parameters)]
    try:
        said = await asyncio.to_thread(test, *given)
    except AssertionError as error:
        said = str(error).partition("\n")[0]  # pytest adds what it compared
        return Verdict(LAYER, name, "fail", said or "the assertion does not hold")
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError) as error:
        # The test stumbled over a row that it did not expect: that is news of the row.
        return Verdict(LAYER, name, "fail", f"{type(error).__name__}: {error}")
    if said is False or isinstance(said, str):
        return Verdict(LAYER, name, "fail", said or "the test says no")
    return passed(LAYER, name)
