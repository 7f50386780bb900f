"""GLM-5.1, 5.2 and 5.3: as GLM-4.7, tools as bare functions, and from 5.2 on an effort.

    <|system|>Reasoning Effort: Max<|user|>Weather in Lima?<|assistant|><think>Look it up.</think>
    <tool_call>get_weather<arg_key>city</arg_key><arg_value>Lima</arg_value></tool_call>

(The line is broken here only.)  5.1 and 5.2 show reasoning again only behind the last user message,
unless `preserve` says otherwise; 5.3 always reasons, shows all of it again, and puts results in the
order of their calls.  Text is trimmed, reasoning is not.  Messages that are not written as they
once were are listed in `Rendered.changed`.

Differs from upstream: images are refused; the template puts a reminder in their place.
Source: the chat templates of GLM-5.1, GLM-5.2 and GLM-5.3 as xinference 4.1 ships them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from antiphon.formats import _glm_tags as glm
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message

Version = Literal["5.1", "5.2", "5.3"]
Effort = Literal["low", "high", "max"]

_FIRST = glm.Style(feed="", empty="</think>", trims=False, shows_empty=True, wrapped=False)
_LATER = replace(_FIRST, empty="<think></think>", shows_empty=False)
_SYNTAX = _FIRST.syntax


@dataclass(frozen=True, slots=True)
class Glm5(Family):
    """The GLM-5.1, GLM-5.2 and GLM-5.3 families."""

    version: Version = "5.1"
    """Which of the family's texts."""
    thinking: bool = True
    """Whether the model is asked to reason; 5.3 always is."""
    preserve: bool | None = None
    """Whether the reasoning of earlier turns is shown again; ``None`` for the version's own way."""
    effort: Effort = "max"
    """How much 5.2 (high or max) and 5.3 are asked to reason."""

    name = "glm5"
    models = ("zai-org/GLM-5.1*",)
    aliases = {
        "glm5_1": {},
        "glm5_2": {"version": "5.2"},
        "glm5_3": {"version": "5.3"},
        "zai-org/GLM-5.2*": {"version": "5.2"},
        "zai-org/GLM-5.3*": {"version": "5.3"},
    }
    signs = ("[gMASK]<sop>", "<arg_key>", "<tool_response>", "defer_loading")
    stop = glm.STOP
    specials = glm.SPECIALS

    @property
    def asks(self) -> bool:
        """Whether the model is asked to reason."""
        return self.thinking or self.version == "5.3"

    @property
    def style(self) -> glm.Style:
        """What differs between the families."""
        return _FIRST if self.version == "5.1" else _LATER

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]  # a variant of the class's constant
        """Whether a longer conversation extends the text of a shorter one."""
        return self._keeps

    @property
    def _keeps(self) -> bool:
        return self.version == "5.3" if self.preserve is None else self.preserve

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return self.style.call_form(thinking=self.asks)

    def head(self) -> str:
        """What stands before the tools."""
        if self.version == "5.1" or not self.asks:
            return ""
        effort = "max" if self.version == "5.2" and self.effort == "low" else self.effort
        return f"<|system|>Reasoning Effort: {effort.capitalize()}"

    def reasoning_of(
        self, message: Message, messages: Sequence[Message], index: int, last: int
    ) -> str | None:
        """The reasoning that a message shows again; ``None`` where it shows none."""
        if not self._keeps and index <= last:
            return None
        if message.reasoning:
            return message.reasoning
        # 5.1 shows an empty block where the model was asked to reason, or did in the same turn.
        asked = self.version == "5.1" and (
            self.asks if index > last else _reasoned(messages, index)
        )
        return "" if asked else None

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        if self.version == "5.3":
            conversation = replace(conversation, messages=_in_order(conversation.messages))
        far_sighted = self.version == "5.1" and self._keeps
        return glm.render(self, conversation, generate=generate, far_sighted=far_sighted)


def _reasoned(messages: Sequence[Message], index: int) -> bool:
    """Whether any message of the same turn has reasoning."""
    start, end = index, index + 1
    while start and messages[start - 1].role != "user":
        start -= 1
    while end < len(messages) and messages[end].role != "user":
        end += 1
    return any(m.role == "assistant" and m.reasoning for m in messages[start:end])


def _in_order(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages with results in the order of their calls, where ids tell it."""
    ordered = list(messages)
    for index, message in enumerate(messages):
        if message.role != "assistant" or not message.tool_calls:
            continue
        ids = [call.id for call in message.tool_calls]
        end = index + 1
        while end < len(messages) and messages[end].role == "tool":
            end += 1
        results = messages[index + 1 : end]
        named = [result.tool_call_id for result in results]
        known = all(ids) and len(set(ids)) == len(ids) == len(set(named) | set(ids))
        if known and len(set(named)) == len(named):
            ordered[index + 1 : end] = sorted(results, key=lambda m: ids.index(m.tool_call_id))
    return tuple(ordered)


FORMAT = Glm5()
