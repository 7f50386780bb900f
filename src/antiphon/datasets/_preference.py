"""Rows that compare answers: pairs of a better and a worse one, and answers that are good or bad.

Read in the spellings of ms-swift (``rejected_response``, ``rejected_messages``, ``label``), TRL
(``prompt``, ``chosen``, ``rejected``, ``completion``) and OpenAI (``preferred_output``).  What
trainers are given of them is made by `antiphon.encode`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from antiphon.datasets._read import read_row
from antiphon.errors import DataError, clip
from antiphon.messages import Conversation, Message

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Preference:
    """Two conversations that part at an answer."""

    chosen: Conversation
    """The better one."""
    rejected: Conversation
    """The worse one."""
    n_shared: int
    """How many messages both begin with; the next one is an assistant's in both."""
    margin: float | None = None
    """How much better, where that is known."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A conversation whose last answer is good or bad."""

    conversation: Conversation
    """The conversation."""
    n_prompt: int
    """How many messages stand before the answer that is judged."""
    is_good: bool
    """The verdict."""


_SHOWN = ("tools", "images", "audios", "videos")
"""What a row shows beside its messages."""


def is_preference(row: Row) -> bool:
    """Whether a row compares two answers."""
    keys = ("rejected", "rejected_response", "rejected_messages", "non_preferred_output")
    return any(row.get(key) is not None for key in keys)


def read_preference(row: Row) -> Preference:
    """A row that compares two answers.

    Raises:
        DataError: The row is malformed, or the two do not part at an assistant's message.
    """
    better, worse, beside = _two(row)
    tools = {key: beside[key] for key in _SHOWN if key in beside}
    rest = {k: v for k, v in beside.items() if k not in _SHOWN and k != "margin"}
    chosen = read_row({"messages": better, **tools})
    rejected = read_row({"messages": worse, **_rejected_media(row, tools)})
    n = _n_shared(chosen.messages, rejected.messages)
    for name, conversation in (("chosen", chosen), ("rejected", rejected)):
        if len(conversation.messages) <= n or conversation.messages[n].role != "assistant":
            raise DataError(
                f"the {name} side has no answer of its own behind {n} common messages; "
                "both sides must go on with an assistant message, and differ"
            )
    margin = beside.get("margin")
    return Preference(
        replace(chosen, metadata=rest),
        rejected,
        n,
        float(margin) if isinstance(margin, int | float) else None,
    )


def _rejected_media(row: Row, tools: Mapping[str, Any]) -> dict[str, Any]:
    own = {key: row[f"rejected_{key}"] for key in _SHOWN if f"rejected_{key}" in row}
    return {**tools, **own}


def _two(row: Row) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """The messages of both sides, and what stands beside them."""
    used = {"messages", "prompt", "chosen", "rejected", "rejected_response", "rejected_messages"}
    beside = {k: v for k, v in row.items() if k not in used}
    given: Any = row.get("input")
    if "preferred_output" in row and isinstance(given, Mapping):
        fields = cast("dict[str, Any]", given)
        prompt = _messages(fields.get("messages"), "input")
        tools = {"tools": fields["tools"]} if "tools" in fields else {}
        better = _messages(row["preferred_output"], "preferred_output")
        worse = _messages(row.get("non_preferred_output"), "non_preferred_output")
        return [*prompt, *better], [*prompt, *worse], tools
    if "chosen" in row:
        prompt = _messages(row["prompt"], "prompt", role="user") if "prompt" in row else []
        better = _messages(row["chosen"], "chosen")
        return [*prompt, *better], [*prompt, *_messages(row.get("rejected"), "rejected")], beside
    messages = _messages(row.get("messages"), "messages")
    if row.get("rejected_messages") is not None:
        return messages, _messages(row["rejected_messages"], "rejected_messages"), beside
    users = [i for i, m in enumerate(messages) if _role(m) in ("user", "human")]
    kept = messages[: users[-1] + 1] if users else []
    key = "rejected_response" if "rejected_response" in row else "rejected"
    return messages, [*kept, *_messages(row.get(key), key)], beside


def _messages(value: Any, name: str, *, role: str = "assistant") -> list[Any]:
    """A list of messages; a text is one message."""
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if isinstance(value, Mapping):
        return [value]
    if isinstance(value, list) and value:
        return cast("list[Any]", value)
    given = cast("object", value)
    raise DataError(f"{name!r} must be a text or a list of messages, got {clip(given)}")


def _role(message: Any) -> str:
    if not isinstance(message, Mapping):
        return ""
    fields = cast("Mapping[str, Any]", message)
    return str(fields.get("role", fields.get("from", "")))


def _n_shared(a: Sequence[Message], b: Sequence[Message]) -> int:
    n = 0
    for ours, theirs in zip(a, b, strict=False):
        if ours != theirs:
            break
        n += 1
    return n


def read_judged(row: Row) -> Judged:
    """A row whose last answer is good or bad, as its ``label`` says.

    Raises:
        DataError: The row is malformed, or has no label or no answer.
    """
    label = row.get("label")
    if not isinstance(label, bool | int) or label not in (0, 1):
        raise DataError(f"'label' must be true or false, got {clip(label)}")
    rest = {k: v for k, v in row.items() if k not in ("label", "prompt", "completion")}
    if "completion" in row:
        prompt = _messages(row.get("prompt"), "prompt", role="user")
        rest["messages"] = [*prompt, *_messages(row["completion"], "completion")]
    conversation = read_row(rest)
    messages = conversation.messages
    users = [i for i, m in enumerate(messages) if m.role == "user"]
    n = users[-1] + 1 if users else 0
    if len(messages) <= n or messages[n].role != "assistant":
        raise DataError("there is no answer behind the last user message, so nothing is judged")
    return Judged(conversation, n, bool(label))


def prompt_of(conversation: Conversation) -> Conversation:
    """A conversation up to its last user message or tool result: what a model is asked to answer.

    Raises:
        DataError: There is no such message.
    """
    roles = [m.role for m in conversation.messages]
    ends = [i + 1 for i, role in enumerate(roles) if role in ("user", "tool")]
    if not ends:
        raise DataError("there is no user message, so there is nothing to ask")
    return replace(conversation, messages=conversation.messages[: ends[-1]])
