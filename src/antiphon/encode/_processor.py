"""Models that see and hear by name or directory; where need be, their own processor is asked.

The arithmetic of some families is written down in `_senses.py`.  Others' processors are asked what
they write for an image, a sound or a film of a size (`_asking.py`); none is decoded.  Needs the
extra ``hf``; files are looked at as in `_images.py`, `_audio.py` and `_videos.py`.
"""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from antiphon.encode._asking import (
    Seen,
    load_processor,
    longest,
    pad_of,
    placeholder,
    rate_of,
    sampled,
    written,
)
from antiphon.encode._audio import AudioRule, samples_heard
from antiphon.encode._gemma import FillRule, Gemma4Vision
from antiphon.encode._images import image_size
from antiphon.encode._media import Expansion, find, no_sense
from antiphon.encode._senses import VISIONS, PatchVision
from antiphon.encode._streams import Stream, packets
from antiphon.encode._videos import VideoRule, film_of_frames
from antiphon.errors import EncodeError, UnknownNameError, clip
from antiphon.messages import AudioPart, ImagePart, MediaPart, VideoPart


def load_vision(name: str) -> "PatchVision | Gemma4Vision | ProcessorVision":
    """A model that sees or hears by name, or by the settings in its directory.

    Raises:
        UnknownNameError: There is no such name and no such file.
        EncodeError: The file is damaged, or of a processor that is not known here.
        MissingExtraError: The processor has to be asked, and transformers is not installed.
    """
    if name in VISIONS:
        return VISIONS[name]
    directory = Path(name)
    given = _settings(directory, "preprocessor_config.json", "image_processor")
    heard = _settings(directory, "preprocessor_config.json", "feature_extractor")
    if heard is None:
        heard = _settings(directory, "preprocessor_config.json", "audio_processor")
    if given is None and heard is None:
        raise UnknownNameError(
            f"no vision model named {clip(name)}; known: {', '.join(VISIONS)}, or a "
            "directory with preprocessor_config.json or processor_config.json"
        )
    given, heard = given or {}, heard or {}
    kind = str(given.get("image_processor_type", ""))
    made_for = _processor_class(directory)
    if made_for not in _RULES and not kind.startswith(_PATCHED):
        load_processor(name)
        pad_of(name, "image")  # so that one that cannot be asked is told at once
        return ProcessorVision(name)
    films = _settings(directory, "video_preprocessor_config.json", "video_processor")
    timed = str((films or {}).get("video_processor_type")) == "Qwen3VLVideoProcessor"
    usual = VISIONS[_RULES.get(made_for, "qwen3_vl" if timed else "qwen2_vl")]
    if isinstance(usual, Gemma4Vision):
        return _gemma_of(usual, given, films or {}, heard)
    return replace(
        _images_of(usual, given) if usual.sees else usual,
        # Where a model says nothing of films apart, its limits for images are not those of films:
        # transformers takes them so, qwen-vl-utils, which the models were trained with, does not.
        video=usual.video and _films_of(usual.video, films or {}, given),
        audio=usual.audio and _sounds_of(usual.audio, heard),
    )


_PATCHED = ("Qwen2VLImageProcessor", "Qwen3VLImageProcessor")
_RULES = {
    "Qwen2VLProcessor": "qwen2_vl",
    "Qwen2_5_VLProcessor": "qwen2_5_vl",
    "Qwen3VLProcessor": "qwen3_vl",
    "Qwen2AudioProcessor": "qwen2_audio",
    "Qwen2_5OmniProcessor": "qwen2_5_omni",
    "Qwen3OmniMoeProcessor": "qwen3_omni",
    "Gemma4Processor": "gemma4",
}
"""Processors by their class, and whose rule theirs is."""


def _images_of(usual: PatchVision, given: dict[str, Any]) -> PatchVision:
    size = cast("dict[str, int]", given.get("size") or {})
    plain = PatchVision()
    return replace(
        usual,
        patch=int(given.get("patch_size", plain.patch)),
        merge=int(given.get("merge_size", plain.merge)),
        min_pixels=int(given.get("min_pixels") or size.get("shortest_edge") or plain.min_pixels),
        max_pixels=int(given.get("max_pixels") or size.get("longest_edge") or plain.max_pixels),
    )


def _films_of(usual: VideoRule, given: dict[str, Any], images: dict[str, Any]) -> VideoRule:
    size = cast("dict[str, int]", given.get("size") or {})
    rule = replace(
        usual,
        patch=int(given.get("patch_size") or images.get("patch_size") or usual.patch),
        merge=int(given.get("merge_size") or images.get("merge_size") or usual.merge),
        group=int(given.get("temporal_patch_size") or usual.group),
        min_frames=int(given.get("min_frames") or usual.min_frames),
        max_frames=int(given.get("max_frames") or usual.max_frames),
        min_pixels=int(given.get("min_pixels") or size.get("shortest_edge") or usual.min_pixels),
        max_pixels=int(given.get("max_pixels") or size.get("longest_edge") or usual.max_pixels),
        fps=float(given.get("fps") or usual.fps or 0) or None,
    )
    if given.get("cap_pixels_per_frame"):
        usual_cap = 768 if rule.timed else 128_000
        rule = replace(rule, max_tokens=int(given.get("max_video_tokens") or usual_cap))
    return replace(rule, fps=None) if given.get("do_sample_frames") is False else rule


