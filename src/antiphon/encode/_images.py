"""How many tokens an image is, without a processor: its size from its first bytes, then arithmetic.

A vision model cuts an image that was resized to a multiple of its patches, and merges neighbours;
each merged patch is one ``pad`` token in the text.  Images are looked at so far that a missing,
foreign, truncated or absurd file is named before a run begins.  Nothing is fetched or decoded.

Sources: transformers 5.24 ``image_processing_qwen2_vl.py`` (``smart_resize``); the heads of PNG,
JPEG (ITU T.81), GIF 89a, WebP and BMP files.
"""

import base64
import binascii
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from antiphon.errors import EncodeError, clip
from antiphon.messages import ImagePart

_MAX_RATIO = 200
_MAX_PIXELS = 1 << 28


class Vision(Protocol):
    """What an encoder has to know of a vision model."""

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


@dataclass(frozen=True, slots=True)
class PatchVision:
    """A model that cuts images of any size into patches, as Qwen2-VL and its successors do."""

    patch: int = 14
    """Pixels along one side of a patch."""
    merge: int = 2
    """Patches along one side of what is one token."""
    min_pixels: int = 56 * 56
    """Smaller images are made larger."""
    max_pixels: int = 28 * 28 * 1280
    """Larger images are made smaller."""
    pad: str = "<|image_pad|>"
    """The mark of one token."""
    root: Path = Path()
    """What paths are relative to."""

    def n_tokens(self, image: ImagePart) -> int:
        """How many tokens an image is.

        Raises:
            EncodeError: The image is missing, damaged or too large.
        """
        return self.n_tokens_of(*image_size(image.source, root=self.root))

    def n_tokens_of(self, width: int, height: int) -> int:
        """How many tokens an image of a size is.

        Raises:
            EncodeError: One side is more than 200 times the other.

        >>> PatchVision().n_tokens_of(756, 756)
        729
        """
        if max(width, height) > _MAX_RATIO * min(width, height):
            raise EncodeError(
                f"an image of {width} x {height} is too narrow; a side may be {_MAX_RATIO} times "
                "the other"
            )
        unit = self.patch * self.merge
        across, down = round(width / unit) * unit, round(height / unit) * unit
        if across * down > self.max_pixels:
            shrink = math.sqrt(width * height / self.max_pixels)
            across, down = (
                max(unit, math.floor(side / shrink / unit) * unit) for side in (width, height)
            )
        elif across * down < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (width * height))
            across, down = (math.ceil(side * grow / unit) * unit for side in (width, height))
        return (across // unit) * (down // unit)

    def within(self, root: Path) -> "PatchVision":
        """The same, with paths relative to a directory."""
        return replace(self, root=root)


VISIONS = {
    "qwen2_vl": PatchVision(),
    "qwen2_5_vl": PatchVision(),
    "qwen3_vl": PatchVision(patch=16, min_pixels=1 << 16, max_pixels=1 << 24),
}
"""Vision models by name, with the limits that their published processors have."""


# ---- sizes ------------------------------------------------------------------------------------


def image_size(source: str, *, root: Path = Path()) -> tuple[int, int]:
    """Width and height of an image in pixels.

    Args:
        source: A path or a data URI.
        root: What a path is relative to.

    Raises:
        EncodeError: The image is missing, no image, truncated, or absurdly large; or is at a URL,
            which nothing here fetches.
    """
    data, shown = _read(source, root)
    for begins, measure in (
        (b"\x89PNG\r\n\x1a\n", _png),
        (b"\xff\xd8", _jpeg),
        (b"GIF8", _gif),
        (b"RIFF", _webp),
        (b"BM", _bmp),
    ):
        if data.startswith(begins):
            try:
                width, height = measure(data)
            except (struct.error, IndexError, ValueError) as error:
                raise EncodeError(f"image {shown} is truncated or damaged") from error
            if not 0 < width * height <= _MAX_PIXELS:
                raise EncodeError(f"image {shown} claims to be {width} x {height} pixels")
            return width, height
    what = "empty" if not data else f"no PNG, JPEG, GIF, WebP or BMP: it begins {data[:8]!r}"
    raise EncodeError(f"image {shown} is {what}")


def _read(source: str, root: Path) -> tuple[bytes, str]:
    shown = clip(source, 80)
    if source.startswith("data:"):
        _, comma, text = source.partition("base64,")
        if not comma:
            raise EncodeError(f"image {shown} is a data URI without base64")
        try:
            return base64.b64decode(text, validate=True), shown
        except (binascii.Error, ValueError) as error:
            raise EncodeError(f"image {shown} is no base64") from error
    if "://" in source and not source.startswith("file://"):
        raise EncodeError(f"image {shown} is at a URL; fetch it first, nothing is fetched here")
    try:
        return (root / source.removeprefix("file://")).read_bytes(), shown
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise EncodeError(f"image {shown} cannot be read: {reason}") from error


def _png(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack(">II", data[16:24])
    place = 8
    while data[place + 4 : place + 8] != b"IEND":
        (length,) = struct.unpack(">I", data[place : place + 4])
        place += 12 + length
    if place + 12 > len(data):
        raise ValueError("cut off in its last chunk")
    return width, height


_JPEG_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def _jpeg(data: bytes) -> tuple[int, int]:
    if b"\xff\xd9" not in data[-64:]:
        raise ValueError("no end of image")
    for marker, place in _segments(data):
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", data[place + 3 : place + 7])
            return width, height
    raise ValueError("no frame")


def _segments(data: bytes) -> Iterator[tuple[int, int]]:
    """Each marker of a JPEG file with the place of its length."""
    place = 2
    while True:
        while data[place] == 0xFF:
            place += 1
        marker = data[place]
        place += 1
        yield marker, place
        (length,) = struct.unpack(">H", data[place : place + 2])
        place += length
        if data[place] != 0xFF:
            raise ValueError("no marker")


def _gif(data: bytes) -> tuple[int, int]:
    if b"\x3b" not in data[-16:]:
        raise ValueError("no trailer")
    width, height = struct.unpack("<HH", data[6:10])
    return width, height


def _webp(data: bytes) -> tuple[int, int]:
    (length,) = struct.unpack("<I", data[4:8])
    if data[8:12] != b"WEBP" or len(data) < length + 8:
        raise ValueError("cut off")
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        (bits,) = struct.unpack("<I", data[21:25])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _bmp(data: bytes) -> tuple[int, int]:
    (size,) = struct.unpack("<I", data[2:6])
    if len(data) < size:
        raise ValueError("cut off")
    width, height = struct.unpack("<ii", data[18:26])
    return width, abs(height)
