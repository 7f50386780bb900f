"""Signatures in the wild: what the model is shown, and what the function then receives."""

from pathlib import Path
from typing import Any

import pytest

from tools.schema_cases import Bench, load

SIGNATURES = load("signatures.jsonl")
REPORTED = load("reported.jsonl")


@pytest.mark.parametrize("case", SIGNATURES, ids=[c["id"] for c in SIGNATURES])
def test_a_signature_is_described_and_called_exactly(case: dict[str, Any], tmp_path: Path) -> None:
    assert Bench(case, tmp_path).problems() == []


@pytest.mark.parametrize("case", REPORTED, ids=[c["id"] for c in REPORTED])
def test_a_fault_reported_elsewhere_is_none_of_ours(case: dict[str, Any], tmp_path: Path) -> None:
    """The source of each case is the report it was made after."""
    assert Bench(case, tmp_path).problems() == []
