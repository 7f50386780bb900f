"""Markdown on a terminal, as it is written."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.cli._markdown import Markdown

BOLD, ITALIC, CODE, DIM, END = "\x1b[1m", "\x1b[3m", "\x1b[36m", "\x1b[2m", "\x1b[0m"


def shown(text: str, size: int = 1000) -> str:
    page = Markdown()
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    return "".join(page.feed(piece) for piece in pieces) + page.finish()


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain text, no marks", "plain text, no marks"),
        ("# Title\nrest", f"{BOLD}Title{END}\nrest"),
        ("#hash and 1 # 2", "#hash and 1 # 2"),
        ("a **b** c", f"a {BOLD}b{END} c"),
        ("a *b* c", f"a {ITALIC}b{END} c"),
        ("**a *b* c**", f"{BOLD}a {ITALIC}b{END}{BOLD} c{END}"),
        ("2 * 3 * 4 and 2 ** 8", "2 * 3 * 4 and 2 ** 8"),
        ("snake_case_name", "snake_case_name"),
        ("- one\n  * two\n1. three", "• one\n  • two\n1. three"),
        ("-5 and **", "-5 and **"),
        ("`a * b` c", f"{CODE}a * b{END} c"),
        ("a *lone mark\nnext", f"a {ITALIC}lone mark{END}\nnext"),
        (r"\*not\* \d", r"*not* \d"),
        (
            "```py\nx = 2 ** 3  # no\n\n```\nafter",
            f"{DIM}```py{END}\n{CODE}x = 2 ** 3  # no{END}\n{CODE}{END}\n{DIM}```{END}\nafter",
        ),
        ("| a | b |\n|---|---|", "| a | b |\n|---|---|"),
        ("---\n***\n", "---\n***\n"),
        ("", ""),
    ],
)
def test_markup_becomes_colour_and_all_else_stays(text: str, seen: str) -> None:
    assert shown(text) == seen


pieces = st.sampled_from(["*", "**", "`", "```", "\n", " ", "#", "# ", "- ", "a", "b c", "\\", "1"])


@given(st.lists(pieces, max_size=25).map("".join), st.integers(1, 5))
def test_the_pieces_do_not_matter_and_no_character_is_lost(text: str, size: int) -> None:
    seen = shown(text, size)

    assert seen == shown(text)
    letters = re.sub(r"\x1b\[\d+m", "", seen)
    assert re.sub(r"[^abc1\n]", "", letters) == re.sub(r"[^abc1\n]", "", text)


@given(st.text("ab *`#\n-", max_size=40))
def test_colours_end_with_their_line(text: str) -> None:
    for line in shown(text).split("\n"):
        codes = re.findall(r"\x1b\[(\d+)m", line)
        assert not codes or codes[-1] == "0"
