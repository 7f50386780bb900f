"""Xing 4.0: role marks, tools as JSON lines, calls with a tag per parameter.

    <_bot><think>
    The user wants the weather.
    </think>

    Let me look.<tool_call>get_weather<param_key>city</param_key><param_value>Lima</param_value>
    </tool_call><_end>
    <_observation><tool_response>19 degrees</tool_response><_bot></think>It is 19 degrees.<_end>

(A call stands in one line.)  Reasoning is shown again only behind the last user message or result;
a turn that shows none begins with ``</think>``.  Messages that are not written as they once were
are listed in `Rendered.changed`.

Differs from upstream: nothing that is known.
Source: ms-swift 4.6 (template type and agent template ``xing4_0``), which says that its text is the
model's own template's, byte for byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Writer,
    inline_reasoning,
    is_first_result,
    of_tools,
    refuse_images,
    spec_json,
    split_system,
    with_parts,
    write_reasoning,
)
from antiphon.formats._scan import Block, Syntax, Thinking, Unmarked
from antiphon.formats._tagged import Tagged, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message, ToolSpec

_TAGS = Tagged(
    open="<tool_call>",
    close="</tool_call>",
    between="",
    key="<param_key>",
    keyed="</param_key>",
    value="<param_value>",
    value_close="</param_value>",
)
_SYNTAX = Syntax(
    blocks=(Block("<tool_call>", _TAGS),),
    thinking=(Thinking(),),
    unmarked=Unmarked(_TAGS, ("<param_key>",)),
    doubled=("</tool_call>",),
)
_HOW = (
    "\n\nFor each function call, output the function name and arguments within the following XML \
format:\n"
)
_EXAMPLE = (
    "<tool_call>{function-name}<param_key>{param-key-1}</param_key>"
    "<param_value>{param-value-1}</param_value><param_key>{param-key-2}</param_key>"
    "<param_value>{param-value-2}</param_value>...</tool_call>"
)


@dataclass(frozen=True, slots=True)
class Xing40(Family):
    """The Xing 4.0 family."""

    thinking: bool = True
    """Whether the model is asked to reason."""

    name = "xing4_0"
    models = ("XingChen-AGI/Xing4.0-*",)
    signs = ("<_bot>", "<param_key>")
    stop = ("<_end>",)
    prefix_stable = False
    specials = frozenset(
        {
            "<_system>", "<_user>", "<_bot>", "<_observation>", "<_end>", "<think>", "</think>",
            "<tool_call>", "</tool_call>", "<param_key>", "</param_key>", "<param_value>",
            "</param_value>", "<tool_response>", "</tool_response>",
        }
    )  # fmt: skip

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(
            _TAGS, self.specials,
            before="", end=("<_end>", "<_user>", "<_bot>", "<_observation>"),
            thinking=("<think>\n", "\n</think>\n\n"),
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        w.put("<_system>", "frame", 0 if first else None)
        w.text(system or "", "given", 0 if first else None)
        if conversation.tools:
            w.text(of_tools(_tools_text, conversation.tools), "frame")
            w.put(_EXAMPLE, "frame")
        last = _last_given(messages)
        for index in w.walk(self, messages, first, tools=conversation.tools, shown_from=last):
            message = messages[index]
            match message.role:
                case "system":
                    raise w.refuse(
                        "a system message must come first; join system messages into one", index
                    )
                case "user":
                    w.put("<_user>", "frame", index)
                    w.text(message.text, "given", index)
                case "tool":
                    w.put("<_observation>" if is_first_result(messages, index) else "", "frame")
                    w.put("<tool_response>", "frame", index)
                    w.text(message.text, "given", index)
                    w.put("</tool_response>", "frame", index)
                case "assistant":
                    w.put("<_bot>", "frame", index)
                    self._assistant(w, conversation, index, shows=index > last)
        if not generate:
            return w.done()
        w.put("<_bot><think>\n" if self.thinking else "<_bot></think>", "frame")
        return w.done(start="reasoning" if self.thinking else "content")

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shows: bool) -> None:
        given = conversation.messages[index]
        split = inline_reasoning(given)
        reasoning = split.reasoning.strip("\n") if shows else ""
        message = with_parts(split, reasoning=reasoning, text=split.text)
        if message is not given:
            w.changed.append(index)
        since = len(w.pieces)
        start = write_reasoning(
            w, message.reasoning, index, ("<think>\n", "\n</think>\n\n"),
            empty="</think>", asks=self.thinking,
        )  # fmt: skip
        w.text(message.text, "written", index)
        write_calls(w, _TAGS, message, index, before="")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools, start=start,
        )  # fmt: skip
        w.put("<_end>", "written", index)
        w.text("\n", "frame", index)


def _last_given(messages: Sequence[Message]) -> int:
    """The position of the last message that is not the model's; -1 without one."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role != "assistant":
            return index
    return -1


def _tools_text(tools: Sequence[ToolSpec]) -> str:
    lines = "".join("\n" + spec_json(spec) for spec in tools)
    return (
        "\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>{lines}\n</tools>{_HOW}"
    )


FORMAT = Xing40()
