"""Muse: every message has a recipient; a call is a message to its tool, with a tag per argument.

    <|start|>assistant to=self<|message|>The user wants the weather.<|eom|>\
<|start|>assistant to=weather.get<|message|><atem:function_calls>
    <atem:invoke name="weather.get">
    <atem:parameter name="city">Lima</atem:parameter>
    </atem:invoke>
    </atem:function_calls><|eot|>\
<|start|>tool weather.get<|message|><tool_output name="weather.get">
    19 degrees
    </tool_output><|eot|><|start|>assistant to=user<|message|>It is 19 degrees.<|eot|>

The tools stand behind each system message; without one the family says who it is by itself.
Reasoning, to ``self``, is shown in every turn.

Differs from upstream: the date is `date`, not the day of rendering; text beside calls, which the
template drops, is a message of its own before them.
Source: ``muse_glimmer.jinja`` as trl 1.16 ships it; the mark before all is the token that
transformers 5.24 gives as the model's first (200,000).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from antiphon.formats._channels import release
from antiphon.formats._cursor import Reading
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._render import Writer, inline_reasoning, of_tools, refuse_images, says_system
from antiphon.formats._scan import Block, Parser, Syntax
from antiphon.formats._tagged import Tagged, check_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec, dump_json

_START, _MESSAGE, _EOM, _EOT = "<|start|>", "<|message|>", "<|eom|>", "<|eot|>"
_AGAIN = f"{_START}assistant"
_TAGS = Tagged(
    open="<atem:function_calls>\n",
    close="</atem:function_calls>",
    call='<atem:invoke name="',
    named='">\n',
    call_close="</atem:invoke>\n",
    key='<atem:parameter name="',
    keyed='">',
    value_close="</atem:parameter>\n",
)
_TO = re.compile(r"\bto=(\S+)")
_SPECIALS = frozenset({_START, _MESSAGE, _EOM, _EOT, "<|begin_of_text|>"})


@dataclass(frozen=True, slots=True)
class Messages:
    """Reads whom a message is for, and the message."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return (_EOM, _EOT, _START)

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        if not opened_by:
            begins = yield from c.peek(4)
            if not begins.startswith((" to=", _MESSAGE[:4])):
                return
            c.keep(c.pos)
        header = yield from c.until(_MESSAGE, before=(_TAGS.open.strip(), *self.resync))
        to = _TO.search(header)
        who = to[1] if to else "user"
        if who not in ("user", "self"):
            p.call_begin()
            yield from c.space()
            if not (yield from c.take(_TAGS.open.strip())):
                raise c.unexpected(repr(_TAGS.open.strip()))
            yield from _TAGS.read(p, _TAGS.open.strip())
            return
        c.kept()
        said_text, said_reasoning = p.said
        emit, said = (p.think, said_reasoning) if who == "self" else (p.text, said_text)
        yield from release(p, emit, "\n\n" if said else "", ends=(_EOM, _EOT), stops=(_START,))


_SYNTAX = Syntax(
    blocks=(Block(_START, Messages(), token=True),),
    ignored=(_EOM, _EOT),
    first=Messages(),
)
_HOW = """In this environment you have access to a set of tools you can use to answer the user's \
question.

You can invoke a function by writing a "<atem:function_calls>" block like the following:
<atem:function_calls>
<atem:invoke name="$FUNCTION_NAME">
<atem:parameter name="$PARAMETER_NAME">$PARAMETER_VALUE</atem:parameter>
...
</atem:invoke>
</atem:function_calls>

String and scalar parameters should be specified as is, while lists and objects should use JSON \
format. Note that spaces for string values are not stripped. The output is not expected to be \
valid XML and is parsed with regular expressions.
Here are the functions available in JSONSchema format:
// Tool metadata
"""
_EXAMPLE = """

Here's an example of how to call a function in the tool set:
(If the tool namespace is not specified, invoke the function directly as `example_function_name` \
rather than `example_tool_name.example_function_name`)

to=example_tool_name.example_function_name

<atem:function_calls>
<atem:invoke name="example_tool_name.example_function_name">
<atem:parameter name="example_parameter_1">value_1</atem:parameter>
<atem:parameter name="example_parameter_2">This is the value for the second parameter
that can span
"multiple" lines
</atem:parameter>
</atem:invoke>
</atem:function_calls>"""
_SAID = ("Reasoning effort", "Reasoning Effort", "reasoning effort", "REASONING EFFORT")
_CALLED = ("Reasoning strength", "Reasoning Strength", "reasoning strength", "REASONING STRENGTH")


