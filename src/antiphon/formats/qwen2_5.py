"""Qwen2.5: ChatML turns, tools as JSON lines in the system turn, calls as JSON in <tool_call>.

    <|im_start|>assistant
    Let me look.
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    </tool_call><|im_end|>
    <|im_start|>user
    <tool_response>
    {"celsius": 19}
    </tool_response><|im_end|>

The family does not reason: reasoning in a message is left out, as its template does, and the
message is listed in `Rendered.changed`.

Differs from upstream: nothing.
Source: ``qwen2_5.jinja`` as trl 1.16 ships it (Qwen/Qwen2.5-*-Instruct).
"""

from dataclasses import dataclass
from functools import partial

from antiphon.formats import _qwen as qwen
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._render import (
    CHATML,
    Writer,
    check_written,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Usuals
from antiphon.messages import Conversation

DEFAULT_SYSTEM = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."


@dataclass(frozen=True, slots=True)
class Qwen25(Family):
    """The Qwen2.5 family."""

    default_system: str = DEFAULT_SYSTEM
    """The system text where a conversation has none."""

    name = "qwen2_5"
    models = ("Qwen/Qwen2.5-*", "Qwen/Qwen2.5-Coder-*")
    aliases = {"qwen25": {}, "qwen": {}}
    signs = ("You are Qwen, created by Alibaba Cloud", "<tool_call>")
    stop = ("<|im_end|>", "<|endoftext|>")
    turns = CHATML
    specials = CHATML.specials | qwen.CALL_MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return qwen.SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(self.specials, open="<tool_call>\n", close="\n</tool_call>")

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        CHATML.begin(w, "system", index)
        if system is None:
            w.text(self.default_system, "frame", index)
        else:
            w.text(system, "given", index)
        if conversation.tools:
            w.text("\n\n", "frame", index)
            qwen.write_tools(w, conversation.tools, index)
        CHATML.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            self._message(w, conversation, index)
        if generate:
            CHATML.begin(w, "assistant", None)
        return w.done()

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        if message.role == "tool":
            qwen.write_result(w, conversation.messages, index)
        elif message.role != "assistant":
            CHATML.whole(w, message.role, message.text, index)
        else:
            if message.reasoning:
                w.changed.append(index)
                message = with_parts(message, reasoning="", text=message.text)
            CHATML.begin(w, "assistant", index)
            since = len(w.pieces)
            w.text(message.text, "written", index)
            qwen.write_calls(w, message, index, after_text=bool(message.text))
            check_written(
                w, self.syntax, message, index,
                since=since, tools=conversation.tools,
            )  # fmt: skip
            CHATML.finish(w, "assistant", index)


_USUAL = Usuals(partial(qwen.usual, specials=Qwen25.specials))
FORMAT = Qwen25()
