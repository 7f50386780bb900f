"""Hunyuan-A13B: turns that only end marks tell apart, calls as one JSON array in <tool_calls>.

    用户：Weather in Lima?<|extra_0|>
    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Lima"}}]</tool_calls><|eos|>
    <tool_response>{"celsius": 19}</tool_response><|extra_0|>助手：It is 19 degrees.<|eos|>

(The text above is broken for reading.)  With tools, a user's text begins with ``用户：`` and an
answer with ``助手：``.  Reasoning is left out and its messages are listed in `Rendered.changed`;
the parser reads it in ``<think>`` with the answer in ``<answer>``.

Differs from upstream: without tools in the conversation calls and results are written as with them;
the template loses the former and the marks of the latter.  The empty reasoning block of a model
that must not reason ends a prompt only.  The time is `now`, not the moment of rendering.
Source: ``tool_chat_template_hunyuan_a13b.jinja`` in the source of vllm 0.33.0.
"""

from dataclasses import dataclass

from antiphon.formats._cursor import Reading
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Writer,
    as_said,
    calls_json,
    of_tools,
    refuse_images,
    refuse_late_systems,
    specs_json,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Parser, Syntax, Thinking
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation

_OPEN, _CLOSE = "<tool_calls>", "</tool_calls>"
_START, _END_SYSTEM, _END_USER, _END = "<|startoftext|>", "<|extra_4|>", "<|extra_0|>", "<|eos|>"
_USER, _ASSISTANT = "用户：", "助手："


@dataclass(frozen=True, slots=True)
class _Speaker:
    """Takes the word that an answer begins with."""

    resync: tuple[str, ...] = ()
    """See `Reader.resync`."""

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        yield from p.c.take(_ASSISTANT)


_SYNTAX = Syntax(
    blocks=(
        Block(_OPEN, JsonCalls(_CLOSE, array=True, next_block=(_OPEN,))),
        *json_blocks(_OPEN),
    ),
    thinking=(Thinking(after_close="\n"),),
    bare=JsonCalls(bare_note="bare_json", array=True),
    doubled=(_CLOSE,),
    ignored=("<answer>", "</answer>"),
    first=_Speaker(),
)
_FORM = (
    '<tool_calls>[{"name": "func_name1", "arguments": {"argument1": "value1", "argument2": '
    '"value2"}},...]</tool_calls>'
)
_RULES = f"""\
你是一位函数组合专家。你会得到一个问题和一组可能的函数。根据问题，你需要进行一个或多个函数/工具调用以实现目的。
如果没有一个函数可以使用，请直接使用自然语言回复用户，以助手：开头。
如果给定的问题缺少函数所需的参数，请使用自然语言进行提问，向用户询问必要信息，以助手：开头。
如果调用结果已经足够回答用户问题，请对历史结果进行总结，使用自然语言回复用户，以助手：开头。
你应该只在工具调用部分返回函数调用。如果你决定调用任何函数，你必须将其格式化为{_FORM}\
。你不应该在回复中包含任何其他文本。以下是你可以调用的函数列表，格式为JSON。

"""
_AGAIN = f"如果你决定返回函数调用，请将其格式化为{_FORM}，不得包含其他文本。"
_ELSE = "否则，请参考开头说的三种情况，以助手：开头进行回复。\n\n"


@dataclass(frozen=True, slots=True)
class HunyuanA13B(Family):
    """The Hunyuan-A13B family."""

    thinking: bool = True
    """Whether the model may reason."""
    now: str = "2025-06-30 12:00:00 星期一"
    """The time as the system text says it: with the day of the week, in Chinese."""

    name = "hunyuan_a13b"
    models = ("tencent/Hunyuan-A13B-*",)
    signs = ("<|extra_0|>", "<tool_calls>")
    stop = (_END,)
    prefix_stable = True
    specials = frozenset({_START, _END_SYSTEM, _END_USER, _END})

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            around=(f"{_OPEN}[", f"]{_CLOSE}"),
            between=", ",
            before="",
            forbidden=(_OPEN,),
            thinking=("<think>\n", "\n</think>\n") if self.thinking else None,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        if conversation.tools:
            self._tools(w, conversation, system)
        elif system:
            w.mark(_START, "frame", 0)
            w.text(system, "given", 0)
            w.mark(_END_SYSTEM, "frame", 0)
        has_head = bool(conversation.tools or system)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            message = messages[index]
            match message.role:
                case "tool":
                    w.text("<tool_response>", "frame", index)
                    w.text(message.text, "given", index)
                    w.text("</tool_response>", "frame", index)
                    w.mark(_END_USER, "frame", index)
                case "assistant":
                    self._assistant(w, conversation, index)
                case _:
                    if conversation.tools:
                        w.text(_USER, "frame", index)
                    elif index != first or not has_head:
                        w.mark(_START, "frame", index)
                    w.text(message.text, "given", index)
                    w.mark(_END_USER, "frame", index)
        if generate and not self.thinking:
            w.text("<think>\n\n</think>\n", "frame")
        return w.done()

    def _tools(self, w: Writer, conversation: Conversation, system: str | None) -> None:
        index = None if system is None else 0
        listing = of_tools(specs_json, conversation.tools)
        w.mark(_START, "frame", index)
        w.text(f"{_RULES}{listing}\n\n", "frame", index)
        if system is not None:
            w.text("额外要求：\n", "frame", index)
            w.text(system, "given", index)
            w.text(
                f"\n\n{_AGAIN}如果额外要求里有格式要求，请忽略，以此处为准。\n{_ELSE}",
                "frame",
                index,
            )
            w.text("如果额外要求里有时间信息，就以额外要求里的时间为准，否则，参考", "frame", index)
        else:
            w.text(f"{_AGAIN}\n{_ELSE}", "frame", index)
        w.text(f"当前时间：{self.now}", "frame", index)
        w.mark(_END_SYSTEM, "frame", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        said = as_said(w, message, index, text=message.text)
        since = len(w.pieces)
        speaks = bool(conversation.tools) and not said.tool_calls
        if speaks:
            w.text(_ASSISTANT, "written", index)
        calls = f"{_OPEN}{calls_json(said.tool_calls)}{_CLOSE}" if said.tool_calls else ""
        write_answer(
            w, _SYNTAX, conversation, said, index, calls,
            since=since, doubtful=not speaks and said.text.startswith(_ASSISTANT),
        )  # fmt: skip
        w.mark(_END, "written", index)


FORMAT = HunyuanA13B()
