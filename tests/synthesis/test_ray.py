"""The same config makes the same rows in one process and on a cluster."""

import asyncio
import importlib
import os
from pathlib import Path
from typing import Any

import pytest

from antiphon.batch import RayEngine
from antiphon.synthesis import synthesize
from synthesis.test_rules import SCRIPTS, config, made, said


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_a_cluster_makes_the_rows_that_one_process_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray")
    ray: Any = importlib.import_module("ray")
    paths = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.path.abspath("src"), *paths]))
    invented = {"catalogs": [str(SCRIPTS / "everyday.json")]}
    alone = made(config(tmp_path / "alone", 40, invented))[1]
    given = config(tmp_path / "cluster", 40, invented)

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        report = asyncio.run(synthesize(given, engine=RayEngine()))
    finally:
        ray.shutdown()

    assert report.is_complete
    assert said(made(given)[1]) == said(alone)
