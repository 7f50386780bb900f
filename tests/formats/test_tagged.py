"""Calls with a tag per argument: types from the schema, marks in values, slips and streaming."""

import json
from typing import Any

import pytest

from antiphon.errors import RenderError
from antiphon.formats import get_format
from antiphon.messages import Conversation, Message, ToolCall, ToolCallDelta, ToolSpec
from formats.format_cases import cuts, parse, written

NOTE = ToolSpec(
    "note",
    "Keep a note.",
    {
        "type": "object",
        "properties": {
            "body": {"type": "string"},
            "pages": {"type": "integer"},
            "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "kind": {"enum": ["a", "b", 3]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "where": {"$ref": "#/$defs/place"},
        },
        "required": ["body"],
        "$defs": {"place": {"type": "object", "properties": {"x": {"type": "number"}}}},
    },
)
PING = ToolSpec("ping")
TOOLS = (NOTE, PING)


def _coder(*arguments: str, name: str = "note") -> str:
    inside = "".join(arguments)
    return f"<tool_call>\n<function={name}>\n{inside}</function>\n</tool_call>"


def _argument(key: str, value: str) -> str:
    return f"<parameter={key}>\n{value}\n</parameter>\n"


LIMA = _argument("body", "Lima")


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("body", "0042", "0042"),
        ("body", "null", "null"),
        ("body", "", ""),
        ("body", " a\n", " a\n"),
        ("pages", "42", 42),
        ("pages", "9007199254740993", 9007199254740993),
        ("pages", "many", "many"),
        ("price", "None", None),
        ("price", "1e3", 1000.0),
        ("kind", "a", "a"),
        ("kind", "3", 3),
        ("tags", '["a", "b"]', ["a", "b"]),
        ("tags", "['a', \"it's\"]", ["a", "it's"]),
        ("where", '{"x": 1.5}', {"x": 1.5}),
        ("other", "5", 5),
        ("other", "five", "five"),
    ],
)
def test_a_value_has_the_type_that_its_schema_asks_for(key: str, written: str, value: Any) -> None:
    text = _coder(_argument(key, written))

    for chunks in cuts(text):
        message, deltas = parse(get_format("qwen3_coder"), chunks, tools=TOOLS)

        assert message.tool_calls[0].arguments == {key: value}
        assert message.tool_calls[0].repairs == ()
        sent = "".join(d.arguments for d in deltas if isinstance(d, ToolCallDelta))
        assert json.loads(sent) == {key: value}


SLIPS = {
    "missing_open": "<function=note>\n" + LIMA + "</function>",
    "missing_close": _coder("<parameter=body>\nLima\n"),
    "doubled_tag": _coder(LIMA + "</parameter>\n"),
    "json_arguments": _coder('{"body": "Lima"}\n'),
    "json_call": '<tool_call>\n{"name": "note", "arguments": {"body": "Lima"}}\n</tool_call>',
    "missing_end": _coder(LIMA).removesuffix("\n</tool_call>"),
}


@pytest.mark.parametrize("repair", SLIPS)
def test_a_slip_in_tags_is_mended_and_named(repair: str) -> None:
    for chunks in cuts(SLIPS[repair]):
        message, _ = parse(get_format("qwen3_coder"), chunks, tools=TOOLS)

        assert [c.arguments for c in message.tool_calls] == [{"body": "Lima"}]
        assert repair in message.tool_calls[0].repairs
        assert (message.text, message.invalid_tool_calls) == ("", ())


@pytest.mark.parametrize("repair", SLIPS)
def test_a_strict_parser_mends_no_tags_and_keeps_the_text(repair: str) -> None:
    message, _ = parse(get_format("qwen3_coder"), [SLIPS[repair]], tools=TOOLS, strict=True)

    kept = message.text + "".join(c.raw for c in message.invalid_tool_calls)
    assert message.tool_calls == ()
    assert "Lima" in kept


def test_a_missing_closing_tag_ends_at_the_next_key_that_the_tool_has() -> None:
    text = _coder("<parameter=body>\nLima\n<parameter=pages>\n5\n</parameter>\n")

    message = get_format("qwen3_coder").parse(text, tools=TOOLS)

    assert message.tool_calls[0].arguments == {"body": "Lima", "pages": 5}


@pytest.mark.parametrize(
    "body",
    [
        "a </parameter> b",
        "ends with </tool_call>",
        "</function> and </parameter>x",
        "<parameter=body>\nquoted",
        "<parameter=nothing>\nof mine",
        "<tool_call>\n<function=ping>\n</function>\n</tool_call> too",
    ],
)
@pytest.mark.parametrize("name", ["qwen3_coder", "seed_oss", "glm4_7", "minimax_m2", "minicpm5"])
def test_a_value_may_quote_marks(name: str, body: str) -> None:
    fmt = get_format(name)
    answer = Message.assistant(tool_calls=[ToolCall("note", {"body": body})])
    rendered = fmt.render(Conversation((Message.user("Go."), answer), TOOLS))
    text = "".join(p.text for p in rendered.pieces if p.message == 1 and p.author == "written")

    for chunks in cuts(text.removesuffix(fmt.stop[0])):
        message, _ = parse(fmt, chunks, tools=TOOLS)

        assert message.without_ids().tool_calls == answer.tool_calls


