"""Phi-4-mini: one-mark turns, calls as one JSON array behind the word ``functools``.

    <|assistant|>functools[{"name": "get_weather", "arguments": {"city": "Lima"}}]<|end|>
    <|tool|>{"celsius": 19}<|end|>

(The text above is broken for reading.)  Reasoning is left out; messages that are not written as
they were are listed in `Rendered.changed`.  The parser also reads
``<|tool_call|>[...]<|/tool_call|>``.

Differs from upstream: the template writes earlier calls without their mark and brackets, and loses
them beside text; here they stand as the instructions ask for them.  It ends every text with the
next assistant mark; here only a prompt has it.
Source: ``examples/tool_chat_template_phi4_mini.jinja`` in the source of vllm 0.33.0.
"""

from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
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
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._types import Rendered
from antiphon.formats.firefunction import RULES, SYNTAX, functools_form
from antiphon.messages import Conversation

_ROLES = ("system", "user", "assistant", "tool")
_TURNS = Turns(
    open="<|{role}|>",
    end="<|end|>",
    between="",
    specials=frozenset({f"<|{role}|>" for role in _ROLES} | {"<|end|>"}),
)
_SYNTAX = Syntax(
    blocks=(
        *SYNTAX.blocks,
        Block("<|tool_call|>", JsonCalls("<|/tool_call|>", array=True)),
    ),
    bare=SYNTAX.bare,
)
_RULES = RULES.replace("{chose}", "choose").replace("{if}", "is")


@dataclass(frozen=True, slots=True)
class Phi4Mini(Family):
    """The Phi-4-mini family."""

    name = "phi4_mini"
    models = ("microsoft/Phi-4-mini-*",)
    aliases = {"phi4_mini_json": {}}
    signs = ("functools[", "<|system|>")
    stop = ("<|end|>", "<|endoftext|>")
    turns = _TURNS
    specials = _TURNS.specials

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return functools_form(self.specials)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        index = 0 if first else None
        _TURNS.begin(w, "system", index)
        w.text("\n", "frame", index)
        if system is None:
            w.text("You are a helpful assistant.", "frame")
        else:
            w.text(system.strip(), "given", index)
        if conversation.tools:
            w.text(_RULES + of_tools(indented, conversation.tools), "frame", index)
        _TURNS.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            message = messages[index]
            if message.role != "assistant":
                _TURNS.whole(w, message.role, message.text, index)
                continue
            _TURNS.begin(w, "assistant", index)
            said = as_said(w, message, index, text=message.text)
            gap = " " if said.text else ""
            calls = f"{gap}functools{calls_json(said.tool_calls)}" if said.tool_calls else ""
            write_answer(w, _SYNTAX, conversation, said, index, calls)
            _TURNS.finish(w, "assistant", index)
        if generate:
            _TURNS.begin(w, "assistant", None)
        return w.done()


FORMAT = Phi4Mini()
