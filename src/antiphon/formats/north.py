"""North: Cohere's marks around every text, calls as one JSON array with ids behind the reasoning.

    <|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>I will look.<|END_THINKING|>
    <|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Lima"}}
    ]<|END_ACTION|><|END_OF_TURN_TOKEN|>

(The first line above is broken for reading.)  Calls are numbered over the conversation, and results
name the number of their call.  Reasoning stays in every message.  Text beside calls is left out,
and its messages are listed in `Rendered.changed`.

Differs from upstream: what a tool says of itself is escaped as JSON.  Documents, grounding and
answers in JSON are not rendered.
Source: ``Cohere2MoE.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats import _cohere as cohere
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Writer,
    as_said,
    of_tools,
    refuse_images,
    write_answer,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation

_PLATFORM = """\
These instructions are always to be followed and cannot be overridden by subsequent system or user \
turns:
- You will answer requests for educational, informative, or creative content related to safety \
categories. You will not provide content that is harmful or could be used to cause harm.

These instructions serve as your defaults, but they can be overridden in subsequent system or user \
turns:
- Your name is North Mini Code.
- You are a large language model built by Cohere.

# Available Tools
```json
[
"""
_CONTENT = ('{"content": ', "}")


@dataclass(frozen=True, slots=True)
class North(Family):
    """The North family."""

    thinking: bool = True
    """Whether the model reasons."""

    name = "north"
    models = ("CohereLabs/North-*",)
    aliases = {"cohere_command4": {}, "cohere2_moe": {}}
    signs = (cohere.ACTION, cohere.TEXT)
    stop = ("<|END_OF_TURN_TOKEN|>", cohere.END_TEXT)
    turns = cohere.TURNS
    specials = cohere.TURNS.specials | cohere.MARKS | {cohere.TEXT, cohere.END_TEXT}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return cohere.SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return cohere.call_form(self.specials, cohere.TEXT, cohere.END_TEXT)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        w.put(cohere.TURNS.before_all, "frame")
        cohere.TURNS.begin(w, "system", None)
        w.put(f"{cohere.TEXT}{_PLATFORM}", "frame")
        listing = of_tools(cohere.listing, conversation.tools) if conversation.tools else ""
        w.text(f"{listing}\n]\n```", "frame")
        w.mark(cohere.END_TEXT, "frame")
        cohere.TURNS.finish(w, "system", None)
        numbers = cohere.numbered(conversation)
        for index in w.walk(self, messages, tools=conversation.tools):
            message = messages[index]
            match message.role:
                case "tool":
                    cohere.result(w, conversation, index, numbers[index][0], _CONTENT)
                case "assistant":
                    self._assistant(w, conversation, index, numbers[index])
                case role:
                    cohere.TURNS.begin(w, role, index)
                    w.mark(cohere.TEXT, "frame", index)
                    w.text(message.text, "given", index)
                    w.mark(cohere.END_TEXT, "frame", index)
                    cohere.TURNS.finish(w, role, index)
        if not generate:
            return w.done()
        cohere.TURNS.begin(w, "assistant", None)
        w.put(cohere.THINK if self.thinking else f"{cohere.THINK}{cohere.END_THINK}", "frame")
        return w.done(start="reasoning" if self.thinking else "content")

    def _assistant(
        self, w: Writer, conversation: Conversation, index: int, numbers: Sequence[int]
    ) -> None:
        message = conversation.messages[index]
        cohere.TURNS.begin(w, "assistant", index)
        since = len(w.pieces)
        text = "" if message.tool_calls else message.text
        said = as_said(w, message, index, text=text, reasoning=message.reasoning)
        if said.reasoning:
            cohere.thought(w, said.reasoning, index, opened=self.thinking)
        if said.tool_calls:
            rest = cohere.calls_parts(said, numbers)
        else:
            w.mark(cohere.TEXT, "written", index)
            rest = (cohere.END_TEXT,)
        write_answer(w, cohere.SYNTAX, conversation, said, index, *rest, since=since)
        cohere.TURNS.finish(w, "assistant", index)


FORMAT = North()
