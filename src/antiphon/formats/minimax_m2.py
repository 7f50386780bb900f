"""MiniMax-M2, M2.5 and M2.7: turns between ]~b] and [e~[, all calls of a message in one block.

    ]~b]ai
    <think>
    The user wants the weather.
    </think>

    Let me look.
    <minimax:tool_call>
    <invoke name="get_weather">
    <parameter name="city">Lima</parameter>
    </invoke>
    </minimax:tool_call>[e~[

The family always reasons: the prompt opens the block.  Reasoning is shown again only behind the
last user message; messages that lose it are listed in `Rendered.changed`.  The versions differ in
what the model is told that it is where there is no system message.

Differs from upstream: the current date and location of a system message are not written.
Source: the chat templates of MiniMax-M2, MiniMax-M2.5 and MiniMax-M2.7 as xinference 4.1 ships
them.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from antiphon.formats import _minimax as minimax
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._kin import tag_blocks
from antiphon.formats._render import (
    Writer,
    inline_reasoning,
    last_user,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged, called, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered, Start
from antiphon.formats._usual import Place, Usual, Usuals, answered
from antiphon.messages import Conversation

Version = Literal["2", "2.5", "2.7"]

_TAGS = Tagged(
    open="<minimax:tool_call>\n",
    close="</minimax:tool_call>",
    several=True,
    call='<invoke name="',
    named='">\n',
    call_close="</invoke>\n",
    key='<parameter name="',
    keyed='">',
    value_close="</parameter>\n",
)
_SYNTAX = Syntax(
    blocks=(
        Block("<minimax:tool_call>", _TAGS, before="\n"),
        Block("<invoke", _TAGS, before="\n", lost=True),
        *tag_blocks(_TAGS),
    ),
    thinking=(Thinking(),),
    doubled=("</minimax:tool_call>",),
)
_HOW = (
    "When making tool calls, use XML format to invoke tools and pass parameters:\n\n"
    '<minimax:tool_call>\n<invoke name="tool-name-1">\n'
    '<parameter name="param-key-1">param-value-1</parameter>\n'
    '<parameter name="param-key-2">param-value-2</parameter>\n'
    "...\n</invoke>\n</minimax:tool_call>"
)


@dataclass(frozen=True, slots=True)
class MiniMaxM2(Family):
    """The MiniMax-M2 family."""

    version: Version = "2"
    """Which of the family's texts; 2.1 is as 2."""

    name = "minimax_m2"
    models = ("MiniMaxAI/MiniMax-M2*",)
    aliases = {
        "minimax_m2_1": {},
        "minimax_m2_5": {"version": "2.5"},
        "minimax_m2_7": {"version": "2.7"},
        "MiniMaxAI/MiniMax-M2.5*": {"version": "2.5"},
        "MiniMaxAI/MiniMax-M2.7*": {"version": "2.7"},
    }
    signs = ("minimax:tool_call", "]~b]")
    stop = ("[e~[",)
    prefix_stable = False
    turns = minimax.TURNS
    specials = minimax.TURNS.specials | {
        "<minimax:tool_call>", "</minimax:tool_call>", "<think>", "</think>",
    }  # fmt: skip

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(
            _TAGS, self.specials,
            before="\n", end=self.stop, always=True, thinking=("<think>\n", "\n</think>\n\n"),
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        w.put(self.turns.before_all, "frame")
        minimax.write_system(
            w, self.turns, "system", system, self._identity, conversation.tools, _HOW,
            index=0 if first else None,
        )  # fmt: skip
        query = last_user(messages)
        tools = conversation.tools
        usual = _usuals(self)
        for index in w.walk(self, messages, first, tools=tools, shown_from=query, usual=usual):
            if messages[index].role == "assistant":
                self._assistant(w, conversation, index, shows=index > query)
            else:
                minimax.write_given(w, self.turns, messages, index)
        if not generate:
            return w.done()
        self.turns.begin(w, "assistant", None)
        w.put("<think>\n", "frame")
        return w.done(start="reasoning")

    @property
    def _identity(self) -> str:
        if self.version == "2":
            return "You are a helpful assistant."
        name = f"MiniMax-M{self.version}"
        return f"You are a helpful assistant. Your name is {name} and is built by MiniMax."

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shows: bool) -> None:
        message = inline_reasoning(conversation.messages[index])
        if message.reasoning and (not shows or message.reasoning.startswith("\n")):
            w.changed.append(index)
        self.turns.begin(w, "assistant", index)
        since = len(w.pieces)
        start: Start = "content"
        if message.reasoning and shows:
            w.put("<think>\n", "frame", index)
            w.text(f"{message.reasoning}\n", "written", index)
            w.put("</think>\n\n", "written", index)
            start = "reasoning"
        elif message.reasoning:
            message = with_parts(message, reasoning="", text=message.text)
        w.text(message.text, "written", index)
        write_calls(w, _TAGS, message, index, before="\n")
        if index not in w.changed or start == "content":
            check_calls(
                w, _TAGS, _SYNTAX, message, index,
                since=since, tools=conversation.tools, start=start,
            )  # fmt: skip
        self.turns.finish(w, "assistant", index)


@cache
def _usuals(family: MiniMaxM2) -> Usuals:
    def usual(place: Place) -> Usual | None:
        frame = family.turns.frame("assistant", specials=family.specials)
        match place.kind:
            case "calls":
                return called(frame, _TAGS, lead="\n")
            case "assistant":
                return answered(frame, _SYNTAX)
            case _:
                return minimax.usual(place, family.turns, family.specials)

    return Usuals(usual)


FORMAT = MiniMaxM2()
