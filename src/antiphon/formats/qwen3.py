"""Qwen3: ChatML turns, reasoning in <think>, calls as JSON in <tool_call>.

    <|im_start|>assistant
    <think>
    The user wants the weather.
    </think>

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    </tool_call><|im_end|>

Three editions: `hybrid` (April 2025, with `thinking` on or off), `instruct` (2507, never reasons)
and `thinking` (2507, always does; the prompt opens the block).  Reasoning is shown again only
behind the last user turn; earlier reasoning is dropped and its messages are listed in
`Rendered.changed`, and so are messages whose empty block, shown while they were the last one, is
not shown again.

Differs from upstream: nothing.
Source: ``qwen3.jinja`` and ``qwen3_instruct_2507.jinja`` as trl 1.16 ships them; the thinking
edition's as xinference 4.1 ships it (Qwen3-Thinking); Qwen3-Next's there writes the same.
Qwen3-VL's (``qwen3_vl.jinja``) does, too, and shows images and video, which `vision` adds.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from antiphon.formats import _qwen as qwen
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._render import (
    CHATML,
    Writer,
    check_written,
    last_query,
    refuse_media,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Place, Usual, Usuals
from antiphon.messages import Conversation, Message

Edition = Literal["hybrid", "instruct", "thinking"]


@dataclass(frozen=True, slots=True)
class Qwen3(Family):
    """The Qwen3 family."""

    thinking: bool = True
    """Whether the hybrid edition is asked to reason."""
    edition: Edition = "hybrid"
    """Which of the family's three texts: ``hybrid``, ``instruct`` (2507), ``thinking`` (2507)."""
    vision: bool = False
    """Whether images and video can be shown, as Qwen3-VL writes them."""

    name = "qwen3"
    models = ("Qwen/Qwen3-*",)
    aliases = {
        "qwen3_instruct": {"edition": "instruct"},
        "qwen3_instruct_2507": {"edition": "instruct"},
        "qwen3_nothinking": {"edition": "instruct"},
        "qwen3_thinking": {"edition": "thinking"},
        "qwen3_thinking_2507": {"edition": "thinking"},
        "Qwen/Qwen3-*-Instruct-2507*": {"edition": "instruct"},
        "Qwen/Qwen3-*-Thinking-2507*": {"edition": "thinking"},
        "Qwen/Qwen3-Next-*-Instruct*": {"edition": "instruct"},
        "Qwen/Qwen3-Next-*-Thinking*": {"edition": "thinking"},
        "qwen3_vl": {"edition": "instruct", "vision": True},
        "qwen3_vl_thinking": {"edition": "thinking", "vision": True},
        "Qwen/Qwen3-VL-*-Instruct*": {"edition": "instruct", "vision": True},
        "Qwen/Qwen3-VL-*-Thinking*": {"edition": "thinking", "vision": True},
    }
    signs = ('<tool_call>\\n{"name": ', "multi_step_tool")
    stop = ("<|im_end|>", "<|endoftext|>")
    prefix_stable = False
    turns = CHATML
    specials = (
        CHATML.specials | qwen.CALL_MARKS | qwen.RESULT_MARKS | qwen.THINK_MARKS | qwen.VISION_MARKS
    )

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return qwen.SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        reasons = self.edition == "thinking" or (self.edition == "hybrid" and self.thinking)
        return json_form(
            self.specials,
            open="<tool_call>\n",
            close="\n</tool_call>",
            thinking=("<think>\n", "\n</think>\n\n") if reasons else None,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        media = qwen.MEDIA["vision" if self.vision else ""]
        refuse_media(w, messages, shows=tuple(media))
        system, first = split_system(conversation)
        if system is not None or conversation.tools:
            index = 0 if first else None
            CHATML.begin(w, "system", index)
            w.text(system or "", "given", index)
            if conversation.tools:
                w.text("" if system is None else "\n\n", "frame", index)
                qwen.write_tools(w, conversation.tools, index)
            CHATML.finish(w, "system", index)
        query = last_query(messages)
        if query is None:
            query = len(messages) - 1
        for index in w.walk(
            self,
            messages,
            first,
            tools=conversation.tools,
            shown_from=query,
            usual=_usuals(self.edition),
        ):
            self._message(w, conversation, index, query)
        if not generate:
            return w.done()
        CHATML.begin(w, "assistant", None)
        if self.edition == "thinking":
            w.put("<think>\n", "frame")
            return w.done(start="reasoning")
        if self.edition == "hybrid" and not self.thinking:
            w.put("<think>\n\n</think>\n\n", "frame")
        return w.done()

    def _message(self, w: Writer, conversation: Conversation, index: int, query: int) -> None:
        messages = conversation.messages
        if messages[index].role == "tool":
            qwen.write_result(w, messages, index)
        elif messages[index].role != "assistant":
            CHATML.begin(w, messages[index].role, index)
            qwen.write_content(w, messages, index)
            CHATML.finish(w, messages[index].role, index)
        else:
            CHATML.begin(w, "assistant", index)
            self._assistant(w, conversation, index, query)
            CHATML.finish(w, "assistant", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int, query: int) -> None:
        message = qwen.as_written(w, conversation.messages[index], index)
        last = index + 1 == len(conversation.messages)
        shows = index > query and (last or bool(message.reasoning)) and self.edition != "instruct"
        if message.reasoning and not shows:
            w.changed.append(index)
            message = with_parts(message, reasoning="", text=message.text)
        since = len(w.pieces)
        start = self._think(w, message, index) if shows else "content"
        if not shows and self.edition != "instruct":
            w.changed.append(index)  # as the last message it had a block, if an empty one
        if shows and message.text.startswith("\n"):
            w.changed.append(index)
            message = with_parts(
                message, reasoning=message.reasoning, text=message.text.lstrip("\n")
            )
        w.text(message.text, "written", index)
        qwen.write_calls(w, message, index, after_text=bool(message.text))
        check_written(
            w, self.syntax, message, index,
            since=since, tools=conversation.tools, start=start,
        )  # fmt: skip

    def _think(self, w: Writer, message: Message, index: int) -> Literal["content", "reasoning"]:
        """The reasoning block: the prompt's part of it is the frame's, the rest is written."""
        if self.edition == "thinking":
            w.put("<think>\n", "frame", index)
            w.text(f"{message.reasoning}\n", "written", index)
            w.put("</think>\n\n", "written", index)
            return "reasoning"
        by_prompt = not self.thinking and not message.reasoning
        author = "frame" if by_prompt else "written"
        w.put("<think>\n", author, index)
        w.text(f"{message.reasoning}\n", author, index)
        w.put("</think>\n\n", author, index)
        return "content"


@cache
def _usuals(edition: str) -> Usuals:
    def usual(place: Place) -> Usual | None:
        if edition == "instruct":
            return qwen.usual(place, specials=Qwen3.specials)
        if place.role == "assistant" and not place.after:
            return None
        # as the last message it had a block, if an empty one
        return qwen.usual(place, specials=Qwen3.specials, changes=True)

    return Usuals(usual)


FORMAT = Qwen3()
