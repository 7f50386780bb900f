"""How many tokens a sound is: its length, then arithmetic.

A model hears spectra of sound at one rate, `hop` samples apart; its encoder makes one token of
several.  A WAV file's length is in its head; of other files PyAV is asked (extra ``media``), which
reads them packet by packet.  Nothing is fetched, decoded or resampled.

Sources: transformers 5.24 ``processing_qwen2_audio.py``, ``processing_qwen2_5_omni.py``,
``processing_qwen3_omni_moe.py`` and ``feature_extraction_whisper.py``; librosa's ``resample`` for
how long a sound is at another rate; Microsoft's description of RIFF WAVE.
"""

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from antiphon.encode._media import Expansion, find, opened, unreadable
from antiphon.encode._streams import packets
from antiphon.errors import EncodeError, clip
from antiphon.messages import AudioPart


@dataclass(frozen=True, slots=True)
class AudioRule:
    """A model that hears as Whisper does, and its successors in the Qwen family."""

    pad: str = "<|AUDIO|>"
    """The mark of one token."""
    rate: int = 16_000
    """Samples a second that it hears."""
    hop: int = 160
    """Samples from one spectrum to the next."""
    max_frames: int | None = 3_000
    """As many spectra it hears; what is longer would be cut off in silence, and is refused."""
    chunked: bool = False
    """Whether it hears 100 spectra at a time, as Qwen3-Omni does, or all together."""

    def expand(self, part: AudioPart, root: Path) -> Expansion:
        """What stands in the place of a sound's placeholder.

        Raises:
            EncodeError: It is missing, damaged, too short or too long.
            MissingExtraError: It is no WAV, and PyAV is not installed.
        """
        most = None if self.max_frames is None else self.max_frames * self.hop
        n_tokens = tokens_heard(part.source, self.rate, most, self.n_tokens_of, root=root)
        return Expansion((self.pad,), self.pad, ((self.pad, n_tokens),))

    def n_tokens_of(self, n_samples: int) -> int:
        """How many tokens a sound at the model's own rate is.

        >>> AudioRule().n_tokens_of(16_000)  # a second
        25
        """
        if self.chunked:
            whole, rest = divmod(n_samples // self.hop, 100)
            for _ in range(3):
                rest = (rest - 1) // 2 + 1
            return whole * 13 + rest
        frames = math.ceil(n_samples / self.hop)
        return ((frames - 1) // 2 + 1 - 2) // 2 + 1


def samples_heard(
    source: str, rate: int, most: int | None, *, root: Path = Path()
) -> tuple[int, int]:
    """How many samples of a sound a model hears at its own rate, and how many the sound has.

    Args:
        source: A path or a data URI.
        rate: Samples a second that the model hears.
        most: As many samples it hears; ``None`` where nothing is cut off.
        root: What a path is relative to.

    Raises:
        EncodeError: As for `audio_length`; or its end would be cut off in silence.
        MissingExtraError: It is no WAV, and PyAV is not installed.
    """
    n_samples, own_rate = audio_length(source, root=root)
    n = math.ceil(n_samples * (rate / own_rate))
    if most is not None and n > most:
        raise EncodeError(
            f"audio {clip(source, 80)} is {n_samples / own_rate:.1f} s long, and the model hears "
            f"{most / rate:.0f} s at most; cut it"
        )
    return n, n_samples


def tokens_heard(
    source: str, rate: int, most: int | None, n_tokens_of: Callable[[int], int], *, root: Path
) -> int:
    """How many tokens a sound is.

    Args:
        source: As for `samples_heard`, as are `rate`, `most` and `root`.
        n_tokens_of: How many tokens samples at the model's rate are.

    Raises:
        EncodeError: As for `samples_heard`; or it is too short to be a token.
        MissingExtraError: It is no WAV, and PyAV is not installed.
    """
    n, n_samples = samples_heard(source, rate, most, root=root)
    n_tokens = n_tokens_of(n)
    if n_tokens < 1:
        raise EncodeError(f"audio {clip(source, 80)} is too short to be heard: {n_samples} samples")
    return n_tokens


def audio_length(source: str, *, root: Path = Path()) -> tuple[int, int]:
    """How many samples a sound has, and how many of them make a second.

    Args:
        source: A path or a data URI.
        root: What a path is relative to.

    Raises:
        EncodeError: It is missing, no sound, or truncated; or is at a URL, which nothing here
            fetches.
        MissingExtraError: It is no WAV, and PyAV is not installed.
    """
    shown = clip(source, 80)
    found = find(source, root, "audio")
    try:
        with opened(found) as file:
            head = file.read(12)
            if head[:4] == b"RIFF" and head[8:] == b"WAVE":
                return _wav(file)
    except OSError as error:
        raise unreadable("audio", shown, error) from error
    except (struct.error, ValueError) as error:
        raise EncodeError(f"audio {shown} is truncated or damaged: {error}") from error
    if not head:
        raise EncodeError(f"audio {shown} is empty")
    stream = packets(found, "audio", shown)
    return stream.n_samples, stream.rate


def _wav(file: BinaryIO) -> tuple[int, int]:
    """Samples and rate of a WAV file, read from behind its first twelve bytes."""
    rate = size = 0
    while True:
        kind, length = struct.unpack("<4sI", file.read(8))
        if kind == b"data":
            break
        body = file.read(length + length % 2)
        if kind == b"fmt ":
            rate, _, size = struct.unpack("<IIH", body[4:14])
    if not rate or not size:
        raise ValueError("no format before its data")
    start = file.tell()
    if file.seek(0, 2) < start + length:
        raise ValueError(f"{length} bytes of sound were announced")
    return length // size, rate