@dataclass(frozen=True, slots=True)
class Muse(Family):
    """The Muse family."""

    effort: str = "high"
    """How much the model is asked to reason, in the word that it is told."""
    date: str = "2025-06-30"
    """Today's date as the family's own system text says it; ``""`` for none."""
    cutoff: str = "2026-01-04"
    """The day up to which the model knows things, as that text says it."""

    name = "muse"
    models = ("meta-models/Muse-*",)
    aliases = {"muse_glimmer": {}, "musespark1x": {}}
    signs = ("<atem:function_calls>", "Reasoning strength: ")
    stop = (_EOT,)
    specials = _SPECIALS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        again = f"{_EOM}{_AGAIN}"
        form = tagged_form(_TAGS, _SPECIALS, before=again, end=tuple(sorted(_SPECIALS)))
        block = replace(_TAGS, several=False)
        inner = tagged_form(block, _SPECIALS, before="", end=()).call

        def call(spec: ToolSpec, rules: Rules) -> Node:
            return seq(f" to={spec.name}{_MESSAGE}", inner(spec, rules))

        return replace(
            form,
            call=call,
            lead=f" to=user{_MESSAGE}",
            between=again,
            thinking=(f" to=self{_MESSAGE}", again),
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages, tools = conversation.messages, conversation.tools
        refuse_images(w, messages)
        w.mark("<|begin_of_text|>", "frame")
        if not says_system(w, messages):
            w.put(f"{_START}system{_MESSAGE}", "frame")
            date = f"\nCurrent date: {self.date}." if self.date else ""
            w.text(
                f"You are a helpful AI assistant.\nKnowledge cutoff: {self.cutoff}.{date}", "frame"
            )
            self._behind_system(w, tools, None, says_effort=False)
        w.state = {}  # the names of the calls so far, by their ids
        for index in w.walk(self, messages, tools=tools):
            self._message(w, conversation, index)
        if generate:
            w.put(_AGAIN, "frame")
        return w.done()

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        match message.role:
            case "system":
                text = message.text
                for said, called in zip(_SAID, _CALLED, strict=True):
                    text = text.replace(said, called)
                w.put(f"{_START}system{_MESSAGE}", "frame", index)
                w.text(text, "given", index)
                says = "reasoning strength" in text.lower()
                self._behind_system(w, conversation.tools, index, says_effort=says)
            case "user":
                w.put(f"{_START}user{_MESSAGE}", "frame", index)
                w.text(message.text, "given", index)
                w.mark(_EOT, "frame", index)
            case "tool":
                known: dict[str, str] = w.state
                id = message.tool_call_id
                name = message.name or known.get(id, id)
                w.mark(_START, "frame", index)
                w.text(f"tool {name}", "frame", index)
                w.mark(_MESSAGE, "frame", index)
                w.text(f'<tool_output name="{name}">\n', "frame", index)
                w.text(message.text, "given", index)
                w.text("\n</tool_output>", "frame", index)
                w.mark(_EOT, "frame", index)
            case "assistant":
                w.put(_AGAIN, "frame", index)
                _assistant(w, conversation, index)

    def _behind_system(
        self, w: Writer, tools: Sequence[ToolSpec], index: int | None, *, says_effort: bool
    ) -> None:
        """The effort, the tools and the recipients, behind a system message's own text."""
        if not says_effort:
            w.text(f"\n\nReasoning strength: {self.effort}.", "frame", index)
        if tools:
            w.text("\n\n" + of_tools(_tools_text, tools), "frame", index)
        names = ['"' + name + '.*"' for name in _namespaces(tools)]
        recipients = ", ".join(['"self"', *names, '"user"'])
        w.text(f"\n\n# Valid recipients: {recipients}.", "frame", index)
        w.mark(_EOT, "frame", index)


def _assistant(w: Writer, conversation: Conversation, index: int) -> None:
    messages = conversation.messages
    message = inline_reasoning(messages[index])
    if message is not messages[index]:
        w.changed.append(index)
    since = len(w.pieces)
    acts = message.tool_calls or message.invalid_tool_calls
    parts: list[tuple[str, list[str]]] = []
    if message.reasoning:
        parts.append(("self", [message.reasoning]))
    if message.text or not acts:
        parts.append(("user", [message.text]))
    for call in message.tool_calls:
        if call.name in ("self", "user"):
            raise w.refuse(f"a tool cannot be called {call.name!r}; rename it", index)
        block = [text for text, _ in _TAGS.write(call)]
        parts.append((call.name, [_TAGS.open, *block, _TAGS.close]))
    for n, (to, texts) in enumerate(parts):
        w.put(_EOM + _AGAIN if n else "", "written", index)
        w.text(f" to={to}", "written", index)
        w.mark(_MESSAGE, "written", index)
        w.text("".join(texts), "written", index)
    for n, failed in enumerate(message.invalid_tool_calls, len(parts)):
        raw = failed.raw.removeprefix(_AGAIN).removesuffix(_EOM)
        w.put((_EOM + _AGAIN if n else "") + raw, "written", index)
    check_calls(w, _TAGS, _SYNTAX, message, index, since=since, tools=conversation.tools)
    goes_on = index + 1 < len(messages) and messages[index + 1].role == "assistant"
    w.mark(_EOM if acts and goes_on else _EOT, "written", index)
    w.state = w.state | {call.id: call.name for call in message.tool_calls if call.id}


def _namespaces(tools: Sequence[ToolSpec]) -> list[str]:
    """What stands before the first dot of each tool's name."""
    return list(dict.fromkeys(spec.name.partition(".")[0] for spec in tools))


def _tools_text(tools: Sequence[ToolSpec]) -> str:
    spaces = "".join(f'{{"name": {dump_json(n)}, "description": ""}}\n' for n in _namespaces(tools))
    schemas = "".join("\n" + _schema(spec) for spec in tools)
    return f"{_HOW}{spaces}// Function schemas{schemas}{_EXAMPLE}"


def _schema(spec: ToolSpec) -> str:
    function = cast("dict[str, Any]", spec.to_openai()["function"])
    keys = ("name", "description", "parameters")
    return dump_json({key: function.get(key) for key in keys})


FORMAT = Muse()
