"""What the GLM families since 4.5 share: role marks, tools as JSON lines, a tag per argument.

A turn has no end mark: the mark of the next role ends it, and a model stops by writing
``<|user|>`` or ``<|observation|>``.  So the mark behind an assistant's message is written by it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Protocol, cast

from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Writer,
    inline_reasoning,
    is_first_result,
    last_user,
    refuse_images,
    spec_json,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking, Unmarked
from antiphon.formats._tagged import Tagged, called, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Around, Author, Rendered, Start
from antiphon.formats._usual import Place, Usual, Usuals, answered, given
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

SPECIALS = frozenset(
    {
        "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>",
        "<think>", "</think>", "/nothink", "<tool_call>", "</tool_call>", "<tool_response>",
        "</tool_response>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
    }
)  # fmt: skip
STOP = ("<|user|>", "<|observation|>", "<|endoftext|>")

_HOW = (
    "\n</tools>\n\n"
    "For each function call, output the function name and arguments within the following XML "
    "format:\n"
)


@dataclass(frozen=True, slots=True)
class Style:
    """What differs between the families."""

    feed: str
    """What stands behind a role and around results: a line feed or nothing."""
    empty: str
    """What stands in place of reasoning."""
    opens: str = "<think>"
    """What a prompt ends with that asks for reasoning."""
    trims: bool = True
    """Whether reasoning is trimmed."""
    shows_empty: bool = False
    """Whether a message without reasoning shows an empty block while its turn is the last one,
    where the model was asked to reason."""
    wrapped: bool = True
    """Whether tools are listed as they came; otherwise as bare functions."""

    @property
    def tags(self) -> Tagged:
        """The tags of calls."""
        return _tags(self.feed)

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _syntax(self.feed)

    def call_form(self, *, thinking: bool) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(
            self.tags,
            SPECIALS,
            before=self.feed,
            end=STOP,
            always=True,
            thinking=(f"{self.feed}<think>", "</think>") if thinking else None,
        )


@cache
def _tags(feed: str) -> Tagged:
    return Tagged(
        open="<tool_call>",
        close="</tool_call>",
        between=feed,
        named=feed,
        keyed=f"</arg_key>{feed}",
        value="<arg_value>",
        value_close=f"</arg_value>{feed}",
    )


@cache
def _syntax(feed: str) -> Syntax:
    return Syntax(
        blocks=(Block("<tool_call>", _tags(feed), before=feed),),
        thinking=(Thinking(after_open="", before_close="", after_close=feed),),
        unmarked=Unmarked(_tags(feed), ("<arg_key>",)),
        doubled=("</tool_call>",),
        lead=feed,
    )


class Glm(Protocol):
    """What `render` needs of a family."""

    @property
    def name(self) -> str:
        """The family's name."""
        ...

    @property
    def style(self) -> Style:
        """What differs between the families."""
        ...

    @property
    def asks(self) -> bool:
        """Whether the model is asked to reason."""
        ...

    def head(self) -> str:
        """What stands before the tools."""
        ...

    def reasoning_of(
        self, message: Message, messages: Sequence[Message], index: int, last: int
    ) -> str | None:
        """The reasoning that a message shows again; ``None`` where it shows none.

        Args:
            message: The message, its reasoning apart from its text.
            messages: All messages.
            index: Its position.
            last: The position of the last user message.
        """
        ...


def render(
    fmt: Glm, conversation: Conversation, *, generate: bool, far_sighted: bool = False
) -> Rendered:
    """A conversation in one of the families.

    Args:
        fmt: The family.
        conversation: What to write.
        generate: Whether the model writes next.
        far_sighted: Whether a message's text depends on more than the next message's role.
    """
    w = Writer(fmt.name, SPECIALS)
    style = fmt.style
    messages = conversation.messages
    refuse_images(w, messages)
    w.put("[gMASK]<sop>" + fmt.head(), "frame")
    _tools(w, style, conversation.tools)
    last = last_user(messages)
    known, tools = None if far_sighted else fmt, conversation.tools
    usual = _usuals(fmt)
    for index in w.walk(known, messages, tools=tools, shown_from=last, usual=usual):
        message = messages[index]
        if message.role == "assistant":
            _assistant(w, fmt, conversation, index, last)
            behind = messages[index + 1].role if index + 1 < len(messages) else ""
            w.put(_ENDS.get(behind, ""), "written", index)
        elif message.role == "tool":
            _result(w, style, messages, index)
        else:
            _role(w, messages, index, f"<|{message.role}|>")
            text = message.text
            silent = _is_silenced(fmt, message.role) and not text.endswith("/nothink")
            w.around(_around(style.feed, "/nothink" if silent else ""), text, index)
    if not generate:
        return w.done()
    w.put("<|assistant|>", "frame")
    if fmt.asks:
        w.put(style.opens, "frame")
        return w.done(start="reasoning" if style.opens else "content")
    w.put(style.feed + style.empty, "frame")
    return w.done()


_ENDS = {"user": "<|user|>", "tool": "<|observation|>"}
"""The marks of roles that a model writes itself behind its message."""


def _role(w: Writer, messages: Sequence[Message], index: int, mark: str) -> None:
    """The mark of a role, but where the model wrote it itself."""
    ended = index > 0 and messages[index - 1].role == "assistant"
    if not ended or mark not in _ENDS.values():
        w.put(mark, "frame", index)


def _is_silenced(fmt: Glm, role: str) -> bool:
    """Whether a message asks the model not to reason."""
    return bool(fmt.style.feed) and role == "user" and not fmt.asks


