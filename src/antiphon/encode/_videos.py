"""How many tokens a film is: which of its pictures are looked at, and what each becomes.

A model looks at some pictures a second, takes neighbours together, and cuts them into patches as it
does images; each merged patch is one ``pad`` token.  Qwen3-VL also writes when each pair was seen.
The length and size of a film are read with PyAV (extra ``media``), those of a list of frames from
the frames.  Nothing is fetched or decoded.

Differs from upstream: Qwen3-VL's frames with their times stand in the place of the placeholder with
the marks around it, as the model was published with (transformers 4.57) and as vLLM serves it;
transformers 5 leaves the marks where they are, so that there are two around the first frame
(`bare`).  A list of frames has the rate that is looked at, as in qwen-vl-utils; transformers
guesses 24 a second.

Sources: transformers 5.24 ``video_processing_qwen2_vl.py``, ``video_processing_qwen3_vl.py`` and
``processing_qwen3_vl.py``.
"""

import math
from dataclasses import dataclass
from pathlib import Path

from antiphon.encode._images import check_sides, image_size, resized
from antiphon.encode._media import Expansion, find
from antiphon.encode._numpy import np
from antiphon.encode._streams import Stream, packets
from antiphon.errors import EncodeError, clip
from antiphon.messages import VideoPart

_START, _END = "<|vision_start|>", "<|vision_end|>"


@dataclass(frozen=True, slots=True)
class VideoRule:
    """A model that looks at films as Qwen2-VL and its successors do."""

    pad: str = "<|video_pad|>"
    """The mark of one token."""
    patch: int = 14
    """Pixels along one side of a patch."""
    merge: int = 2
    """Patches along one side of what is one token."""
    group: int = 2
    """Pictures that are one."""
    fps: float | None = 2.0
    """Pictures a second that are looked at; ``None`` for all."""
    min_frames: int = 4
    """Fewer are not looked at, where there are as many."""
    max_frames: int = 768
    """More are not looked at."""
    min_pixels: int = 128 * 28 * 28
    """Smaller pictures are made larger; with `timed`, of all together."""
    max_pixels: int = 768 * 28 * 28
    """Larger pictures are made smaller; with `timed`, of all together."""
    timed: bool = False
    """Whether it is told when each pair of pictures was seen, as Qwen3-VL is."""
    max_tokens: int | None = None
    """What bounds the pixels further, as qwen-vl-utils does and transformers may
    (``cap_pixels_per_frame``): tokens of a whole film (128,000), or of a picture with `timed`
    (768)."""
    bare: bool = False
    """Whether times and frames stand between the placeholder's own marks; see above."""

    def expand(self, part: VideoPart, root: Path) -> Expansion:
        """What stands in the place of a film's placeholder.

        Raises:
            EncodeError: It is missing, damaged, too short or absurdly long.
            MissingExtraError: It is a file, and PyAV is not installed.
        """
        if isinstance(part.source, tuple):
            film = film_of_frames(part.source, root, self.fps or 2.0)
            seen = list(range(film.n_frames))
        else:
            film = packets(find(part.source, root, "video"), "video", clip(part.source, 80))
            seen = self.looked_at(film.n_frames, film.fps)
        if len(seen) < self.group:
            raise EncodeError(
                f"video {clip(part.source, 80)} is too short: {len(seen)} pictures to look at, "
                f"and {self.group} are the least"
            )
        n_each = self.n_tokens_each(len(seen), film.width, film.height)
        n_groups = math.ceil(len(seen) / self.group)
        if not self.timed:
            return Expansion((self.pad,), self.pad, ((self.pad, n_groups * n_each),))
        pieces: list[tuple[str, int]] = []
        for seconds in self.times(seen, film.fps):
            shown = f"<{seconds:.1f} seconds>"
            pieces += [(shown, 0), (_START, 1), (self.pad, n_each), (_END, 1)]
        placeholder = (self.pad,) if self.bare else (_START, self.pad, _END)
        return Expansion(placeholder, self.pad, tuple(pieces))

    def looked_at(self, n_frames: int, fps: float) -> list[int]:
        """The pictures of a film that are looked at, by position.

        >>> VideoRule().looked_at(50, 25.0)
        [0, 12, 25, 37]
        """
        if self.fps is None:
            return list(range(n_frames))
        wanted = n_frames / fps * self.fps
        if self.timed:
            n = min(max(int(wanted), self.min_frames), self.max_frames, n_frames)
            return [int(i) for i in np.linspace(0, n_frames - 1, n).round()]
        most = min(self.max_frames, n_frames) // self.group * self.group
        n = math.floor(min(max(wanted, self.min_frames), most, n_frames) / self.group) * self.group
        if not n:
            return []
        step = n_frames / n
        return [int(i * step) for i in range(math.ceil(n_frames / step))]

    def n_tokens_each(self, n_frames: int, width: int, height: int) -> int:
        """How many tokens each group of pictures is.

        Args:
            n_frames: How many are looked at.
            width: Of each, in pixels.
            height: Of each, in pixels.

        Raises:
            EncodeError: One side is more than 200 times the other.

        >>> VideoRule().n_tokens_each(4, 640, 360)
        299
        """
        unit = self.patch * self.merge
        size = self._timed_size if self.timed else self._size
        across, down = size(n_frames, width, height, unit)
        return (across // unit) * (down // unit)

    def _size(self, n_frames: int, width: int, height: int, unit: int) -> tuple[int, int]:
        most = self.max_pixels
        if self.max_tokens is not None:
            whole = int(self.max_tokens * unit * unit * 0.9)
            least = int(self.min_pixels * 1.05)
            most = max(min(most, whole * self.group // n_frames), least)
        return resized(width, height, unit=unit, min_pixels=self.min_pixels, max_pixels=most)

    def _timed_size(self, n_frames: int, width: int, height: int, unit: int) -> tuple[int, int]:
        most = self.max_pixels
        if self.max_tokens is not None:
            each = min(self.max_tokens * unit * unit, most // n_frames)
            most = max(each, int(self.min_pixels * 1.05)) * n_frames
        if height < unit or width < unit:
            scale = max(unit / height, unit / width)
            width, height = int(width * scale), int(height * scale)
        check_sides(width, height)
        across, down = round(width / unit) * unit, round(height / unit) * unit
        whole = round(n_frames / self.group) * self.group * across * down
        if whole > most:
            shrink = math.sqrt(n_frames * height * width / most)
            across, down = (
                max(unit, math.floor(side / shrink / unit) * unit) for side in (width, height)
            )
        elif whole < self.min_pixels:
            grow = math.sqrt(self.min_pixels / (n_frames * height * width))
            across, down = (math.ceil(side * grow / unit) * unit for side in (width, height))
        return across, down

    def times(self, seen: list[int], fps: float) -> list[float]:
        """When each group of pictures was seen, in seconds: between its first and its last.

        >>> VideoRule(timed=True).times([0, 3, 6], 5.0)
        [0.3, 1.2]
        """
        filled = seen + seen[-1:] * (-len(seen) % self.group)
        firsts, lasts = filled[:: self.group], filled[self.group - 1 :: self.group]
        return [(a / fps + b / fps) / 2 for a, b in zip(firsts, lasts, strict=True)]


def film_of_frames(sources: tuple[str, ...], root: Path, fps: float) -> Stream:
    """A film of frames that are files of their own."""
    sizes = {image_size(source, root=root) for source in sources}
    if len(sizes) != 1:
        raise EncodeError(f"the frames of a video must have one size, got {sorted(sizes)}")
    ((width, height),) = sizes
    return Stream(len(sources), fps, width, height)
