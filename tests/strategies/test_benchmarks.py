"""What public benchmarks recorded comes out again: gold times of plans, verdicts on programs.

Their data is not in this repository: ANTIPHON_BENCHMARKS names a folder with ``asynchow``,
``worfbench``, ``humaneval`` and ``reflexion_logs``.  How they are read is in `bench/planning.py`.
"""

import asyncio
import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from antiphon.strategies import run_in_virtual_time

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data() -> Path:
    folder = os.environ.get("ANTIPHON_BENCHMARKS")
    if folder is None:
        pytest.skip("ANTIPHON_BENCHMARKS does not name the folder of the benchmarks' data")
    return Path(folder)


@pytest.fixture(scope="module")
def bench() -> Any:
    path = Path(__file__).parents[2] / "bench" / "planning.py"
    spec = importlib.util.spec_from_file_location("bench_planning", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "file", "n"),
    [
        ("asynchow", "asynchow/asynchow.jsonl", 1996),
        ("worfbench", "worfbench/worfbench_gold_plans.jsonl", 2146),
    ],
)
def test_every_plan_takes_exactly_as_long_as_its_longest_chain(
    data: Path, bench: Any, name: str, file: str, n: int
) -> None:
    graphs = getattr(bench, name)(data / file)
    tools = [bench.work(1.0)]

    wrong = [
        id
        for id, (graph, wanted) in graphs.items()
        if run_in_virtual_time(bench.timed(bench.plan_of(graph), tools)) != wanted
    ]

    assert (len(graphs), wrong) == (n, [])


def test_isolated_unit_tests_agree_with_all_recorded_verdicts(data: Path, bench: Any) -> None:
    verdicts = asyncio.run(bench.verdicts(data))

    assert len(verdicts) == 328
    assert [one for one in verdicts if one.found != one.recorded] == []
