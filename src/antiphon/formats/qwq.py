"""QwQ: Qwen2.5's text with reasoning that the prompt opens and no later turn shows again.

    <|im_start|>assistant
    <think>
    The user wants the weather.
    </think>

    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    </tool_call><|im_end|>

(What is shown is what the model writes; in a later prompt the turn begins at ``<tool_call>``.)
Every assistant message is listed in `Rendered.changed`, because its reasoning block is not shown
again.

Differs from upstream: nothing.
Source: QwQ-32B as xinference 4.1 ships it.
"""

from dataclasses import dataclass

from antiphon.formats import _qwen as qwen
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._render import (
    CHATML,
    Writer,
    check_written,
    inline_reasoning,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Place, Usual, Usuals
from antiphon.messages import Conversation


@dataclass(frozen=True, slots=True)
class Qwq(Family):
    """The QwQ family."""

    name = "qwq"
    models = ("Qwen/QwQ-*",)
    signs = ("<tool_call>", "content.split('</think>')[-1].lstrip('\\n')", "<think>\\n")
    stop = ("<|im_end|>", "<|endoftext|>")
    prefix_stable = False
    turns = CHATML
    specials = CHATML.specials | qwen.CALL_MARKS | qwen.THINK_MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return qwen.SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            open="<tool_call>\n",
            close="\n</tool_call>",
            thinking=("<think>\n", "\n</think>\n\n"),
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        if first or conversation.tools:
            index = 0 if first else None
            CHATML.begin(w, "system", index)
            w.text(system or "", "given", index)
            if conversation.tools:
                w.text("\n\n", "frame", index)
                qwen.write_tools(w, conversation.tools, index)
            CHATML.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            message = messages[index]
            if message.role == "tool":
                qwen.write_result(w, messages, index)
            elif message.role != "assistant":
                CHATML.whole(w, message.role, message.text, index)
            else:
                CHATML.begin(w, "assistant", index)
                self._assistant(w, conversation, index)
                CHATML.finish(w, "assistant", index)
        if not generate:
            return w.done()
        CHATML.begin(w, "assistant", None)
        w.put("<think>\n", "frame")
        return w.done(start="reasoning")

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        given = inline_reasoning(conversation.messages[index])
        message = with_parts(given, reasoning="", text=given.text.lstrip("\n"))
        w.changed.append(index)
        since = len(w.pieces)
        w.text(message.text, "written", index)
        qwen.write_calls(w, message, index, after_text=bool(message.text))
        check_written(w, self.syntax, message, index, since=since, tools=conversation.tools)


def _usual(place: Place) -> Usual | None:
    return qwen.usual(place, specials=Qwq.specials, change=_without_feeds, changes=True)


def _without_feeds(text: str) -> str:
    return text.lstrip("\n")


_USUAL = Usuals(_usual)
FORMAT = Qwq()
