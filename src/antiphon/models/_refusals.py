"""What a server's error answer means, as one of our errors.

Servers say the same thing in many ways; this module reads status, headers and body and decides who
can mend it: the key, the name, the length, or time.
"""

import json
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from antiphon.errors import (
    ContextLengthError,
    ModelAuthError,
    ModelConnectionError,
    ModelError,
    ModelNotFoundError,
    ModelResponseError,
    RateLimitError,
)

_LENGTH_WORDS = (
    "context_length_exceeded",
    "exceed_context_size",
    "maximum context length",
    "context window",
    "context size",
    "prompt is too long",
    "longer than the model's context",
)


class ServerFailedError(ModelConnectionError):
    """The server answered that it failed (5xx); asking again may help."""


def error_of_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    url: str,
    model: str,
    key_name: str,
    now: float,
) -> ModelError:
    """The error that an answer with a status other than 200 means.

    Args:
        status: The HTTP status.
        headers: The answer's headers.
        body: The answer's body.
        url: Where the request went.
        model: The name that was asked for.
        key_name: The environment variable that holds the key.
        now: The time, in seconds since the epoch, for a Retry-After that is a date.
    """
    said = said_in(body)
    tail = f": {said}" if said else ""
    lower = said.lower()
    if status in (401, 403):
        return ModelAuthError(
            f"{url} refused the key ({status}){tail}; set {key_name} to one that it takes"
        )
    if status == 429:
        return RateLimitError(
            f"{url} asks to wait (429){tail}", retry_after=retry_after(headers, now)
        )
    if any(word in lower for word in _LENGTH_WORDS):
        return ContextLengthError(f"the conversation is too long for {model!r}{tail}")
    if status == 404 and ("model" in lower or not said):
        return ModelNotFoundError(f"{url} has no model {model!r} (404){tail}{_mend(url, model)}")
    if status == 404:
        return ModelNotFoundError(
            f"nothing is served at {url} (404){tail}; does the address end in /v1?"
        )
    if "model" in lower and ("not found" in lower or "does not exist" in lower):
        return ModelNotFoundError(f"{url} has no model {model!r} ({status}){tail}")
    if status >= 500 or status in (408, 409, 425):
        return ServerFailedError(f"{url} failed ({status}){tail}")
    if 300 <= status < 400:
        where = headers.get("Location", "elsewhere")
        return ModelResponseError(f"{url} has moved to {where} ({status}); use that address")
    return ModelError(f"{url} refused the request ({status}){tail}")


def error_of_event(error: Any, *, url: str, model: str) -> ModelError:
    """The error that arrived inside a stream that had begun well."""
    said = said_in(json.dumps({"error": error}).encode())
    lower = said.lower()
    if any(word in lower for word in _LENGTH_WORDS):
        return ContextLengthError(f"the conversation is too long for {model!r}: {said}")
    return ServerFailedError(f"{url} broke off with an error: {said or 'no reason given'}")


def _mend(url: str, model: str) -> str:
    return f"; get it with: ollama pull {model}" if ":11434" in url else ""


def said_in(body: bytes) -> str:
    """The message in an error body, on one line and cut to a readable length."""
    text = body.decode("utf-8", "replace").strip()
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        value = "" if text.startswith("<") else text
    for key in ("error", "message", "detail", "msg"):
        if isinstance(value, dict) and key in value:
            code = cast("dict[str, Any]", value).get("code")
            value = cast("dict[str, Any]", value)[key]
            if isinstance(value, str) and isinstance(code, str) and code not in value:
                value = f"{value} ({code})"
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    line = " ".join(value.split())
    return line if len(line) <= 300 else f"{line[:297]}..."


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """How long the server asks to wait, in seconds; ``None`` where it does not say.

    Args:
        headers: Reads ``retry-after-ms`` and ``Retry-After`` (seconds, or a date: RFC 9110,
        §10.2.3).
        now: Seconds since the epoch.
    """
    for name, unit in (("retry-after-ms", 1e-3), ("Retry-After", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * unit)
        except ValueError:
            pass
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - now)
        except ValueError:
            pass
    return None
