"""Rendering equals the text of each family's published template, byte for byte."""

from dataclasses import replace
from typing import Any

import pytest

from antiphon.formats import get_format
from antiphon.messages import Conversation
from formats.format_cases import OFFICIAL, conversations, prompt_of, rows

CONVERSATIONS = conversations()
CASES = [
    (name, row) for name in OFFICIAL for row in rows(f"official/{name}.jsonl") if "text" in row
]


def _conversation(row: dict[str, Any]) -> Conversation:
    """The conversation of a case; without tools where the template would not list them."""
    conversation = CONVERSATIONS[row["conversation"]]
    return conversation if row.get("tools", True) else replace(conversation, tools=())


@pytest.mark.parametrize(("name", "row"), CASES, ids=[row["id"] for _, row in CASES])
def test_a_conversation_is_the_published_text(name: str, row: dict[str, Any]) -> None:
    family, variant = OFFICIAL[name]

    rendered = get_format(family, **variant).render(_conversation(row))

    assert rendered.text == row["text"]


@pytest.mark.parametrize(("name", "row"), CASES, ids=[row["id"] for _, row in CASES])
def test_a_prompt_is_the_published_text(name: str, row: dict[str, Any]) -> None:
    family, variant = OFFICIAL[name]
    conversation = prompt_of(_conversation(row))

    rendered = get_format(family, **variant).render(conversation, generate=True)

    assert rendered.text == row["prompt_text"]
