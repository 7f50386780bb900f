"""A longer conversation extends the text of a shorter one, or the family says where it does not."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import pytest

from antiphon.errors import RenderError
from antiphon.formats import Format
from antiphon.messages import Conversation
from formats.format_cases import VARIANTS, variant
from formats.own_conversations import own_conversations

CONVERSATIONS = {
    name: c for name, c in own_conversations().items() if len(c.messages) > 2 and c.tools
}


MOVES = {
    **dict.fromkeys(
        ("mistral_2501", "mistral_nemo", "mistral_small_3_2", "mistral_v7", "mistral_v7_tekken"),
        "the tools, to the last question",
    ),
    **dict.fromkeys(("deepseek_v3", "deepseek_r1"), "the end of a block of results"),
    "command_r_plus": "what asks for the answer, to the end",
    "deepseek_v3_2_thinking": "what asks for an answer, with or without reasoning",
}
"""Variants that rewrite what a model reads, and what; messages of the model are listed."""


def _shorter(conversation: Conversation) -> Iterator[Conversation]:
    """A conversation cut before each of its messages but the first; not among results."""
    for n in range(1, len(conversation.messages)):
        if conversation.messages[n].role != "tool":
            yield replace(conversation, messages=conversation.messages[:n])


def _extends(fmt: Format, conversation: Conversation) -> tuple[bool, bool] | None:
    """Whether all shorter texts begin the whole one, and whether a message is listed where one
    does not; ``None`` where the family refuses."""
    try:
        whole = fmt.render(conversation)
        texts = [(part, fmt.render(part).text) for part in _shorter(conversation)]
    except RenderError:
        return None
    broken = [part for part, text in texts if not whole.text.startswith(text)]
    rewritten = min(whole.changed, default=len(conversation.messages))
    return not broken, all(rewritten < len(part.messages) for part in broken)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_longer_text_begins_with_the_shorter_one_or_says_why_not(name: str) -> None:
    """A family that is not stable lists an earlier message as changed where it rewrites one."""
    fmt = variant(name)
    found = [_extends(fmt, conversation) for conversation in CONVERSATIONS.values()]

    extended = [pair for pair in found if pair is not None]
    assert len(extended) >= 20
    assert all(listed for _, listed in extended) == (name not in MOVES)
    if cast("Any", fmt).prefix_stable:
        assert all(same for same, _ in extended)


HIDDEN = {
    "north_direct",
    "hunyuan_v3_preview",
    "seed_oss",
    "minicpm5",
    "qwq",
    "command_r_plus",
    "apriel",
    "hunyuan_a13b_direct",
}
"""Variants whose history never holds what their prompt ends with, as their templates have it."""


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in HIDDEN])
def test_what_the_model_writes_begins_where_its_prompt_ends(name: str) -> None:
    fmt = variant(name)
    n_same = 0
    for conversation in CONVERSATIONS.values():
        for shorter in _shorter(conversation):
            n_same += _begins_at_the_prompt(fmt, conversation, len(shorter.messages))
    assert n_same >= 5


def _begins_at_the_prompt(fmt: Format, conversation: Conversation, index: int) -> bool:
    """Whether a message begins behind its prompt; not where the text is rewritten or refused."""
    if conversation.messages[index].role != "assistant":
        return False
    upto = replace(conversation, messages=conversation.messages[:index])
    try:
        whole, prompt = fmt.render(conversation), fmt.render(upto, generate=True)
    except RenderError:
        return False
    if index in whole.changed or not whole.text.startswith(prompt.text):
        return False
    mine = [p.author == "written" and p.message == index for p in whole.pieces]
    if True not in mine:
        return False
    before = "".join(piece.text for piece in whole.pieces[: mine.index(True)])
    assert before == prompt.text
    return True
