"""Families whose published template no package ships write what they wrote before."""

import pytest

from formats.golden import NAMES, path_of, text_of


@pytest.mark.parametrize("name", NAMES)
def test_a_conversation_is_written_as_its_golden_text(name: str) -> None:
    assert text_of(name) == path_of(name).read_text("utf-8")
