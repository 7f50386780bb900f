"""Models that see and hear by name or directory; where need be, their own processor is asked.

The arithmetic of some families is written down in `_senses.py`.  Others' processors say how many
placeholders an image, a sound or a film of a size becomes; none is decoded.  A family that writes
more than placeholders (marks between an image's rows, for example) is refused, since its tokens
would be others.  Needs the extra ``hf``; files are looked at as in `_images.py`, `_audio.py` and
`_videos.py`.
"""

import importlib
import inspect
import json
import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from antiphon.encode._audio import AudioRule, audio_length
from antiphon.encode._images import image_size
from antiphon.encode._media import Expansion, find, no_sense
from antiphon.encode._senses import VISIONS, PatchVision
from antiphon.encode._streams import packets
from antiphon.encode._videos import VideoRule, film_of_frames
from antiphon.errors import EncodeError, MissingExtraError, UnknownNameError, clip
from antiphon.messages import AudioPart, ImagePart, MediaPart, VideoPart

_TRIED = 64
"""Pixels along the sides of the image that is tried."""


def load_vision(name: str) -> "PatchVision | ProcessorVision":
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
    if given is None:
        raise UnknownNameError(
            f"no vision model named {clip(name)}; known: {', '.join(VISIONS)}, or a "
            "directory with preprocessor_config.json or processor_config.json"
        )
    kind = str(given.get("image_processor_type", ""))
    made_for = _processor_class(directory)
    if made_for not in _RULES and not kind.startswith(_PATCHED):
        _load(name)
        return ProcessorVision(name)
    films = _settings(directory, "video_preprocessor_config.json", "video_processor")
    heard = _settings(directory, "preprocessor_config.json", "feature_extractor")
    timed = str((films or {}).get("video_processor_type")) == "Qwen3VLVideoProcessor"
    usual = VISIONS[_RULES.get(made_for, "qwen3_vl" if timed else "qwen2_vl")]
    return replace(
        _images_of(usual, given) if usual.sees else usual,
        # Where a model says nothing of films apart, its limits for images are not those of films:
        # transformers takes them so, qwen-vl-utils, which the models were trained with, does not.
        video=usual.video and _films_of(usual.video, films or {}, given),
        audio=usual.audio and _sounds_of(usual.audio, heard or {}),
    )


