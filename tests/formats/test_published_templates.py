"""Rendering equals the text of each family's published template, byte for byte."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from antiphon.formats import get_format
from antiphon.messages import Conversation
from formats.format_cases import OFFICIAL, apart, conversations, prompt_of, rows

CONVERSATIONS = conversations()


def _conversation(row: dict[str, Any]) -> Conversation:
    """The conversation of a case; without tools where the template would not list them."""
    conversation = CONVERSATIONS[row["conversation"]]
    return conversation if row.get("tools", True) else replace(conversation, tools=())


def _apart(name: str, key: str, text_of: Callable[[Conversation], str]) -> list[str]:
    """Where the texts of a family's cases part from those that its template wrote."""
    cases = [row for row in rows(f"official/{name}.jsonl") if "text" in row]
    assert cases
    found: list[str] = []
    for row in cases:
        try:
            where = apart(text_of(_conversation(row)), row[key])
        except Exception as error:
            error.add_note(f"case {row['id']}")
            raise
        found += [f"{row['id']}: {where}"] if where else []
    return found


@pytest.mark.parametrize("name", OFFICIAL)
def test_a_conversation_is_the_published_text(name: str) -> None:
    family, variant = OFFICIAL[name]
    fmt = get_format(family, **variant)

    assert _apart(name, "text", lambda c: fmt.render(c).text) == []


@pytest.mark.parametrize("name", OFFICIAL)
def test_a_prompt_is_the_published_text(name: str) -> None:
    family, variant = OFFICIAL[name]
    fmt = get_format(family, **variant)

    assert _apart(name, "prompt_text", lambda c: fmt.render(prompt_of(c), generate=True).text) == []
