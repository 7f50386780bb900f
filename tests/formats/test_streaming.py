"""What is sure is sent on at once: text, reasoning, names and pieces of values."""

import json
from typing import Any

import pytest

from antiphon.errors import RenderError
from antiphon.messages import (
    Conversation,
    Message,
    TextDelta,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    ToolSpec,
)
from formats.format_cases import VARIANTS, variant, written

PUT = ToolSpec(
    "put",
    "Put rows into a file.",
    {
        "type": "object",
        "properties": {
            "body": {"type": "string"},
            "rows": {"type": "array", "items": {"type": "object"}},
        },
    },
)
LONGEST_WAIT = 64  # characters; the longest mark of a family has half of that
LONG_MARKS = {"plamo3": 128}  # characters; what stands behind its last value is three marks
STEP = 4


def _waits(text: str, start: Any, name: str, kinds: tuple[type, ...]) -> list[int]:
    """The number of characters before each delta of some kinds."""
    parser = variant(name).parser(tools=(PUT,), start=start)
    waits = [0]
    for at in range(0, len(text), STEP):
        waits[-1] += STEP
        if any(isinstance(delta, kinds) for delta in parser.feed(text[at : at + STEP])):
            waits.append(0)
    parser.finish()
    assert parser.message.invalid_tool_calls == ()
    return waits


@pytest.mark.parametrize(
    "arguments",
    [
        {"body": 'a "quoted" line\nand <b>another</b> \\ one\n' * 40},
        {"rows": [{"id": i, "name": f"item {i}", "ok": True, "w": [i, 0.5]} for i in range(40)]},
    ],
    ids=list,
)
@pytest.mark.parametrize("name", VARIANTS)
def test_a_value_arrives_in_pieces(name: str, arguments: dict[str, Any]) -> None:
    fmt = variant(name)
    answer = Message.assistant(tool_calls=[ToolCall("put", arguments, "call00000")])
    rendered = fmt.render(Conversation((Message.user("Go."), answer), (PUT,)))
    text, start = written(rendered, 1, fmt)

    waits = _waits(text, start, name, (ToolCallDelta,))

    assert len(text) > len(json.dumps(arguments)) / 2
    assert max(waits[1:]) <= LONG_MARKS.get(name, LONGEST_WAIT)


@pytest.mark.parametrize("name", VARIANTS)
def test_text_and_reasoning_arrive_in_pieces(name: str) -> None:
    fmt = variant(name)
    words = "one < two and a {b} [c] `d` is e. " * 8
    question = Message.user("Go.")
    try:
        answer = Message.assistant(words.strip(), reasoning=words.strip())
        rendered = fmt.render(Conversation((question, answer), (PUT,)))
    except RenderError:  # it writes no reasoning
        rendered = fmt.render(Conversation((question, Message.assistant(words.strip())), (PUT,)))
    text, start = written(rendered, 1, fmt)

    waits = _waits(text, start, name, (TextDelta, ThinkingDelta))

    assert max(waits) <= LONGEST_WAIT
