"""MiniMax-M1: sentence marks, calls as one JSON object a line between <tool_calls> and
</tool_calls>.

    <beginning_of_sentence>ai name=assistant
    <tool_calls>
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    </tool_calls><end_of_sentence>
    <beginning_of_sentence>tool name=tools
    tool result: {"celsius": 19}

    <end_of_sentence>

Text is trimmed; text beside calls and reasoning are left out.  Such messages are listed in
`Rendered.changed`.

Differs from upstream: nothing.
Source: ``MiniMax-M1.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    call_json,
    check_written,
    invalid_text,
    refuse_images,
    spec_json,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, called, given, json_head
from antiphon.messages import Conversation, ToolCall

OPEN, CLOSE = "<tool_calls>", "</tool_calls>"
TURNS = Turns(
    open="<beginning_of_sentence>{role}\n",
    end="<end_of_sentence>",
    specials=frozenset({"<begin_of_document>", "<beginning_of_sentence>", "<end_of_sentence>"}),
    roles=(("assistant", "ai name=assistant"), ("user", "user name=user")),
    before_all="<begin_of_document>",
)
_SYNTAX = Syntax(
    blocks=(
        Block(OPEN, JsonCalls(CLOSE, several=True, next_block=(OPEN,)), before="\n"),
        *json_blocks(OPEN),
    ),
    thinking=(Thinking(),),
    bare=JsonCalls(bare_note="bare_json"),
    doubled=(CLOSE,),
)
_TOOL = "tool name=tools"
_RESULT = "tool result: ", "\n\n"
_DEFAULT_SYSTEM = "You are a helpful assistant created by Minimax based on MiniMax-M1 model."
_HOW = (
    "</tools>\n\nIf you need to call tools, please respond with <tool_calls></tool_calls> XML "
    "tags, and provide tool-name and json-object of arguments, following the format below:\n"
    '<tool_calls>\n{"name": <tool-name>, "arguments": <args-json-object>}\n...\n</tool_calls>'
)


@dataclass(frozen=True, slots=True)
class MiniMaxM1(Family):
    """The MiniMax-M1 family."""

    name = "minimax_m1"
    models = ("MiniMaxAI/MiniMax-M1-*",)
    signs = ("<beginning_of_sentence>", "<tool_calls>")
    stop = ("<end_of_sentence>",)
    turns = TURNS
    specials = TURNS.specials

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            around=(f"{OPEN}\n", f"\n{CLOSE}"),
            forbidden=(OPEN, *sorted(self.specials)),
            text_before=False,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        w.put(TURNS.before_all, "frame")
        text = _DEFAULT_SYSTEM if system is None else system.strip()
        if text:
            index = 0 if first else None
            TURNS.begin(w, "system ai_setting=assistant", index)
            w.text(text, "given" if first else "frame", index)
            TURNS.finish(w, "system", index)
        if conversation.tools:
            TURNS.begin(w, "system tool_setting=tools", None)
            listing = "".join(f"{spec_json(spec)}\n" for spec in conversation.tools)
            w.text(f"You are provided with these tools:\n<tools>\n{listing}{_HOW}", "frame")
            TURNS.finish(w, "system", None)
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            self._message(w, conversation, index)
        if generate:
            TURNS.begin(w, "assistant", None)
        return w.done()

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        match message.role:
            case "system":
                raise w.refuse(
                    "a system message must come first; join system messages into one", index
                )
            case "user":
                TURNS.whole(w, "user", message.text.strip(), index)
            case "tool":
                TURNS.begin(w, _TOOL, index)
                w.text(_RESULT[0], "frame", index)
                w.text(message.text, "given", index)
                w.text(_RESULT[1], "frame", index)
                TURNS.finish(w, _TOOL, index)
            case "assistant":
                TURNS.begin(w, "assistant", index)
                self._assistant(w, conversation, index)
                TURNS.finish(w, "assistant", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        given = conversation.messages[index]
        text = "" if given.tool_calls else given.text.strip()
        if given.reasoning or text != given.text:
            w.changed.append(index)
        message = with_parts(given, reasoning="", text=text)
        since = len(w.pieces)
        w.text(text + _calls_text(message.tool_calls), "written", index)
        w.text(invalid_text(message), "written", index)
        check_written(w, _SYNTAX, message, index, since=since, tools=conversation.tools)


def _calls_text(calls: Sequence[ToolCall]) -> str:
    lines = "".join([f"{call_json(call)}\n" for call in calls])
    return f"{OPEN}\n{lines}{CLOSE}" if lines else ""


def _usual(place: Place) -> Usual | None:
    match place.kind:
        case "assistant":
            return answered(TURNS.frame("assistant"), _SYNTAX, trims=True)
        case "calls":
            return called(TURNS.frame("assistant"), json_head(f"{OPEN}\n"), f"}}\n{CLOSE}")
        case "tool":
            return given(TURNS.frame(_TOOL, *_RESULT))
        case "user":
            return given(TURNS.frame("user"), str.strip)
        case _:
            return None


_USUAL = Usuals(_usual)
FORMAT = MiniMaxM1()
