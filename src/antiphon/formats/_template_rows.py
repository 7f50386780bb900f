"""What a chat template is given: a conversation in OpenAI's shape, or with stand-ins for its texts.

A stand-in is a word that occurs nowhere else and that no template changes.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast

from antiphon.messages import (
    Conversation,
    Message,
    TextPart,
    ThinkingPart,
    ToolCall,
    dump_json,
)

Kind = Literal["given", "text", "reasoning", "data"]
Swap: TypeAlias = "Callable[[str, Kind], str]"


class Unwritten(Exception):
    """Something that a template does not write, or not in a way that can be followed."""

    def __init__(self, reason: str, index: int | None = None) -> None:
        super().__init__(reason)
        self.index = index


class Source(Protocol):
    """A template that can be run."""

    @property
    def marks(self) -> frozenset[str]:
        """Texts that are single tokens of the vocabulary."""
        ...

    @property
    def control(self) -> frozenset[str]:
        """Those of them that are control tokens."""
        ...

    @property
    def eos(self) -> str:
        """The token that the vocabulary says ends a text; ``""`` where it says none."""
        ...

    def text(self, rows: str, *, generate: bool) -> str:
        """The template's text of rows, given as JSON.

        Raises:
            Unwritten: The template refuses them.
        """
        ...


@dataclass(frozen=True, slots=True)
class Spelling:
    """How a template takes messages."""

    arguments: Literal["object", "string"] = "object"
    """Whether a call's arguments are an object or its JSON text."""
    content: Literal["text", "parts"] = "text"
    """Whether a text is a string or a list of parts."""


@dataclass(frozen=True, slots=True)
class Slot:
    """One text of a conversation."""

    text: str
    """The text."""
    kind: Kind
    """``given``: a person's or a tool's; ``text``, ``reasoning``: the model's; ``data``: a string
    in a call or in a tool's description that holds a mark."""
    message: int | None
    """Whose text it is; ``None`` for a tool's description."""


class Rows:
    """A conversation as a template's rows, as it is and with stand-ins.

    Args:
        conversation: The conversation.
        spelling: How the template takes messages.
        marks: Texts that are single tokens: a string in a call or a tool's description that holds
            one gets a stand-in.
    """

    def __init__(
        self, conversation: Conversation, spelling: Spelling, marks: frozenset[str] = frozenset()
    ) -> None:
        self.conversation = conversation
        self.slots: list[Slot] = []
        self._holds_mark = re.compile("|".join(map(re.escape, marks)) or r"(?!)")
        messages, names = conversation.messages, _names(conversation)
        specs: Any = [spec.to_openai() for spec in conversation.tools] or None
        self._real = [dump_json(_row(m, spelling, names, _same)) for m in messages]
        self._tools = dump_json(specs)
        text = "".join((*self._real, self._tools))
        self._nonce = _NONCE if _NONCE not in text else _digest(text)[:10].upper()
        self.stand_ins = re.compile(f"Z{self._nonce}N([0-9]+)Z")
        """What stand-ins look like; the group is the slot's position."""
        self._marked_tools = dump_json(_deep(specs, self._swap(None)))
        self._marked = [
            dump_json(_row(m, spelling, names, self._swap(i))) for i, m in enumerate(messages)
        ]
        seen = hashlib.sha256(self._marked_tools.encode())
        self._keys = [seen.digest()]
        for row in self._marked:
            seen.update(row.encode())
            self._keys.append(seen.digest())

    def key(self, upto: int) -> bytes:
        """What tells the messages before `upto`, with stand-ins, and the tools from all others."""
        return self._keys[upto]

    def stand_in(self, slot: int) -> str:
        """What stands for a slot's text."""
        return f"Z{self._nonce}N{slot}Z"

    def real(self, upto: int | None = None) -> str:
        """The messages before `upto`, and the tools, as JSON."""
        return f'{{"messages": [{", ".join(self._real[:upto])}], "tools": {self._tools}}}'

    def marked(self, upto: int | None = None, *, since: int = 0) -> str:
        """The same with stand-ins; messages before `since` are left out, but for a first system
        message."""
        rows = self._marked[:1] if since and self.conversation.messages[0].role == "system" else []
        rows = rows + self._marked[since:upto]
        return f'{{"messages": [{", ".join(rows)}], "tools": {self._marked_tools}}}'

    def turn(self, upto: int) -> int:
        """Where the turn begins that the messages before `upto` end in: at a user's message; 0
        for the first turn."""
        messages = self.conversation.messages
        at = next((n for n in range(upto - 1, 0, -1) if messages[n].role == "user"), 0)
        return 0 if at == 1 and messages[0].role == "system" else at

    def _swap(self, index: int | None) -> Swap:
        def swap(text: str, kind: Kind) -> str:
            if not text.strip() or (kind == "data" and not self._holds_mark.search(text)):
                return text
            self.slots.append(Slot(text, kind, index))
            return self.stand_in(len(self.slots) - 1)

        return swap


_NONCE = "Q5V0X"  # a stand-in is the same at each step of a run, so that what is known stays known


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _same(text: str, kind: Kind) -> str:
    return text


def _names(conversation: Conversation) -> dict[str, str]:
    """The name of the tool that each call's id means."""
    return {
        call.id: call.name
        for message in conversation.messages
        for call in message.tool_calls
        if call.id
    }


def _row(
    message: Message, spelling: Spelling, names: Mapping[str, str], swap: Swap
) -> dict[str, Any]:
    """A message as a template takes it, in the keys that transformers gives."""
    row: dict[str, Any] = {"role": message.role, "content": _content(message, spelling, swap)}
    if message.reasoning:
        reasoning = swap(message.reasoning, "reasoning")
        row |= {"reasoning_content": reasoning, "thinking": reasoning}
    if message.tool_calls:
        row["tool_calls"] = [_call(call, spelling, swap) for call in message.tool_calls]
    if message.role == "tool":
        row["tool_call_id"] = swap(message.tool_call_id, "data")
        row["name"] = swap(message.name or names.get(message.tool_call_id, ""), "data")
    return row


def _content(message: Message, spelling: Spelling, swap: Swap) -> str | list[dict[str, Any]]:
    kind: Kind = "text" if message.role == "assistant" else "given"
    failed = "".join(call.raw for call in message.invalid_tool_calls)
    if not message.media and spelling.content == "text":
        return swap(message.text + failed, kind)
    parts: list[dict[str, Any]] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            parts.append({"type": "text", "text": swap(part.text, kind)})
        elif not isinstance(part, ThinkingPart):
            parts.append({"type": part.kind})
    return [*parts, {"type": "text", "text": swap(failed, kind)}] if failed else parts


def _call(call: ToolCall, spelling: Spelling, swap: Swap) -> dict[str, Any]:
    arguments: Any = _deep(call.arguments, swap)
    if spelling.arguments == "string":
        arguments = dump_json(arguments)
    function = {"name": swap(call.name, "data"), "arguments": arguments}
    id = {"id": swap(call.id, "data")} if call.id else {}
    return id | {"type": "function", "function": function}


def _deep(value: Any, swap: Swap) -> Any:
    """A value with every string in it swapped, keys too."""
    if isinstance(value, str):
        return swap(value, "data")
    if isinstance(value, list):
        return [_deep(item, swap) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {swap(key, "data"): _deep(item, swap) for key, item in fields.items()}
    return value
