"""MiniMax-M3: turns between ]~b] and [e~[, arguments as nested elements behind a lead mark.

    ]~b]ai
    <mm:think>The user wants the weather.</mm:think>Let me look.]<]minimax[>[<tool_call>
    ]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Lima]<]minimax[>[</city>...

A fixed first turn says how to reason (`thinking`); the system message stands in a ``developer``
turn.  Reasoning is shown in every turn; a message without any begins with a closing mark.  ``null``
is not written, at any depth: messages that lose it are listed in `Rendered.changed`.

Differs from upstream: the role ``root`` is not known.
Source: MiniMax-M3's chat_template as xinference 4.1 ships it.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from antiphon.formats import _minimax as minimax
from antiphon.formats._elements import Elements, called
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Writer,
    check_written,
    inline_reasoning,
    invalid_text,
    refuse_media,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Author, Parts, Rendered, Start
from antiphon.formats._usual import Place, Usual, Usuals, answered
from antiphon.messages import Conversation, ImagePart, JsonValue, Message, ToolCall

Mode = Literal["adaptive", "enabled", "disabled"]

_LEAD = "]<]minimax[>["
_ELEMENTS = Elements(_LEAD)
_SYNTAX = Syntax(
    blocks=(Block(_ELEMENTS.open, _ELEMENTS), Block(_ELEMENTS.call, _ELEMENTS)),
    thinking=(
        Thinking("<mm:think>", "</mm:think>", after_open="", before_close="", after_close=""),
    ),
    doubled=(_ELEMENTS.close,),
)
_IDENTITY = (
    "Your model version is MiniMax-M3, developed by MiniMax. Knowledge cutoff: January 2026. "
    "Founded in early 2022, MiniMax is a global AI foundation model company committed to advancing "
    "the frontiers of AI towards AGI."
)
_INSTRUCTIONS = (
    "\n\n<thinking_instructions>\nYou have a thinking capability that allows you to reason step by "
    "step before responding. When thinking is enabled, wrap your reasoning in "
    "<mm:think></mm:think> tags before your response. When thinking is disabled, begin your "
    "response directly after the </mm:think> prefix. When thinking is adaptive, decide on your own "
    "whether to think for the current turn.\nCurrent thinking mode: {mode}\n"
    "</thinking_instructions>"
)
_MODES: dict[Mode, str] = {
    "adaptive": "adaptive. You are encouraged to think for complex decision-making, multi-step "
    "reasoning, or when analyzing function/tool results.",
    "enabled": "enabled. You MUST think step by step before every response, including after "
    "receiving function/tool results.",
    "disabled": "disabled. Do not output any thinking process.",
}
_HOW = (
    "To call tools, wrap all invocations in a single ~<tool_call>~</tool_call> block. Parameter "
    "values containing nested objects or arrays are recursively expanded into XML elements. "
    "Example:\n\n~<tool_call>\n"
    '~<invoke name="tool-name-1">~<param-1>value-1~</param-1>~<param-2>~<item>'
    "~<key-a>val-a~</key-a>~<key-b>val-b~</key-b>~</item>~</param-2>~</invoke>\n"
    '~<invoke name="tool-name-2">~<param-1>value-1~</param-1>~</invoke>\n'
    "~</tool_call>"
).replace("~", _LEAD)


@dataclass(frozen=True, slots=True)
class MiniMaxM3(Family):
    """The MiniMax-M3 family."""

    thinking: Mode = "adaptive"
    """Whether the model is asked to reason."""

    name = "minimax_m3"
    models = ("MiniMaxAI/MiniMax-M3*",)
    aliases = {"minimax_m3_vl": {}}
    signs = ("]<]minimax[>[", "mm:think")
    stop = ("[e~[",)
    turns = minimax.TURNS
    specials = minimax.TURNS.specials | {_LEAD, "]<]image[>[", "<mm:think>", "</mm:think>"}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return CallForm(
            _ELEMENTS.node,
            open=_ELEMENTS.open + "\n",
            close=_ELEMENTS.close,
            forbidden=(_LEAD, *self.stop),
            thinking=("<mm:think>", "</mm:think>"),
            unreasoned="</mm:think>" if self.thinking == "adaptive" else "",
            specials=self.specials,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        refuse_media(w, conversation.messages, shows=(ImagePart,))
        system, first = split_system(conversation)
        w.put(self.turns.before_all, "frame")
        self.turns.begin(w, "system", None)
        w.text(_IDENTITY, "frame")
        w.put(_INSTRUCTIONS.replace("{mode}", _MODES[self.thinking]), "frame")
        self.turns.finish(w, "system", None)
        minimax.write_system(
            w, self.turns, "developer", system, "You are a helpful assistant.",
            conversation.tools, _HOW, index=0 if first else None,
        )  # fmt: skip
        messages = conversation.messages
        tools = conversation.tools
        for index in w.walk(self, messages, first, tools=tools, usual=_usuals(self)):
            if conversation.messages[index].role == "assistant":
                self._assistant(w, conversation, index)
            else:
                minimax.write_given(w, self.turns, conversation.messages, index)
        if not generate:
            return w.done()
        self.turns.begin(w, "assistant", None)
        prompt = {"adaptive": "", "enabled": "<mm:think>", "disabled": "</mm:think>"}
        w.put(prompt[self.thinking], "frame")
        return w.done(start="reasoning" if self.thinking == "enabled" else "content")

    def usual(self, place: Place) -> Usual | None:
        """How messages are written as most are; see `_usual.py`."""
        unreasoned: Parts = (("</mm:think>", self._closes),)
        frame = self.turns.frame("assistant", unreasoned, specials=self.specials)
        match place.kind:
            case "calls":
                return called(frame, _ELEMENTS)
            case "assistant":
                return answered(frame, _SYNTAX)
            case _:
                return minimax.usual(place, self.turns, self.specials)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        given = conversation.messages[index]
        message = inline_reasoning(given, open="<mm:think>", close="</mm:think>")
        calls = tuple(_without_null(call) for call in message.tool_calls)
        if (message.text, calls) != (given.text, given.tool_calls):
            w.changed.append(index)
        message = with_parts(message, reasoning=message.reasoning, text=message.text)
        self.turns.begin(w, "assistant", index)
        since = len(w.pieces)
        start = self._think(w, message.reasoning, index)
        w.text(message.text, "written", index)
        _write_calls(w, message, index)
        if calls != message.tool_calls:
            message = replace(message, tool_calls=calls)
        check_written(
            w, _SYNTAX, message, index,
            since=since, tools=conversation.tools, start=start,
            doubtful=any(_ELEMENTS.doubtful(call, conversation.tools) for call in calls),
            problem="its arguments would be read as something else: elements have no quotes; "
            "give the tool's schema, or values of the types that it asks for",
        )  # fmt: skip
        self.turns.finish(w, "assistant", index)

    @property
    def _closes(self) -> Author:
        """The author of the mark that a message without reasoning begins with."""
        return "written" if self.thinking == "adaptive" else "frame"

    def _think(self, w: Writer, reasoning: str, index: int) -> Start:
        """The reasoning block: the prompt's part of it is the frame's, the rest is written."""
        if not reasoning:
            w.put("</mm:think>", self._closes, index)
            return "content"
        w.put("<mm:think>", "frame" if self.thinking == "enabled" else "written", index)
        w.text(reasoning, "written", index)
        w.put("</mm:think>", "written", index)
        return "reasoning" if self.thinking == "enabled" else "content"


def _write_calls(w: Writer, message: Message, index: int) -> None:
    if message.tool_calls:
        parts = [part for call in message.tool_calls for part in _ELEMENTS.write(call)]
        w.parts([*_ELEMENTS.opens, *parts, *_ELEMENTS.closes], index)
    if message.invalid_tool_calls:
        w.put(invalid_text(message), "written", index)


def _without_null(call: ToolCall) -> ToolCall:
    """A call as it can be written: fields that are null are left out."""
    if set(map(type, call.arguments.values())) <= {str}:  # nearly always
        return call
    arguments = {k: _bare(v) for k, v in call.arguments.items() if v is not None}
    return ToolCall(call.name, arguments, call.id) if arguments != call.arguments else call


def _bare(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {k: _bare(v) for k, v in value.items() if v is not None}
    return [_bare(item) for item in value] if isinstance(value, list) else value


@cache
def _usuals(family: MiniMaxM3) -> Usuals:
    return Usuals(family.usual)


FORMAT = MiniMaxM3()
