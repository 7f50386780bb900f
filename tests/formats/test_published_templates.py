"""Rendering equals the text of each family's published template, byte for byte."""

import pytest

from antiphon.formats import get_format
from formats.format_cases import OFFICIAL, conversations, prompt_of, rows

CONVERSATIONS = conversations()
CASES = [
    (name, row) for name in OFFICIAL for row in rows(f"official/{name}.jsonl") if "text" in row
]


@pytest.mark.parametrize(("name", "row"), CASES, ids=[row["id"] for _, row in CASES])
def test_a_conversation_is_the_published_text(name: str, row: dict[str, str]) -> None:
    family, variant = OFFICIAL[name]

    rendered = get_format(family, **variant).render(CONVERSATIONS[row["conversation"]])

    assert rendered.text == row["text"]


@pytest.mark.parametrize(("name", "row"), CASES, ids=[row["id"] for _, row in CASES])
def test_a_prompt_is_the_published_text(name: str, row: dict[str, str]) -> None:
    family, variant = OFFICIAL[name]
    conversation = prompt_of(CONVERSATIONS[row["conversation"]])

    rendered = get_format(family, **variant).render(conversation, generate=True)

    assert rendered.text == row["prompt_text"]
