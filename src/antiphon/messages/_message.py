"""Messages, their parts, the calls in them, and the conversation they make.

Plain frozen values: they hold what was said and nothing about how a family writes it.  Equality is
what was said: the exact text a model wrote (`raw`) and what was mended in it (`repairs`) are
evidence beside the value and do not take part.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, TypeAlias

from antiphon.messages._spec import ToolSpec

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject: TypeAlias = "dict[str, JsonValue]"

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text that a reader sees."""

    text: str
    """The text, exactly."""


@dataclass(frozen=True, slots=True)
class ThinkingPart:
    """Reasoning that a model wrote before or between its answers."""

    text: str
    """The reasoning, exactly, without the family's marks."""
    signature: str | None = None
    """An API's proof that the text is its own; sent back unchanged."""


@dataclass(frozen=True, slots=True)
class ImagePart:
    """An image, by reference."""

    source: str
    """A path, a URL or a data URI."""
    kind: ClassVar[Literal["image"]] = "image"
    """What rows and messages call it."""


@dataclass(frozen=True, slots=True)
class AudioPart:
    """A sound, by reference."""

    source: str
    """A path, a URL or a data URI."""
    kind: ClassVar[Literal["audio"]] = "audio"
    """What rows and messages call it."""


@dataclass(frozen=True, slots=True)
class VideoPart:
    """A film, by reference."""

    source: str | tuple[str, ...]
    """A path, a URL or a data URI; or those of its frames, one by one."""
    kind: ClassVar[Literal["video"]] = "video"
    """What rows and messages call it."""


MediaPart: TypeAlias = ImagePart | AudioPart | VideoPart
Part: TypeAlias = TextPart | ThinkingPart | MediaPart


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's wish to call a tool."""

    name: str
    """The tool's name."""
    arguments: JsonObject
    """What to call it with: a JSON object."""
    id: str = ""
    """What results refer to; empty where the family writes none and nobody gave one yet."""
    raw: str = field(default="", compare=False)
    """The exact text of the call, if a model wrote it."""
    repairs: tuple[str, ...] = field(default=(), compare=False)
    """What was mended to read it, one name each; empty for well-formed text."""


@dataclass(frozen=True, slots=True)
class InvalidToolCall:
    """Text that meant to be a call, and why it is not one."""

    raw: str
    """The exact text, marks included."""
    reason: str
    """Why it could not be read, in words a model can act on."""
    name: str = ""
    """The tool's name, where that much was readable."""
    id: str = ""
    """The call's id, where it had one."""


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The answer to one call."""

    call_id: str
    """The id of the call it answers."""
    name: str
    """The tool's name."""
    text: str
    """What the model reads."""
    is_error: bool = False
    """Whether the call failed; the text then says how to mend it."""
    value: object = field(default=None, compare=False)
    """What the tool returned, as Python sees it."""
    images: tuple[ImagePart, ...] = ()
    """Images that the tool returned."""
    repairs: tuple[str, ...] = field(default=(), compare=False)
    """What was mended in the arguments before the call."""
    full_text: str | None = None
    """The whole text, where `text` was capped."""


@dataclass(frozen=True, slots=True)
class Message:
    """One entry of a conversation."""

    role: Role
    """Who speaks."""
    parts: tuple[Part, ...] = ()
    """What is said, in order."""
    tool_calls: tuple[ToolCall, ...] = ()
    """Calls that an assistant made in this message, in order."""
    invalid_tool_calls: tuple[InvalidToolCall, ...] = ()
    """Calls that an assistant meant to make."""
    tool_call_id: str = ""
    """For role ``tool``: the call that this answers."""
    name: str = ""
    """For role ``tool``: the tool's name; otherwise the agent or person who speaks."""
    is_error: bool = False
    """For role ``tool``: whether the call failed."""
    loss: float | None = None
    """The weight of this message in training, where a row sets one; else the policy decides."""
    metadata: JsonObject = field(default_factory=lambda: {})
    """Everything else that a row said of this message."""

    @property
    def text(self) -> str:
        """All text parts joined; ``""`` where there is none."""
        parts = self.parts
        if not parts:
            return ""
        if len(parts) == 1 and isinstance(parts[0], TextPart):  # nearly always
            return parts[0].text
        return "".join([p.text for p in parts if isinstance(p, TextPart)])

    @property
    def reasoning(self) -> str:
        """All thinking parts joined; ``""`` where there is none."""
        parts = self.parts
        if not parts or (len(parts) == 1 and isinstance(parts[0], TextPart)):  # nearly always
            return ""
        return "".join([p.text for p in self.parts if isinstance(p, ThinkingPart)])

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """The image parts, in order."""
        parts = self.parts
        if not parts or (len(parts) == 1 and isinstance(parts[0], TextPart)):  # nearly always
            return ()
        return tuple([p for p in self.parts if isinstance(p, ImagePart)])

    @property
    def media(self) -> tuple[MediaPart, ...]:
        """The image, audio and video parts, in order."""
        parts = self.parts
        if not parts or (len(parts) == 1 and isinstance(parts[0], TextPart)):  # nearly always
            return ()
        return tuple([p for p in self.parts if isinstance(p, MediaPart)])

    @classmethod
    def system(cls, text: str) -> "Message":
        """A system message."""
        return cls("system", _text_parts(text))

    @classmethod
    def user(cls, content: str | Iterable[Part]) -> "Message":
        """A user message, from text or from parts."""
        parts = _text_parts(content) if isinstance(content, str) else tuple(content)
        return cls("user", parts)

    @classmethod
    def assistant(
        cls,
        text: str = "",
        *,
        reasoning: str = "",
        tool_calls: Sequence[ToolCall] = (),
        invalid_tool_calls: Sequence[InvalidToolCall] = (),
    ) -> "Message":
        """An assistant message; reasoning comes before text, text before calls."""
        thinking: tuple[Part, ...] = (ThinkingPart(reasoning),) if reasoning else ()
        return cls(
            "assistant",
            thinking + _text_parts(text),
            tool_calls=tuple(tool_calls),
            invalid_tool_calls=tuple(invalid_tool_calls),
        )

    @classmethod
    def tool(
        cls, text: str, *, call_id: str = "", name: str = "", is_error: bool = False
    ) -> "Message":
        """The answer of a tool, as the model reads it."""
        return cls("tool", _text_parts(text), tool_call_id=call_id, name=name, is_error=is_error)

    @classmethod
    def from_result(cls, result: ToolResult) -> "Message":
        """The message that shows a `ToolResult` to the model."""
        return cls(
            "tool",
            _text_parts(result.text) + result.images,
            tool_call_id=result.call_id,
            name=result.name,
            is_error=result.is_error,
        )

    def without_ids(self) -> "Message":
        """The same message with every call id cleared, for comparing across families."""
        return replace(
            self,
            tool_calls=tuple(replace(c, id="") for c in self.tool_calls),
            tool_call_id="",
        )


def _text_parts(text: str) -> tuple[Part, ...]:
    return (TextPart(text),) if text else ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages and tool specs: all that a model is shown."""

    messages: tuple[Message, ...] = ()
    """What was said, in order."""
    tools: tuple[ToolSpec, ...] = ()
    """What may be called."""
    metadata: JsonObject = field(default_factory=lambda: {})
    """Everything else that a row said: source, outcome, unknown fields."""

    def append(self, *messages: Message) -> "Conversation":
        """A conversation with more messages at its end."""
        return replace(self, messages=self.messages + messages)
