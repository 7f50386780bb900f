"""Granite 3.0 to 3.3: role marks, tools in a turn of their own, calls as one JSON array behind a
mark.

    <|start_of_role|>assistant<|end_of_role|><|tool_call|>[{"name": "get_weather", "arguments":
    {"city": "Lima"}}]<|end_of_text|>
    <|start_of_role|>tool_response<|end_of_role|>{"celsius": 19}<|end_of_text|>

(The lines above are broken for reading.)  No mark closes the array.  Reasoning is left out and its
messages are listed in `Rendered.changed`.  The parser also reads ``<tool_call>[...]``, and
reasoning in ``<think>`` with the answer in ``<response>``, as 3.3 writes when it is asked to think.

Differs from upstream: the published templates know no calls and print what stands in the text;
calls are written as their instructions and the Ollama library's templates for these models say.
The date in the default system text is `date`, not the day of rendering.
Source: chat templates of granite3-dense, granite3.1-moe and granite3.3 in @huggingface/ollama-utils
0.0.18 (with the Ollama library's for calls and results);
``ibm-granite-granite-3.3-2B-Instruct.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    as_said,
    calls_json,
    indented,
    of_tools,
    refuse_images,
    refuse_late_systems,
    spec_value,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, called, given, json_head
from antiphon.messages import Conversation, ToolSpec, indented_json

MARK = "<|tool_call|>"
_TURNS = Turns(
    open="<|start_of_role|>{role}<|end_of_role|>",
    end="<|end_of_text|>",
    specials=frozenset({"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"}),
    roles=(("tool", "tool_response"),),
)
_SYNTAX = Syntax(
    blocks=tuple(
        Block(mark, JsonCalls(array=True, next_block=(MARK, "<tool_call>")))
        for mark in (MARK, "<tool_call>")
    ),
    thinking=(Thinking(),),
    bare=JsonCalls(bare_note="bare_json", array=True),
    ignored=("<response>", "</response>"),
)
_WHO = {
    "3.1": (
        "Knowledge Cutoff Date: April 2024.\nToday's Date: {date}.\n"
        "You are Granite, developed by IBM."
    ),
    "3.3": (
        "Knowledge Cutoff Date: April 2024. Today's Date: {date}. You are Granite, developed by "
        "IBM."
    ),
}
_HOW = {
    "3.1": (
        " You are a helpful AI assistant with access to the following tools. When a tool is "
        "required to answer the user's query, respond with <|tool_call|> followed by a JSON list "
        "of tools used. If a tool does not exist in the provided list of tools, notify the user "
        "that you do not have the ability to fulfill the request."
    ),
    "3.3": (
        " You are a helpful assistant with access to the following tools. When a tool is required "
        "to answer the user's query, respond only with <|tool_call|> followed by a JSON list of "
        "tools used. If a tool does not exist in the provided list of tools, notify the user that "
        "you do not have the ability to fulfill the request."
    ),
}


@dataclass(frozen=True, slots=True)
class Granite3(Family):
    """The Granite 3.0, 3.1, 3.2 and 3.3 families."""

    version: Literal["3.0", "3.1", "3.3"] = "3.3"
    """Whose text; 3.2 has that of 3.1, and 3.0 has no default system turn."""
    date: str = "June 30, 2025"
    """Today's date as the default system text says it."""

    name = "granite3"
    models = ("ibm-granite/granite-3.3-*",)
    aliases = {
        "granite": {},
        "granite3_0": {"version": "3.0"},
        "granite3_1": {"version": "3.1"},
        "granite3_2": {"version": "3.1"},
        "granite3_3": {},
        "ibm-granite/granite-3.0-*": {"version": "3.0"},
        "ibm-granite/granite-3.1-*": {"version": "3.1"},
        "ibm-granite/granite-3.2-*": {"version": "3.1"},
    }
    signs = ("<|start_of_role|>", "<|tool_call|>")
    stop = ("<|end_of_text|>",)
    turns = _TURNS
    specials = _TURNS.specials | {MARK}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            around=(f"{MARK}[", "]"),
            between=", ",
            before="",
            forbidden=(MARK, "<tool_call>"),
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        if self.version != "3.0":
            self._system(w, conversation, system)
            self._tools(w, conversation)
            refuse_late_systems(w, messages, first)
        else:
            self._tools(w, conversation)
            first = 0
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            message = messages[index]
            if message.role != "assistant":
                _TURNS.whole(w, message.role, message.text, index)
                continue
            _TURNS.begin(w, "assistant", index)
            said = as_said(w, message, index, text=message.text)
            calls = (MARK, calls_json(said.tool_calls)) if said.tool_calls else ()
            write_answer(w, _SYNTAX, conversation, said, index, *calls)
            _TURNS.finish(w, "assistant", index)
        if generate:
            _TURNS.begin(w, "assistant", None)
        return w.done()

    def _system(self, w: Writer, conversation: Conversation, system: str | None) -> None:
        index = None if system is None else 0
        _TURNS.begin(w, "system", index)
        if system is None:
            w.text(_WHO[self.version].replace("{date}", self.date), "frame")
            if conversation.tools:
                w.put(_HOW[self.version], "frame")
            else:
                w.text(" You are a helpful AI assistant.", "frame")
        w.text(system or "", "given", index)
        _TURNS.finish(w, "system", index)

    def _tools(self, w: Writer, conversation: Conversation) -> None:
        if not conversation.tools:
            return
        role = {"3.0": "available_tools", "3.1": "tools", "3.3": "available_tools"}[self.version]
        _TURNS.begin(w, role, None)
        if self.version == "3.0":
            w.text("\n" + of_tools(indented, conversation.tools).removesuffix("\n\n"), "frame")
        else:
            w.text(of_tools(_listing, conversation.tools), "frame")
        _TURNS.finish(w, role, None)


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as one indented list."""
    return indented_json([spec_value(spec) for spec in tools])


def _usual(place: Place) -> Usual | None:
    match place.kind:
        case "assistant":
            return answered(_TURNS.frame("assistant", specials=Granite3.specials), _SYNTAX)
        case "calls":
            frame = _TURNS.frame("assistant", MARK, specials=Granite3.specials)
            return called(frame, json_head("["), "}]")
        case role:
            return given(_TURNS.frame(role))


_USUAL = Usuals(_usual)
FORMAT = Granite3()
