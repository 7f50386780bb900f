"""What stands in a text for an image, a sound or a film, and where their data is.

A format writes one placeholder for each; a model's processor writes other marks in its place, one
for each token that the model sees or hears.  How many is worked out by `_senses.py`, or by a
processor (`_processor.py`); the encoder puts them where the placeholder is.
"""

import base64
import binascii
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from antiphon.errors import EncodeError, clip
from antiphon.messages import ImagePart, MediaPart


@dataclass(frozen=True, slots=True)
class Expansion:
    """What stands in the place of a placeholder."""

    placeholder: tuple[str, ...]
    """The marks that a format writes for the part, one behind another."""
    pad: str
    """The mark of one token."""
    pieces: tuple[tuple[str, int], ...]
    """What stands there: a mark and how often, or a text and 0."""


class Vision(Protocol):
    """What an encoder has to know of a model that is shown images."""

    @property
    def pad(self) -> str:
        """The mark that stands once for each of an image's tokens."""
        ...

    def n_tokens(self, image: ImagePart) -> int:
        """How many tokens an image is.

        Raises:
            EncodeError: The image is missing, damaged or too large.
        """
        ...


@runtime_checkable
class Senses(Protocol):
    """What an encoder has to know of a model that sees and hears: a `Vision` of all media."""

    def expand(self, part: MediaPart) -> Expansion:
        """What stands in the place of a part's placeholder.

        Raises:
            EncodeError: It is missing, damaged or too long, or the model has no sense for it.
        """
        ...


def expansion(vision: Vision | Senses, part: MediaPart) -> Expansion:
    """What a vision says that stands for a part; one of images alone says no more than a count.

    Raises:
        EncodeError: It is missing, damaged or too long, or the model has no sense for it.
    """
    if isinstance(vision, Senses):
        return vision.expand(part)
    if isinstance(part, ImagePart):
        return Expansion((vision.pad,), vision.pad, ((vision.pad, vision.n_tokens(part)),))
    raise no_sense(part)


def no_sense(part: MediaPart) -> EncodeError:
    """The refusal of a part whose tokens nobody can count."""
    return EncodeError(
        f"how many tokens {part.kind} is, is not known of this model; "
        "name one that takes it, or a directory with its processor"
    )


def find(source: str, root: Path, what: str) -> Path | bytes:
    """Where the data of a source is: a file, or the bytes of a data URI.

    Raises:
        EncodeError: It is at a URL, which nothing here fetches, or no base64.
    """
    shown = clip(source, 80)
    if source.startswith("data:"):
        _, comma, text = source.partition("base64,")
        if not comma:
            raise EncodeError(f"{what} {shown} is a data URI without base64")
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise EncodeError(f"{what} {shown} is no base64") from error
    if "://" in source and not source.startswith("file://"):
        raise EncodeError(f"{what} {shown} is at a URL; fetch it first, nothing is fetched here")
    return root / source.removeprefix("file://")


def opened(found: Path | bytes) -> BinaryIO:
    """The data of a source as a file.

    Raises:
        OSError: There is no such file.
    """
    return BytesIO(found) if isinstance(found, bytes) else found.open("rb")


def unreadable(what: str, shown: str, error: OSError) -> EncodeError:
    """The refusal of a file that cannot be read."""
    reason = (error.strerror or type(error).__name__).lower()
    return EncodeError(f"{what} {shown} cannot be read: {reason}")
