"""Kimi K3: messages, channels, calls and arguments as elements of three control tokens.

    <|open|>message role="assistant"<|sep|><|open|>think<|sep|>Look it up.<|close|>think<|sep|>
    <|open|>response<|sep|>Let me look.<|close|>response<|sep|><|open|>tools<|sep|>
    <|open|>call tool="get_weather" index="1"<|sep|>
    <|open|>argument key="city" type="string"<|sep|>Lima<|close|>argument<|sep|>
    <|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|><|end_of_msg|>

(The lines are broken here only.)  Each argument says its type.  Results carry the name and position
of their call, and stand in the order of the calls where ids tell it.  The response channel is
always written; the reasoning channel, in every turn, unless the model is not asked to reason: then
reasoning is left out and its messages are listed in `Rendered.changed`.

Differs from upstream: names of users are not written.
Source: ``encoding_k3.py`` of moonshotai/Kimi-K3 as vLLM ships it (commit 2ec5134c4249), and
``Kimi-K3.jinja`` of llama.cpp (commit 181a4a8fb1af).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import Writer, inline_reasoning, of_tools, refuse_images, with_parts
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered, Start
from antiphon.messages import Conversation, Message, ToolSpec

Effort = Literal["low", "medium", "high", "max"]

_END = "<|end_of_msg|>"
_TAGS = Tagged(
    open="<|open|>tools<|sep|>",
    close="<|close|>tools<|sep|>",
    several=True,
    call='<|open|>call tool="',
    named='" index="{index}"<|sep|>',
    call_close="<|close|>call<|sep|>",
    key='<|open|>argument key="',
    keyed='" type="{type}"<|sep|>',
    value_close="<|close|>argument<|sep|>",
    types="type",
    json=('<|open|>json type="object"<|sep|>', "<|close|>json<|sep|>"),
    escapes=True,
)
_SYNTAX = Syntax(
    blocks=(Block("<|open|>tools<|sep|>", _TAGS),),
    thinking=(
        Thinking(
            "<|open|>think<|sep|>", "<|close|>think<|sep|>",
            after_open="", before_close="", after_close="",
        ),
    ),
    ignored=("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
)  # fmt: skip
_EFFORT = (
    "`thinking_effort` guides on how much to think in your thinking channel (not including the "
    "response channel), supported values include `low`, `medium`, `high`, and `max`.\n"
    "Now the system is invoked with `thinking_effort={effort}`."
)


@dataclass(frozen=True, slots=True)
class KimiK3(Family):
    """The Kimi K3 family."""

    thinking: bool = True
    """Whether the model is asked to reason."""
    effort: Effort | None = "max"
    """How much it is asked to reason; ``None`` says nothing."""

    name = "kimi_k3"
    models = ("moonshotai/Kimi-K3*",)
    signs = ("<|sep|>", "tool-declare")
    stop = (_END, "<|close|>message<|sep|>")
    specials = frozenset({"<|open|>", "<|close|>", "<|sep|>", _END})

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        form = tagged_form(
            _TAGS, self.specials,
            before="", end=self.stop, thinking=("<|open|>think<|sep|>", "<|close|>think<|sep|>"),
        )  # fmt: skip
        opened = "<|open|>response<|sep|>" if self.thinking else ""
        return replace(form, alone=f"{opened}<|close|>response<|sep|>")

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = _in_order(conversation.messages)
        refuse_images(w, messages)
        if conversation.tools:
            _open(w, 'message role="system" type="tool-declare"', None)
            w.text(of_tools(_tools_text, conversation.tools), "frame")
            _close_message(w, None)
        if self.thinking and self.effort is not None:
            _open(w, 'message role="system" type="thinking-effort"', None)
            w.text(_EFFORT.format(effort=self.effort), "frame")
            _close_message(w, None)
        for index in w.walk(self, messages, tools=conversation.tools):
            message = messages[index]
            if message.role == "assistant":
                self._assistant(w, conversation, message, index)
                continue
            if message.role == "tool":
                _open(w, f'message role="tool" {_result_of(w, messages, index)}', index)
            else:
                _open(w, f'message role="{message.role}"', index)
            w.text(message.text, "given", index)
            _close_message(w, index)
        if not generate:
            return w.done()
        _open(w, 'message role="assistant"', None)
        _open(w, "think" if self.thinking else "response", None)
        return w.done(start="reasoning" if self.thinking else "content")

    def _assistant(self, w: Writer, conversation: Conversation, given: Message, index: int) -> None:
        split = inline_reasoning(given)
        reasoning = split.reasoning if self.thinking and split.reasoning.strip() else ""
        if (reasoning, split.text) != (given.reasoning, given.text):
            w.changed.append(index)
        message = with_parts(split, reasoning=reasoning, text=split.text)
        _open(w, 'message role="assistant"', index)
        start: Start = "content"
        _open(w, "think" if self.thinking else "response", index)
        since = len(w.pieces)
        if self.thinking:
            start = "reasoning"
            w.text(reasoning, "written", index)
            w.put("<|close|>think<|sep|><|open|>response<|sep|>", "written", index)
        w.text(message.text, "written", index)
        w.put("<|close|>response<|sep|>", "written", index)
        write_calls(w, _TAGS, message, index, before="")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools, start=start,
        )  # fmt: skip
        w.put(f"<|close|>message<|sep|>{_END}", "written", index)


def _open(w: Writer, tag: str, index: int | None) -> None:
    w.put("<|open|>", "frame", index)
    w.text(tag, "frame", index)
    w.put("<|sep|>", "frame", index)


def _close_message(w: Writer, index: int | None) -> None:
    w.put(f"<|close|>message<|sep|>{_END}", "frame", index)


def _tools_text(tools: Sequence[ToolSpec]) -> str:
    openai = [spec.to_openai() for spec in tools]
    listed = [
        tool if s.wrapped else tool["function"] for s, tool in zip(tools, openai, strict=True)
    ]
    text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return (
        f"# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n{text}\n```"
    )


def _result_of(w: Writer, messages: Sequence[Message], index: int) -> str:
    """Which call a result answers, as attributes.

    Raises:
        RenderError: It answers none.
    """
    start = index
    while start and messages[start - 1].role == "tool":
        start -= 1
    calls = messages[start - 1].tool_calls if start else ()
    position = index - start
    message = messages[index]
    matched = next((c.name for c in calls if c.id and c.id == message.tool_call_id), "")
    name = matched or message.name or (calls[position].name if position < len(calls) else "")
    if not name:
        raise w.refuse("a result needs the name of its tool; give the message a name", index)
    escaped = name.replace("&", "&amp;").replace('"', "&quot;")
    return f'tool="{escaped}" index="{position + 1}"'


def _in_order(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages with results in the order of their calls, where ids tell it."""
    ordered = list(messages)
    for index, message in enumerate(messages):
        if message.role != "assistant":
            continue
        end = index + 1
        while end < len(messages) and messages[end].role == "tool":
            end += 1
        ids = [call.id for call in message.tool_calls]
        results = messages[index + 1 : end]
        if all(result.tool_call_id in ids for result in results):
            ordered[index + 1 : end] = sorted(results, key=lambda m: ids.index(m.tool_call_id))
    return tuple(ordered)


FORMAT = KimiK3()
