"""Llama 4: header turns, tools as indented JSON in the first user turn, bare JSON calls behind
Python marks.

    <|header_start|>assistant<|header_end|>

    <|python_start|>Let me look.<|python_end|>{"name": "get_weather", "parameters": {"city":
    "Lima"}}<|eot|><|header_start|>ipython<|header_end|>

(The lines above are broken for reading.)  Results are JSON strings, reasoning is left out, and its
messages are listed in `Rendered.changed`.  The parser also reads calls without the marks.

Differs from upstream: nothing.
Source: the chat template of llama4 in @huggingface/ollama-utils 0.0.18.
"""

from dataclasses import dataclass, replace

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Free, json_form, seq
from antiphon.formats._pythonic import BARE_LINES, PythonCalls
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    as_said,
    call_json,
    indented,
    of_tools,
    refuse_images,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._types import Rendered
from antiphon.formats.llama3_1 import IN_SYSTEM, IN_USER
from antiphon.messages import Conversation, dump_json

_PYTHON, _END_PYTHON = "<|python_start|>", "<|python_end|>"
_TURNS = Turns(
    open="<|header_start|>{role}<|header_end|>\n\n",
    end="<|eot|>",
    between="",
    before_all="<|begin_of_text|>",
    specials=frozenset(
        {
            "<|begin_of_text|>", "<|header_start|>", "<|header_end|>", "<|eot|>", "<|eom|>",
            _PYTHON, _END_PYTHON,
        }
    ),
    roles=(("tool", "ipython"),),
)  # fmt: skip
_CALLS = JsonCalls(
    arguments=("parameters", "arguments"),
    next_block=("<|eot|>", "<|eom|>", _PYTHON),
    python=PythonCalls(),
)
_SYNTAX = Syntax(
    blocks=(
        Block(_END_PYTHON + "{", _CALLS),
        Block("<|python_tag|>", _CALLS, slip="misspelt_tag"),
    ),
    bare=_CALLS,
    bare_is_native=True,
    gap=" \t\r\n;",
    ignored=(_PYTHON, _END_PYTHON),
    unmarked=BARE_LINES,
)


@dataclass(frozen=True, slots=True)
class Llama4(Family):
    """The Llama 4 family with calls as JSON."""

    tools_in_user_message: bool = True
    """Whether tools stand in the first user turn; otherwise in the system turn."""

    name = "llama4"
    models = ("meta-llama/Llama-4-*",)
    aliases = {"llama4_json": {}}
    signs = ("<|header_start|>", _PYTHON)
    stop = ("<|eot|>", "<|eom|>", "<|end_of_text|>")
    turns = _TURNS
    specials = _TURNS.specials

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        form = json_form(
            self.specials,
            between="",
            arguments="parameters",
            forbidden=(_PYTHON,),
            text_before=False,
        )
        return replace(form, open=seq(_PYTHON, Free(form.forbidden), _END_PYTHON))

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        w.put(_TURNS.before_all, "frame")
        tools_here = bool(conversation.tools) and self.tools_in_user_message
        if tools_here and (first >= len(messages) or messages[first].role != "user"):
            raise w.refuse(
                "tools stand in the first user message, and there is none; "
                "add one or use tools_in_user_message=False with a system message"
            )
        if system is not None:
            self._system(w, conversation, system)
        elif conversation.tools and not tools_here:
            raise w.refuse(
                "tools stand in the system message, and there is none; "
                "add one or use tools_in_user_message=True"
            )
        for index in w.walk(self, messages, first, tools=conversation.tools):
            message = messages[index]
            _TURNS.begin(w, message.role, index)
            match message.role:
                case "assistant":
                    self._assistant(w, conversation, index)
                case "tool":
                    w.text(dump_json(message.text), "given", index)
                case _ if tools_here and index == first:
                    w.text(IN_USER + of_tools(indented, conversation.tools), "frame", index)
                    w.text(message.text.strip(), "given", index)
                case _:
                    w.text(message.text, "given", index)
            _TURNS.finish(w, message.role, index)
        if generate:
            _TURNS.begin(w, "assistant", None)
        return w.done()

    def _system(self, w: Writer, conversation: Conversation, system: str) -> None:
        _TURNS.begin(w, "system", 0)
        if conversation.tools:
            w.text("Environment: ipython\n", "frame", 0)
            if not self.tools_in_user_message:
                w.text(IN_SYSTEM + of_tools(indented, conversation.tools), "frame", 0)
        w.text(system.strip(), "given", 0)
        _TURNS.finish(w, "system", 0)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        said = as_said(w, message, index, text=message.text)
        since = len(w.pieces)
        calls: tuple[str, ...] = ()
        if said.tool_calls:
            w.mark(_PYTHON, "written", index)
            objects = (call_json(call, arguments="parameters") for call in said.tool_calls)
            calls = (_END_PYTHON, "".join(objects))
        write_answer(w, _SYNTAX, conversation, said, index, *calls, since=since)


FORMAT = Llama4()
