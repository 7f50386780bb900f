"""Gemma 4: one model turn for calls, results and answer; calls in the family's own objects.

    <|turn>model
    <|channel>thought
    They ask for the weather.
    <channel|><|tool_call>call:get_weather{city:<|"|>Lima<|"|>}<tool_call|><|tool_response>
    response:get_weather{value:<|"|>19<|"|>}<tool_response|>It is 19 degrees.<turn|>

(the results follow the call without a line feed).  A model that has called writes
``<|tool_response>`` and stops; it goes on behind the results in the same turn.  Reasoning is shown
behind the last user message; `preserve_thinking` keeps that of earlier calls, too.  Texts are
trimmed, as upstream.

Differs from upstream: text that a message says before its calls stands before them, where the model
wrote it; the template moves it behind the results.
Source: ``gemma4_v5.jinja`` as trl 1.16 ships it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats import _gemma as gemma
from antiphon.formats._family import Family
from antiphon.formats._gemma_grammar import call_form
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Writer,
    check_written,
    inline_reasoning,
    last_user,
    refuse_media,
    with_parts,
)
from antiphon.formats._scan import Syntax, Thinking
from antiphon.formats._types import Rendered
from antiphon.messages import (
    AudioPart,
    Conversation,
    ImagePart,
    Message,
    TextPart,
    ThinkingPart,
    ToolCall,
    VideoPart,
)

_MEDIA: dict[type, str] = {
    ImagePart: "<|image|>",
    AudioPart: "<|audio|>",
    VideoPart: "<|video|>",
}
_THOUGHT, _THOUGHT_END = "<|channel>thought", "<channel|>"
_SYNTAX = Syntax(
    blocks=gemma.blocks(gemma.GemmaCalls()),
    thinking=(
        Thinking(_THOUGHT, _THOUGHT_END, after_open="\n", before_close="\n", after_close=""),
    ),
    doubled=(gemma.CALL_END,),
    ignored=(gemma.RESULT,),
)


@dataclass(frozen=True, slots=True)
class Gemma4(Family):
    """The Gemma 4 family."""

    thinking: bool = False
    """Whether the model is asked to reason."""
    preserve_thinking: bool = False
    """Whether the reasoning of earlier calls is shown again."""

    name = "gemma4"
    models = ("google/gemma-4-*",)
    signs = ("<|tool_call>", "<|channel>")
    stop = ("<turn|>", gemma.RESULT, "<eos>")
    prefix_stable = False
    specials = frozenset(
        {
            *("<bos>", "<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|think|>", "<|image|>"),
            *("<|audio|>", "<|video|>", "<|image>", "<image|>", "<|audio>", "<audio|>"),
            *(gemma.CALL, gemma.CALL_END, gemma.RESULT, gemma.RESULT_END, gemma.QUOTE),
            *("<|channel>", _THOUGHT_END),
        }
    )

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return call_form(self.specials, thinking=(f"{_THOUGHT}\n", f"\n{_THOUGHT_END}"))

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_media(w, messages, shows=tuple(_MEDIA))
        first = int(bool(messages) and messages[0].role == "system")
        w.mark("<bos>", "frame")
        self._system(w, conversation, first)
        query = last_user(messages)
        for index in w.walk(self, messages, first, tools=conversation.tools, shown_from=query):
            message = messages[index]
            before = messages[index - 1].role if index > first else ""
            match message.role:
                case "assistant":
                    if before not in ("assistant", "tool"):
                        w.put("<|turn>model\n", "frame", index)
                    keep = index > query or (self.preserve_thinking and bool(message.tool_calls))
                    self._assistant(w, conversation, index, keep=keep)
                case "tool":
                    _result(w, messages, index)
                case role:
                    w.put(f"<|turn>{role}\n", "frame", index)
                    _content(w, message, index)
                    w.put("<turn|>\n", "frame", index)
        if not generate:
            return w.done()
        last = messages[-1].role if messages else ""
        if last != "tool":
            if last != "assistant" or not messages[-1].tool_calls:
                w.put("<|turn>model\n", "frame")
        elif self.thinking:
            w.put(f"{_THOUGHT}\n", "frame")
            return w.done(start="reasoning")
        return w.done()

    def _system(self, w: Writer, conversation: Conversation, first: int) -> None:
        if not (first or conversation.tools or self.thinking):
            return
        index = 0 if first else None
        w.put("<|turn>system\n", "frame", index)
        w.put("<|think|>\n" if self.thinking else "", "frame", index)
        if first:
            w.text(conversation.messages[0].text.strip(), "given", 0)
        for tool in conversation.tools:
            if found := gemma.problem(tool.to_openai()):
                raise w.refuse(f"the tool {tool.name!r} holds {found}; change it", index)
            w.mark("<|tool>", "frame", index)
            for i, part in enumerate(gemma.declaration(tool).split(gemma.QUOTE)):
                if i:
                    w.mark(gemma.QUOTE, "frame", index)
                w.text(part, "frame", index)
            w.mark("<tool|>", "frame", index)
        w.put("<turn|>\n", "frame", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, keep: bool) -> None:
        messages = conversation.messages
        message = inline_reasoning(messages[index])
        text = message.text.strip()
        if text != message.text or (message.reasoning and not keep):
            w.changed.append(index)
        message = with_parts(message, reasoning=message.reasoning if keep else "", text=text)
        opened = self.thinking and index > 0 and messages[index - 1].role == "tool"
        since = len(w.pieces)
        if message.reasoning:
            w.put(f"{_THOUGHT}\n", "frame" if opened else "written", index)
            w.text(f"{message.reasoning}\n", "written", index)
            w.mark(_THOUGHT_END, "written", index)
        elif opened:
            w.changed.append(index)
        w.text(message.text, "written", index)
        for call in message.tool_calls:
            _call(w, call, index)
        for invalid in message.invalid_tool_calls:
            w.put(invalid.raw, "written", index)
        check_written(
            w, _SYNTAX, message, index, since=since, tools=conversation.tools,
            start="reasoning" if opened and message.reasoning else "content",
        )  # fmt: skip
        if message.tool_calls:
            w.mark(gemma.RESULT, "written", index)
        elif index + 1 == len(messages) or messages[index + 1].role != "assistant":
            w.mark("<turn|>", "written", index)
            w.text("\n", "frame", index)


def _call(w: Writer, call: ToolCall, index: int) -> None:
    if found := gemma.problem(call.arguments):
        raise w.refuse(f"the arguments of {call.name!r} hold {found}; change it", index)
    w.mark(gemma.CALL, "written", index)
    for i, part in enumerate(f"call:{call.name}{gemma.written(call.arguments)}".split(gemma.QUOTE)):
        if i:
            w.mark(gemma.QUOTE, "written", index)
        w.text(part, "written", index)
    w.mark(gemma.CALL_END, "written", index)


def _result(w: Writer, messages: Sequence[Message], index: int) -> None:
    """One result of a run of them behind a call."""
    start = index
    while start and messages[start - 1].role == "tool":
        start -= 1
    calls = messages[start - 1].tool_calls if start else ()
    if not calls:
        raise w.refuse("a result must follow a call; add the call or drop the result", index)
    message = messages[index]
    named = [
        call.name for call in calls if message.tool_call_id and call.id == message.tool_call_id
    ]
    order = calls[index - start].name if index - start < len(calls) else "unknown"
    if index > start:
        w.mark(gemma.RESULT, "frame", index)
    w.text(f"response:{(named or [message.name or order])[-1]}{{value:", "frame", index)
    w.mark(gemma.QUOTE, "frame", index)
    w.text(message.text, "given", index)
    w.mark(gemma.QUOTE, "frame", index)
    w.text("}", "frame", index)
    w.mark(gemma.RESULT_END, "frame", index)
    for part in message.media:
        w.mark(_MEDIA[type(part)], "given", index)
    if index + 1 < len(messages) and messages[index + 1].role not in ("tool", "assistant"):
        w.put("<turn|>\n", "frame", index)


def _content(w: Writer, message: Message, index: int) -> None:
    if not message.media:
        w.text(message.text.strip(), "given", index)
        return
    for part in message.parts:
        if isinstance(part, TextPart):
            w.text(part.text.strip(), "given", index)
        elif not isinstance(part, ThinkingPart):
            w.mark(_MEDIA[type(part)], "given", index)


FORMAT = Gemma4()
