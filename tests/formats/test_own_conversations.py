"""Our own conversations are written as each family's published template writes them.

The texts of the templates are recorded as digests; see `published.py`.  Where a family differs, the
shapes and the reason stand in `DEVIATIONS`, and in the family's own docstring.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from antiphon.errors import RenderError
from formats.format_cases import VARIANTS, variant
from formats.own_conversations import own_conversations
from formats.published import PUBLISHED, RECORD, compared, digest, template, written_digests

CONVERSATIONS = own_conversations()
_RECORD: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
RECORDED: dict[str, list[list[str]]] = _RECORD["written"]

_LAST_REASONING = (
    "the last message shows the reasoning that the model wrote; the template never does"
)
_TEXT_FIRST = (
    "text stands before the calls, as the model wrote it; the template moves it behind them"
)
_ESCAPED = (
    "strings are escaped; the template writes quotes as they are, and its call cannot be read"
)
_EMPTY = "an empty message is a turn; the template leaves it out"
_COMMENTARY = "text before a call is a message to the user, as the family's guide has it"
_ONE_CALL = "several calls are refused; the template writes only the first"
_SEVERAL_CALLS = ("parallel_calls", "three_parallel_calls", "text_and_parallel_calls")
_QUOTELESS = "a value that would be read back as another is refused"
_OPEN_TURN = "a message with neither text nor calls is refused; the template leaves its turn open"

DEVIATIONS: dict[str, dict[str, str]] = {
    "chatglm4": dict.fromkeys(("empty_answer", "empty_question", "empty_result"), _EMPTY),
    "deepseek_r1": {"reasoning": _LAST_REASONING},
    "deepseek_v3_1_thinking": {"reasoning": _LAST_REASONING},
    "gemma4": dict.fromkeys(
        ("error_and_again", "reasoning_text_and_call", "text_and_call", "text_and_parallel_calls"),
        _TEXT_FIRST,
    ),
    "gigachat3": dict.fromkeys(_SEVERAL_CALLS, _ONE_CALL),
    "gigachat3_1": dict.fromkeys(_SEVERAL_CALLS, _ONE_CALL),
    "gpt_oss": {
        **dict.fromkeys(("text_and_call", "error_and_again"), _COMMENTARY),
        **dict.fromkeys(_SEVERAL_CALLS, _ONE_CALL),
    },
    "kimi_k2_thinking": dict.fromkeys(
        ("reasoning", "reasoning_and_call", "reasoning_in_every_step"), _LAST_REASONING
    ),
    "minimax_m3": {"nested_arguments": _QUOTELESS},
    "minimax_m3_vl": {"nested_arguments": _QUOTELESS},
    "lfm2_5": dict.fromkeys(("lines", "quotes"), _ESCAPED),
    "nemotron_nano": {"empty_answer": _EMPTY},
    "seed_oss": {"empty_answer": _OPEN_TURN},
}
DEVIATIONS["gemma4_thinking"] = DEVIATIONS["gemma4"]
DEVIATIONS["kimi_k25_thinking"] = DEVIATIONS["kimi_k2_thinking"]
DEVIATIONS["seed_oss_thinking"] = DEVIATIONS["seed_oss"]
"""By variant and shape, why a text is not the template's."""


def differences(name: str) -> Iterator[str]:
    """The conversations that a variant does not write as its template does."""
    fmt, published = variant(name), PUBLISHED[name]
    for case, recorded in zip(CONVERSATIONS, RECORDED[name], strict=True):
        parts = compared(published, CONVERSATIONS[case])
        for (part, generate), expected in zip(parts, recorded, strict=True):
            try:
                text = fmt.render(part, generate=generate).text
            except RenderError:
                text = ""
            if expected and digest(text) != expected:
                yield case
                break


@pytest.mark.parametrize("name", [name for name in PUBLISHED if name in VARIANTS])
def test_a_family_writes_our_conversations_as_its_template_does(name: str) -> None:
    known = DEVIATIONS.get(name, {})
    allowed = {case for case in CONVERSATIONS if case.removesuffix("/system") in known}

    assert set(differences(name)) == allowed


def test_there_are_at_least_forty_conversations_of_every_kind() -> None:
    conversations = CONVERSATIONS.values()
    several = [c for c in conversations if any(len(m.tool_calls) > 1 for m in c.messages)]

    assert len(CONVERSATIONS) >= 40
    assert len(several) >= 4
    assert _RECORD["cases"] == list(CONVERSATIONS)


@pytest.mark.slow
def test_what_is_recorded_is_what_the_templates_write() -> None:
    """Where the packages are installed that ship them."""
    installed = {name: p for name, p in PUBLISHED.items() if template(p) is not None}
    if not installed:
        pytest.skip("no package with templates is installed")

    written: dict[str, Any] = {name: written_digests(p) for name, p in installed.items()}

    assert written == {name: RECORDED[name] for name in installed}
