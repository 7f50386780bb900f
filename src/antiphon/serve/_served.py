"""The models that a server serves, by the names that clients call them.

A `Served` is asked with an `Ask` and gives pieces.  It opens no socket and knows no dialect.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from antiphon.messages import Conversation
from antiphon.models import Model, ModelSettings
from antiphon.serve._answer import Answer, Fold, Piece, pieces_of
from antiphon.serve._ask import Ask, told_schema
from antiphon.serve._refusal import Refusal, bad


@runtime_checkable
class CountsTokens(Protocol):
    """A model that can tell how long a prompt is before it is asked."""

    async def count_tokens(self, conversation: Conversation, settings: ModelSettings) -> int:
        """How many tokens a conversation's prompt has.

        Raises:
            ModelError: It cannot be told.
        """
        ...


@dataclass(frozen=True, slots=True)
class Served:
    """A model under a name."""

    name: str
    """What clients call it."""
    model: Model
    """What completes conversations."""
    raw: Model | None = None
    """What continues plain text; ``None`` where it cannot."""

    def pieces(self, ask: Ask, choice: int = 0) -> AsyncGenerator[Piece, None]:
        """One of the answers to a request, as it is written.

        Raises:
            AntiphonError: There is no answer.
        """
        asked = ask.choice(choice).settings
        return pieces_of(self.model.stream(self._shown(ask), asked))

    async def count_tokens(self, ask: Ask) -> int:
        """How many tokens the model would read.

        Raises:
            Refusal: The model cannot tell.
            AntiphonError: It does not.
        """
        if not isinstance(self.model, CountsTokens):
            raise Refusal(501, f"{self.name} cannot count tokens before it is asked")
        return await self.model.count_tokens(self._shown(ask), ask.settings)

    def raw_pieces(self, ask: Ask, choice: int = 0) -> AsyncGenerator[Piece, None]:
        """As `pieces`, of a request that continues plain text.

        Raises:
            Refusal: The model cannot.
            AntiphonError: There is no answer.
        """
        if self.raw is None:
            raise bad(f"{self.name} completes conversations only; use /v1/chat/completions")
        return pieces_of(self.raw.stream(ask.conversation, ask.choice(choice).settings))

    def _shown(self, ask: Ask) -> Conversation:
        """What the model is shown.  Where no server stands between us and the text, nobody else
        tells it the schema of its answer."""
        if getattr(self.model, "format", None) is None:
            return ask.conversation
        return told_schema(ask.conversation, ask.settings.response_schema)

    async def close(self) -> None:
        """Give back what its models hold."""
        await self.model.close()
        if self.raw is not None:
            await self.raw.close()


class ServedModels:
    """All models of a server."""

    def __init__(self, served: "list[Served]", aliases: "dict[str, str] | None" = None) -> None:
        """Set up.

        Args:
            served: The models; the first answers for every name where ``*`` is an alias.
            aliases: Further names, each with the name of the model that it means.
        """
        self.served = {one.name: one for one in served}
        self._aliases = aliases or {}

    def __getitem__(self, name: str) -> Served:
        """The model of a name.

        Raises:
            Refusal: There is none.
        """
        found = self.served.get(name)
        if found is None:
            meant = self._aliases.get(name) or self._aliases.get("*", "")
            found = self.served.get(meant)
        if found is None:
            known = ", ".join(self.served)
            raise Refusal(
                404,
                f"there is no model {name[:80]!r}; there is: {known}",
                "model_not_found",
                "model",
            )
        return found

    async def close(self) -> None:
        """Give back what all of them hold."""
        for one in self.served.values():
            await one.close()


async def whole(pieces: AsyncGenerator[Piece, None]) -> Answer:
    """An answer, when it is whole.

    Raises:
        AntiphonError: There is none.
    """
    fold = Fold()
    async with aclosing(pieces):
        async for piece in pieces:
            fold.take(piece)
    return fold.answer()


async def side_by_side(
    streams: "list[AsyncGenerator[Piece, None]]",
) -> AsyncGenerator[tuple[int, Piece], None]:
    """The pieces of several answers as they come, each with its answer's number.

    Raises:
        AntiphonError: One of them broke; the others are stopped.
    """
    if len(streams) == 1:
        async with aclosing(streams[0]):
            async for piece in streams[0]:
                yield 0, piece
        return
    arrived: asyncio.Queue[tuple[int, Piece | None]] = asyncio.Queue(64)

    async def pump(index: int, stream: AsyncGenerator[Piece, None]) -> None:
        try:
            async with aclosing(stream):
                async for piece in stream:
                    await arrived.put((index, piece))
        finally:
            await arrived.put((index, None))

    tasks = [asyncio.create_task(pump(i, stream)) for i, stream in enumerate(streams)]
    try:
        n_open = len(tasks)
        while n_open:
            index, piece = await arrived.get()
            if piece is None:
                n_open -= 1
                await tasks[index]  # raises what broke it
            else:
                yield index, piece
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
