"""Prompted formats: upstream's texts, and what models write around actions."""

from typing import Any

import pytest

from antiphon.formats import get_format
from antiphon.messages import ToolSpec
from formats.format_cases import conversations, parse, rows

PING = ToolSpec("ping", "Answer.", {"type": "object", "properties": {"n": {"type": "integer"}}})


@pytest.mark.parametrize("row", rows("prompted.jsonl"), ids=lambda row: row["id"])
def test_a_prompted_conversation_is_the_upstream_text(row: dict[str, Any]) -> None:
    """Source: ms-swift 4.6, template type ``qwen2_5``, which prints arguments as Python does."""
    fmt = get_format(row["format"], arguments="python")

    assert fmt.render(conversations()[row["conversation"]]).text == row["text"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("react_grpo", "<think>It answered.</think>\nFinal Answer: Done."),
        ("qwen_en", "✿RETURN✿: Done."),
        ("qwen_zh_parallel", "✿RETURN✿:Done."),
    ],
)
def test_the_word_before_an_answer_is_no_part_of_it(name: str, text: str) -> None:
    for chunks in ([text], list(text)):
        message, _ = parse(get_format(name), chunks, tools=[PING])

        assert message.text == "Done."
        assert message.tool_calls == message.invalid_tool_calls == ()


def test_qwens_words_call_several_tools() -> None:
    text = '✿FUNCTION✿: ping\n✿ARGS✿: {"n": 1}\n✿FUNCTION✿: ping\n✿ARGS✿: {"n": 2}\n'

    message, _ = parse(get_format("qwen_en_parallel"), list(text), tools=[PING])

    assert [call.arguments for call in message.tool_calls] == [{"n": 1}, {"n": 2}]