def _sounds_of(usual: AudioRule, given: dict[str, Any]) -> AudioRule:
    frames = given.get("nb_max_frames")
    return replace(
        usual,
        rate=int(given.get("sampling_rate", usual.rate)),
        hop=int(given.get("hop_length", usual.hop)),
        max_frames=int(frames) if frames and usual.max_frames else usual.max_frames,
    )


def _gemma_of(
    usual: Gemma4Vision, images: dict[str, Any], films: dict[str, Any], heard: dict[str, Any]
) -> Gemma4Vision:
    n_frames = int(films.get("num_frames") or usual.n_frames or 0) or None
    return replace(
        usual,
        image=_fill_of(usual.image, images),
        frame=_fill_of(usual.frame, films),
        n_frames=None if films.get("do_sample_frames") is False else n_frames,
        rate=int(heard.get("sampling_rate", usual.rate)),
        hop=int(heard.get("hop_length", usual.hop)),
        window=int(heard.get("frame_length", usual.window)),
    )


def _fill_of(usual: FillRule, given: dict[str, Any]) -> FillRule:
    return FillRule(
        max_tokens=int(given.get("max_soft_tokens", usual.max_tokens)),
        patch=int(given.get("patch_size", usual.patch)),
        pool=int(given.get("pooling_kernel_size", usual.pool)),
    )


def _settings(directory: Path, file: str, key: str) -> dict[str, Any] | None:
    """What a model's directory says of one of its processors, in a file of its own or with
    others."""
    alone = _read(directory / file)
    if alone is not None:
        return alone
    found = (_read(directory / "processor_config.json") or {}).get(key)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _processor_class(directory: Path) -> str:
    for file in ("processor_config.json", "preprocessor_config.json"):
        if name := (_read(directory / file) or {}).get("processor_class"):
            return str(name)
    return ""


def _read(path: Path) -> dict[str, Any] | None:
    try:
        given: Any = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise UnknownNameError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise EncodeError(f"{path} is not JSON") from error
    return cast("dict[str, Any]", given) if isinstance(given, dict) else None


@dataclass(frozen=True, slots=True)
class ProcessorVision:
    """A model by the directory of its processor.

    Can be sent to another process, which loads the processor again.
    """

    directory: str
    """The model's directory, or its id where its files are in the hub's cache."""
    root: Path = Path()
    """What paths are relative to."""

    @property
    def pad(self) -> str:
        """The mark that stands once for each of an image's tokens; empty where none can be shown.

        Raises:
            EncodeError: The processor is of a kind that cannot be asked.
            UnknownNameError: There is no processor there.
            MissingExtraError: transformers is not installed.
        """
        return pad_of(self.directory, "image")

    def n_tokens(self, image: ImagePart) -> int:
        """How many tokens an image is.

        Raises:
            EncodeError: The image is missing, damaged or too large, or none can be shown.
        """
        shown = self.expand(image)
        return sum(n for mark, n in shown.pieces if mark == shown.pad)

    def expand(self, part: MediaPart) -> Expansion:
        """What stands in the place of a part's placeholder.

        Raises:
            EncodeError: It is missing, damaged, too short or too long, or the model has no sense
                for it.
            MissingExtraError: PyAV is needed to look at it, and not installed.
        """
        pad = pad_of(self.directory, part.kind)
        if not pad:
            raise no_sense(part)
        shown = f"{part.kind} {clip(part.source, 80)}"
        match part:
            case ImagePart(source):
                width, height = image_size(source, root=self.root)
                pieces = written(self.directory, "image", (height, width), shown)
            case AudioPart(source):
                rate, most = rate_of(self.directory), longest(self.directory)
                n_heard, _ = samples_heard(source, rate, most, root=self.root)
                pieces = written(self.directory, "audio", (n_heard,), shown)
            case VideoPart(source):
                film, seen = self._film(source, shown)
                size = (len(seen.frames), film.height, film.width)
                pieces = written(self.directory, "video", size, shown, seen)
        if not any(n and mark == pad for mark, n in pieces):
            raise EncodeError(f"{shown} is too small to be a token")
        return Expansion((placeholder(self.directory, part.kind),), pad, pieces)

    def _film(self, source: str | tuple[str, ...], shown: str) -> tuple[Stream, Seen]:
        """A film, and which of its frames are looked at."""
        if isinstance(source, tuple):
            film = film_of_frames(source, self.root, 24.0)
            return film, Seen(tuple(range(film.n_frames)), film.fps, film.n_frames)
        film = packets(find(source, self.root, "video"), "video", clip(source, 80))
        return film, sampled(self.directory, film, shown)

    def within(self, root: Path) -> "ProcessorVision":
        """The same, with paths relative to a directory."""
        return replace(self, root=root)
