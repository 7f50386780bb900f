"""Plain text: one text, which the model continues; no roles, no calls.

    Once upon a time

For raw completion: whoever gives the text owns all of it, its marks included, so the whole text is
one piece in which the vocabulary's marks count.  Everything else, tools first of all, is refused.

Differs from upstream: there is no upstream; it is what completion APIs take.
Source: OpenAI API reference, ``POST /v1/completions``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.errors import RenderError
from antiphon.formats._family import Family
from antiphon.formats._grammar import EMPTY, CallForm, Node, Rules
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Piece, Rendered
from antiphon.messages import Conversation, Message, ToolSpec

_SYNTAX = Syntax()


@dataclass(frozen=True, slots=True)
class Plain(Family):
    """A text and its continuation."""

    name = "plain"
    stop = ()

    @property
    def syntax(self) -> Syntax:
        """Nothing but text."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """Text that may be anything; there are no calls."""
        return CallForm(_no_call)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """One user's text, and perhaps the text that continued it.

        Raises:
            RenderError: There is anything else.
        """
        if conversation.tools:
            raise RenderError("has no tools; name a family with ?format=", format=self.name)
        roles = [message.role for message in conversation.messages]
        if roles not in (["user"], ["user", "assistant"]):
            raise RenderError(
                f"holds one text of a user and its continuation, got {roles}", format=self.name
            )
        authors = ("given", "written")
        _refuse_all_but_text(conversation.messages)
        pieces = (
            Piece(message.text, author, index, special=index == 0)
            for index, (message, author) in enumerate(
                zip(conversation.messages, authors, strict=False)
            )
        )
        return Rendered(tuple(pieces))


def _refuse_all_but_text(messages: Sequence[Message]) -> None:
    for index, message in enumerate(messages):
        if message.media or message.reasoning or message.tool_calls or message.invalid_tool_calls:
            raise RenderError("holds text alone", format="plain", index=index)


def _no_call(spec: ToolSpec, rules: Rules) -> Node:
    return EMPTY


FORMAT = Plain()
