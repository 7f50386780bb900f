"""Texts, images and ids that strict servers accept."""

import base64
import mimetypes
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from antiphon.errors import ModelError, clip
from antiphon.messages import TokenLogprob


def new_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{secrets.token_hex(8)}"


def image_url(source: str) -> str:
    """A URL or data URI as it is; a file as a data URI.

    Raises:
        ModelError: The file cannot be read.
    """
    if source.startswith(("http://", "https://", "data:")):
        return source
    try:
        data = Path(source).read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read the image {clip(source)}: {error.strerror}") from error
    kind = mimetypes.guess_type(source)[0] or "image/png"
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def text_of(value: Any) -> str:
    """Text out of a content field: a string, a list of text parts, or nothing."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list):
        return "".join(text_of(part) for part in value)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Mapping):
        inner: Any = value.get("text")  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        return inner if isinstance(inner, str) else ""
    return ""


def token_of(entry: Mapping[str, Any], id: int | None = None) -> TokenLogprob:
    """A token as OpenAI's and llama.cpp's APIs tell it.

    Args:
        entry: ``token``, ``logprob`` and, where they were asked for, ``top_logprobs``.
        id: Its id; that of the entry without one, or -1.
    """
    if id is None:
        id = entry.get("id", -1)
    top: list[Mapping[str, Any]] = entry.get("top_logprobs") or []
    return TokenLogprob(
        id if isinstance(id, int) else -1,
        entry.get("logprob"),
        str(entry.get("token") or ""),
        tuple(token_of(other) for other in top),
    )


def count_of(value: Any) -> int:
    """A token count out of a usage field; 0 where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