def test_a_value_that_would_end_early_is_refused() -> None:
    body = "x\n</parameter>\n</function>\n</tool_call>"
    answer = Message.assistant(tool_calls=[ToolCall("note", {"body": body})])

    with pytest.raises(RenderError, match="the arguments of 'note' would be read as something"):
        get_format("qwen3_coder").render(Conversation((Message.user("Go."), answer), TOOLS))


def test_a_string_that_would_be_read_as_a_number_is_refused() -> None:
    answer = Message.assistant(tool_calls=[ToolCall("note", {"body": "a", "pages": "5"})])

    with pytest.raises(RenderError, match="writes no quotes around strings"):
        get_format("glm4_5").render(Conversation((Message.user("Go."), answer), TOOLS))


def test_a_tag_in_prose_is_text_unless_it_names_a_tool_on_offer() -> None:
    text = "Write\n<function=demo>\n</function>\nor <function=ping> in a line."

    message = get_format("qwen3_coder").parse(text, tools=TOOLS)

    assert message.text == text
    assert message.tool_calls == message.invalid_tool_calls == ()


def test_a_string_arrives_while_it_is_written() -> None:
    parser = get_format("qwen3_coder").parser(tools=TOOLS)
    parser.feed("<tool_call>\n<function=note>\n<parameter=body>\n")

    deltas = [parser.feed(chunk) for chunk in ('say "', "hi", "\n", "</pa", "ge>\n</")]

    assert [[getattr(d, "arguments", "") for d in ds] for ds in deltas] == [
        ['say \\"'],
        ["hi"],
        [],
        [],
        ["\\n</page>"],
    ]


TAGGED = ["qwen3_coder", "seed_oss", "glm4_7", "minimax_m2", "minicpm5", "deepseek_v4", "kimi_k3"]


@pytest.mark.parametrize("name", TAGGED)
def test_a_list_may_quote_marks_too(name: str) -> None:
    fmt = get_format(name)
    tags: list[Any] = ["</parameter>\n</function>\n</tool_call>", "</arg_value></tool_call>", "a"]
    answer = Message.assistant(tool_calls=[ToolCall("note", {"body": "a", "tags": tags})])
    rendered = fmt.render(Conversation((Message.user("Go."), answer), TOOLS))
    text, start = written(rendered, 1, fmt)

    for chunks in cuts(text):
        message, _ = parse(fmt, chunks, tools=TOOLS, start=start)

        assert message.without_ids().tool_calls == answer.tool_calls


@pytest.mark.parametrize("value", ['["a"] or so', '["a" b]', '["a", [1}]'])
def test_a_list_that_is_none_is_told_with_its_text(value: str) -> None:
    text = _coder(LIMA, _argument("tags", value))

    for chunks in cuts(text):
        message, _ = parse(get_format("qwen3_coder"), chunks, tools=TOOLS)

        assert [call.raw for call in message.invalid_tool_calls] == [text]
        assert message.tool_calls == ()


def test_a_list_with_a_slip_is_mended_and_named() -> None:
    text = _coder(LIMA, _argument("tags", "['a', True,]"))

    message = get_format("qwen3_coder").parse(text, tools=TOOLS)

    assert message.tool_calls[0].arguments["tags"] == ["a", True]
    assert message.tool_calls[0].repairs == ("trailing_comma",)


def test_elements_are_read_by_their_schema() -> None:
    lead = "]<]minimax[>["
    nested = "<where><x>1.5</x></where><tags><item>5</item><item>b</item></tags><pages>7</pages>"
    inside = "<body>5</body>" + nested
    text = '<tool_call>\n<invoke name="note">' + inside + "</invoke>\n</tool_call>"
    text = text.replace("<", lead + "<")

    for chunks in cuts(text):
        message, _ = parse(get_format("minimax_m3"), chunks, tools=TOOLS)

        assert message.tool_calls[0].arguments == {
            "body": "5", "where": {"x": 1.5}, "tags": ["5", "b"], "pages": 7,
        }  # fmt: skip


def test_null_is_left_out_of_elements_and_listed() -> None:
    call = ToolCall("note", {"body": "a", "price": None})
    conversation = Conversation((Message.user("Go."), Message.assistant(tool_calls=[call])), TOOLS)

    rendered = get_format("minimax_m3").render(conversation)

    assert rendered.changed == (1,)
    assert "price>" not in rendered.text.partition("Go.")[2]
