"""Youtu-LLM: role marks without turns' ends for users, tools in JSON fences, Hermes calls on one
line.

    <|Assistant|><think>
    The user wants the weather.
    </think>

    <tool_call>{"name": "get_weather", "arguments": {"city": "Lima"}}</tool_call><|end_of_text|>
    <|User|><tool_response>{"celsius": 19}</tool_response>

(The last two lines are one.)  Reasoning before the first call with a result is not shown again; the
last message has a reasoning block, if an empty one.  Messages that are shown otherwise than they
were written are listed in `Rendered.changed`.

Differs from upstream: a system message that does not come first is refused.
Source: ``tests/tool-thinking-template.jinja`` of ochafik/minja (the template of the family, with
the instructions that ms-swift 4.6 ``agent_template/youtu.py`` has).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._qwen import CALL_MARKS, RESULT_MARKS, THINK_MARKS
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Writer,
    as_said,
    call_json,
    inline_reasoning,
    is_first_result,
    of_tools,
    refuse_images,
    refuse_late_systems,
    spec_json,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message, ToolSpec

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_BOS, _USER, _ASSISTANT, _END = "<|begin_of_text|>", "<|User|>", "<|Assistant|>", "<|end_of_text|>"
_TOOLS, _END_TOOLS = "<|begin_of_tool_description|>", "<|end_of_tool_description|>"
_EMPTY = "<think>\n\n</think>\n\n"
_SYNTAX = Syntax(
    blocks=(
        Block(_OPEN, JsonCalls(_CLOSE, next_block=(_OPEN,))),
        *json_blocks(_OPEN),
    ),
    thinking=(Thinking(),),
    bare=JsonCalls(bare_note="bare_json"),
    doubled=(_CLOSE,),
)
_INTRO = (
    "Tool calling capabilities.\nYou may call one or more functions to assist with the user query. "
    "You have the following functions available:"
)
_HOW = (
    "\nFor tool call returns, you MUST use the following format:\n"
    '<tool_call>{"name": "function-name", "arguments": {"param1": "value1", "param2": "value2"}}'
    "</tool_call>\n"
)


@dataclass(frozen=True, slots=True)
class Youtu(Family):
    """The Youtu-LLM family."""

    thinking: bool = True
    """Whether the model may reason."""

    name = "youtu"
    models = ("tencent/Youtu-LLM-*",)
    aliases = {"youtu_llm": {}}
    signs = (_TOOLS,)
    stop = (_END,)
    prefix_stable = False
    specials = frozenset({_BOS, _USER, _ASSISTANT, _END, _TOOLS, _END_TOOLS}) | (
        CALL_MARKS | RESULT_MARKS | THINK_MARKS
    )

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            open=_OPEN,
            close=_CLOSE,
            before="",
            thinking=("<think>\n", "\n</think>\n\n") if self.thinking else None,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        index = 0 if first else None
        w.mark(_BOS, "frame")
        w.text(system or "", "given", index)
        if conversation.tools:
            w.text("\n\n" if system else "", "frame", index)
            w.mark(_TOOLS, "frame")
            w.text(_INTRO + of_tools(_listing, conversation.tools), "frame")
            w.put(_HOW + _END_TOOLS, "frame")
        results = (i for i, message in enumerate(messages) if message.role == "tool")
        shown_from = next(results, len(messages)) - 1
        walk = w.walk(
            self, messages, first, tools=conversation.tools, shown_from=max(shown_from, 0)
        )
        for index in walk:
            match messages[index].role:
                case "tool":
                    _result(w, messages, index)
                case "assistant":
                    self._assistant(w, conversation, index, shown=index >= shown_from)
                case _:
                    w.mark(_USER, "frame", index)
                    w.text(messages[index].text, "given", index)
        if generate:
            w.mark(_ASSISTANT, "frame")
            w.put("" if self.thinking else _EMPTY, "frame")
        return w.done()

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shown: bool) -> None:
        given = inline_reasoning(conversation.messages[index])
        is_last = index + 1 == len(conversation.messages)
        reasoning = given.reasoning.strip("\n") if shown or is_last else ""
        text = given.text.lstrip("\n") if reasoning or is_last else given.text
        said = as_said(w, given, index, text=text, reasoning=reasoning)
        w.mark(_ASSISTANT, "frame", index)
        since = len(w.pieces)
        if reasoning:
            w.put("<think>", "written", index)
            w.text(f"\n{reasoning}\n", "written", index)
            w.put("</think>\n\n", "written", index)
        elif is_last:
            w.put(_EMPTY, "written" if self.thinking else "frame", index)
        else:
            w.changed.append(index)  # as the last message it had a block, if an empty one
        calls: list[str] = []
        for call in said.tool_calls:
            calls += ["\n" if calls else "", _OPEN, call_json(call), _CLOSE]
        write_answer(w, _SYNTAX, conversation, said, index, *calls, since=since)
        w.mark(_END, "written", index)


def _result(w: Writer, messages: Sequence[Message], index: int) -> None:
    if is_first_result(messages, index):
        w.mark(_USER, "frame", index)
    else:
        w.text("\n", "frame", index)
    w.put("<tool_response>", "frame", index)
    w.text(messages[index].text, "given", index)
    w.put("</tool_response>", "frame", index)


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools, each in a fence."""
    return "".join(f"\n```json\n{spec_json(spec)}\n```" for spec in tools)


FORMAT = Youtu()
