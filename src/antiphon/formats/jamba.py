"""Jamba 1.5 to 1.7: marked turns whose text begins with a space, calls as one JSON array.

    <|bom|><|assistant|> Let me look.<tool_calls>[
        {"name": "get_weather", "arguments": {"city": "Lima"}}
    ]</tool_calls><|eom|><|bom|><|tool|> (get_weather){"celsius": 19}<|eom|>

Reasoning is left out and its messages are listed in `Rendered.changed`.

Differs from upstream: nothing; documents and knobs are not rendered.
Source: the chat template of AI21-Jamba-Mini-1.7, read from its GGUF file, in
``tests/fixtures/jamba_mini_1_7_chat_template.jinja`` of r-rojo/rampipe.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    as_said,
    call_json,
    of_tools,
    refuse_images,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec, indented_json

_OPEN, _CLOSE = "<tool_calls>", "</tool_calls>"
_ROLES = ("system", "user", "assistant", "tool")
_TURNS = Turns(
    open="<|bom|><|{role}|>",
    end="<|eom|>",
    between="",
    before_all="<|startoftext|>",
    specials=frozenset({"<|startoftext|>", "<|bom|>", "<|eom|>", *(f"<|{r}|>" for r in _ROLES)}),
)
_SYNTAX = Syntax(
    blocks=(
        Block(_OPEN, JsonCalls(_CLOSE, array=True, next_block=(_OPEN,))),
        *json_blocks(_OPEN),
    ),
    bare=JsonCalls(bare_note="bare_json", array=True),
    doubled=(_CLOSE,),
    lead=" ",
)


@dataclass(frozen=True, slots=True)
class Jamba(Family):
    """The Jamba 1.5, 1.6 and 1.7 families."""

    name = "jamba"
    models = ("ai21labs/*Jamba-*1.5*", "ai21labs/*Jamba-*1.6*", "ai21labs/*Jamba-*1.7*")
    aliases = {"jamba_1_5": {}, "jamba_1_7": {}}
    signs = ("<|bom|>", "<tool_definitions>")
    stop = ("<|eom|>",)
    turns = _TURNS
    specials = _TURNS.specials | {_OPEN, _CLOSE}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            around=(f"{_OPEN}[\n    ", f"\n]{_CLOSE}"),
            between=",\n    ",
            before="",
            alone=" ",
            forbidden=(_OPEN,),
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        w.put(_TURNS.before_all, "frame")
        _TURNS.begin(w, "system", index)
        w.text(" ", "frame", index)
        w.text(system or "", "given", index)
        if conversation.tools:
            w.text("\n\n" if system else "", "frame", index)
            w.text(of_tools(_listing, conversation.tools), "frame", index)
        _TURNS.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            message = messages[index]
            _TURNS.begin(w, message.role, index)
            if message.role == "assistant":
                self._assistant(w, conversation, index)
            else:
                name = f"({message.name})" if message.name else ""
                w.text(f" {name}", "frame", index)
                w.text(message.text, "given", index)
            _TURNS.finish(w, message.role, index)
        if generate:
            _TURNS.begin(w, "assistant", None)
        return w.done()

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        said = as_said(w, message, index, text=message.text)
        since = len(w.pieces)
        w.text(" ", "written", index)
        calls: tuple[str, ...] = ()
        if said.tool_calls:
            lines = ",".join(f"\n    {call_json(call)}" for call in said.tool_calls)
            calls = (_OPEN, f"[{lines}\n]", _CLOSE)
        write_answer(w, _SYNTAX, conversation, said, index, *calls, since=since)


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as the family lists them."""
    specs = (indented_json(spec.to_openai()["function"], 2) for spec in tools)
    listing = "".join(f"\n\n{spec}" for spec in specs)
    return f"<tool_definitions>\n# Tools\n\n## Functions{listing}\n</tool_definitions>"


FORMAT = Jamba()
