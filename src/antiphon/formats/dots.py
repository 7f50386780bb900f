"""Dots 3: a mark before and behind every turn, an XML tag per argument with the value on its lines.

    <|assistant|><think>
    The user wants the weather.
    </think>

    Let me look.
    <dots_function_call>
    <invoke name="get_weather">
    <parameter name="city">
    Lima
    </parameter>
    </invoke>
    </dots_function_call><|endofassistant|><|user|>
    <dots_function_response>
    19 degrees
    </dots_function_response><|endofuser|>

Each call stands in a block of its own.  Reasoning is shown in every turn and trimmed; the model
opens the block itself.  Without reasoning every user's turn ends with ``<no_think>`` and every
answer begins with an empty block.

Second-hand: the turns, the tools and the results are those of a public engine's port of the
family's template (``render_dots3_chat`` of a DS4 server, in C and in Rust alike), the calls also
those of vLLM's and SGLang's tests.  The template in the model's repository was not at hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._kin import tag_blocks
from antiphon.formats._render import (
    Writer,
    inline_reasoning,
    is_first_result,
    is_last_result,
    of_tools,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

_OPEN, _CLOSE = "<dots_function_call>", "</dots_function_call>"
_RESULT, _RESULT_END = "<dots_function_response>", "</dots_function_response>"
_NO_THINK, _EMPTY = "<no_think>", "<think>\n\n</think>\n\n"
_ROLES = ("system", "user", "assistant")
_TAGS = Tagged(
    open=f"{_OPEN}\n",
    close=_CLOSE,
    call='<invoke name="',
    named='">\n',
    call_close="</invoke>\n",
    key='<parameter name="',
    keyed='">\n',
    value_close="\n</parameter>\n",
)
_SYNTAX = Syntax(
    blocks=(
        Block(_OPEN, _TAGS, before="\n"),
        Block("<invoke", _TAGS, before="\n", lost=True),
        *tag_blocks(_TAGS, _OPEN),
    ),
    thinking=(Thinking(),),
    doubled=(_CLOSE,),
)
_TOOLS = """\


# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>"""
_HOW = f"""\

</tools>

When making tool calls, use XML format to invoke tools and pass parameters:

{_OPEN}
<invoke name="tool-name-1">
<parameter name="param-key-1">
param-value-1
</parameter>
<parameter name="param-key-2">
param-value-2
</parameter>
...
</invoke>
{_CLOSE}"""


@dataclass(frozen=True, slots=True)
class Dots(Family):
    """The Dots 3 family."""

    thinking: bool = True
    """Whether the model may reason."""

    name = "dots"
    models = ("dots-studio/dots3-*", "rednote-hilab/dots3-*")
    aliases = {"dots3": {}, "dots3_note": {}}
    signs = (_OPEN, "<|endofassistant|>")
    stop = ("<|endofassistant|>",)
    specials = frozenset(
        {f"<|{role}|>" for role in _ROLES}
        | {f"<|endof{role}|>" for role in _ROLES}
        | {_OPEN, _CLOSE, _RESULT, _RESULT_END, _NO_THINK, "<think>", "</think>"}
    )

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(
            _TAGS, self.specials, before="\n", end=self.stop, always=True,
            thinking=("<think>\n", "\n</think>\n\n") if self.thinking else None,
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        w.mark("<|system|>", "frame", index)
        if system is None:
            w.text("You are a helpful assistant.", "frame")
        else:
            w.text(system, "given", index)
        if conversation.tools:
            w.text(_TOOLS + of_tools(_listing, conversation.tools), "frame", index)
            w.put(_HOW, "frame", index)
        w.mark("<|endofsystem|>", "frame", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            self._message(w, conversation, index)
        if generate:
            w.put("<|assistant|>" + ("" if self.thinking else _EMPTY), "frame")
        return w.done()

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        match message.role:
            case "tool":
                _result(w, conversation.messages, index)
            case "assistant":
                self._assistant(w, conversation, index)
            case role:
                w.mark("<|user|>", "frame", index)
                w.text(message.text, "given", index)
                if role == "user" and not self.thinking and not message.text.endswith(_NO_THINK):
                    w.mark(_NO_THINK, "frame", index)
                w.mark("<|endofuser|>", "frame", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        given = conversation.messages[index]
        split = inline_reasoning(given)
        reasoning = split.reasoning.strip() if self.thinking else ""
        message = with_parts(split, reasoning=reasoning, text=split.text)
        if (message.reasoning, message.text) != (given.reasoning, given.text):
            w.changed.append(index)
        w.mark("<|assistant|>", "frame", index)
        since = len(w.pieces)
        if not self.thinking:
            w.put(_EMPTY, "frame", index)
        elif message.reasoning:
            w.put("<think>\n", "written", index)
            w.text(f"{message.reasoning}\n", "written", index)
            w.put("</think>\n\n", "written", index)
        w.text(message.text, "written", index)
        write_calls(w, _TAGS, message, index, before="\n")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools,
        )  # fmt: skip
        w.mark("<|endofassistant|>", "written", index)


def _result(w: Writer, messages: Sequence[Message], index: int) -> None:
    """One tool result; a run of them is one user's turn."""
    if is_first_result(messages, index):
        w.mark("<|user|>", "frame", index)
    w.put(f"\n{_RESULT}\n", "frame", index)
    w.text(messages[index].text, "given", index)
    w.put(f"\n{_RESULT_END}", "frame", index)
    if is_last_result(messages, index):
        w.mark("<|endofuser|>", "frame", index)


def _listing(tools: Sequence[ToolSpec]) -> str:
    return "".join("\n" + dump_json(spec.to_openai()) for spec in tools)


FORMAT = Dots()
