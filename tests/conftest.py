"""What every test shares: programs that a test starts see the same package as the test."""

import os
from pathlib import Path

import antiphon

os.environ["PYTHONPATH"] = os.pathsep.join(
    filter(None, [str(Path(antiphon.__file__).parents[1]), os.environ.get("PYTHONPATH")])
)
