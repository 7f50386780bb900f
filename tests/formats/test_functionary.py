"""Functionary 3.2's tools as TypeScript, and its recipients."""

import pytest

from antiphon.formats import get_format
from antiphon.formats._functionary_tools import namespace
from antiphon.messages import ToolSpec
from formats.format_cases import parse

TOOL = ToolSpec(
    "plan",
    "Plan a trip.",
    {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where to", "default": "Lima"},
            "days": {"type": "integer", "minimum": 1, "examples": [3]},
            "unit": {"type": "string", "enum": ["km", "mi"]},
            "stops": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": {"type": "string"}}},
            },
            "tags": {"type": "array", "items": {"type": "string"}},
            "sizes": {"type": "array", "items": {"enum": [1, 2], "type": "integer"}},
            "more": {"type": ["string", "null"], "format": "date"},
        },
        "required": ["city", "stops"],
    },
)
TEXT = """\
// Supported function definitions that should be called when necessary.
namespace functions {

// Plan a trip.
type plan = (_: {
// Where to. Default="Lima".
city: string,
// Minimum=1
// Example days:
// 3
days?: number,
unit?: "km" | "mi",
stops: {
    name?: string,
}[],
tags?: string[],
sizes?: (1 | 2)[],
// Format=date
more?: string | null,
}) => any;

} // namespace functions"""


def test_tools_are_written_as_the_template_writes_them() -> None:
    """Source: the template's macros, run on this tool."""
    assert namespace([TOOL]) == TEXT


@pytest.mark.parametrize("chunks", ["whole", "letters"])
def test_a_message_may_be_for_everybody_and_then_for_tools(chunks: str) -> None:
    text = 'all\n>>> is a prompt.>>>plan\n{"city": "Lima"}>>>plan\n{"city": "Quito"}'
    pieces = [text] if chunks == "whole" else list(text)

    message, _ = parse(get_format("functionary"), pieces, tools=[TOOL])

    assert message.text == ">>> is a prompt."
    assert [call.arguments for call in message.tool_calls] == [{"city": "Lima"}, {"city": "Quito"}]
