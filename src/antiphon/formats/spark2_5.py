"""Spark X2.5: every turn between marks of its own, tools as JSON lines, a tag per argument.

    <｜start▁of▁sentence｜><|Bot|><think>The user wants the weather.</think>Let me look.<tool_call>
    get_weather<arg_key>city</arg_key><arg_value>Lima</arg_value></tool_call><｜end▁of▁sentence｜>
    <｜start▁of▁sentence｜><|Tool|><tool_response>19 degrees</tool_response><｜end▁of▁sentence｜>

(All in one line.)  Reasoning is shown in every turn; a turn without it begins with ``</think>``.

Differs from upstream: nothing.
Source: ``Spark2.5.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Writer,
    inline_reasoning,
    is_first_result,
    is_last_result,
    of_tools,
    refuse_images,
    split_system,
    write_reasoning,
)
from antiphon.formats._scan import Block, Syntax, Thinking, Unmarked
from antiphon.formats._tagged import Tagged, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

_BOS, _EOS = "<｜start▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
_TAGS = Tagged(
    open="<tool_call>",
    close="</tool_call>",
    between="",
    value="<arg_value>",
    value_close="</arg_value>",
)
_SYNTAX = Syntax(
    blocks=(Block("<tool_call>", _TAGS),),
    thinking=(Thinking(after_open="", before_close="", after_close=""),),
    unmarked=Unmarked(_TAGS, ("<arg_key>",)),
    doubled=("</tool_call>",),
)
_ROLES = {"system": "<|System|>\n", "user": "<|User|>", "assistant": "<|Bot|>", "tool": "<|Tool|>"}


@dataclass(frozen=True, slots=True)
class Spark25(Family):
    """The Spark X2.5 family."""

    thinking: bool = True
    """Whether the model is asked to reason."""

    name = "spark2_5"
    models = ("XHToken/Spark-X2.5*", "iflytek/Spark-X2.5*")
    aliases = {"spark25": {}}
    signs = ("<|Bot|>", "<｜start▁of▁sentence｜>", "<arg_key>")
    stop = (_EOS,)
    specials = frozenset(
        {
            _BOS, _EOS, "<|System|>", "<|User|>", "<|Bot|>", "<|Tool|>", "<think>", "</think>",
            "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>",
            "</arg_value>", "<tool_response>", "</tool_response>",
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
            before="", end=(_EOS, _BOS), thinking=("<think>", "</think>"),
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        w.put(_BOS + _ROLES["system"], "frame", index)
        w.text("you are a helpful assistant.", "frame", index)
        if conversation.tools:
            w.text(of_tools(_tools_text, conversation.tools), "frame", index)
        if system:
            w.text("\n\n", "frame", index)
            w.text(system, "given", index)
        w.put(_EOS, "frame", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            self._message(w, conversation, index)
        if not generate:
            return w.done()
        w.put(_BOS + _ROLES["assistant"] + ("<think>" if self.thinking else "</think>"), "frame")
        return w.done(start="reasoning" if self.thinking else "content")

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        messages = conversation.messages
        message = messages[index]
        if message.role == "tool":
            _result(w, messages, index)
            return
        w.put(_BOS + _ROLES[message.role], "frame", index)
        if message.role == "assistant":
            self._assistant(w, conversation, index)
            return
        w.text(message.text, "given", index)
        w.put(_EOS, "frame", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        given = conversation.messages[index]
        message = inline_reasoning(given)
        if message is not given:
            w.changed.append(index)
        since = len(w.pieces)
        start = write_reasoning(
            w, message.reasoning, index, ("<think>", "</think>"),
            empty="</think>", asks=self.thinking,
        )  # fmt: skip
        w.text(message.text, "written", index)
        write_calls(w, _TAGS, message, index, before="")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools, start=start,
        )  # fmt: skip
        w.put(_EOS, "written", index)


def _result(w: Writer, messages: Sequence[Message], index: int) -> None:
    """One tool result; a run of them is one turn."""
    if is_first_result(messages, index):
        w.put(_BOS + _ROLES["tool"], "frame", index)
    w.put("<tool_response>", "frame", index)
    w.text(messages[index].text, "given", index)
    w.put("</tool_response>", "frame", index)
    if is_last_result(messages, index):
        w.put(_EOS, "frame", index)


def _tools_text(tools: Sequence[ToolSpec]) -> str:
    lines = "".join("\n" + dump_json(spec.to_openai()["function"]) for spec in tools)
    return f"## Tools\nYou have access to the following functions:\n<tools>{lines}\n</tools>"


FORMAT = Spark25()
