"""Functionary 3.2: Llama 3 turns of messages to recipients, a call's name before its JSON.

    <|start_header_id|>assistant<|end_header_id|>

    >>>all
    Let me look.>>>get_weather
    {"city": "Lima"}<|eot_id|><|start_header_id|>tool<|end_header_id|>

    19 degrees<|eot_id|>

The prompt ends with the first ``>>>``; text is a message to ``all``.  The tools stand as TypeScript
in a system turn of the family's own, system messages in turns behind it.  The family does not
reason: reasoning is left out and its messages are listed in `Rendered.changed`.

Differs from upstream: nothing; the template takes arguments as their JSON text.
Source: ``meetkai-functionary-medium-v3.2.jinja`` in the source of llama-cpp-python 0.3.36.
"""

import re
from dataclasses import dataclass

from antiphon.formats._cursor import Reading
from antiphon.formats._family import Family
from antiphon.formats._functionary_tools import namespace
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._readers import read_arguments
from antiphon.formats._render import (
    Turns,
    Writer,
    check_written,
    inline_reasoning,
    of_tools,
    refuse_images,
    with_parts,
)
from antiphon.formats._scan import Block, Parser, Syntax
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec, dump_json

_TO, _ALL = ">>>", "all"
TURNS = Turns(
    open="<|start_header_id|>{role}<|end_header_id|>\n\n",
    end="<|eot_id|>",
    between="",
    before_all="<|begin_of_text|>",
    specials=frozenset(
        {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}
    ),
)
_HOW = (
    "You are capable of executing available function(s) if required.\n"
    "Only execute function(s) when absolutely necessary.\n"
    "Ask for the required input to:recipient==all\nUse JSON for function arguments.\n"
    "Respond in this format:\n>>>${recipient}\n${content}\nAvailable functions:\n"
)
_NAME = re.compile(r"([^\W\d][\w.-]{0,63})\n")
_PART = re.compile(r"(?:[^\W\d][\w.-]{0,63})?\Z")


@dataclass(frozen=True, slots=True)
class Recipients:
    """Reads whom a message is for: everybody, then it is text, or a tool, then it is a call."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return (_TO,)

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        while _PART.match(c.text, c.pos) and not c.closed:
            yield
        if not opened_by and (yield from c.take(_TO)):
            opened_by = _TO
            while _PART.match(c.text, c.pos) and not c.closed:
                yield
        found = _NAME.match(c.text, c.pos)
        if found is None or (p.tools and found[1] not in p.tools and found[1] != _ALL):
            c.kept()
            p.text(opened_by)
            return
        c.pos = found.end()
        if found[1] == _ALL:
            c.kept()
            return
        p.call_begin()
        p.call_name(found[1])
        yield from read_arguments(p)
        p.call_end()


_SYNTAX = Syntax(blocks=(Block(_TO, Recipients()),), first=Recipients(), gap="")


@dataclass(frozen=True, slots=True)
class FunctionaryV32(Family):
    """The Functionary 3.2 family."""

    name = "functionary_v3_2"
    models = ("meetkai/functionary-*-v3.2*",)
    aliases = {"functionary": {}, "functionary_3_2": {}}
    signs = ("version=v3.llama3", "recipient==all")
    stop = ("<|eot_id|>",)
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
            return seq(f"{spec.name}\n", arguments_node(spec, rules))

        return CallForm(
            call,
            lead=f"{_ALL}\n",
            before=_TO,
            between=_TO,
            forbidden=(_TO, *sorted(self.specials)),
            specials=self.specials,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages, tools = conversation.messages, conversation.tools
        refuse_images(w, messages)
        w.put(TURNS.before_all, "frame")
        TURNS.begin(w, "system", None)
        w.text(_HOW + of_tools(namespace, tools), "frame")
        TURNS.finish(w, "system", None)
        for index in w.walk(self, messages, tools=tools):
            message = messages[index]
            if message.role == "assistant":
                TURNS.begin(w, "assistant", index)
                _assistant(w, conversation, index)
                TURNS.finish(w, "assistant", index)
            else:
                TURNS.whole(w, message.role, message.text, index)
        if generate:
            TURNS.begin(w, "assistant", None)
            w.text(_TO, "frame")
        return w.done()


def _assistant(w: Writer, conversation: Conversation, index: int) -> None:
    message = inline_reasoning(conversation.messages[index])
    if message.reasoning:
        w.changed.append(index)
        message = with_parts(message, reasoning="", text=message.text)
    since = len(w.pieces)
    parts = [f"{_ALL}\n{message.text}"] if message.text else []
    parts += [f"{call.name}\n{dump_json(call.arguments)}" for call in message.tool_calls]
    parts += [call.raw.removeprefix(_TO) for call in message.invalid_tool_calls]
    for n, part in enumerate(parts):
        w.text(_TO, "written" if n else "frame", index)
        w.text(part, "written", index)
    named = any(not _NAME.fullmatch(call.name + "\n") for call in message.tool_calls)
    check_written(w, _SYNTAX, message, index, since=since, tools=conversation.tools, doubtful=named)


FORMAT = FunctionaryV32()
