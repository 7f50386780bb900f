"""Which texts of a conversation train which of its messages.

A family may write a message otherwise once more follows.  A message is trained in a text in which
it stands as it was written, behind the prompt that the server had sent for it; one text holds as
many messages as it can, and those that are left are looked for in shorter ones.  Renders with a
`Format`; knows no token.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise, takewhile
from typing import NamedTuple

from antiphon.errors import RenderError
from antiphon.formats import Format, Piece, Rendered
from antiphon.messages import Conversation, Message, ThinkingPart

SERVER = -1
_NOTHING = "\U0010fffd"  # for private use: no row holds it


class Text(NamedTuple):
    """A text that a server would have sent, and what of it is trained."""

    end: int
    """How many messages of the conversation it is of."""
    rendered: Rendered
    """The text."""
    trained: set[int]
    """The messages that stand in it as they were written, each in one text only."""


def texts_that_train(fmt: Format, conversation: Conversation, opening: Opening) -> list[Text]:
    """The texts that train every written message once, the longest first.

    Raises:
        RenderError: The family cannot express a message.
    """
    prefixes = _Prefixes(fmt, conversation, opening)
    left = written_in(prefixes.whole)
    texts: list[Text] = []
    end = len(conversation.messages)
    while True:
        rendered, trained = prefixes.upto(end), prefixes.served(end, left)
        if not trained and end - 1 in left:
            texts.append(Text(end, prefixes.composed(end - 1), {end - 1}))
            trained = {end - 1}
        elif texts and _begins(texts[-1].rendered, rendered):
            texts[-1].trained.update(trained)
        elif trained or not left:
            texts.append(Text(end, rendered, trained))
        left -= trained
        if not left:
            return texts
        end = max(left) + 1


def side_of(piece: Piece) -> int:
    """The message that a model wrote the piece in; `SERVER` for what no model wrote."""
    return piece.message if piece.author == "written" and piece.message is not None else SERVER


@dataclass(frozen=True, slots=True)
class Opening:
    """How a family's prompts end."""

    text: str
    """What stands behind the messages."""
    reasons: bool
    """Whether it makes the model reason."""

    @classmethod
    def of(cls, fmt: Format) -> Opening:
        asked = Conversation((Message.user("?"),))
        try:
            prompt, given = fmt.render(asked, generate=True), fmt.render(asked).pieces
        except RenderError:  # a family that asks for more than a question
            return cls("", False)
        pairs = enumerate(zip(prompt.pieces, given, strict=False))
        n = next((i for i, (a, b) in pairs if a != b), min(len(prompt.pieces), len(given)))
        text = "".join(piece.text for piece in prompt.pieces[n:])
        return cls(text, prompt.start == "reasoning")


class _Prefixes:
    """A conversation up to each of its messages, rendered when needed and once."""

    def __init__(self, fmt: Format, conversation: Conversation, opening: Opening) -> None:
        self._format = fmt
        self._conversation = conversation
        self._opening = opening
        self._rendered: dict[tuple[int, bool], Rendered] = {}

    @property
    def whole(self) -> Rendered:
        return self.upto(len(self._conversation.messages))

    def upto(self, end: int, *, generate: bool = False) -> Rendered:
        """The first `end` messages as text; with `generate` as the prompt for the next."""
        if (end, generate) not in self._rendered:
            part = replace(self._conversation, messages=self._conversation.messages[:end])
            self._rendered[end, generate] = self._format.render(part, generate=generate)
        return self._rendered[end, generate]

    def served(self, end: int, left: Collection[int]) -> set[int]:
        """Of the written messages `left`, those that the text up to `end` holds as served.

        Before the first rewritten message all are.  Behind one, a message is if the rewriting had
        happened when it was written; rewriting is never undone, so that between two rewritten
        messages this holds from some message on, which is looked for by halves.
        """
        changed = sorted(self.upto(end).changed)
        served = {i for i in left if i < end and (not changed or i < changed[0])}
        if end - 1 in left and end - 1 in changed and self._is_served(end - 1, end):
            served.add(end - 1)
        for low, high in pairwise([*changed, end]):
            between = [i for i in sorted(left) if low < i < high]
            if between and self._is_served(between[0], end):
                served.update(between)
            else:
                first = bisect_left(between, True, key=lambda i: self._is_served(i, end))
                served.update(between[first:])
        return served - self._otherwise(served, end)

    def _otherwise(self, served: Collection[int], end: int) -> set[int]:
        """Of messages that reason where the prompt does not make them, or do not where it does,
        those that do not stand behind that prompt."""
        opens = self._opening
        messages = self._conversation.messages
        waiting = {i for i in served if bool(messages[i].reasoning) != opens.reasons}
        found: set[int] = set()
        before = ""
        for piece in self.upto(end).pieces if waiting else ():
            side = side_of(piece)
            if side in waiting:
                waiting.discard(side)
                if not before.endswith(opens.text) and not self._is_served(side, end):
                    found.add(side)
            before = (before + piece.text)[-len(opens.text) - 1 :]
        return found

    def _is_served(self, index: int, end: int) -> bool:
        """Whether a message stands behind its prompt in the text up to `end`."""
        prompt = self.upto(index, generate=True).text
        before = takewhile(lambda piece: side_of(piece) != index, self.upto(end).pieces)
        return "".join(piece.text for piece in before) == prompt

    def composed(self, index: int) -> Rendered:
        """A message behind its prompt, where no rendering of the family shows the two together."""
        prompt = self.upto(index, generate=True)
        message = self._conversation.messages[index]
        if prompt.start == "reasoning" and not message.reasoning:
            written = self._without_thought(message, index)
        else:
            own = self.upto(index + 1).pieces
            written = tuple(dropwhile(lambda piece: side_of(piece) != index, own))
        return Rendered((*prompt.pieces, *written), changed=prompt.changed)

    def _without_thought(self, message: Message, index: int) -> tuple[Piece, ...]:
        """What a model writes that was made to reason and does not: it closes the block.

        The family writes a reasoning that is nothing, so that how a block is closed stays its own
        knowledge.
        """
        thought = replace(message, parts=(ThinkingPart(_NOTHING), *message.parts))
        before = self._conversation.messages[:index]
        rendered = self._format.render(
            replace(self._conversation, messages=(*before, thought))
        ).pieces
        written = dropwhile(lambda piece: side_of(piece) != index, rendered)
        return tuple(piece._replace(text=piece.text.replace(_NOTHING, "")) for piece in written)


def _begins(longer: Rendered, shorter: Rendered) -> bool:
    return longer.pieces[: len(shorter.pieces)] == shorter.pieces


def written_in(rendered: Rendered) -> set[int]:
    """The messages that a model wrote something in."""
    return {side_of(piece) for piece in rendered.pieces} - {SERVER}
