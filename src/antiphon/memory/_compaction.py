"""Making what a model is shown shorter, without taking a call from its result.

Sizes are estimates: characters through four, and a little for each message.  A tokenizer would be
exact for one model and wrong for the next; leave room in `Compaction.max_tokens`.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from antiphon.errors import UsageError
from antiphon.messages import Conversation, Message, TextPart, dump_json
from antiphon.models import Model, complete

_CHARS_A_TOKEN = 4
_TOKENS_A_MESSAGE = 6
_STUB_CHARS = 200

Method = Literal["tool_results", "truncate", "summary"]
Summarise = Callable[[Sequence[Message]], str | Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Compaction:
    """When and how to show a model less."""

    max_tokens: int
    """The size above which it is done, and below which it brings the conversation."""
    keep_messages: int = 6
    """How many of the newest messages are never touched."""
    keep_steps: int | None = None
    """Instead, how many of the newest replies are not, each with the results of its calls."""
    summarise: Summarise | None = None
    """Makes the text that stands for messages that are left out; without it they are counted."""

    def __post_init__(self) -> None:
        if self.keep_steps is not None and self.keep_steps < 1:
            raise UsageError(f"keep_steps must be 1 or more, got {self.keep_steps}")
        if self.max_tokens < 1 or self.keep_messages < 1:
            raise UsageError(
                f"max_tokens and keep_messages must be 1 or more, got {self.max_tokens} and "
                f"{self.keep_messages}"
            )


@dataclass(frozen=True, slots=True)
class Compacted:
    """What is shown from now on."""

    messages: tuple[Message, ...]
    """The messages."""
    method: Method
    """How they were made shorter."""
    n_messages: int
    """How many messages are no longer shown as they were."""


def count_tokens(messages: Iterable[Message]) -> int:
    """An estimate of how many tokens messages take."""
    n_chars = n = 0
    for message in messages:
        n += 1
        n_chars += len(message.text) + len(message.reasoning)
        n_chars += sum(len(dump_json(c.arguments)) + len(c.name) for c in message.tool_calls)
    return n_chars // _CHARS_A_TOKEN + n * _TOKENS_A_MESSAGE


async def compact(messages: Sequence[Message], how: Compaction) -> Compacted | None:
    """Shorter messages, or ``None`` where nothing can be left out.

    Args:
        messages: The conversation without its system message. Its first request stays, and so do
            messages with ``metadata["pinned"]``.
        how: The limits.
    """
    cut = _cut(messages, how)
    head, tail = messages[:cut], tuple(messages[cut:])
    stubbed = tuple(_stub(message) for message in head)
    n_stubbed = sum(a is not b for a, b in zip(head, stubbed, strict=True))
    if n_stubbed and count_tokens((*stubbed, *tail)) <= how.max_tokens:
        return Compacted((*stubbed, *tail), "tool_results", n_stubbed)
    request = next((message for message in head if message.role == "user"), None)
    kept = tuple(message for message in head if message is request or _is_pinned(message))
    left = tuple(message for message in head if not (message is request or _is_pinned(message)))
    if not left:
        return None
    if how.summarise is None:
        note = f"[{len(left)} earlier messages are not shown.]"
        return Compacted((*kept, Message.user(note), *tail), "truncate", len(left))
    made = how.summarise(left)
    text = await made if inspect.isawaitable(made) else made
    summary = Message.user(f"[What was said before]\n{text}")
    return Compacted((*kept, summary, *tail), "summary", len(left))


def _is_pinned(message: Message) -> bool:
    return message.role in ("user", "system") and message.metadata.get("pinned") is True


def _cut(messages: Sequence[Message], how: Compaction) -> int:
    """Where the kept end begins: at no tool's answer, whose call would be left out."""
    if how.keep_steps is not None:
        replies = [n for n, message in enumerate(messages) if message.role == "assistant"]
        return replies[-how.keep_steps] if len(replies) >= how.keep_steps else 0
    cut = max(0, len(messages) - how.keep_messages)
    while cut > 0 and messages[cut].role == "tool":
        cut -= 1
    return cut


def _stub(message: Message) -> Message:
    text = message.text
    if message.role != "tool" or len(text) <= _STUB_CHARS:
        return message
    note = f"{text[: _STUB_CHARS // 2]} [... {len(text)} characters in all, no longer shown]"
    return replace(message, parts=(TextPart(note),))


_ASK = (
    "Summarise the conversation so far for whoever goes on with it: what was asked, what was found "
    "out with all names and numbers, what is still to do. Write the summary and nothing else."
)


def summarise_with(model: Model) -> Summarise:
    """A summary by a model, for `Compaction.summarise`.

    Args:
        model: Who summarises; the caller closes it.
    """

    async def summarise(messages: Sequence[Message]) -> str:
        told = "\n\n".join(f"{message.role}: {_told(message)}" for message in messages)
        asked = Conversation((Message.system(_ASK), Message.user(told)))
        return (await complete(model, asked)).message.text

    return summarise


def _told(message: Message) -> str:
    calls = "".join(f"\n[calls {c.name} {dump_json(c.arguments)}]" for c in message.tool_calls)
    return message.text + calls
