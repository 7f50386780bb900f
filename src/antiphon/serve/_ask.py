"""What one request asks of a model, whatever the dialect that it came in.

The parts that all dialects share are read here: tools, sampling, media.  Nothing here waits.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from antiphon.errors import DataError, clip
from antiphon.messages import (
    AudioPart,
    Conversation,
    ImagePart,
    JsonObject,
    JsonValue,
    Message,
    TextPart,
    ToolSpec,
    VideoPart,
    dump_json,
)
from antiphon.models import ModelSettings
from antiphon.serve._fields import Fields
from antiphon.serve._refusal import bad

MAX_TOKENS = 1 << 24
MAX_TOP = 20  # of the likeliest tokens beside each sampled one; OpenAI's own
_TOOL_NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
_AUDIO = re.compile(r"data:audio/[a-z0-9.+-]+;base64,|https?://", re.IGNORECASE)
_VIDEO = re.compile(r"data:video/[a-z0-9.+-]+;base64,|https?://", re.IGNORECASE)
_IMAGE = re.compile(r"data:image/[a-z0-9.+-]+;base64,|https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request may bring."""

    tools: int = 1024
    """Tools on offer."""
    messages: int = 10_000
    """Messages, or items, of a conversation."""
    choices: int = 16
    """Answers to one question."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request."""

    model: str
    """The model that it names."""
    conversation: Conversation
    """What the model is shown."""
    settings: ModelSettings = field(default_factory=ModelSettings)
    """How it is sampled."""
    n: int = 1
    """How many answers are wanted."""
    include_usage: bool = False
    """Whether a stream ends with what it cost."""
    id: str = ""
    """What the answer is called, where the dialect says that before it is asked for."""
    echo: JsonObject = field(default_factory=dict[str, JsonValue])
    """What of the request the answer repeats, where the dialect asks for that."""

    @property
    def stream(self) -> bool:
        """Whether the answer is wanted as it is written."""
        return self.settings.stream

    @property
    def logprobs(self) -> bool:
        """Whether the log probabilities of the answer's tokens are wanted."""
        return self.settings.logprobs is not None

    def choice(self, index: int) -> "Ask":
        """One of its `n` answers: each is sampled with a seed of its own."""
        seed = self.settings.seed
        if seed is None or index == 0:
            return self
        return replace(self, settings=replace(self.settings, seed=seed + index))


def check_tools(specs: Sequence[ToolSpec], limits: Limits) -> tuple[ToolSpec, ...]:
    """Tools that a model can tell apart.

    Raises:
        Refusal: There are too many, two have one name, or a name is none.
    """
    if len(specs) > limits.tools:
        raise bad(f"{len(specs)} tools are more than this server takes ({limits.tools})", "tools")
    names: set[str] = set()
    for spec in specs:
        if not _TOOL_NAME.fullmatch(spec.name):
            raise bad(f"{clip(spec.name, 80)} cannot be the name of a tool", "tools")
        if spec.name in names:
            raise bad(f"two tools are named {spec.name!r}", "tools")
        names.add(spec.name)
    return tuple(specs)


def openai_tools(rows: Sequence[Fields], limits: Limits) -> tuple[ToolSpec, ...]:
    """Tools in OpenAI's spelling, with or without the ``function`` wrapper.

    Raises:
        Refusal: One of them is no function.
    """
    if len(rows) > limits.tools:  # before reading them all
        raise bad(f"{len(rows)} tools are more than this server takes ({limits.tools})", "tools")
    specs: list[ToolSpec] = []
    for row in rows:
        if row.text("type", "function") != "function":
            raise row.refuse("type", "'function': this server has no tools of its own here")
        try:
            specs.append(ToolSpec.from_openai(row.row))
        except DataError as error:
            raise bad(f"{row.place}: {error}", row.place) from error
    return check_tools(specs, limits)


def check_choice(choice: str, tools: Sequence[ToolSpec]) -> str:
    """A tool choice that the tools allow.

    Raises:
        Refusal: It names no tool on offer, or wants a call where nothing can be called.
    """
    if choice in ("auto", "none"):
        return choice
    if not tools:
        raise bad(f"tool_choice {choice!r} needs tools", "tool_choice")
    if choice != "required" and choice not in {spec.name for spec in tools}:
        raise bad(f"tool_choice names {choice!r}, which is not among the tools", "tool_choice")
    return choice


def image(source: str, place: str) -> ImagePart:
    """An image that a client may show: data of its own, or an address; never a file of ours.

    Raises:
        Refusal: It is something else.
    """
    return ImagePart(_shown(source, place, _IMAGE, "an image"))


def audio(source: str, place: str) -> AudioPart:
    """A sound that a client may let hear, as `image`.

    Raises:
        Refusal: It is something else.
    """
    return AudioPart(_shown(source, place, _AUDIO, "a sound"))


def input_audio(part: Fields) -> AudioPart:
    """A sound as a part of OpenAI's APIs holds its data.

    Raises:
        Refusal: Its data or its format is missing, or the format is none.
    """
    heard = part.object("input_audio")
    if heard is None:
        raise part.refuse("input_audio", "an object with data and format")
    source = f"data:audio/{heard.text('format')};base64,{heard.text('data')}"
    return audio(source, heard.name("format"))


def video(source: str, place: str) -> VideoPart:
    """A film that a client may show, as `image`.

    Raises:
        Refusal: It is something else.
    """
    return VideoPart(_shown(source, place, _VIDEO, "a film"))


def _shown(source: str, place: str, pattern: re.Pattern[str], what: str) -> str:
    if not pattern.match(source):
        raise bad(f"{place} must be a data URI of {what} or an http(s) address", place)
    return source


def sampling(fields: Fields, settings: ModelSettings) -> ModelSettings:
    """What all dialects spell alike of how an answer is wanted, added to settings.

    Raises:
        Refusal: One of them is out of bounds.
    """
    return replace(
        settings,
        temperature=fields.number("temperature", 0.0, 2.0),
        top_p=fields.number("top_p", 0.0, 1.0),
        stream=fields.flag("stream"),
    )


def told_schema(conversation: Conversation, schema: "JsonObject | None") -> Conversation:
    """The conversation of a request for JSON: its last word to the model says which.

    A grammar can hold the model to a schema, but the model writes better when it has read it.
    """
    if schema is None:
        return conversation
    text = "Answer with JSON alone"
    if schema != {"type": "object"}:
        text += f" that fits this JSON Schema: {dump_json(schema)}"
    first, rest = conversation.messages[:1], conversation.messages[1:]
    if first and first[0].role == "system":
        parts = (*first[0].parts, TextPart(f"\n\n{text}."))
        return replace(conversation, messages=(replace(first[0], parts=parts), *rest))
    messages = (Message.system(f"{text}."), *conversation.messages)
    return replace(conversation, messages=messages)
