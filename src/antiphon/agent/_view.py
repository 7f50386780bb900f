"""What the model is shown of a run: everything said, or less after a filter or compaction."""

from collections.abc import Iterable

from antiphon.agent._record import Record
from antiphon.memory import Compacted, Compaction, compact, count_tokens
from antiphon.messages import Conversation, Message, ToolSpec


class View:
    """The messages that the next step is shown.  The record keeps all of them."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._part: list[Message] | None = None
        self._system = Message.system("")

    @property
    def messages(self) -> list[Message]:
        """What is shown after the instructions."""
        return self._record.messages if self._part is None else self._part

    @property
    def is_whole(self) -> bool:
        """Whether that is everything said."""
        return self._part is None

    def say(self, *messages: Message) -> None:
        """Add messages to the conversation."""
        self._record.messages.extend(messages)
        if self._part is not None:
            self._part.extend(messages)

    def narrow(self, messages: Iterable[Message]) -> None:
        """Show these from now on, and what is said after them."""
        self._part = list(messages)

    async def compact(self, how: Compaction | None) -> Compacted | None:
        """Show less from now on, where the conversation has grown too long."""
        if how is None or count_tokens(self.messages) <= how.max_tokens:
            return None
        made = await compact(self.messages, how)
        if made is not None:
            self.narrow(made.messages)
        return made

    def conversation(self, system: str, tools: tuple[ToolSpec, ...]) -> Conversation:
        """What the model is shown: the same message objects as before, and what was added."""
        if self._record.system is None and system and not self._record.steps:
            self._record.system = system
        if system != self._system.text:
            self._system = Message.system(system)
        body = self.messages
        return Conversation((self._system, *body) if system else tuple(body), tools)
