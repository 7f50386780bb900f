"""Llama 3.2 and ToolACE with calls as a Python list, which is the whole answer.

    <|start_header_id|>assistant<|end_header_id|>

    [get_weather(city="Lima"), clock()]<|eot_id|><|start_header_id|>ipython<|end_header_id|>

Text beside calls is left out, as the instructions ask, and its message listed in
`Rendered.changed`; so is reasoning.  The parser also reads Llama 4's ``<|python_start|>``.

Differs from upstream: values are Python literals, strings in double quotes; the templates write
strings without quotes, which says something else.
Source: ``examples/tool_chat_template_llama3.2_pythonic.jinja`` and ``..._toolace.jinja`` of
vllm-project/vllm.
"""

from dataclasses import dataclass
from typing import Literal

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules
from antiphon.formats._pythonic import BARE_LINES, LITERALS, PythonCalls, call_node, call_text
from antiphon.formats._render import (
    Writer,
    check_written,
    indented,
    inline_reasoning,
    invalid_text,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._types import Rendered
from antiphon.formats.llama3_1 import TURNS
from antiphon.messages import Conversation, ToolSpec, dump_json

Edition = Literal["llama3_2", "toolace"]

_CALLS = PythonCalls(stops=("<|eot_id|>", "<|eom_id|>", "<|python_end|>"))
_SYNTAX = Syntax(
    blocks=(Block("<|python_start|>", _CALLS), Block("<|python_tag|>", _CALLS)),
    bare=_CALLS,
    bare_is_native=True,
    ignored=("<|python_end|>",),
    unmarked=BARE_LINES,
)
_DEFAULT = (
    "You are a helpful assistant with tool calling capabilities. Only reply with a tool call if "
    "the function exists in the library provided by the user. If it doesn't exist, just reply "
    "directly in natural language."
)
_RESULTS = (
    " When you receive a tool call response, use the output to format an answer to the original "
    "user question."
)
_LLAMA = (
    "You have access to the following functions. To call functions, please respond with a python "
    "list of the calls. Respond in the format [func_name1(params_name1=params_value1, "
    "params_name2=params_value2...), func_name2(params)] Do not use variables.\n\n"
)
_TOOLACE = (
    "You are an expert in composing functions. You are given a question and a set of possible "
    "functions. Based on the question, you will need to make one or more function/tool calls to "
    "achieve the purpose.\nIf none of the function can be used, point it out. If the given "
    "question lacks the parameters required by the function, also point it out.\nYou should only "
    "return the function call in tools call sections.\n\nIf you decide to invoke any of the "
    "function(s), you MUST put it in the format of [func_name1(params_name1=params_value1, "
    "params_name2=params_value2...), func_name2(params)]\nYou SHOULD NOT include any other text "
    "in the response.\nHere is a list of functions in JSON format that you can invoke.\n"
)


@dataclass(frozen=True, slots=True)
class Pythonic(Family):
    """Llama 3.2 and ToolACE with calls in Python's syntax."""

    edition: Edition = "llama3_2"
    """Which of the texts: ``llama3_2``, ``toolace``."""
    date: str = "26 Jul 2024"
    """Today's date as Llama's system turn says it."""

    name = "pythonic"
    aliases = {
        "llama3_2_pythonic": {},
        "toolace": {"edition": "toolace"},
        "Team-ACE/ToolACE-*": {"edition": "toolace"},
    }
    signs = ("func_name1(params_name1=params_value1",)
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

        def call(spec: ToolSpec, rules: Rules) -> Node:
            return call_node(spec, rules, LITERALS)

        return CallForm(
            call,
            open="[",
            between=", ",
            close="]",
            forbidden=tuple(sorted(self.specials)),
            specials=self.specials,
            text_before=False,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        self._system(w, conversation, system, 0 if first else None)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            message = messages[index]
            TURNS.begin(w, message.role, index)
            if message.role == "assistant":
                self._assistant(w, conversation, index)
            elif message.role == "tool":
                w.text('{"output": ', "frame", index)
                w.text(dump_json(message.text), "given", index)
                w.text("}", "frame", index)
            else:
                w.text(message.text.strip(), "given", index)
            TURNS.finish(w, message.role, index)
        if generate:
            TURNS.begin(w, "assistant", None)
        return w.done()

    def _system(
        self, w: Writer, conversation: Conversation, system: str | None, index: int | None
    ) -> None:
        llama = self.edition == "llama3_2"
        w.put(TURNS.before_all, "frame")
        TURNS.begin(w, "system", index)
        if llama:
            w.text("Environment: ipython\n" if conversation.tools else "", "frame", index)
            today = f"Cutting Knowledge Date: December 2023\nToday Date: {self.date}\n\n"
            w.text(today, "frame", index)
        if conversation.tools:
            w.text(_LLAMA if llama else _TOOLACE, "frame", index)
            w.text(indented(conversation.tools) + ("" if llama else "\n"), "frame", index)
        if system is None:
            w.text(_DEFAULT + (_RESULTS if llama else ""), "frame", index)
        else:
            w.text(system.strip(), "given", index)
        TURNS.finish(w, "system", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = inline_reasoning(conversation.messages[index])
        text = "" if message.tool_calls else message.text.strip()
        if message.reasoning or text != message.text:
            w.changed.append(index)
        message = with_parts(message, reasoning="", text=text)
        since = len(w.pieces)
        w.text(text, "written", index)
        if message.tool_calls:
            calls = [call_text(w, call, index) for call in message.tool_calls]
            w.text("[" + ", ".join(calls) + "]", "written", index)
        w.put(invalid_text(message), "written", index)
        check_written(w, _SYNTAX, message, index, since=since, tools=conversation.tools)


FORMAT = Pythonic()
