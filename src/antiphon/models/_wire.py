"""Texts, media and ids that strict servers accept."""

import base64
import mimetypes
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from antiphon.errors import ModelError, clip
from antiphon.messages import (
    AudioPart,
    ImagePart,
    JsonObject,
    MediaPart,
    TokenLogprob,
    VideoPart,
    part_to_row,
)


def new_call_id() -> str:
    """An id for a call that came without one."""
    return f"call_{secrets.token_hex(8)}"


def image_url(source: str) -> str:
    """A URL or data URI as it is; a file as a data URI.

    Raises:
        ModelError: The file cannot be read.
    """
    return _url(source, "image", mimetypes.guess_type(source)[0] or "image/png")


def media_part(part: MediaPart) -> JsonObject:
    """An image, sound or film as OpenAI's content lists hold it, files as their data.

    Raises:
        ModelError: A file cannot be read.
    """
    match part:
        case ImagePart(source):
            return part_to_row(ImagePart(image_url(source)))
        case AudioPart(source):  # the kind is one of OpenAI's own words, not a MIME type's
            kind = Path(source).suffix.lstrip(".").lower() or "wav"
            return part_to_row(AudioPart(_url(source, "audio", f"audio/{kind}")))
        case VideoPart(str(source)):
            kind = mimetypes.guess_type(source)[0] or "video/mp4"
            return part_to_row(VideoPart(_url(source, "video", kind)))
        case VideoPart(frames):
            return part_to_row(VideoPart(tuple(image_url(frame) for frame in frames)))


def refused_media(part: AudioPart | VideoPart, api: str) -> ModelError:
    """The refusal of a part that an API has no place for."""
    what = "audio" if isinstance(part, AudioPart) else "video"
    return ModelError(f"{api} takes no {what}; leave the part out or use another API")


def _url(source: str, what: str, kind: str) -> str:
    if source.startswith(("http://", "https://", "data:")):
        return source
    try:
        data = Path(source).read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read the {what} {clip(source)}: {error.strerror}") from error
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
    return TokenLogprob(
        id if isinstance(id, int) else -1,
        number_of(entry.get("logprob")),
        str(entry.get("token") or ""),
        tuple(token_of(other) for other in rows_of(entry.get("top_logprobs"))),
    )


def number_of(value: Any) -> float | None:
    """A number out of a field; ``None`` where there is none."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def fields_of(value: Any) -> Mapping[str, Any]:
    """An object out of a field; an empty one where there is none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def rows_of(value: Any) -> list[Mapping[str, Any]]:
    """A list of objects out of a field; what is none among them is empty."""
    return [fields_of(item) for item in cast("list[Any]", value)] if isinstance(value, list) else []


def count_of(value: Any) -> int:
    """A token count out of a usage field; 0 where there is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
