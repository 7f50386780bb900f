"""A conversation's messages as strict servers take them: unique call ids, each result behind its
call.

Ids of our own messages are kept wherever they can be; a call without an id, or with one that is
taken, is sent with an id made of its place.  A result whose call is not there is told apart.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from operator import is_

from antiphon.messages import InvalidToolCall, JsonObject, Message, ToolCall


@dataclass(frozen=True, slots=True)
class SentCall:
    """A call as it is sent."""

    id: str
    """Its id on the wire."""
    name: str
    """The tool's name."""
    arguments: JsonObject
    """Its arguments: an object, also where the model wrote none; then its text is inside."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A message as it is sent."""

    message: Message
    """The message."""
    calls: tuple[SentCall, ...] = ()
    """For role ``assistant``: its calls."""
    result_of: str | None = None
    """For role ``tool``: the id of the call on the wire; ``None`` where its call is not there."""
    natural: bool = True
    """Whether ids are the message's own, so that what is made of it does not depend on its
    place."""

    @property
    def text(self) -> str:
        """The text, with the raw text of invalid calls that have no name."""
        unnamed = (c.raw for c in self.message.invalid_tool_calls if not c.name)
        return self.message.text + "".join(unnamed)

    @property
    def orphan_text(self) -> str:
        """A result whose call is not there, as text of a user."""
        return f"Result of {self.message.name or 'a tool'}:\n{self.message.text}"


def sent_messages(messages: tuple[Message, ...], *, first: int = 0) -> Iterator[Sent]:
    """The messages, each with its ids on the wire.

    Args:
        messages: A conversation, or its part from an assistant's message on.
        first: The place of the first of them in the conversation.
    """
    open_calls: list[tuple[str, str]] = []  # (our id, the id that was sent), not yet answered
    for index, message in enumerate(messages, start=first):
        if message.role == "assistant":
            calls = _calls(message, index)
            own = _own_calls(message)
            open_calls = [(c.id, s.id) for c, s in zip(own, calls, strict=True)]
            natural = all(ours == theirs for ours, theirs in open_calls)
            yield Sent(message, calls, natural=natural)
        elif message.role == "tool":
            own_id = message.tool_call_id
            place = next((n for n, call in enumerate(open_calls) if call[0] == own_id), None)
            if place is None:
                yield Sent(message, natural=False)
            else:
                id = open_calls.pop(place)[1]
                yield Sent(message, result_of=id, natural=id == own_id)
        else:
            yield Sent(message)


@dataclass(frozen=True, slots=True)
class Prefix:
    """The part of a conversation that the next step will send again as it is."""

    messages: tuple[Message, ...]
    """The messages up to the last assistant's, that one left out."""
    written: bytes
    """Their JSON, joined."""

    def begins(self, messages: tuple[Message, ...]) -> bool:
        """Whether a conversation begins with these very messages."""
        return len(self.messages) <= len(messages) and all(map(is_, self.messages, messages))


def _own_calls(message: Message) -> list[ToolCall | InvalidToolCall]:
    """The calls that can be sent as calls: valid ones, and invalid ones that have a name."""
    return [*message.tool_calls, *(c for c in message.invalid_tool_calls if c.name)]


def _calls(message: Message, index: int) -> tuple[SentCall, ...]:
    sent: list[SentCall] = []
    taken: set[str] = set()
    for n, call in enumerate(_own_calls(message)):
        id = call.id if call.id and call.id not in taken else f"call_{index}_{n}"
        taken.add(id)
        if isinstance(call, ToolCall):
            sent.append(SentCall(id, call.name, call.arguments))
        else:
            sent.append(SentCall(id, call.name, {"invalid_arguments": call.raw}))
    return tuple(sent)
