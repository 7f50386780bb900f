"""What the model is shown of a run: everything said, or less after a filter or compaction."""

from collections.abc import Iterable
from dataclasses import replace

from antiphon.agent._record import Record
from antiphon.memory import Compacted, Compaction, compact, count_tokens
from antiphon.messages import Conversation, Message, ToolSpec

_SHARE = 0.7  # of what the context could not hold: estimates are rough, and a reply needs room


class View:
    """The messages that the next step is shown.  The record keeps all of them."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._part: list[Message] | None = None
        self._system = Message.system("")
        self._counted = 0, 0  # messages, and their tokens

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
        self._counted = 0, 0

    async def compact(self, how: Compaction | None) -> Compacted | None:
        """Show less from now on, where the conversation has grown too long."""
        if how is None or self._n_tokens() <= how.max_tokens:
            return None
        return await self._compact(how)

    async def shorten(self, how: Compaction | None, n_before: int) -> Compacted | None:
        """Show less from now on, because the model's context could not hold it.

        Args:
            how: As the agent says; old results, then old messages go without it.
            n_before: How often that was done in this step already: each time, more goes.
        """
        target = max(1, int(self._n_tokens() * _SHARE))
        given = how or Compaction(target)
        kept = max(1, given.keep_messages >> n_before)
        while True:
            fewer = replace(given, max_tokens=min(given.max_tokens, target), keep_messages=kept)
            made = await self._compact(fewer)
            if made is not None or kept == 1:
                return made
            kept >>= 1

    async def _compact(self, how: Compaction) -> Compacted | None:
        made = await compact(self.messages, how)
        if made is not None:
            self.narrow(made.messages)
        return made

    def _n_tokens(self) -> int:
        """An estimate of what is shown; only what was added since the last time is counted."""
        n, counted = self._counted
        messages = self.messages
        if n > len(messages):
            n = counted = 0
        self._counted = len(messages), counted + count_tokens(messages[n:])
        return self._counted[1]

    def conversation(self, system: str, tools: tuple[ToolSpec, ...]) -> Conversation:
        """What the model is shown: the same message objects as before, and what was added."""
        if self._record.system is None and system and not self._record.steps:
            self._record.system = system
        if system != self._system.text:
            self._system = Message.system(system)
        body = self.messages
        return Conversation((self._system, *body) if system else tuple(body), tools)
