"""What is wrong in the rows of a data set, each with its place and what mends it.

Checks look at one conversation at a time and at what was seen before (for duplicates, by a digest).
A finding is told; nothing is changed here.
"""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from antiphon.datasets._files import iter_rows
from antiphon.datasets._read import read_row_all
from antiphon.datasets._seen import Seen
from antiphon.errors import DataError, clip
from antiphon.messages import Conversation, JsonValue, conversation_to_row, dump_json

Level = Literal["error", "warning"]

_MARKUP = re.compile(
    r"<\|[a-z_]{2,32}\|>|</?tool_calls?>|</?tool_response>|\[/?(?:INST|TOOL_CALLS|TOOL_RESULTS)\]"
    r"|<\uff5c[^\uff5c\n]{1,32}\uff5c>"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    line: int
    """Where the row begins."""
    message: int | None
    """Which message, where it is one's."""
    code: str
    """What kind of fault it is, for counting and for choosing."""
    level: Level
    """``error``: the row teaches something wrong or cannot be used; ``warning``: look at it."""
    text: str
    """What is wrong, and what mends it."""


@dataclass(slots=True)
class Checker:
    """Checks rows one after the other."""

    seen: Seen = field(default_factory=Seen)
    """Digests of the conversations so far."""

    def check(self, row: Mapping[str, Any], line: int = 0) -> list[Finding]:
        """What is wrong in a row.

        Args:
            row: The row.
            line: Where it begins, for the findings.
        """
        try:
            conversations = read_row_all(row)
        except DataError as error:
            return [Finding(line, None, "unreadable", "error", str(error))]
        found: list[Finding] = []
        for conversation in conversations:
            found += [
                Finding(line, place, code, level, text)
                for check in _CHECKS
                for place, code, level, text in check(conversation)
            ]
            if not self.seen.add(digest_of(conversation)):
                text = "the same conversation came before; remove one, or use dedupe"
                found.append(Finding(line, None, "duplicate", "warning", text))
        return found


def check_file(path: Path | str) -> Iterator[Finding]:
    """What is wrong in a file, in the order of its rows.

    Raises:
        DataError: The file cannot be opened.
    """
    broken: list[DataError] = []
    checker = Checker()
    for line, row in iter_rows(path, report=broken.append):
        yield from _told(broken)
        yield from checker.check(row, line)
    yield from _told(broken)


def _told(broken: list[DataError]) -> Iterator[Finding]:
    for error in broken:
        where, _, text = str(error).partition(f":{error.line}: ")
        yield Finding(error.line or 0, None, "unreadable", "error", text or where)
    broken.clear()


def digest_of(conversation: Conversation) -> bytes:
    """16 bytes that are the same for the same messages and tools, whatever stands beside them."""
    row = conversation_to_row(Conversation(conversation.messages, conversation.tools))
    for entry in cast("list[dict[str, Any]]", row["messages"]):
        entry.pop("tool_call_id", None)
        for call in entry.get("tool_calls") or ():
            call.pop("id", None)
    text = dump_json(cast("JsonValue", row)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=16).digest()


# ---- checks -----------------------------------------------------------------------------------

Found = tuple[int | None, str, Level, str]


def _order(conversation: Conversation) -> Iterator[Found]:
    last = ""
    if not any(m.role == "assistant" for m in conversation.messages):
        yield None, "no_answer", "warning", "no assistant message; there is nothing to train"
    for i, message in enumerate(conversation.messages):
        if message.role == "system" and i:
            yield i, "system_not_first", "error", "a system message behind others; put it first"
        if message.role == last == "user":
            yield i, "user_twice", "warning", "two user messages in a row; join them"
        if message.role == "assistant" and i == 0:
            yield i, "assistant_first", "warning", "an assistant message begins the conversation"
        if message.role == "user" and last == "tool":
            text = "a user message right behind a tool result; the assistant's answer is missing"
            yield i, "answer_missing", "warning", text
        last = message.role


def _empty(conversation: Conversation) -> Iterator[Found]:
    for i, message in enumerate(conversation.messages):
        said = message.text.strip() or message.media or message.reasoning
        if not said and not message.tool_calls and not message.invalid_tool_calls:
            level: Level = "warning" if message.role == "tool" else "error"
            yield i, "empty", level, f"an empty {message.role} message; remove or fill it"


def _answers(conversation: Conversation) -> Iterator[Found]:
    messages = conversation.messages
    for i, message in enumerate(messages):
        if not message.tool_calls:
            continue
        answered: set[str] = set()
        for later in messages[i + 1 :]:
            if later.role != "tool":
                break
            answered.add(later.tool_call_id)
        missing = [call for call in message.tool_calls if call.id not in answered]
        if missing and (i + 1 < len(messages)):
            names = ", ".join(repr(call.name) for call in missing)
            yield i, "call_without_result", "error", f"no result for {names}; add it"


def _tools(conversation: Conversation) -> Iterator[Found]:
    specs = {spec.name: spec for spec in conversation.tools}
    for i, message in enumerate(conversation.messages):
        for call in message.tool_calls:
            if call.name not in specs:
                known = ", ".join(map(repr, specs)) or "none"
                text = f"a call of {call.name!r}, but the tools on offer are {known}"
                level: Level = "error" if specs else "warning"
                yield i, "unknown_tool", level, clip_text(text)
                continue
            for fault in schema_faults(call.arguments, specs[call.name].parameters, call.name):
                yield i, "arguments", "error", fault


def _markup(conversation: Conversation) -> Iterator[Found]:
    for i, message in enumerate(conversation.messages):
        match = _MARKUP.search(message.text)
        if match:
            text = f"{match[0]!r} stands in the text; as text it is harmless, as a mark it is wrong"
            yield i, "markup", "warning", text


_CHECKS: tuple[Callable[[Conversation], Iterator[Found]], ...] = (
    _order,
    _empty,
    _answers,
    _tools,
    _markup,
)


def clip_text(text: str, limit_chars: int = 300) -> str:
    """A text, shortened at its end."""
    return text if len(text) <= limit_chars else text[: limit_chars - 3] + "..."


# ---- arguments --------------------------------------------------------------------------------

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}


