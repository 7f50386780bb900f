"""GLM-4.5 and 4.6: role marks, reasoning in <think>, calls with a tag per argument, a line each.

    <|assistant|>
    <think>The user wants the weather.</think>
    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Lima</arg_value>
    </tool_call><|observation|>
    <tool_response>
    19 degrees
    </tool_response>

Reasoning is shown again only behind the last user message; ``thinking=False`` adds ``/nothink`` to
what users say.  Text and reasoning are trimmed.  Messages that are not written as they once were
are listed in `Rendered.changed`.

Differs from upstream: nothing.
Source: ``glm4moe.jinja`` as trl 1.16 ships it; GLM-4.6's as xinference 4.1 ships it is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats import _glm_tags as glm
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message

_STYLE = glm.Style(feed="\n", empty="<think></think>", opens="")
_SYNTAX = _STYLE.syntax


@dataclass(frozen=True, slots=True)
class Glm45(Family):
    """The GLM-4.5 and GLM-4.6 families."""

    thinking: bool = True
    """Whether the model is asked to reason."""

    name = "glm4_5"
    models = ("zai-org/GLM-4.5*", "zai-org/GLM-4.6*")
    aliases = {"glm45": {}, "glm4_6": {}, "glm4_moe": {}}
    signs = ("[gMASK]<sop>", "<arg_key>", "/nothink")
    stop = glm.STOP
    prefix_stable = False
    specials = glm.SPECIALS
    style = _STYLE

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return _STYLE.call_form(thinking=self.thinking)

    @property
    def asks(self) -> bool:
        """Whether the model is asked to reason."""
        return self.thinking

    def head(self) -> str:
        """What stands before the tools."""
        return ""

    def reasoning_of(
        self, message: Message, messages: Sequence[Message], index: int, last: int
    ) -> str | None:
        """The reasoning that a message shows again; ``None`` where it shows none."""
        return message.reasoning or None if index > last else None

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        return glm.render(self, conversation, generate=generate)


FORMAT = Glm45()
