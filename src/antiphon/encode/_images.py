"""The size of an image from its first bytes, and what a model makes of a size.

Images are looked at so far that a missing, foreign, truncated or absurd file is named before a run
begins.  Nothing is fetched or decoded.

Sources: transformers 5.24 ``image_processing_qwen2_vl.py`` (``smart_resize``); the heads of PNG,
JPEG (ITU T.81), GIF 89a, WebP and BMP files.
"""

import math
import struct
from collections.abc import Iterator
from pathlib import Path

from antiphon.encode._media import find, unreadable
from antiphon.errors import EncodeError, clip

_MAX_RATIO = 200
_MAX_PIXELS = 1 << 28


def resized(
    width: int, height: int, *, unit: int, min_pixels: int, max_pixels: int
) -> tuple[int, int]:
    """What a size becomes: multiples of a unit, of neither too few nor too many pixels.

    Raises:
        EncodeError: One side is more than 200 times the other.

    >>> resized(756, 755, unit=28, min_pixels=56 * 56, max_pixels=28 * 28 * 1280)
    (756, 756)
    """
    check_sides(width, height)
    across, down = round(width / unit) * unit, round(height / unit) * unit
    if across * down > max_pixels:
        shrink = math.sqrt(width * height / max_pixels)
        across, down = (
            max(unit, math.floor(side / shrink / unit) * unit) for side in (width, height)
        )
    elif across * down < min_pixels:
        grow = math.sqrt(min_pixels / (width * height))
        across, down = (math.ceil(side * grow / unit) * unit for side in (width, height))
    return across, down


def check_sides(width: float, height: float) -> None:
    """Refuse what no vision model takes.

    Raises:
        EncodeError: One side is more than 200 times the other.
    """
    if max(width, height) > _MAX_RATIO * min(width, height):
        raise EncodeError(
            f"an image of {width} x {height} is too narrow; a side may be {_MAX_RATIO} times "
            "the other"
        )


def image_size(source: str, *, root: Path = Path()) -> tuple[int, int]:
    """Width and height of an image in pixels.

    Args:
        source: A path or a data URI.
        root: What a path is relative to.

    Raises:
        EncodeError: The image is missing, no image, truncated, or absurdly large; or is at a URL,
            which nothing here fetches.
    """
    shown = clip(source, 80)
    found = find(source, root, "image")
    try:
        data = found if isinstance(found, bytes) else found.read_bytes()
    except OSError as error:
        raise unreadable("image", shown, error) from error
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
