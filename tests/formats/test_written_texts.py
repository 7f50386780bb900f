"""Whole texts of families whose published code no package ships, after reading that code."""

from typing import Any

import pytest

from antiphon.formats import get_format
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec

PING = ToolSpec("ping", "Answer.", {"type": "object", "properties": {"n": {"type": "integer"}}})
SCHEMA = (
    '{"name": "ping", "description": "Answer.", "parameters": {"type": "object", "properties": '
    '{"n": {"type": "integer"}}}}'
)
CONVERSATION = Conversation(
    (
        Message.user("Ping twice."),
        Message.assistant(
            "On it.",
            reasoning="Two calls.",
            tool_calls=[ToolCall("ping", {"n": 1}, "a"), ToolCall("ping", {"who": 'x "y"'}, "b")],
        ),
        Message.tool("second", call_id="b"),
        Message.tool("first", call_id="a"),
        Message.assistant("Done.", reasoning="Both came."),
    ),
    (PING,),
)

DSML_V4 = """\
<｜User｜>Ping twice.<｜Assistant｜><think>Two calls.</think>On it.

<｜DSML｜tool_calls>
<｜DSML｜invoke name="ping">
<｜DSML｜parameter name="n" string="false">1</｜DSML｜parameter>
</｜DSML｜invoke>
<｜DSML｜invoke name="ping">
<｜DSML｜parameter name="who" string="true">x "y"</｜DSML｜parameter>
</｜DSML｜invoke>
</｜DSML｜tool_calls><｜end▁of▁sentence｜><｜User｜><tool_result>first</tool_result>

<tool_result>second</tool_result><｜Assistant｜><think>Both came.</think>\
Done.<｜end▁of▁sentence｜>"""
DSML_V41 = (
    DSML_V4.replace("｜DSML｜tool_calls", "｜DSML｜ calls")
    .replace("｜DSML｜invoke", "｜DSML｜ invoke")
    .replace("｜DSML｜parameter", "｜DSML｜ parameter")
)
EFFORT = "Reasoning Effort: 50 (range 1-100, the higher the value, the more thorough the reasoning)"
XTML = """\
<|open|>message role="system" type="thinking-effort"<|sep|>`thinking_effort` guides on how much to \
think in your thinking channel (not including the response channel), supported values include \
`low`, `medium`, `high`, and `max`.
Now the system is invoked with `thinking_effort=max`.<|close|>message<|sep|><|end_of_msg|>\
<|open|>message role="user"<|sep|>Ping twice.<|close|>message<|sep|><|end_of_msg|>\
<|open|>message role="assistant"<|sep|><|open|>think<|sep|>Two calls.<|close|>think<|sep|>\
<|open|>response<|sep|>On it.<|close|>response<|sep|><|open|>tools<|sep|>\
<|open|>call tool="ping" index="1"<|sep|><|open|>argument key="n" type="number"<|sep|>1\
<|close|>argument<|sep|><|close|>call<|sep|>\
<|open|>call tool="ping" index="2"<|sep|><|open|>argument key="who" type="string"<|sep|>x "y"\
<|close|>argument<|sep|><|close|>call<|sep|>\
<|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>\
<|open|>message role="tool" tool="ping" index="1"<|sep|>first<|close|>message<|sep|><|end_of_msg|>\
<|open|>message role="tool" tool="ping" index="2"<|sep|>second<|close|>message<|sep|><|end_of_msg|>\
<|open|>message role="assistant"<|sep|><|open|>think<|sep|>Both came.<|close|>think<|sep|>\
<|open|>response<|sep|>Done.<|close|>response<|sep|><|close|>message<|sep|><|end_of_msg|>"""


@pytest.mark.parametrize(
    ("name", "variant", "starts", "ends"),
    [
        (
            "deepseek_v4",
            {"thinking": True},
            "<｜begin▁of▁sentence｜>\n\n## Tools\n\nYou have access to a set of tools",
            f"### Available Tool Schemas\n\n{SCHEMA}\n\nYou MUST strictly follow the above defined "
            f"tool name and parameter schemas to invoke tool calls.\n{DSML_V4}",
        ),
        (
            "deepseek_v4_1",
            {},
            f"<｜begin▁of▁sentence｜><｜System｜>{EFFORT}\n\n\n\n## Tools\n\n",
            f"tool name and parameter schemas to invoke tool calls.\n{DSML_V41}",
        ),
        (
            "kimi_k3",
            {},
            '<|open|>message role="system" type="tool-declare"<|sep|># Tools\nHere are the '
            "available tools, described in JSONSchema.\n\n```json\n"
            '[{"function":{"description":"Answer.","name":"ping","parameters":{"properties":{"n":'
            '{"type":"integer"}},"type":"object"}},"type":"function"}]\n```<|close|>message<|sep|>',
            XTML,
        ),
    ],
)
def test_a_conversation_is_written_as_the_published_code_does(
    name: str, variant: dict[str, Any], starts: str, ends: str
) -> None:
    """Sources: the ``Source`` line of each family's module."""
    text = get_format(name, **variant).render(CONVERSATION).text

    assert text.startswith(starts)
    assert text.endswith(ends)


def test_without_tools_deepseek_v4_drops_earlier_reasoning() -> None:
    conversation = Conversation(
        (
            Message.user("Hi"),
            Message.assistant("Hello.", reasoning="Greet."),
            Message.user("Bye"),
            Message.assistant("Bye.", reasoning="Part."),
        )
    )

    rendered = get_format("deepseek_v4", thinking=True).render(conversation)

    assert rendered.text == (
        "<｜begin▁of▁sentence｜><｜User｜>Hi<｜Assistant｜></think>Hello.<｜end▁of▁sentence｜>"
        "<｜User｜>Bye<｜Assistant｜><think>Part.</think>Bye.<｜end▁of▁sentence｜>"
    )
    assert rendered.changed == (1,)
