"""How many tokens what a model sees and hears is, without its processor.

A vision model cuts an image that was resized to a multiple of its patches, and merges neighbours;
each merged patch is one ``pad`` token in the text.  Sounds and films have rules of their own.

Sources: transformers 5.24, the processors of the models named in `VISIONS`, and the
``preprocessor_config.json`` and ``video_preprocessor_config.json`` that are published with them.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from antiphon.encode._audio import AudioRule
from antiphon.encode._gemma import Gemma4Vision
from antiphon.encode._images import image_size, resized
from antiphon.encode._media import Expansion, no_sense
from antiphon.encode._videos import VideoRule
from antiphon.messages import AudioPart, ImagePart, MediaPart, VideoPart


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
    sees: bool = True
    """Whether images can be shown at all."""
    video: VideoRule | None = None
    """How films become tokens, where the model is shown any."""
    audio: AudioRule | None = None
    """How sounds become tokens, where the model hears any."""

    def expand(self, part: MediaPart) -> Expansion:
        """What stands in the place of a part's placeholder.

        Raises:
            EncodeError: It is missing, damaged or too long, or the model has no sense for it.
        """
        match part:
            case ImagePart() if self.sees:
                return Expansion((self.pad,), self.pad, ((self.pad, self.n_tokens(part)),))
            case AudioPart() if self.audio is not None:
                return self.audio.expand(part, self.root)
            case VideoPart() if self.video is not None:
                return self.video.expand(part, self.root)
            case _:
                raise no_sense(part)

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
        unit = self.patch * self.merge
        across, down = resized(
            width, height, unit=unit, min_pixels=self.min_pixels, max_pixels=self.max_pixels
        )
        return (across // unit) * (down // unit)

    def within(self, root: Path) -> "PatchVision":
        """The same, with paths relative to a directory."""
        return replace(self, root=root)


VISIONS: dict[str, PatchVision | Gemma4Vision] = {
    "qwen2_vl": PatchVision(video=VideoRule()),
    "qwen2_5_vl": PatchVision(video=VideoRule()),
    "qwen3_vl": PatchVision(
        patch=16,
        min_pixels=1 << 16,
        max_pixels=1 << 24,
        video=VideoRule(patch=16, timed=True, min_pixels=1 << 12, max_pixels=3 << 23),
    ),
    "qwen2_audio": PatchVision(sees=False, audio=AudioRule()),
    "qwen2_5_omni": PatchVision(
        pad="<|IMAGE|>",
        max_pixels=12_845_056,
        video=VideoRule(pad="<|VIDEO|>"),
        audio=AudioRule(max_frames=30_000),
    ),
    "qwen3_omni": PatchVision(
        patch=16,
        max_pixels=12_845_056,
        video=VideoRule(patch=16, min_pixels=128 * 32 * 32, max_pixels=768 * 32 * 32),
        audio=AudioRule(pad="<|audio_pad|>", chunked=True, max_frames=None),
    ),
    "gemma4": Gemma4Vision(),
}
"""Models that see and hear by name, with the limits that their published processors have."""
