"""What GLM-4 and ChatGLM4 share: a call is a name on the line of its role mark, JSON below it.

    <|assistant|>get_weather
    {"city": "Lima"}<|observation|>
    19<|assistant|>
    It is 19 degrees.

A turn has no end mark of its own: the mark of the next role ends it, and the model writes that
mark.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from antiphon.formats._cursor import Reading
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._readers import read_arguments
from antiphon.formats._render import (
    Writer,
    check_written,
    inline_reasoning,
    moved_up,
    of_tools,
    refuse_images,
    with_parts,
)
from antiphon.formats._scan import Block, Parser, Syntax
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Around, Parts, Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, called, given
from antiphon.messages import Conversation, Message, ToolSpec, dump_json, indented_json

STOP = ("<|user|>", "<|observation|>", "<|endoftext|>")
SPECIALS = frozenset(
    {"[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>"}
)
_NAME = r"[^\W\d][\w.-]{0,63}"
_CALL = re.compile(rf"({_NAME})[ \t]?\r?\n[ \t\r\n]{{0,4}}(?=\{{)")
_PART = re.compile(rf"(?:{_NAME}(?:[ \t]?(?:\r?\n?[ \t\r\n]{{0,4}}))?)?\Z")


@dataclass(frozen=True, slots=True)
class LineCalls:
    """Reads what stands behind a role mark: a line feed and text, or a name and its arguments."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return ("<|observation|>", "<|user|>", "<|assistant|>")

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        c.kept()
        while _PART.match(c.text, c.pos) and not c.closed:
            yield
        if (yield from c.take("\n")):
            return
        found = _CALL.match(c.text, c.pos)
        if found is None or (p.tools and found[1] not in p.tools):
            return
        p.call_begin()
        c.pos = found.end()
        p.call_name(found[1])
        yield from read_arguments(p)
        p.call_end()


SYNTAX = Syntax(
    blocks=(Block("<|assistant|>", LineCalls()),),
    ignored=("<|observation|>", "<|user|>"),
    first=LineCalls(),
)


def call_form(space: str) -> CallForm:
    """How calls stand in the text, for the grammar.

    Args:
        space: What the family writes between a name and the line feed.
    """

    def call(spec: ToolSpec, rules: Rules) -> Node:
        return seq(f"{spec.name}{space}\n", arguments_node(spec, rules))

    return CallForm(
        call,
        between="<|assistant|>",
        before="<|assistant|>",
        lead="\n",
        forbidden=tuple(sorted(SPECIALS)),
        specials=SPECIALS,
    )


def listing(tools: Sequence[ToolSpec]) -> str:
    """The tools, one section each."""
    text = ""
    for tool in tools:
        function = dump_indented(tool)
        text += (
            f"\n## {tool.name}\n\n{function}\n在调用上述函数时，请使用 Json 格式表示调用的参数。"
        )
    return text


def dump_indented(tool: ToolSpec) -> str:
    """A tool's function object over several lines."""
    return indented_json(tool.to_openai()["function"])


def render(
    w: Writer, conversation: Conversation, *, tools: str, space: str, generate: bool
) -> Rendered:
    """The conversation as text.

    Args:
        w: Takes the pieces.
        conversation: What to write.
        tools: What stands before the listing of tools.
        space: What stands between a call's name and the line feed.
        generate: Whether the model writes next.
    """
    messages = conversation.messages
    refuse_images(w, messages)
    w.put("[gMASK]<sop>", "frame")
    if conversation.tools:
        w.mark("<|system|>", "frame")
        w.text("\n" + tools + of_tools(listing, conversation.tools), "frame")
    roles = [message.role for message in messages]
    systems = [i for i, role in enumerate(roles) if role == "system"] if "system" in roles else []
    for n, index in enumerate(systems):
        _turn(w, "<|system|>", messages[index].text, index)
        moved_up(w, index, n)
    last = next((i for i in range(len(roles) - 1, -1, -1) if roles[i] != "system"), 0)
    known = w.family, space
    usual = _usuals(space)
    for index in w.walk(known, messages, tools=conversation.tools, shown_from=last, usual=usual):
        message = messages[index]
        role = message.role
        if role == "assistant":
            w.mark("<|assistant|>", "frame", index)
            _assistant(w, conversation, index, space)
            w.put(_mark_behind(messages, index), "written", index)
        elif role != "system":
            before = next((i for i in range(index - 1, -1, -1) if messages[i].role != "system"), -1)
            ended = before >= 0 and _mark_behind(messages, before)
            _turn(w, "" if ended else _MARKS[role], message.text, index)
    if generate:
        w.mark("<|assistant|>", "frame")
    return w.done()


def _turn(w: Writer, mark: str, text: str, index: int) -> None:
    w.around(_around(mark), text, index)


@cache
def _around(mark: str) -> Around:
    return Around(((mark, "frame"), ("\n", "frame")), "given", (), frozenset({mark}) - {""})


_MARKS = {"user": "<|user|>", "tool": "<|observation|>"}


def _mark_behind(messages: Sequence[Message], index: int) -> str:
    """The next role's mark, where it is the model that writes it."""
    message = messages[index]
    roles = (later.role for later in messages[index + 1 :])
    behind = next((role for role in roles if role != "system"), "")
    if message.role != "assistant" or behind != ("tool" if message.tool_calls else "user"):
        return ""
    return _MARKS[behind]


@cache
def _usuals(space: str) -> Usuals:
    def usual(place: Place) -> Usual | None:
        before, kind, after, _ = place
        if "system" in place:
            return None
        if kind in _MARKS:
            ended = before == ("calls" if kind == "tool" else "assistant")
            return given(_around("" if ended else _MARKS[kind]))
        ends = after == ("tool" if kind == "calls" else "user")
        mark = _MARKS[after] if ends else ""
        own: Parts = ((mark, "written"),) if ends else ()
        frame = Around((("<|assistant|>", "frame"),), "written", own, SPECIALS)
        if kind == "calls":
            return called(frame, lambda name: f"{name}{space}\n")
        return answered(frame, SYNTAX, without=("<think>",), lead="\n")

    return Usuals(usual)


def _assistant(w: Writer, conversation: Conversation, index: int, space: str) -> None:
    message = inline_reasoning(conversation.messages[index])
    if message.reasoning:
        w.changed.append(index)
        message = with_parts(message, reasoning="", text=message.text)
    since = len(w.pieces)
    raws = [call.raw for call in message.invalid_tool_calls]
    if message.text or not (message.tool_calls or raws):
        w.text("\n" + message.text, "written", index)
    calls = [f"{c.name}{space}\n{dump_json(c.arguments)}" for c in message.tool_calls]
    for i, text in enumerate([*calls, *raws]):
        if i or message.text:
            w.mark("<|assistant|>", "written", index)
        w.text(text, "written", index)
    check_written(
        w, SYNTAX, message, index,
        since=since, tools=conversation.tools,
    )  # fmt: skip
