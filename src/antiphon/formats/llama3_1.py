"""Llama 3.1 to 3.3: header turns, tools as indented JSON in the first user turn, one bare JSON
call.

    <|start_header_id|>assistant<|end_header_id|>

    {"name": "get_weather", "parameters": {"city": "Lima"}}<|eot_id|><|start_header_id|>ipython...

The family writes one call at a time and nothing beside it: parallel calls are refused, text beside
a call is left out as its template does and the message listed in `Rendered.changed`.  Results are
JSON strings.  The parser also reads several calls (``; `` between), ``<|python_tag|>`` in front,
and text around.

Differs from upstream: nothing.
Source: ``llama3_1.jinja`` and ``llama3_2.jinja`` as trl 1.16 ships them; they differ in the
default date.
"""

from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._pythonic import BARE_LINES, PythonCalls
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    call_json,
    check_written,
    indented,
    invalid_text,
    of_tools,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, called, given, json_head
from antiphon.messages import Conversation, Message, ToolSpec, quoted_json

TURNS = Turns(
    open="<|start_header_id|>{role}<|end_header_id|>\n\n",
    end="<|eot_id|>",
    between="",
    before_all="<|begin_of_text|>",
    specials=frozenset(
        {
            "<|begin_of_text|>",
            "<|start_header_id|>",
            "<|end_header_id|>",
            "<|eot_id|>",
            "<|eom_id|>",
            "<|python_tag|>",
        }
    ),
    roles=(("tool", "ipython"),),
)

_CALLS = JsonCalls(arguments=("parameters", "arguments"), python=PythonCalls())
_SYNTAX = Syntax(
    blocks=(Block("<|python_tag|>", _CALLS), *json_blocks()),
    bare=_CALLS,
    bare_is_native=True,
    gap=" \t\r\n;",
    unmarked=BARE_LINES,
)

_HOW = (
    'Respond in the format {"name": function name, "parameters": dictionary of argument name '
    "and its value}.Do not use variables.\n\n"
)
IN_USER = (
    "Given the following functions, please respond with a JSON for a function call with its proper "
    "arguments that best answers the given prompt.\n\n" + _HOW
)
IN_SYSTEM = (
    "You have access to the following functions. To call a function, please respond with JSON "
    "for a function call." + _HOW
)


@dataclass(frozen=True, slots=True)
class Llama31(Family):
    """The Llama 3.1, 3.2 and 3.3 families."""

    date: str = "26 Jul 2024"
    """Today's date as the system turn says it."""
    tools_in_user_message: bool = True
    """Whether tools stand in the first user turn; otherwise in the system turn."""

    name = "llama3_1"
    models = (
        "meta-llama/*Llama-3.1-*",
        "meta-llama/*Llama-3.2-*",
        "meta-llama/*Llama-3.3-*",
    )
    aliases = {"llama3": {}, "llama3_json": {}, "llama3_2": {}, "llama3_3": {}}
    signs = ("<|start_header_id|>", "Environment: ipython")
    stop = ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>")
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
            between="; ",
            arguments="parameters",
            forbidden=('{"name":',),
            parallel=False,
            text_before=False,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        self._system(w, conversation, system, 0 if first else None)
        tools_here = bool(conversation.tools) and self.tools_in_user_message
        if tools_here and (first >= len(messages) or messages[first].role != "user"):
            raise w.refuse(
                "tools stand in the first user message, and there is none; "
                "add one or use tools_in_user_message=False"
            )
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            before = conversation.tools if tools_here and index == first else ()
            self._message(w, conversation, index, before)
        if generate:
            TURNS.begin(w, "assistant", None)
        return w.done()

    def _system(
        self, w: Writer, conversation: Conversation, system: str | None, index: int | None
    ) -> None:
        w.put(TURNS.before_all, "frame", None)
        TURNS.begin(w, "system", index)
        if conversation.tools:
            w.text("Environment: ipython\n", "frame", index)
        today = f"Cutting Knowledge Date: December 2023\nToday Date: {self.date}\n\n"
        w.text(today, "frame", index)
        if conversation.tools and not self.tools_in_user_message:
            w.text(IN_SYSTEM + of_tools(indented, conversation.tools), "frame", index)
        w.text((system or "").strip(), "given", index)
        TURNS.finish(w, "system", index)

    def _message(
        self, w: Writer, conversation: Conversation, index: int, tools: tuple[ToolSpec, ...]
    ) -> None:
        message = conversation.messages[index]
        TURNS.begin(w, message.role, index)
        if tools:
            w.text(IN_USER + of_tools(indented, tools), "frame", index)
        match message.role:
            case "assistant":
                self._assistant(w, conversation, message, index)
            case "tool":
                w.text(quoted_json(message.text), "given", index)
            case _:
                w.text(message.text.strip(), "given", index)
        TURNS.finish(w, message.role, index)

    def _assistant(
        self, w: Writer, conversation: Conversation, message: Message, index: int
    ) -> None:
        calls = message.tool_calls
        if len(calls) > 1:
            raise w.refuse(
                "the family writes one call at a time; split the calls into steps", index
            )
        text = "" if calls else message.text.strip()
        if message.reasoning or text != message.text:
            w.changed.append(index)
        message = with_parts(message, reasoning="", text=text)
        since = len(w.pieces)
        call = call_json(calls[0], arguments="parameters") if calls else ""
        w.text(text + call, "written", index)
        w.put(invalid_text(message), "written", index)
        check_written(w, _SYNTAX, message, index, since=since, tools=conversation.tools)


def _usual(place: Place) -> Usual | None:
    frame = TURNS.frame(place.role)
    match place.kind:
        case "assistant":
            return answered(frame, _SYNTAX, trims=True)
        case "calls":
            return called(frame, json_head(arguments="parameters"), "}")
        case "tool":
            return given(frame, quoted_json)
        case _ if place.before in ("", "system"):
            return None  # tools may stand in the first
        case _:
            return given(frame, str.strip)


_USUAL = Usuals(_usual)

FORMAT = Llama31()
