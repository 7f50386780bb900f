"""Granite 4.0 and 4.1: role marks, tools as JSON lines in the system turn, Hermes calls.

    <|start_of_role|>assistant<|end_of_role|><tool_call>
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    </tool_call><|end_of_text|>

Reasoning is left out and its messages are listed in `Rendered.changed`.

Differs from upstream: nothing; documents are not rendered.
Source: ``ibm-granite-granite-4.0.jinja`` and ``-4.1.jinja`` in the source of llama-cpp-python
0.3.36.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal

from antiphon.formats import _qwen as qwen
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._render import (
    Turns,
    Writer,
    check_written,
    is_first_result,
    is_last_result,
    refuse_images,
    spec_json,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Usuals
from antiphon.messages import Conversation

TURNS = Turns(
    open="<|start_of_role|>{role}<|end_of_role|>",
    end="<|end_of_text|>",
    specials=frozenset({"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"}),
)
_RESULT = "\n<tool_response>\n", "\n</tool_response>"
_DEFAULT = (
    "You are a helpful assistant. Please ensure responses are professional, accurate, and safe."
)
_TOOLS = (
    "You are a helpful assistant with access to the following tools. You may call one or more "
    "tools to assist with the user query.\n\nYou are provided with function signatures within "
    "<tools></tools> XML tags:\n<tools>"
)
_HOW = (
    "\n</tools>\n\nFor each tool call, return a json object with function name and arguments "
    "within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>. If a tool does not '
    "exist in the provided list of tools, notify the user that you do not have the ability to "
    "fulfill the request."
)


@dataclass(frozen=True, slots=True)
class Granite4(Family):
    """The Granite 4.0 and 4.1 families."""

    version: Literal["4.0", "4.1"] = "4.0"
    """Whose text; 4.1 has no default system turn."""

    name = "granite4"
    models = ("ibm-granite/granite-4.0-*",)
    aliases = {
        "granite4_1": {"version": "4.1"},
        "ibm-granite/granite-4.1-*": {"version": "4.1"},
    }
    signs = ("<|start_of_role|>", "tools_system_message_prefix")
    stop = ("<|end_of_text|>",)
    turns = TURNS
    specials = TURNS.specials | qwen.CALL_MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return qwen.SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(self.specials, open="<tool_call>\n", close="\n</tool_call>")

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        self._system(w, conversation)
        first = split_system(conversation)[1]
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            self._message(w, conversation, index)
        if generate:
            TURNS.begin(w, "assistant", None)
        return w.done()

    def _system(self, w: Writer, conversation: Conversation) -> None:
        system, first = split_system(conversation)
        index = 0 if first else None
        has_text = bool(system) or bool(conversation.tools)
        if not has_text and self.version == "4.1":
            return
        TURNS.begin(w, "system", index)
        if not has_text:
            w.text(_DEFAULT, "frame", index)
        w.text(system or "", "given", index)
        if conversation.tools:
            w.text("\n\n" if first else "", "frame", index)
            listing = "".join("\n" + spec_json(spec) for spec in conversation.tools)
            w.text(_TOOLS + listing, "frame", index)
            w.put(_HOW, "frame", index)
        TURNS.finish(w, "system", index)

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        messages = conversation.messages
        message = messages[index]
        if message.role == "tool":
            if is_first_result(messages, index):
                TURNS.begin(w, "user", index)
            w.text(_RESULT[0], "frame", index)
            w.text(message.text, "given", index)
            w.text(_RESULT[1], "frame", index)
            if is_last_result(messages, index):
                TURNS.finish(w, "user", index)
        elif message.role != "assistant":
            TURNS.whole(w, message.role, message.text, index)
        else:
            if message.reasoning:
                w.changed.append(index)
                message = with_parts(message, reasoning="", text=message.text)
            TURNS.begin(w, "assistant", index)
            since = len(w.pieces)
            w.text(message.text, "written", index)
            qwen.write_calls(w, message, index, after_text=bool(message.text))
            check_written(w, self.syntax, message, index, since=since, tools=conversation.tools)
            TURNS.finish(w, "assistant", index)


_USUAL = Usuals(partial(qwen.usual, specials=Granite4.specials, turns=TURNS, result=_RESULT))
FORMAT = Granite4()