def schema_faults(value: JsonValue, schema: Any, where: str) -> Iterator[str]:
    """What of a JSON Schema a value breaks: types, enums, required and additional properties,
    items.

    Other keywords are not looked at; a reference is not followed.

    Args:
        value: The value.
        schema: Its schema.
        where: The name of the value, for the messages.
    """
    if not isinstance(schema, Mapping):
        return
    given = cast("Mapping[str, Any]", schema)
    kinds: Any = given.get("type")
    names = [kinds] if isinstance(kinds, str) else cast("list[str]", kinds or [])
    if names and not any(_is(value, name) for name in names):
        yield f"{where} must be {' or '.join(names)}, got {clip(value, 60)}"
        return
    allowed: Any = given.get("enum")
    if isinstance(allowed, list) and value not in allowed:
        yield f"{where} must be one of {clip(cast('object', allowed), 100)}, got {clip(value, 60)}"
    if isinstance(value, dict):
        yield from _object_faults(value, given, where)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from schema_faults(item, given.get("items"), f"{where}[{i}]")


def _is(value: JsonValue, name: str) -> bool:
    if isinstance(value, bool) and name in ("integer", "number"):
        return False
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _KINDS.get(name, (object,)))


def _object_faults(
    value: dict[str, JsonValue], schema: Mapping[str, Any], where: str
) -> Iterator[str]:
    properties: Any = schema.get("properties")
    known = cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
    for name in cast("list[str]", schema.get("required") or []):
        if name not in value:
            yield f"{where} lacks {name!r}, which is required"
    for name, item in value.items():
        if name in known:
            yield from schema_faults(item, known[name], f"{where}.{name}")
        elif schema.get("additionalProperties") is False or (
            known and "additionalProperties" not in schema and "patternProperties" not in schema
        ):
            names = ", ".join(map(repr, known))
            yield f"{where} has {name!r}, but its schema knows {names or 'no arguments'}"
