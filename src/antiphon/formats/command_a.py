"""Command A: Command R7B's marks and words, with reasoning in every message.

    <|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>I will look.<|END_THINKING|>
    <|START_ACTION|>[
        {"tool_call_id": "0", "tool_name": "get_weather", "parameters": {"city": "Lima"}}
    ]<|END_ACTION|><|END_OF_TURN_TOKEN|>

(The first line above is broken for reading.)  Calls are numbered over the conversation, and results
name the number of their call.  Text beside calls is the plan where there is no reasoning, and is
left out where there is; such messages are listed in `Rendered.changed`.

Differs from upstream: a prompt is written only where one is asked for.  What a tool says of itself
is escaped as JSON.  Documents, answers in JSON and other safety modes are not rendered.
Source: ``cmd3`` of cohere-melody 0.15.3, the templates that Cohere's own server renders.  The
templates in the models' repositories were not at hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

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
from antiphon.formats._usual import Place, Usual, Usuals, answered, given
from antiphon.messages import Conversation

_CONTENT = ('{"content": ', "}")


@dataclass(frozen=True, slots=True)
class CommandA(Family):
    """The Command A family."""

    thinking: bool | None = None
    """Whether the model reasons first; ``None`` leaves it to the model, as it was trained."""
    grounding: bool = False
    """Whether the model is asked to name the sources of what it says."""

    name = "command_a"
    models = ("CohereForAI/c4ai-command-a-*", "CohereLabs/c4ai-command-a-*")
    aliases = {
        "command_a_03_2025": {},
        "command_a_reasoning": {"thinking": True},
        "CohereLabs/command-a-reasoning-*": {"thinking": True},
        "CohereLabs/command-a-vision-*": {},
        "CohereLabs/command-a-translate-*": {},
    }
    signs = (cohere.ACTION, "## Reasoning\nStart your response by writing")
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
        walk = w.walk(
            self, messages, first, tools=conversation.tools, usual=_usuals(self), ids=numbers
        )
        for index in walk:
            match messages[index].role:
                case "tool":
                    cohere.result(w, conversation, index, numbers[index][0], _CONTENT)
                case "assistant":
                    self._assistant(w, conversation, index, numbers[index])
                case role:
                    cohere.TURNS.whole(w, role, messages[index].text, index)
        if generate:
            cohere.TURNS.begin(w, "assistant", None)
        return w.done()

    def usual(self, place: Place) -> Usual | None:
        """How messages are written as most are; see `_usual.py`."""
        specials = self.specials
        match place.kind:
            case "calls":
                return cohere.usual_call(specials)
            case "assistant":
                around = cohere.RESPONSE, cohere.END_RESPONSE
                return answered(
                    cohere.TURNS.frame("assistant", *around, specials=specials), cohere.SYNTAX
                )
            case "tool":
                return cohere.usual_result(place, _CONTENT, specials)
            case _:
                return given(cohere.TURNS.frame(place.role, specials=specials))

    def _system(self, w: Writer, conversation: Conversation, system: str | None) -> None:
        index = None if system is None else 0
        cohere.TURNS.begin(w, "system", index)
        w.text(command.PREAMBLE, "frame", index)
        w.put(command.REASONING if self.thinking else "", "frame", index)
        if conversation.tools:
            how = command.tool_use(plans=self.thinking, grounding=self.grounding)
            w.put(how, "frame", index)
            w.text(of_tools(cohere.listing, conversation.tools) + "\n]\n```\n", "frame", index)
        w.text("\n" + command.DEFAULTS, "frame", index)
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
        text, reasoning = message.text, message.reasoning
        if message.tool_calls:
            text, reasoning = "", reasoning or text
        if self.thinking is False:
            reasoning = ""
        said = as_said(w, message, index, text=text, reasoning=reasoning)
        if said.reasoning:
            cohere.thought(w, said.reasoning, index)
        if said.tool_calls:
            rest = cohere.calls_parts(said, numbers)
        else:
            w.mark(cohere.RESPONSE, "written", index)
            rest = (cohere.END_RESPONSE,)
        write_answer(w, cohere.SYNTAX, conversation, said, index, *rest, since=since)
        cohere.TURNS.finish(w, "assistant", index)


@cache
def _usuals(family: CommandA) -> Usuals:
    return Usuals(family.usual)


FORMAT = CommandA()
