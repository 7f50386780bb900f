"""A mark that an answer speaks of is text: in a sentence, in a span of code, in a fence."""

from functools import cache

import pytest

from antiphon.errors import RenderError
from antiphon.formats import Format, Start, get_format
from antiphon.formats._syntax import Syntax
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec
from formats.format_cases import VARIANTS, cuts, parse, variant, written

_SCHEMA = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
TOOLS = (ToolSpec("find", "Find.", _SCHEMA),)
_OTHERS = {"gpt_oss", "muse", "glm4", "chatglm4", "functionary_v3_2", "llama4"}
"""Families whose marks begin a message, or hold the call's bracket."""


@cache
def _call(name: str) -> tuple[str, str]:
    """A family's opening mark and a call, as it writes them; empty where it has no such mark."""
    fmt = variant(name)
    syntax: Syntax | None = getattr(fmt, "syntax", None)
    call = ToolCall("find", {"query": "nib"}, "call00001")
    conversation = Conversation((Message.user("Go."), Message.assistant(tool_calls=[call])), TOOLS)
    try:
        text, _ = written(fmt.render(conversation), 1, fmt)
    except RenderError:
        return "", ""
    if syntax is None or name in _OTHERS:
        return "", ""
    for block in syntax.blocks:
        at = text.find(block.open)
        if at >= 0 and not block.lost:
            return block.open, text[at:].strip()
    return "", ""


MARKED = [name for name in VARIANTS if _call(name)[0]]


def _read(fmt: Format, text: str, start: Start = "content") -> Message:
    """A text read whole and in other cuts, strictly and not: all must say the same."""
    found = [
        parse(fmt, chunks, tools=TOOLS, start=start, strict=strict)[0]
        for chunks in cuts(text)
        for strict in (False, True)
    ]
    assert all(message == found[0] for message in found)
    return found[0]


@pytest.mark.parametrize("name", MARKED)
def test_a_mark_named_in_a_sentence_is_text(name: str) -> None:
    """vllm-project/vllm#56658, noonghunna/club-3090#1191, smg-project/smg#2423."""
    mark, _ = _call(name)
    for text in (
        f"One writes `{mark}` to call it.",
        f"One writes {mark} before a call, then more.",
    ):
        message = _read(variant(name), text)

        assert (message.text, message.tool_calls, message.invalid_tool_calls) == (text, (), ())


@pytest.mark.parametrize("name", MARKED)
def test_a_call_behind_a_mark_that_is_only_named_is_read(name: str) -> None:
    mark, call = _call(name)

    message = _read(variant(name), f"One writes {mark} so, as in:\n\n{call}")

    assert [c.arguments for c in message.tool_calls] == [{"query": "nib"}]
    assert message.text.rstrip() == f"One writes {mark} so, as in:"


@pytest.mark.parametrize("name", MARKED)
def test_a_call_shown_in_code_is_text(name: str) -> None:
    """vllm-project/vllm#57541: an example in a fence was made a call."""
    _, call = _call(name)
    texts = [f"So:\n\n```xml\n{call}\n```\n\nThat is all."]
    texts += [] if "\n" in call else [f"As in `{call}` above."]
    for text in texts:
        message = _read(variant(name), text)

        assert (message.text, message.tool_calls, message.invalid_tool_calls) == (text, (), ())


@pytest.mark.parametrize("name", MARKED)
def test_a_call_in_a_fence_at_the_end_of_an_answer_is_a_call(name: str) -> None:
    _, call = _call(name)
    for text in (f"I look.\n\n```\n{call}\n```", f"```\nls\n```\n{call}", f"```\nls\n{call}"):
        message = _read(variant(name), text)

        assert [c.arguments for c in message.tool_calls] == [{"query": "nib"}]


def test_a_call_behind_an_example_of_one_is_read() -> None:
    _, call = _call("hermes")
    shown = f"So:\n```\n{call}\n{call}\n```\nNow I do it."

    message = _read(get_format("hermes"), f"{shown}\n{call}")

    assert message.text.rstrip() == shown
    assert len(message.tool_calls) == 1


def test_an_attempt_at_a_call_in_mid_line_is_an_invalid_call() -> None:
    text = 'I look: <tool_call>{"name": "find", "arguments": [}</tool_call>'

    message = _read(get_format("hermes"), text)

    assert message.text.rstrip() == "I look:"
    assert message.invalid_tool_calls[0].raw == text.removeprefix("I look: ")


def test_spans_of_code_are_told_at_the_end_of_a_long_line() -> None:
    _, call = _call("mistral_small_3_2")
    line = "".join(f"As in `{call}`, word {i}, or [TOOL_CALLS] itself, too. " for i in range(40))

    assert _read(get_format("mistral_v13"), line).text == line
    (read,) = _read(get_format("mistral_v13"), f"{line}\n{call}").tool_calls
    assert read.arguments == {"query": "nib"}
