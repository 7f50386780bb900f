"""Slips of models are mended with a record, refused when strict, and never cost a character."""

import pytest

from antiphon.formats import get_format
from antiphon.messages import ToolCallDelta, ToolSpec
from formats.format_cases import parse

WEATHER = ToolSpec(
    "get_weather",
    "Weather.",
    {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
LIMA = {"city": "Lima"}
CALL = '{"name": "get_weather", "arguments": {"city": "Lima"}}'


def _marked(call: str) -> str:
    return f"<tool_call>\n{call}\n</tool_call>"


SLIPS = {
    "missing_end": f"<tool_call>\n{CALL}",
    "python_quotes": _marked(CALL.replace('"', "'")),
    "trailing_comma": _marked(CALL.replace("}}", ",},}")),
    "json_fence": f"```json\n{CALL}\n```",
    "bare_json": CALL,
    "parameters_key": _marked(CALL.replace("arguments", "parameters")),
    "string_arguments": _marked(CALL.replace('{"city": "Lima"}', '"{\\"city\\": \\"Lima\\"}"')),
    "doubled_tag": f"<tool_call>\n{_marked(CALL)}\n</tool_call>",
    "missing_bracket": _marked(CALL[:-1]),
    "extra_bracket": _marked(CALL + "}"),
    "function_wrapper": _marked(f'{{"type": "function", "function": {CALL}}}'),
    "array": _marked(f"[{CALL}]"),
    "extra_key": _marked(CALL[:-1] + ', "why": 1}'),
    "unclosed_reasoning": f"<think>\nLook.\n{_marked(CALL)}",
}


@pytest.mark.parametrize("repair", SLIPS)
def test_a_slip_is_mended_and_named(repair: str) -> None:
    for chunks in ([SLIPS[repair]], list(SLIPS[repair])):
        message, _ = parse(get_format("hermes"), chunks, tools=[WEATHER])

        assert [(c.name, c.arguments) for c in message.tool_calls] == [("get_weather", LIMA)]
        assert repair in message.tool_calls[0].repairs
        assert message.invalid_tool_calls == ()
        assert message.text == ""


@pytest.mark.parametrize("repair", SLIPS)
def test_a_strict_parser_mends_nothing_and_keeps_the_text(repair: str) -> None:
    message, _ = parse(get_format("hermes"), [SLIPS[repair]], tools=[WEATHER], strict=True)

    kept = message.text + message.reasoning + "".join(c.raw for c in message.invalid_tool_calls)
    assert not any(c.repairs for c in message.tool_calls)
    assert repair == "doubled_tag" or message.tool_calls == ()
    assert "Lima" in kept or repair == "doubled_tag"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (
            '<tool_call>\n{"name": "get_weather", "arguments": {"city": }}\n</tool_call> after',
            "value",
        ),
        ('<tool_call>\n{"name": "get_weather", "arguments": [1]}\n</tool_call> after', "object"),
        ('<tool_call>\n{"arguments": {"city": "Lima"}}\n</tool_call> after', "name"),
        ("<tool_call>\nlook at Lima\n</tool_call> after", "expected"),
        ('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Li', "ends"),
        ("<tool_call>\n</tool_call> after", "expected"),
    ],
)
def test_what_cannot_be_read_is_an_invalid_call_with_its_text(text: str, word: str) -> None:
    for chunks in ([text], list(text)):
        message, _ = parse(get_format("hermes"), chunks, tools=[WEATHER])

        assert message.tool_calls == ()
        (invalid,) = message.invalid_tool_calls
        assert invalid.raw == text.removesuffix(" after")
        assert word in invalid.reason
        assert message.text == ("after" if text.endswith("after") else "")


def test_a_damaged_call_does_not_damage_its_neighbour() -> None:
    text = '<tool_call>\n{"name": "get_weather", "arg\n' + _marked(CALL)

    message = get_format("hermes").parse(text, tools=[WEATHER])

    assert [c.arguments for c in message.tool_calls] == [LIMA]
    assert message.invalid_tool_calls[0].raw.startswith('<tool_call>\n{"name": "get_weather", "arg')


def test_arguments_arrive_while_they_are_written() -> None:
    parser = get_format("hermes").parser(tools=[WEATHER])
    parser.feed('<tool_call>\n{"name": "get_weather", "arguments": {"city": "')

    deltas = parser.feed("Lim")

    assert deltas == [ToolCallDelta(0, arguments="Lim")]


def test_a_name_is_sent_before_its_arguments_begin() -> None:
    parser = get_format("hermes").parser(tools=[WEATHER])

    deltas = parser.feed('<tool_call>\n{"name": "get_weather"')

    assert deltas == [ToolCallDelta(0, name="get_weather")]


def test_text_is_released_when_it_cannot_be_a_mark() -> None:
    parser = get_format("hermes").parser(tools=[WEATHER])

    released = [
        [getattr(d, "text", "") for d in parser.feed(chunk)] for chunk in ("a <too", "th>", "<")
    ]

    assert released == [["a "], ["<tooth>"], []]


def test_deeply_nested_arguments_are_refused_and_not_a_crash() -> None:
    head = '<tool_call>{"name": "get_weather", "arguments": {"city": '
    text = head + "[" * 5000 + "}}</tool_call>"

    message = get_format("hermes").parse(text, tools=[WEATHER])

    assert "nested deeper" in message.invalid_tool_calls[0].reason


@pytest.mark.parametrize("name", ["xlam", "llama3_1", "llama4"])
def test_a_strict_parser_goes_on_behind_what_it_refuses(name: str) -> None:
    """Calls without marks: an object where the family writes an array is text."""
    text = '{"x": 1} and\n{"name": 5}\n[1]'

    for chunks in ([text], list(text)):
        message, _ = parse(get_format(name), chunks, tools=[WEATHER], strict=True)

        assert message.text + "".join(c.raw for c in message.invalid_tool_calls) == text
