"""What tests of slips share: tools, what families write for them, and reading in several cuts."""

import json
import random
from functools import cache
from typing import Any, NamedTuple

from antiphon.errors import RenderError
from antiphon.formats import Format, Start
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec
from formats.format_cases import joined, parse, variant, written

_STRING = {"type": "string"}


def tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, name, schema)


TOOLS = (
    tool("find", ("query", "limit"), query=_STRING, limit={"type": "integer"}),
    tool("write", ("path", "body"), path=_STRING, body=_STRING),
    tool("ping"),
)
FIND = ToolCall("find", {"query": "wordquince", "limit": 2}, "call00001")
WRITE = ToolCall("write", {"path": "wordpath", "body": "wordbody"}, "call00002")


class Answer(NamedTuple):
    """What a family writes."""

    fmt: Format
    text: str
    start: Start


@cache
def answer_of(name: str, *calls: str) -> Answer | None:
    fmt = variant(name)
    made = [{"find": FIND, "write": WRITE}[call] for call in calls]
    conversation = Conversation((Message.user("Go."), Message.assistant(tool_calls=made)), TOOLS)
    try:
        text, start = written(fmt.render(conversation), 1, fmt)
    except RenderError:
        return None
    return Answer(fmt, text, start)


def calls_of(message: Message) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in message.tool_calls]


def _cut(text: str) -> list[str]:
    random_chunks, chunks = random.Random(len(text)), list[str]()
    while text:
        size = random_chunks.randint(1, 9)
        chunks.append(text[:size])
        text = text[size:]
    return chunks


def read(answer: Answer, text: str, *, strict: bool = False) -> Message:
    """A text read whole, by characters and in random chunks: all must say the same, and the
    deltas too."""
    found: list[Message] = []
    for chunks in ([text], list(text), _cut(text)):
        message, deltas = parse(answer.fmt, chunks, tools=TOOLS, start=answer.start, strict=strict)
        said, thought, calls = joined(deltas)
        assert (said, thought) == (message.text, message.reasoning)
        if not message.invalid_tool_calls:
            assert [(name, json.loads(arguments)) for name, arguments in calls] == calls_of(message)
        found.append(message)
    assert found[0] == found[1] == found[2]
    return found[0]


def kept_of(message: Message) -> str:
    calls = json.dumps(calls_of(message), ensure_ascii=False)
    invalid = "".join(call.raw for call in message.invalid_tool_calls)
    return message.text + message.reasoning + calls + invalid
