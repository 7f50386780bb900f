"""What PyAV says of a file's sound or film, packet by packet, without decoding any.

Needs the extra ``media``.  A file that was cut off has fewer packets than its head promises, or one
that cannot be read.
"""

import importlib
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from antiphon.encode._media import opened, unreadable
from antiphon.errors import EncodeError, MissingExtraError

MAX_SECONDS = 24 * 3600
"""No file is longer; one that says so is damaged."""


@dataclass(frozen=True, slots=True)
class Stream:
    """A sound or a film."""

    n_frames: int = 0
    """A film's pictures."""
    fps: float = 0.0
    """A film's pictures a second."""
    width: int = 0
    """A film's, in pixels."""
    height: int = 0
    """A film's, in pixels."""
    n_samples: int = 0
    """A sound's samples."""
    rate: int = 0
    """A sound's samples a second."""


def packets(found: Path | bytes, kind: Literal["audio", "video"], shown: str) -> Stream:
    """The first sound or film of a file.

    Args:
        found: A file, or its bytes.
        kind: Which of the two.
        shown: What messages call it.

    Raises:
        EncodeError: It is missing, holds none, or is truncated, damaged or absurdly long.
        MissingExtraError: PyAV is not installed.
    """
    try:
        opened(found).close()  # so that a missing file is told in our words
    except OSError as error:
        raise unreadable(kind, shown, error) from error
    try:
        av: Any = importlib.import_module("av")
    except ImportError as error:
        raise MissingExtraError(f"reading {kind} files", "media") from error
    try:
        with av.open(BytesIO(found) if isinstance(found, bytes) else str(found)) as container:
            streams: Any = getattr(container.streams, kind)
            if not streams:
                raise EncodeError(f"{kind} {shown} holds no {kind}")
            sizes = [
                (packet.size, packet.duration or 0, packet.is_corrupt)
                for packet in container.demux(streams[0])
                if packet.size
            ]
            return _read(streams[0], sizes, kind, shown)
    except av.error.FFmpegError as error:
        raise EncodeError(f"{kind} {shown} is no {kind} or damaged: {error.strerror}") from error


def _read(stream: Any, sizes: list[tuple[int, int, bool]], kind: str, shown: str) -> Stream:
    promised = int(stream.frames or 0)
    if any(corrupt for _, _, corrupt in sizes) or len(sizes) < promised or not sizes:
        raise EncodeError(
            f"{kind} {shown} is truncated or damaged: {len(sizes)} of {promised or 'its'} packets "
            "can be read"
        )
    if kind == "audio":
        rate = int(stream.rate or 0)
        ticks = stream.duration or sum(duration for _, duration, _ in sizes)
        seconds = float(ticks * (stream.time_base or 0))
        found = Stream(n_samples=round(seconds * rate), rate=rate)
    else:
        fps = float(stream.average_rate or 0)
        seconds = len(sizes) / fps if fps else 0.0
        found = Stream(len(sizes), fps, int(stream.width), int(stream.height))
    if not 0 < seconds < MAX_SECONDS:
        raise EncodeError(f"{kind} {shown} claims to be {seconds:g} s long")
    return found
