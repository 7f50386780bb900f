"""Rows go through a Ray cluster, and come back when one of its nodes is killed."""

import asyncio
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon.batch import RayEngine, map_rows
from antiphon.errors import MissingExtraError
from antiphon.messages import JsonObject
from batch import works

ROWS: list[JsonObject] = [{"n": n} for n in range(24)]


def test_a_cluster_without_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)

    with pytest.raises(MissingExtraError, match=r"antiphon\[ray\]"):
        asyncio.run(map_rows(works.doubled, ROWS, tmp_path / "out", engine=RayEngine()))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two nodes of one CPU on this machine, the head without any."""
    pytest.importorskip("ray")
    import importlib

    ray: Any = importlib.import_module("ray")
    utils: Any = importlib.import_module("ray.cluster_utils")
    # The workers import the works of this folder.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["src", "tests", *_path()]))
    made = utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 80_000_000}
    )
    made.other = made.add_node(num_cpus=1, object_store_memory=80_000_000)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def _path() -> list[str]:
    return [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]


def processes(path: Path) -> set[str]:
    """Which processes worked on the rows of a file."""
    return set(re.findall(r'"process": ?(\d+)', path.read_text()))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_node_that_is_killed_loses_no_row(cluster: Any, tmp_path: Path):
    async def run() -> Any:
        stage = asyncio.create_task(
            map_rows(works.Waits(0.5), ROWS, tmp_path / "out", engine=RayEngine(), concurrency=4)
        )
        journal = tmp_path / "out.journal"
        while not journal.exists() or len(processes(journal)) < 2:
            assert not stage.done()
            await asyncio.sleep(0.1)
        await asyncio.to_thread(cluster.remove_node, cluster.other, allow_graceful=False)
        return await stage

    report = asyncio.run(run())

    assert report.is_complete
    lines = (tmp_path / "out").read_text().splitlines()
    assert [json.loads(line)["n"] for line in lines] == list(range(24))
    assert len(processes(tmp_path / "out")) > 1
