"""Nemotron Nano v2: numbered marks, calls as one JSON array in <TOOLCALL>, results in a user turn.

    <SPECIAL_11>Assistant
    <think></think>Let me look.
    <TOOLCALL>[{"name": "get_weather", "arguments": {"city": "Lima"}}]</TOOLCALL>
    <SPECIAL_12>
    <SPECIAL_11>User
    <TOOL_RESPONSE>[{"celsius": 19}]</TOOL_RESPONSE>

Reasoning is shown in the last message only; earlier messages are listed in `Rendered.changed`.

Differs from upstream: ``/think`` and ``/no_think`` in what a user or the system says are text, and
`thinking` is what switches; the template never closes the reasoning block of a last answer without
reasoning, and writes a last message with text and calls as two turns.
Source: ``NVIDIA-Nemotron-Nano-v2.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    as_said,
    calls_json,
    functions_json,
    inline_reasoning,
    is_first_result,
    is_last_result,
    of_tools,
    plain_text,
    refuse_images,
    refuse_late_systems,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Around, Author, Rendered, Start
from antiphon.messages import Conversation

_OPEN, _CLOSE = "<TOOLCALL>", "</TOOLCALL>"
_TURNS = Turns(
    open="<SPECIAL_11>{role}\n",
    end="<SPECIAL_12>",
    specials=frozenset({"<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>"}),
    roles=(("user", "User"), ("assistant", "Assistant")),
)
_USER: tuple[str, Author] = ("<SPECIAL_11>User\n", "frame")
_QUESTION = Around((_USER,), "given", (("\n", "frame"),), _TURNS.specials)
_RESULT = Around(
    (_USER, ("<TOOL_RESPONSE>[", "frame")),
    "given",
    (("]</TOOL_RESPONSE>", "frame"),),
    _TURNS.specials,
)
_ANSWER = Around(
    (("<SPECIAL_11>Assistant\n", "frame"),),
    "written",
    (("\n<SPECIAL_12>", "written"), ("\n", "frame")),
    _TURNS.specials,
)
_SYNTAX = Syntax(
    blocks=(
        Block(_OPEN, JsonCalls(_CLOSE, array=True, next_block=(_OPEN,)), before="\n"),
        *json_blocks(_OPEN),
    ),
    thinking=(Thinking(),),
    bare=JsonCalls(bare_note="bare_json", array=True),
    doubled=(_CLOSE,),
)
_HOW = """\
If you decide to call any tool(s), use the following format:
<TOOLCALL>[{{"name": "tool_name1", "arguments": "tool_args1"}}, \
{{"name": "tool_name2", "arguments": "tool_args2"}}]</TOOLCALL>

The user will execute tool-calls and return responses from tool(s) in this format:
<TOOL_RESPONSE>[{{"tool_response1"}}, {{"tool_response2"}}]</TOOL_RESPONSE>

Based on the tool responses, you can call additional tools if needed, correct tool calls if any \
errors are found, or just respond to the user."""


@dataclass(frozen=True, slots=True)
class NemotronNano(Family):
    """The Nemotron Nano v2 family."""

    thinking: bool = True
    """Whether the model reasons."""

    name = "nemotron_nano"
    models = ("nvidia/NVIDIA-Nemotron-Nano-*-v2*",)
    aliases = {"nemotron_nano_v2": {}}
    signs = ("<SPECIAL_10>System", "<TOOLCALL>")
    stop = ("\n<SPECIAL_12>", "<SPECIAL_12>")
    prefix_stable = False
    turns = _TURNS
    specials = _TURNS.specials | {"<think>", "</think>"}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            around=(f"{_OPEN}[", f"]{_CLOSE}"),
            between=", ",
            forbidden=(_OPEN, *sorted(_TURNS.specials)),
            thinking=("<think>\n", "\n</think>\n\n") if self.thinking else None,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        index = 0 if first else None
        text = (system or "").strip()
        w.put("<SPECIAL_10>", "frame", index)
        w.text("System\n", "frame", index)
        w.text(text, "given", index)
        if conversation.tools:
            w.text("\n\n" if text else "", "frame", index)
            w.text("You can use the following tools to assist the user if required:\n", "frame")
            listing = of_tools(functions_json, conversation.tools)
            w.text(f"<AVAILABLE_TOOLS>{listing}</AVAILABLE_TOOLS>\n\n{_HOW}", "frame")
        w.text("\n\n", "frame", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            self._message(w, conversation, index)
        if not generate:
            return w.done()
        _TURNS.begin(w, "assistant", None)
        w.put("<think>\n" if self.thinking else "<think></think>", "frame")
        return w.done(start="reasoning" if self.thinking else "content")

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        messages = conversation.messages
        message = messages[index]
        match message.role:
            case "tool":
                first, last = is_first_result(messages, index), is_last_result(messages, index)
                if first and last:
                    w.around(_RESULT, message.text, index)
                    return
                if first:
                    _TURNS.begin(w, "user", index)
                    w.text("<TOOL_RESPONSE>[", "frame", index)
                w.text(message.text, "given", index)
                w.text("]</TOOL_RESPONSE>" if last else ", ", "frame", index)
            case "user":
                w.around(_QUESTION, message.text.strip(), index)
            case "assistant":
                text = plain_text(_SYNTAX, message)
                if text is not None and text == text.strip() and index + 1 < len(messages):
                    w.changed.append(index)  # as the last message it had a block, if an empty one
                    w.around(_ANSWER, text, index)
                    return
                _TURNS.begin(w, "assistant", index)
                self._assistant(w, conversation, index)
            case _:
                _TURNS.begin(w, message.role, index)
                w.text(message.text.strip(), "given", index)
                w.text("\n", "frame", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        given = inline_reasoning(conversation.messages[index])
        text = given.text.strip()
        is_last = index + 1 == len(conversation.messages)
        calls_only = bool(given.tool_calls) and not text and not given.reasoning
        reasoning = given.reasoning.strip("\n") if is_last and self.thinking else ""
        said = as_said(w, given, index, text=text, reasoning=reasoning)
        since = len(w.pieces)
        start: Start = "content"
        if is_last and self.thinking and not calls_only:
            start = "reasoning"
            w.put("<think>\n", "frame", index)
            w.text(f"{reasoning}\n", "written", index)
            w.put("</think>\n\n", "written", index)
        elif is_last and not calls_only:
            w.put("<think></think>", "frame", index)
        if not is_last or calls_only:
            w.changed.append(index)  # as the last message it had a block, if an empty one
        calls: tuple[str, ...] = ()
        if said.tool_calls:
            calls = ("\n" if text else "", _OPEN, calls_json(said.tool_calls), _CLOSE)
        write_answer(w, _SYNTAX, conversation, said, index, *calls, since=since, start=start)
        if is_last and calls_only:
            w.put("<SPECIAL_12>", "written", index)
            w.text("\n\n", "frame", index)
            return
        w.put("\n<SPECIAL_12>", "written", index)
        w.text("\n", "frame", index)


FORMAT = NemotronNano()
