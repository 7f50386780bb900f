"""A conversation that shows everything a family can write, for `antiphon formats show` and the
docs."""

from antiphon.messages import Conversation, Message, ToolCall, ToolSpec


def example_conversation() -> Conversation:
    """A question, a call, its result, and an answer."""
    weather = ToolSpec(
        "get_weather",
        "Current weather in a city.",
        {
            "type": "object",
            "properties": {"city": {"type": "string", "description": "City name."}},
            "required": ["city"],
        },
    )
    call = ToolCall("get_weather", {"city": "Lima"}, id="call00000")
    return Conversation(
        (
            Message.system("You are brief."),
            Message.user("How warm is it in Lima?"),
            Message.assistant(tool_calls=[call]),
            Message.tool('{"celsius": 19}', call_id="call00000", name="get_weather"),
            Message.assistant("It is 19 degrees."),
        ),
        (weather,),
    )
