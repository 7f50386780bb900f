"""Keys and passwords in conversations, found by how they are written, and masked.

What a tool returned or a user typed may hold what must not be learned.  A secret is known by its
own form (the prefixes that services give their keys, a JSON Web Token, a private key), or by what
stands before it (``password=``, ``Authorization: Bearer``, ``://user:...@``, an argument named
``api_key``).  What was found once is masked wherever the conversation has it, the same secret
always by the same mark, so that an answer that uses a key still uses the one that it was given.

Forms are those that the services document.  A secret that looks like any other word and is named
nowhere is not found.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from antiphon.messages import (
    Conversation,
    InvalidToolCall,
    JsonObject,
    MediaPart,
    Message,
    Part,
    ToolCall,
    ToolSpec,
)

_FORMS: tuple[tuple[str, str], ...] = (
    ("private key", r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*KEY-----|$)"),
    ("jwt", r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}"),
    ("aws key", r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b"),
    ("github token", r"\bgh[pousr]_[A-Za-z0-9]{36,}\b|\bgithub_pat_\w{22,}"),
    ("gitlab token", r"\bglpat-[\w-]{20,}"),
    ("slack token", r"\bxox[a-z]-[\w-]{10,}|(?<=hooks\.slack\.com/services/)[\w/]{20,}"),
    ("google key", r"\bAIza[\w-]{35}|\bya29\.[\w-]{20,}"),
    ("api key", r"\b[sr]k-(?=[\w-]*\d)[\w-]{20,}"),
    ("hugging face token", r"\bhf_[A-Za-z0-9]{30,}\b"),
    ("stripe key", r"\b(?:[prs]k_(?:live|test)|whsec)_[A-Za-z0-9]{16,}\b"),
    ("npm token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("pypi token", r"\bpypi-[\w-]{50,}"),
    ("docker token", r"\bdckr_pat_[\w-]{20,}"),
    ("sendgrid key", r"\bSG\.[\w-]{16,}\.[\w-]{16,}"),
    (
        "authorization",
        r"(?i:\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic|token))\s+(?P<value>[\w.~+/=-]{8,})",
    ),
    ("authorization", r"(?i:\b(?:bearer|basic))\s+(?P<value>(?=\S*\d)[\w.~+/=-]{16,})"),
    ("password", r"://[^\s/:@'\"]*:(?P<value>[^\s/@'\"]{3,})@"),
)
_NAMES = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|credentials?|(?:api|access|private|secret)[_-]?key"
    r"|(?<!next[_-])(?<!page[_-])token)"
)
_NAMED = re.compile(  # password = "...", "api_key": "...", TOKEN=...
    rf"(?i:(?<![a-z]){_NAMES})[\"'`]?\s*(?:=>|[:=])\s*"
    r"(?:(?P<quote>[\"'`])(?P<quoted>(?:(?!(?P=quote)).){4,200})(?P=quote)"
    r"|(?P<bare>(?=\S*\d)[^\s\"'`,;&]{8,}))"
)
_IS_NAMED = re.compile(rf"(?i)(?:^|[_.\W]){_NAMES}$")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NO_SECRET = re.compile(  # a placeholder, a mask, code that reads it, a type
    r"(?i)^[<\[{$%]|\*\*\*|\w\(|\benviron\b"
    r"|^(?:x+|\.+|none|null|true|false|str(?:ing)?|your\b.*|your_.*|example.*|changeme|redacted"
    r"|secret|password|token)$"
)
_FORM = re.compile(
    "|".join(
        f"(?P<f{at}>{form.replace('?P<value>', f'?P<v{at}>')})"
        for at, (_, form) in enumerate(_FORMS)
    )
)


def mask_secrets(conversation: Conversation) -> tuple[Conversation, Counter[str]]:
    """A conversation without its secrets.

    A message that changes loses the ids that were sampled (``metadata["token_ids"]``): they spell
    the secret.

    Args:
        conversation: The conversation.

    Returns:
        The conversation with a mark in place of each secret, and how many different ones there were
        of each kind.

    >>> row = Conversation((Message.user("My token is ghp_" + "a1" * 18 + ", keep it."),))
    >>> mask_secrets(row)[0].messages[0].text
    'My token is [github token 1], keep it.'
    """
    marks: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for kind, value in _secrets(conversation):
        if value not in marks:
            counts[kind] += 1
            marks[value] = f"[{kind} {counts[kind]}]"
    if not marks:
        return conversation, counts
    longest_first = sorted(marks, key=len, reverse=True)
    pattern = re.compile("|".join(re.escape(value) for value in longest_first))

    def change(text: str) -> str:
        return pattern.sub(lambda found: marks[found[0]], text)

    return (
        Conversation(
            tuple(_message(message, change) for message in conversation.messages),
            tuple(_spec(spec, change) for spec in conversation.tools),
            cast("JsonObject", _value(conversation.metadata, change)),
        ),
        counts,
    )


def _secrets(conversation: Conversation) -> Iterator[tuple[str, str]]:
    for message in conversation.messages:
        for part in message.parts:
            if not isinstance(part, MediaPart):
                yield from _in_text(part.text)
        for call in message.tool_calls:
            yield from _in_value(call.arguments)
        for call in message.invalid_tool_calls:
            yield from _in_text(call.raw)
        yield from _in_value(message.metadata)
    for spec in conversation.tools:
        yield from _in_text(spec.description)
    yield from _in_value(conversation.metadata)


def _in_text(text: str) -> Iterator[tuple[str, str]]:
    for found in _FORM.finditer(text):
        at = int(cast("str", found.lastgroup)[1:])
        yield _FORMS[at][0], found.groupdict().get(f"v{at}") or found[0]
    for found in _NAMED.finditer(text):
        value = found["quoted"] or found["bare"].rstrip(".")
        if not _NO_SECRET.search(value):
            yield "password", value


def _in_value(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        named = _IS_NAMED.search(_HUMP.sub("_", name)) is not None
        if named and len(value) >= 4 and not _NO_SECRET.search(value):
            yield "password", value
        else:
            yield from _in_text(value)
    elif isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, Any]", value).items():
            yield from _in_value(inner, key)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _in_value(inner, name)


Change = Callable[[str], str]


def _value(value: Any, change: Change) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {change(key): _value(inner, change) for key, inner in items}
    if isinstance(value, list):
        return [_value(inner, change) for inner in cast("list[Any]", value)]
    return value


def _message(message: Message, change: Change) -> Message:
    changed = replace(
        message,
        parts=tuple(_part(part, change) for part in message.parts),
        tool_calls=tuple(_call(call, change) for call in message.tool_calls),
        invalid_tool_calls=tuple(_invalid(call, change) for call in message.invalid_tool_calls),
        metadata=_value(message.metadata, change),
    )
    if changed == message or "token_ids" not in changed.metadata:
        return changed
    kept = {key: value for key, value in changed.metadata.items() if key != "token_ids"}
    return replace(changed, metadata=kept)


def _part(part: Part, change: Change) -> Part:
    return part if isinstance(part, MediaPart) else replace(part, text=change(part.text))


def _call(call: ToolCall, change: Change) -> ToolCall:
    return replace(call, arguments=_value(call.arguments, change), raw=change(call.raw))


def _invalid(call: InvalidToolCall, change: Change) -> InvalidToolCall:
    return replace(call, raw=change(call.raw), reason=change(call.reason))


def _spec(spec: ToolSpec, change: Change) -> ToolSpec:
    return replace(
        spec,
        description=change(spec.description),
        parameters=_value(spec.parameters, change),
        original=_value(spec.original, change),
    )
