"""Calls that stand in the text of an answer, because the server reads none for its model.

Many servers run without a tool parser; what the model writes as ``<tool_call>{...}</tool_call>``
then comes as text.  Where tools are on offer such text is held back and read at the end of the
answer.  It is a call only if it is one from end to end and names a tool on offer; anything else
stays text.
"""

from collections.abc import Sequence
from dataclasses import replace

from antiphon.formats import get_format
from antiphon.messages import Message, ToolSpec
from antiphon.models._wire import new_call_id

MARK = "<tool_call>"
REPAIR = "call_in_text"
"""How the record of such a call says where it was found."""


class TextCalls:
    """Lets text through up to the mark, and keeps the rest for the end."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        """Without tools everything is let through."""
        self._tools = tuple(tools)
        self._pending = ""
        self._held: list[str] | None = None

    @property
    def holds(self) -> bool:
        """Whether anything is held back."""
        return bool(self._pending or self._held)

    def feed(self, text: str) -> str:
        """Take more text; give what is certainly none of a call."""
        if not self._tools:
            return text
        if self._held is not None:
            self._held.append(text)
            return ""
        text = self._pending + text
        place = text.find(MARK)
        if place >= 0:
            self._pending, self._held = "", [text[place:]]
            return text[:place]
        n = next((n for n in range(len(MARK) - 1, 0, -1) if text.endswith(MARK[:n])), 0)
        self._pending = text[len(text) - n :]
        return text[: len(text) - n]

    def finish(self) -> str:
        """Everything that was held back."""
        held = self._pending + "".join(self._held or ())
        self._pending, self._held = "", None
        return held

    def read(self, held: str) -> Message | None:
        """What was held back as calls, or ``None`` where it is text."""
        if not held.startswith(MARK):
            return None
        parser = get_format("hermes").parser(tools=self._tools)
        parser.feed(held)
        parser.finish()
        message = parser.message
        offered = {spec.name for spec in self._tools}
        if any(call.name not in offered for call in message.tool_calls):
            return None
        meant = held[len(MARK) :].lstrip().startswith("{")
        if not (message.tool_calls or message.invalid_tool_calls) or not meant:
            return None
        return replace(
            message,
            tool_calls=tuple(
                replace(call, id=call.id or new_call_id(), repairs=(*call.repairs, REPAIR))
                for call in message.tool_calls
            ),
            invalid_tool_calls=tuple(
                replace(call, id=call.id or new_call_id()) for call in message.invalid_tool_calls
            ),
        )
