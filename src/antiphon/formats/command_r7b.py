"""Command R7B: marks for everything, calls as one JSON array with ids behind a plan.

    <|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>I will look.<|END_THINKING|>
    <|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Lima"}}
    ]<|END_ACTION|><|END_OF_TURN_TOKEN|>

(The first line above is broken for reading.)  Calls are numbered over the conversation, and results
name the number of their call.  Reasoning is the plan before calls; elsewhere it is left out, and so
is text beside calls.  Such messages are listed in `Rendered.changed`.

Differs from upstream: the template ends every text with the next chatbot mark; here only a prompt
has it.  What a tool says of itself is escaped as JSON.  Documents are not rendered.
Source: ``CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja`` in the source of llama-cpp-python
0.3.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats import _cohere as cohere
from antiphon.formats import _command as command
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Writer,
    as_said,
    of_tools,
    refuse_images,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation


@dataclass(frozen=True, slots=True)
class CommandR7B(Family):
    """The Command R7B family."""

    name = "command_r7b"
    models = ("CohereForAI/c4ai-command-r7b-*", "CohereLabs/c4ai-command-r7b-*")
    aliases = {"cohere_command3": {}, "command_r7b_12_2024": {}}
    signs = (cohere.ACTION, "Developer Preamble")
    stop = ("<|END_OF_TURN_TOKEN|>", cohere.END_RESPONSE)
    turns = cohere.TURNS
    specials = cohere.TURNS.specials | cohere.MARKS | {cohere.RESPONSE, cohere.END_RESPONSE}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return cohere.SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return cohere.call_form(self.specials, cohere.RESPONSE, cohere.END_RESPONSE)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        w.put(cohere.TURNS.before_all, "frame")
        self._system(w, conversation, system)
        numbers = cohere.numbered(conversation)
        first = first if system else 0
        for index in w.walk(self, messages, first, tools=conversation.tools):
            match messages[index].role:
                case "tool":
                    cohere.result(w, conversation, index, numbers[index][0], ("", ""))
                case "assistant":
                    self._assistant(w, conversation, index, numbers[index])
                case role:
                    cohere.TURNS.whole(w, role, messages[index].text, index)
        if generate:
            cohere.TURNS.begin(w, "assistant", None)
        return w.done()

    def _system(self, w: Writer, conversation: Conversation, system: str | None) -> None:
        index = 0 if system else None
        cohere.TURNS.begin(w, "system", index)
        w.text(command.PREAMBLE, "frame", index)
        if conversation.tools:
            w.put(command.tool_use(), "frame", index)
            w.text(of_tools(cohere.listing, conversation.tools) + "\n]\n```\n\n", "frame", index)
        w.text(command.DEFAULTS, "frame", index)
        if system:
            w.text(command.DEVELOPER, "frame", index)
            w.text(system, "given", index)
        cohere.TURNS.finish(w, "system", index)

    def _assistant(
        self, w: Writer, conversation: Conversation, index: int, numbers: Sequence[int]
    ) -> None:
        message = conversation.messages[index]
        cohere.TURNS.begin(w, "assistant", index)
        since = len(w.pieces)
        if message.tool_calls:
            said = as_said(w, message, index, text="", reasoning=message.reasoning)
            cohere.thought(w, said.reasoning, index)
            rest = cohere.calls_parts(said, numbers)
        else:
            said = as_said(w, message, index, text=message.text)
            w.mark(cohere.RESPONSE, "written", index)
            rest = (cohere.END_RESPONSE,)
        write_answer(w, cohere.SYNTAX, conversation, said, index, *rest, since=since)
        cohere.TURNS.finish(w, "assistant", index)


FORMAT = CommandR7B()
