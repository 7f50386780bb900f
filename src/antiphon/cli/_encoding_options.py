"""What commands that encode take on the command line."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from antiphon.encode import LossPolicy


def read_variants(pairs: Sequence[str]) -> dict[str, Any]:
    """Settings from ``KEY=VALUE``, each value as JSON where it is JSON."""
    variants: dict[str, Any] = {}
    for pair in pairs:
        key, _, value = pair.partition("=")
        try:
            variants[key] = json.loads(value)
        except ValueError:
            variants[key] = value
    return variants


def read_policy(name: str) -> LossPolicy:
    """A loss policy by name, or from a file of ms-swift's kind.

    Raises:
        UnknownNameError: A part of the name is unknown.
        DataError: The file is no policy.
    """
    path = Path(name)
    if path.suffix == ".json":
        return LossPolicy.from_config(path)
    return LossPolicy.named(name)
