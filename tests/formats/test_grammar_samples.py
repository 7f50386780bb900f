"""What a family's grammar may write is read as calls that fit their schemas."""

import random
from typing import cast

import jsonschema
import pytest

from antiphon.formats import Format, Start
from antiphon.formats._grammar import Texts
from antiphon.messages import Message, ToolSpec
from formats.format_cases import VARIANTS, parse, variant
from formats.walker import Walker

BOOK = ToolSpec(
    "book",
    "Book a seat.",
    {
        "type": "object",
        "properties": {
            "who": {"type": "string"},
            "row": {"type": "integer", "minimum": 0},
            "kind": {"enum": ["window", "aisle"]},
            "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
            "where": {
                "type": "object",
                "properties": {"x": {"type": "number"}, "deep": {"type": "boolean"}},
                "required": ["x"],
            },
        },
        "required": ["who", "row"],
    },
)
TOOLS = (BOOK, ToolSpec("ping", "Answer."))


def _read(fmt: Format, text: str, start: Start) -> Message:
    for stop in fmt.stop:
        text = text.removesuffix(stop)
    return parse(fmt, [text], tools=TOOLS, start=start, strict=True)[0]


def _check(message: Message, text: str) -> None:
    assert message.invalid_tool_calls == (), text
    for call in message.tool_calls:
        assert call.repairs == (), text
        spec = next(spec for spec in TOOLS if spec.name == call.name)
        jsonschema.validate(call.arguments, spec.parameters)


_OFTEN = ("hermes", "qwen3_coder", "gemma4", "pythonic", "deepseek_v4", "minimax_m3")
"""Each of another way to write arguments; grammars of the others are drawn from in slow tests."""
_SAYS = ("llama4",)
"""Text stands between the marks before its calls, and may where calls are required, too."""
NAMES = [
    name if name in _OFTEN else pytest.param(name, marks=pytest.mark.slow)
    for name in VARIANTS
    if name != "react_python"
]


@pytest.mark.parametrize("choice", ["auto", "required", "book"])
@pytest.mark.parametrize("name", NAMES)
def test_what_a_grammar_writes_is_read_as_calls_that_fit(name: str, choice: str) -> None:
    fmt = variant(name)
    walker = Walker(cast("Texts", fmt.grammar(TOOLS, choice=choice)))
    rng = random.Random(name + choice)
    n_drawn = 0

    for _ in range(9):
        text = walker.text(rng)
        if text is None or n_drawn == 2:
            continue
        n_drawn += 1
        message = _read(fmt, text, "content")
        _check(message, text)
        names = {call.name for call in message.tool_calls}
        if choice != "auto":
            assert message.tool_calls, text
            assert not message.text or name in _SAYS, text
        assert names <= ({"book"} if choice == "book" else {"book", "ping"})
    assert n_drawn