@cache
def _usuals(fmt: Glm) -> Usuals:
    return Usuals(partial(_usual, fmt))


def _usual(fmt: Glm, place: Place) -> Usual | None:
    """How a message is written that shows no reasoning; see `_usual.py`."""
    style, feed = fmt.style, fmt.style.feed
    ended = place.before in ("assistant", "calls")
    match place.kind:
        case "system":
            return None
        case "user":
            mark = "" if ended else "<|user|>"
            if _is_silenced(fmt, "user"):
                return given(_around(mark + feed, "/nothink"), unless=_is_silent)
            return given(_around(mark + feed, ""))
        case "tool":
            mark = "" if ended or place.before == "tool" else "<|observation|>"
            return given(_around(f"{mark}{feed}<tool_response>{feed}", f"{feed}</tool_response>"))
        case _:
            pass
    if fmt.reasoning_of(_SILENT, (), int(place.is_shown), 0) is not None:
        return None
    changes = style.shows_empty and fmt.asks
    frame = _without_reasoning(style.feed, style.empty, style.opens, fmt.asks)
    frame = replace(frame, after=((_ENDS.get(place.after, ""), "written"),))
    if place.kind == "calls":
        return called(frame, style.tags, lead=feed, changes=changes)
    return answered(frame, style.syntax, _stripped, lead=feed, changes=changes)


_SILENT = Message.assistant("")


def _is_silent(text: str) -> bool:
    return text.endswith("/nothink")


def _stripped(text: str) -> str:
    return text.strip() or " "


def _tools(w: Writer, style: Style, tools: Sequence[ToolSpec]) -> None:
    if not tools:
        return
    lines = "".join(_tool_text(spec, style) for spec in tools)
    w.put("<|system|>", "frame")
    w.text(
        "\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>{lines}{_HOW}",
        "frame",
    )
    feed = style.feed
    w.put(
        f"<tool_call>{{function-name}}{feed}<arg_key>{{arg-key-1}}</arg_key>{feed}"
        f"<arg_value>{{arg-value-1}}</arg_value>{feed}<arg_key>{{arg-key-2}}</arg_key>{feed}"
        f"<arg_value>{{arg-value-2}}</arg_value>{feed}...{feed}</tool_call>",
        "frame",
    )


def _tool_text(spec: ToolSpec, style: Style) -> str:
    if style.wrapped:
        return "\n" + spec_json(spec)
    function = cast("Mapping[str, Any]", spec.to_openai()["function"])
    if function.get("defer_loading"):
        return ""
    hidden = ("defer_loading", "strict")
    return "\n" + dump_json({k: v for k, v in function.items() if k not in hidden})


def _assistant(w: Writer, fmt: Glm, conversation: Conversation, index: int, last: int) -> None:
    style, messages = fmt.style, conversation.messages
    message = inline_reasoning(messages[index])
    shown = fmt.reasoning_of(message, messages, index, last)
    reasoning = (shown or "").strip() if style.trims else shown or ""
    text = message.text.strip()
    once_empty = style.shows_empty and fmt.asks and shown is None
    if once_empty or (reasoning, text) != (messages[index].reasoning, messages[index].text):
        w.changed.append(index)
    message = with_parts(message, reasoning=reasoning, text=text)
    w.put("<|assistant|>", "frame", index)
    since = len(w.pieces)
    start = _think(w, style, fmt.asks, index, None if shown is None else reasoning)
    if text:
        w.text(style.feed + text, "written", index)
    write_calls(w, style.tags, message, index, before=style.feed)
    check_calls(
        w, style.tags, style.syntax, message, index,
        since=since, tools=conversation.tools, start=start,
    )  # fmt: skip


@cache
def _without_reasoning(feed: str, empty: str, opens: str, asks: bool) -> Around:
    """What stands before a message without reasoning."""
    w = Writer("", SPECIALS)
    w.put("<|assistant|>", "frame", 0)
    _think(w, Style(feed=feed, empty=empty, opens=opens), asks, 0, None)
    before: list[tuple[str, Author]] = [(piece.text, piece.author) for piece in w.done().pieces]
    return Around(tuple(before), "written", (), SPECIALS)


def _think(w: Writer, style: Style, asks: bool, index: int, reasoning: str | None) -> Start:
    """The reasoning block: the prompt's part of it is the frame's, the rest is written."""
    block = style.empty if reasoning is None else f"<think>{reasoning}</think>"
    if asks and style.opens and block.startswith(style.opens):
        w.put(style.opens, "frame", index)
        w.text(reasoning or "", "written", index)
        w.put("</think>", "written", index)
        return "reasoning"
    author = "frame" if reasoning is None and (style.opens or not asks) else "written"
    head, mark, tail = block.rpartition("</think>")
    opened = "<think>" if head.startswith("<think>") else ""
    w.put(style.feed + opened, author, index)
    w.text(head[len(opened) :], author, index)
    w.put(mark + tail, author, index)
    return "content"


def _result(w: Writer, style: Style, messages: Sequence[Message], index: int) -> None:
    """One tool result; a run of them is one turn."""
    if is_first_result(messages, index):
        _role(w, messages, index, "<|observation|>")
    feed = style.feed
    frame = _around(f"{feed}<tool_response>{feed}", f"{feed}</tool_response>")
    w.around(frame, messages[index].text, index)


@cache
def _around(before: str, after: str) -> Around:
    return Around(((before, "frame"),), "given", ((after, "frame"),), SPECIALS)
