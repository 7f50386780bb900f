"""What every family's class brings besides `render`: the parser and the grammar of its `syntax`."""

from collections.abc import Sequence
from typing import Any

from antiphon.formats._grammar import CallForm, Grammar, grammar_of
from antiphon.formats._scan import Parser, Syntax
from antiphon.formats._types import Rendered, Start, StreamParser, ToolChoice
from antiphon.messages import Conversation, JsonObject, Message, ToolSpec


class Family:
    """The one level that families share.  A family is a frozen dataclass; its fields are its
    variants."""

    __slots__ = ()

    name: str
    """The family's name: the module's."""
    models: tuple[str, ...] = ()
    """Model ids that the family is for, as patterns (``*`` matches anything)."""
    aliases: dict[str, dict[str, Any]] = {}
    """Other names of the family, with the variant that each means."""
    signs: tuple[str, ...] = ()
    """Texts that the family's chat template holds and no other one does, to know it by."""
    stop: tuple[str, ...]
    """Texts that end a model's turn; a runtime stops there and leaves them out."""
    prefix_stable: bool = True
    """Whether a longer conversation extends the text of a shorter one."""

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        raise NotImplementedError(f"{type(self).__name__} has no call form")

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        raise NotImplementedError(f"{type(self).__name__} has no syntax")

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        raise NotImplementedError(f"{type(self).__name__} does not render")

    def parser(
        self, *, tools: Sequence[ToolSpec] = (), start: Start = "content", strict: bool = False
    ) -> StreamParser:
        """A parser for one assistant message. See `Format.parser`."""
        return Parser(self.syntax, tools=tools, start=start, strict=strict)

    def parse(
        self,
        text: str,
        *,
        tools: Sequence[ToolSpec] = (),
        start: Start = "content",
        strict: bool = False,
    ) -> Message:
        """Read one assistant message. See `Format.parse`."""
        parser = self.parser(tools=tools, start=start, strict=strict)
        parser.feed(text)
        parser.finish()
        return parser.message

    def grammar(
        self,
        tools: Sequence[ToolSpec],
        *,
        choice: ToolChoice = "auto",
        parallel: bool = True,
        start: Start = "content",
        answer: "JsonObject | str | None" = None,
    ) -> Grammar:
        """What constrained decoding may write. See `Format.grammar`."""
        return grammar_of(self, tools, choice=choice, parallel=parallel, start=start, answer=answer)
