"""xLAM 2: calls as one bare JSON array, in Llama's or Qwen's turns.

    <|start_header_id|>assistant<|end_header_id|>

    [{"name": "get_weather", "arguments": {"city": "Lima"}}]<|eot_id|>

The array is the whole answer: text beside calls is left out, reasoning is too, and such messages
are listed in `Rendered.changed`.  The parser also reads arrays in a fence, behind ``[TOOL_CALLS]``,
in ``<tool_call>``, and behind reasoning.

Differs from upstream: nothing.
Source: ``examples/tool_chat_template_xlam_llama.jinja`` and ``..._xlam_qwen.jinja`` in the source
of vllm 0.33.0.
"""

from dataclasses import dataclass
from typing import Literal

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    CHATML,
    Turns,
    Writer,
    as_said,
    calls_json,
    indented,
    of_tools,
    refuse_images,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Rendered
from antiphon.formats.llama3_1 import TURNS
from antiphon.messages import Conversation

_SYNTAX = Syntax(
    blocks=(
        Block("<tool_call>", JsonCalls("</tool_call>", array=True, next_block=("<tool_call>",))),
        Block("[TOOL_CALLS]", JsonCalls(array=True)),
        *json_blocks("<tool_call>"),
    ),
    thinking=(Thinking(),),
    bare=JsonCalls(array=True),
    bare_is_native=True,
)
_DEFAULT = "You are a helpful assistant. You are developed by Salesforce xLAM team."
_HOW = """\
You have access to a set of tools. When using tools, make calls in a single JSON array:\x20

[{"name": "tool_call_name", "arguments": {"arg1": "value1", "arg2": "value2"}}, ... \
(additional parallel tool calls as needed)]

If no tool is suitable, state that explicitly. If the user's input lacks required parameters, ask \
for clarification. Do not interpret or respond until tool results are returned. Once they are \
available, process them or make additional calls if needed. For tasks that don't require tools, \
such as casual conversation or general advice, respond directly in plain text. The available tools \
are:"""


@dataclass(frozen=True, slots=True)
class Xlam(Family):
    """The xLAM 2 families."""

    frame: Literal["llama", "qwen"] = "llama"
    """Whose turns: ``llama`` for the models on Llama 3.1, ``qwen`` for those on Qwen2.5."""

    name = "xlam"
    models = ("Salesforce/*Llama-xLAM-2-*", "Salesforce/Llama-xLAM-*")
    aliases = {
        "xlam_llama": {},
        "xlam_qwen": {"frame": "qwen"},
        "Salesforce/xLAM-2-*": {"frame": "qwen"},
    }
    signs = ("You are developed by Salesforce xLAM team",)
    stop = ("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|im_end|>", "<|endoftext|>")

    @property
    def turns(self) -> Turns:
        """How turns are framed."""
        return TURNS if self.frame == "llama" else CHATML

    @property
    def specials(self) -> frozenset[str]:
        """Marks that are single tokens."""
        return self.turns.specials

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            around=("[", "]"),
            between=", ",
            forbidden=('[{"name":',),
            text_before=False,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        turns = self.turns
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        w.put(turns.before_all, "frame")
        turns.begin(w, "system", index)
        w.text(_DEFAULT if system is None else system.strip(), "given" if first else "frame", index)
        w.text("\n", "frame", index)
        if conversation.tools:
            w.text("" if first else f"{_HOW}\n\n", "frame")
            w.text(of_tools(indented, conversation.tools), "frame", index)
        turns.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            message = messages[index]
            if message.role != "assistant":
                text = message.text if message.role == "tool" else message.text.strip()
                turns.whole(w, message.role, text, index)
                continue
            turns.begin(w, "assistant", index)
            text = "" if message.tool_calls else message.text.strip()
            said = as_said(w, message, index, text=text)
            calls = calls_json(said.tool_calls) if said.tool_calls else ""
            write_answer(w, _SYNTAX, conversation, said, index, calls)
            turns.finish(w, "assistant", index)
        if generate:
            turns.begin(w, "assistant", None)
        return w.done()


FORMAT = Xlam()
