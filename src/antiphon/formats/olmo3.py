"""OLMo 3: ChatML turns, calls as lines of Python between <function_calls> marks.

    <|im_start|>assistant
    Let me look.<function_calls>get_weather(city="Lima")
    clock()</function_calls><|im_end|>
    <|im_start|>environment
    19 degrees<|im_end|>

Values of arguments are JSON.  The last message of a conversation, if it is the assistant's, ends
with ``<|endoftext|>``, earlier ones with ``<|im_end|>``.  The family's text has no reasoning, which
is left out.  Messages that are not written as they once were are listed in `Rendered.changed`.

Differs from upstream: nothing.
Source: the chat template of allenai/Olmo-3.1-32B-Instruct; for Olmo 3, whose own words differ, its
texts in ollama's ``model/renderers/olmo3_test.go``, whose prompts end with one more line feed than
their turns begin with and than is written here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules
from antiphon.formats._pythonic import BARE_LINES, PythonCalls, call_node, call_text
from antiphon.formats._render import (
    CHATML,
    Turns,
    Writer,
    check_written,
    inline_reasoning,
    invalid_text,
    of_tools,
    refuse_images,
    says_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._spelled_grammar import Spelling, quoted
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec, dump_json

Version = Literal["3", "3.1"]

_TURNS = Turns(roles=(("tool", "environment"),))
_CALLS, _CALLS_END, _EOS = "<function_calls>", "</function_calls>", "<|endoftext|>"
_SYNTAX = Syntax(
    blocks=(Block(_CALLS, PythonCalls(_CALLS_END, lines=True, stops=(_CALLS,)), token=True),),
    doubled=(_CALLS_END,),
    unmarked=BARE_LINES,
)
_IDENTITY = {
    "3": "You are a helpful function-calling AI assistant. ",
    "3.1": "You are Olmo, a helpful AI assistant built by Ai2. Your date cutoff is December 2024, "
    "and your model weights are available at https://huggingface.co/allenai. ",
}
_NO_TOOLS = "You do not currently have access to any functions. <functions></functions>"
_HOW = (
    "You are provided with function signatures within <functions></functions> XML tags. You may "
    "call one or more functions to assist with the user query. Output any function calls within "
    "<function_calls></function_calls> XML tags. Do not make assumptions about what values to plug "
    "into functions."
)
_JSON = Spelling("json", dump_json, quoted('"', escapes='"\\/bfnrt'))


@dataclass(frozen=True, slots=True)
class Olmo3(Family):
    """The OLMo 3 instruct families."""

    version: Version = "3.1"
    """Which of the family's texts; they differ in what the system turn says by itself."""

    name = "olmo3"
    models = ("allenai/Olmo-3.1-*-Instruct*",)
    aliases = {"olmo3_1": {}, "allenai/Olmo-3-*-Instruct*": {"version": "3"}}
    signs = ("<functions>", "<function_calls>", "environment")
    stop = ("<|im_end|>", _EOS)
    prefix_stable = False
    turns = _TURNS
    specials = CHATML.specials | {_CALLS, _CALLS_END, _EOS}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""

        def call(spec: ToolSpec, rules: Rules) -> Node:
            return call_node(spec, rules, _JSON)

        return CallForm(
            call,
            open=_CALLS,
            between="\n",
            close=_CALLS_END,
            forbidden=(_CALLS, _CALLS_END, _EOS, "<|im_end|>", "<|im_start|>"),
            specials=self.specials,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages, tools = conversation.messages, conversation.tools
        refuse_images(w, messages)
        listing = of_tools(_tools_text, tools) if tools else ""
        if not says_system(w, messages):
            _TURNS.begin(w, "system", None)
            w.text(_IDENTITY[self.version] + (_HOW if tools else _NO_TOOLS) + listing, "frame")
            _TURNS.finish(w, "system", None)
        for index in w.walk(self, messages, tools=tools):
            message = messages[index]
            _TURNS.begin(w, message.role, index)
            if message.role == "assistant":
                _assistant(w, conversation, index)
                continue
            w.text(message.text, "given", index)
            w.text(listing if message.role == "system" else "", "frame", index)
            _TURNS.finish(w, message.role, index)
        if generate:
            if messages and messages[-1].role == "assistant":
                w.text(_TURNS.between, "frame")
            _TURNS.begin(w, "assistant", None)
        return w.done()


def _assistant(w: Writer, conversation: Conversation, index: int) -> None:
    message = inline_reasoning(conversation.messages[index])
    if message.reasoning:
        w.changed.append(index)
        message = with_parts(message, reasoning="", text=message.text)
    since = len(w.pieces)
    w.text(message.text, "written", index)
    if message.tool_calls:
        w.mark(_CALLS, "written", index)
        calls = [call_text(w, call, index, dump_json) for call in message.tool_calls]
        w.text("\n".join(calls), "written", index)
        w.mark(_CALLS_END, "written", index)
    w.put(invalid_text(message), "written", index)
    check_written(w, _SYNTAX, message, index, since=since, tools=conversation.tools)
    if index + 1 == len(conversation.messages):
        w.mark(_EOS, "written", index)
    else:
        w.changed.append(index)
        _TURNS.finish(w, "assistant", index)


def _tools_text(tools: Sequence[ToolSpec]) -> str:
    return f"<functions>{dump_json([spec.to_openai() for spec in tools])}</functions>"


FORMAT = Olmo3()
