"""LFM2 and LFM2.5: ChatML turns, calls as a Python list between marks.

    <|im_start|>assistant
    Let me look.<|tool_call_start|>[get_weather(city='Lima'), clock()]<|tool_call_end|><|im_end|>

Strings stand in single quotes; `lfm2` writes other values that hold values as JSON, `lfm2_5` an
array as Python prints it.  LFM2.5 reasons in ``<think>`` and shows that again behind the last user
message only; LFM2 does not reason.

Differs from upstream: LFM2.5 escapes quotes, backslashes and line breaks of a string as LFM2 does;
its template writes them as they are, so that the call could not be read.
Source: ``lfm2_v2.jinja`` and ``lfm2_2_5_v2.jinja`` as trl 1.16 ships them.
"""

import re
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules
from antiphon.formats._pythonic import BARE_LINES, PythonCalls, call_node, call_text, called
from antiphon.formats._render import (
    CHATML,
    Writer,
    check_written,
    inline_reasoning,
    last_user,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._schema_grammar import SchemaMaker
from antiphon.formats._spelled_grammar import Spelling, quoted
from antiphon.formats._tagged_grammar import PythonMaker
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, given
from antiphon.messages import Conversation, JsonValue, ToolSpec, dump_json

Edition = Literal["lfm2", "lfm2_5"]

_CALLS, _CALLS_END = "<|tool_call_start|>", "<|tool_call_end|>"
_LIST, _LIST_END = "<|tool_list_start|>", "<|tool_list_end|>"
_RESULT, _RESULT_END = "<|tool_response_start|>", "<|tool_response_end|>"
_SYNTAX = Syntax(
    blocks=(Block(_CALLS, PythonCalls(_CALLS_END, stops=(_CALLS,)), token=True),),
    thinking=(Thinking(after_open="", before_close="", after_close=""),),
    bare=PythonCalls(bare_note="bare_calls"),
    ignored=(_CALLS_END,),
    unmarked=BARE_LINES,
)
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"})
_ESCAPED = re.compile(r"[\\'\n\r]")


def _argument(value: JsonValue, *, printed: bool) -> str:
    """A value as the family writes it."""
    if isinstance(value, str):
        return "'" + (value.translate(_ESCAPES) if _ESCAPED.search(value) else value) + "'"
    if isinstance(value, dict) or (isinstance(value, list) and not printed):
        return dump_json(value)
    return repr(value)


@dataclass(frozen=True, slots=True)
class LFM2(Family):
    """The LFM2 family."""

    edition: Edition = "lfm2"
    """Which of the family's texts: ``lfm2``, ``lfm2_5``."""
    preserve_thinking: bool = False
    """Whether LFM2.5 is shown all earlier reasoning."""

    name = "lfm2"
    models = ("LiquidAI/LFM2-*",)
    aliases = {"lfm2_5": {"edition": "lfm2_5"}, "LiquidAI/LFM2.5-*": {"edition": "lfm2_5"}}
    signs = ("<|tool_call_start|>", "List of tools: ")
    stop = ("<|im_end|>", "<|endoftext|>")
    prefix_stable = False
    specials = CHATML.specials | frozenset(
        {
            *("<|startoftext|>", _CALLS, _CALLS_END, _LIST, _LIST_END, _RESULT, _RESULT_END),
            *("<think>", "</think>"),
        }
    )

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        printed = self.edition == "lfm2_5"
        spelling = Spelling(
            "lfm2",
            lambda value: _argument(value, printed=printed),
            quoted("'", escapes="\\'nr"),
            inside=(SchemaMaker, PythonMaker if printed else SchemaMaker),
        )

        def call(spec: ToolSpec, rules: Rules) -> Node:
            return call_node(spec, rules, spelling)

        return CallForm(
            call,
            open=f"{_CALLS}[",
            between=", ",
            close=f"]{_CALLS_END}",
            forbidden=(_CALLS, _CALLS_END, "<|im_end|>", "<|im_start|>", "</think>"),
            thinking=("<think>", "</think>") if printed else None,
            specials=self.specials,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        w.mark("<|startoftext|>", "frame")
        if system or conversation.tools:
            index = 0 if first else None
            CHATML.begin(w, "system", index)
            w.text(system or "", "given", index)
            if conversation.tools:
                w.text("\n" if system else "", "frame", index)
                self._tools(w, conversation, index)
            CHATML.finish(w, "system", index)
        query = last_user(messages)
        walk = w.walk(
            self, messages, first, tools=conversation.tools, shown_from=query, usual=_usuals(self)
        )
        for index in walk:
            message = messages[index]
            if message.role == "tool" and self.edition == "lfm2":
                CHATML.around(w, "tool", _RESULT, message.text, _RESULT_END, index)
                continue
            if message.role != "assistant":
                CHATML.whole(w, message.role, message.text, index)
                continue
            CHATML.begin(w, "assistant", index)
            shown = self.preserve_thinking or index > query
            self._assistant(w, conversation, index, shown=shown and self.edition == "lfm2_5")
            CHATML.finish(w, "assistant", index)
        if generate:
            CHATML.begin(w, "assistant", None)
        return w.done()

    def usual(self, place: Place) -> Usual | None:
        """How messages are written as most are; see `_usual.py`."""
        marks = ("", "")
        if place.kind == "calls":
            marks = (_CALLS, _CALLS_END)
        elif place.kind == "tool" and self.edition == "lfm2":
            marks = (_RESULT, _RESULT_END)
        frame = CHATML.frame(place.role, *marks, specials=self.specials)
        match place.kind:
            case "calls":
                return called(frame, partial(_argument, printed=self.edition == "lfm2_5"))
            case "assistant":
                return answered(frame, _SYNTAX)
            case _:
                return given(frame)

    def _tools(self, w: Writer, conversation: Conversation, index: int | None) -> None:
        marks = (_LIST, _LIST_END) if self.edition == "lfm2" else ("", "")
        w.put(f"List of tools: {marks[0]}", "frame", index)
        listing = dump_json([tool.to_openai() for tool in conversation.tools])
        w.text(listing, "frame", index)
        w.put(marks[1], "frame", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shown: bool) -> None:
        message = inline_reasoning(conversation.messages[index])
        if message.reasoning and not shown:
            w.changed.append(index)
            message = with_parts(message, reasoning="", text=message.text)
        since = len(w.pieces)
        if message.reasoning:
            w.mark("<think>", "written", index)
            w.text(message.reasoning, "written", index)
            w.mark("</think>", "written", index)
        w.text(message.text, "written", index)
        if message.tool_calls:
            printed = self.edition == "lfm2_5"
            calls = [
                call_text(w, call, index, lambda value: _argument(value, printed=printed))
                for call in message.tool_calls
            ]
            w.mark(_CALLS, "written", index)
            w.text("[" + ", ".join(calls) + "]", "written", index)
            w.mark(_CALLS_END, "written", index)
        for call in message.invalid_tool_calls:
            w.put(call.raw, "written", index)
        check_written(w, _SYNTAX, message, index, since=since, tools=conversation.tools)


@cache
def _usuals(family: LFM2) -> Usuals:
    return Usuals(family.usual)


FORMAT = LFM2()