_PATCHED = ("Qwen2VLImageProcessor", "Qwen3VLImageProcessor")
_RULES = {
    "Qwen2VLProcessor": "qwen2_vl",
    "Qwen2_5_VLProcessor": "qwen2_5_vl",
    "Qwen3VLProcessor": "qwen3_vl",
    "Qwen2AudioProcessor": "qwen2_audio",
    "Qwen2_5OmniProcessor": "qwen2_5_omni",
    "Qwen3OmniMoeProcessor": "qwen3_omni",
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
        """The mark that stands once for each of an image's tokens.

        Raises:
            EncodeError: The processor is of a kind that is not known here.
            UnknownNameError: There is no processor there.
            MissingExtraError: transformers is not installed.
        """
        return _token(_load(self.directory), "image")

    def n_tokens(self, image: ImagePart) -> int:
        """How many tokens an image is.

        Raises:
            EncodeError: The image is missing, damaged or too large, or none can be shown.
        """
        size = image_size(image.source, root=self.root)
        return _counted(self.directory, "image", (size[1], size[0]), image)

    def expand(self, part: MediaPart) -> Expansion:
        """What stands in the place of a part's placeholder.

        Raises:
            EncodeError: It is missing, damaged or too long, or the model has no sense for it.
            MissingExtraError: PyAV is needed to look at it, and not installed.
        """
        match part:
            case ImagePart():
                kind, n = "image", self.n_tokens(part)
            case AudioPart(source):
                n_samples, rate = audio_length(source, root=self.root)
                n_heard = math.ceil(n_samples * (_rate(self.directory, part) / rate))
                kind, n = "audio", _counted(self.directory, "audio", n_heard, part)
            case VideoPart(source):
                kind, n = "video", _counted(self.directory, "video", self._film(source, part), part)
        pad = _token(_load(self.directory), kind)
        return Expansion((pad,), pad, ((pad, n),))

    def _film(self, source: str | tuple[str, ...], part: VideoPart) -> tuple[int, int, int]:
        """How many pictures of a film are looked at, their height and their width."""
        if isinstance(source, tuple):
            film = film_of_frames(source, self.root, 24.0)
            return film.n_frames, film.height, film.width
        film = packets(find(source, self.root, "video"), "video", clip(source, 80))
        looks = getattr(_load(self.directory), "video_processor", None)
        if looks is None:
            raise no_sense(part)
        metadata: Any = importlib.import_module("transformers.video_utils").VideoMetadata(
            total_num_frames=film.n_frames,
            fps=film.fps,
            duration=film.n_frames / film.fps,
            height=film.height,
            width=film.width,
        )
        n = film.n_frames
        if looks.do_sample_frames:
            n = len(looks.sample_frames(metadata, fps=looks.fps, num_frames=looks.num_frames))
        return n, film.height, film.width

    def within(self, root: Path) -> "ProcessorVision":
        """The same, with paths relative to a directory."""
        return replace(self, root=root)


_SIZES = {"image": "image_sizes", "audio": "audio_lengths", "video": "video_sizes"}
"""The argument of a processor that takes the sizes of a kind."""


def _counted(directory: str, kind: str, size: Any, part: MediaPart) -> int:
    processor = _load(directory)
    if not _has_sense(directory, kind):
        raise no_sense(part)
    found = processor._get_num_multimodal_tokens(**{_SIZES[kind]: [size]})
    return int(found[f"num_{kind}_tokens"][0])


def _rate(directory: str, part: AudioPart) -> int:
    hears = getattr(_load(directory), "feature_extractor", None)
    if hears is None:
        raise no_sense(part)
    return int(hears.sampling_rate)


@cache
def _has_sense(directory: str, kind: str) -> bool:
    """Whether a processor counts a kind, and writes as many placeholders as it counts."""
    processor = _load(directory)
    counts = processor._get_num_multimodal_tokens
    if _SIZES[kind] not in inspect.signature(counts).parameters or not _token(processor, kind):
        return False
    _try(processor, kind)
    return True


@cache
def _load(directory: str) -> Any:
    try:
        transformers: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise MissingExtraError("asking a model's processor", "hf") from error
    try:
        processor = transformers.AutoProcessor.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, ImportError) as error:
        raise UnknownNameError(
            f"no processor in {clip(directory)}: {str(error).splitlines()[0]}"
        ) from error
    kinds = [kind for kind in _SIZES if _token(processor, kind)]
    if not hasattr(processor, "_get_num_multimodal_tokens") or not kinds:
        raise EncodeError(
            f"the processor {type(processor).__name__} does not say how many tokens an image is"
        )
    if "image" in kinds:
        _try(processor, "image")
    return processor


def _token(processor: Any, kind: str) -> str:
    return str(getattr(processor, f"{kind}_token", "") or "")


def _try(processor: Any, kind: str) -> None:
    """Hold an image's, a sound's or a film's tokens against what was counted."""
    numpy: Any = importlib.import_module("numpy")
    picture = numpy.full((_TRIED, _TRIED, 3), 128, dtype="uint8")
    shown: dict[str, Any]
    match kind:
        case "image":
            size, shown = (_TRIED, _TRIED), {"images": [picture]}
        case "audio":
            rate = int(processor.feature_extractor.sampling_rate)
            size, shown = rate, {"audio": [numpy.zeros(rate, dtype="float32")]}
        case _:
            size = (4, _TRIED, _TRIED)
            shown = {"videos": [numpy.stack([picture] * 4)], "do_sample_frames": False}
    token = _token(processor, kind)
    ids = processor(text=[token], **shown)["input_ids"][0]
    pad = processor.tokenizer.convert_tokens_to_ids(token)
    plain = processor.tokenizer(token)["input_ids"]
    found = processor._get_num_multimodal_tokens(**{_SIZES[kind]: [size]})
    n = int(found[f"num_{kind}_tokens"][0])
    expected = [i for known in plain for i in ([pad] * n if known == pad else [known])]
    if list(ids) != expected:
        raise EncodeError(
            f"the processor {type(processor).__name__} writes more than {token!r} for one {kind}, "
            "which is not known here"
        )
