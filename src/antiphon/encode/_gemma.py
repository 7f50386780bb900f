"""How many tokens what Gemma 4 sees and hears is, and the marks and times around them.

An image is made as large as its tokens allow, with its sides' ratio kept, so that small ones have
as many tokens as large ones.  A film is as many frames evenly apart, each behind the minute and
second at which it was seen.  A sound's spectra are halved twice.

Source: transformers 5.24, the processors of Gemma 4 and what they are set to unless a model's
directory says otherwise.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from antiphon.encode._audio import tokens_heard
from antiphon.encode._images import image_size
from antiphon.encode._media import Expansion, find
from antiphon.encode._streams import packets
from antiphon.encode._videos import film_of_frames
from antiphon.errors import EncodeError, clip
from antiphon.messages import AudioPart, ImagePart, MediaPart, VideoPart

_IMAGE, _VIDEO, _AUDIO = "<|image|>", "<|video|>", "<|audio|>"


@dataclass(frozen=True, slots=True)
class FillRule:
    """Images that are made as large as their tokens allow."""

    max_tokens: int = 280
    """As many tokens an image has at most, and nearly has."""
    patch: int = 16
    """Pixels along one side of a patch."""
    pool: int = 3
    """Patches along one side of what is one token."""

    def n_tokens_of(self, width: int, height: int) -> int:
        """How many tokens an image of a size is.

        >>> FillRule().n_tokens_of(640, 480)
        266
        """
        unit = self.patch * self.pool
        scale = math.sqrt(self.max_tokens * unit**2 / (height * width))
        down, across = math.floor(scale * height / unit), math.floor(scale * width / unit)
        if not down:
            return min(width // height, self.max_tokens)
        return down * across if across else min(height // width, self.max_tokens)


@dataclass(frozen=True, slots=True)
class Gemma4Vision:
    """A model that sees and hears as Gemma 4 does."""

    image: FillRule = FillRule()
    """How images become tokens."""
    frame: FillRule = FillRule(max_tokens=70)
    """How the frames of films do."""
    n_frames: int | None = 32
    """Frames of a film that are looked at; ``None`` for all."""
    rate: int = 16_000
    """Samples a second that it hears."""
    hop: int = 160
    """Samples from one spectrum to the next."""
    window: int = 320
    """Samples of one spectrum."""
    max_samples: int = 480_000
    """As much it hears; what is longer would be cut off in silence, and is refused."""
    root: Path = Path()
    """What paths are relative to."""

    @property
    def pad(self) -> str:
        """The mark of one token of an image."""
        return _IMAGE

    def expand(self, part: MediaPart) -> Expansion:
        """What stands in the place of a part's placeholder.

        Raises:
            EncodeError: It is missing, damaged, too short or too long.
            MissingExtraError: PyAV is needed to look at it, and not installed.
        """
        match part:
            case ImagePart():
                return Expansion((_IMAGE,), _IMAGE, _framed(_IMAGE, self.n_tokens(part)))
            case AudioPart(source):
                n_tokens = tokens_heard(
                    source, self.rate, self.max_samples, self.n_audio_tokens_of, root=self.root
                )
                pieces = (("<|audio>", 1), (_AUDIO, n_tokens), ("<audio|>", 1))
                return Expansion((_AUDIO,), _AUDIO, pieces)
            case VideoPart(source):
                return Expansion((_VIDEO,), _VIDEO, tuple(self._film(source)))

    def n_tokens(self, image: ImagePart) -> int:
        """How many tokens an image is.

        Raises:
            EncodeError: The image is missing, damaged or too large.
        """
        return self.image.n_tokens_of(*image_size(image.source, root=self.root))

    def n_audio_tokens_of(self, n_samples: int) -> int:
        """How many tokens a sound at the model's own rate is.

        >>> Gemma4Vision().n_audio_tokens_of(16_000)  # a second
        25
        """
        n = (n_samples + self.window // 2 - self.window - 1) // self.hop + 1
        return (max(n, 0) + 3) // 4

    def within(self, root: Path) -> "Gemma4Vision":
        """The same, with paths relative to a directory."""
        return replace(self, root=root)

    def _film(self, source: str | tuple[str, ...]) -> Iterator[tuple[str, int]]:
        """A film's frames with their times, a blank between."""
        shown = clip(source, 80)
        if isinstance(source, tuple):
            film = film_of_frames(source, self.root, 24.0)
            n = film.n_frames
        else:
            film = packets(find(source, self.root, "video"), "video", shown)
            n = film.n_frames if self.n_frames is None else self.n_frames
        if n > film.n_frames:
            raise EncodeError(
                f"video {shown} is too short: {film.n_frames} frames, and {n} are looked at"
            )
        each = self.frame.n_tokens_of(film.width, film.height)
        for i in range(n):
            seconds = int(i * film.n_frames // n / film.fps)
            yield f"{' ' * (i > 0)}{seconds // 60:02d}:{seconds % 60:02d} ", 0
            yield from _framed(_VIDEO, each)


def _framed(mark: str, n: int) -> tuple[tuple[str, int], ...]:
    return ("<|image>", 1), (mark, n), ("<image|>", 1)
