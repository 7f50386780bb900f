"""Vision models by name or directory; where need be, their own processor is asked.

The arithmetic of some families is written down in `_images.py`.  Others' processors say how
many placeholders an image of a size becomes; no image is decoded.  A family that writes more than
placeholders for an image (marks between its rows, for example) is refused, since its tokens
would be others.  Needs the extra ``hf``; images are looked at as in `_images.py`.
"""

import importlib
import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

from antiphon.encode._images import VISIONS, PatchVision, image_size
from antiphon.errors import EncodeError, MissingExtraError, UnknownNameError, clip
from antiphon.messages import ImagePart

_SETTINGS = (("preprocessor_config.json", ""), ("processor_config.json", "image_processor"))
_TRIED = 64
"""Pixels along the sides of the image that is tried."""


def load_vision(name: str) -> "PatchVision | ProcessorVision":
    """A vision model by name, or by the settings in a model's directory.

    Raises:
        UnknownNameError: There is no such name and no such file.
        EncodeError: The file is damaged, or of a processor that is not known here.
        MissingExtraError: The processor has to be asked, and transformers is not installed.
    """
    if name in VISIONS:
        return VISIONS[name]
    given = _image_settings(Path(name))
    kind = str(given.get("image_processor_type", ""))
    if not kind.startswith(("Qwen2VLImageProcessor", "Qwen3VLImageProcessor")):
        _load(name)
        return ProcessorVision(name)
    size = cast("dict[str, int]", given.get("size") or {})
    usual = PatchVision()
    return PatchVision(
        patch=int(given.get("patch_size", usual.patch)),
        merge=int(given.get("merge_size", usual.merge)),
        min_pixels=int(given.get("min_pixels") or size.get("shortest_edge") or usual.min_pixels),
        max_pixels=int(given.get("max_pixels") or size.get("longest_edge") or usual.max_pixels),
    )


def _image_settings(directory: Path) -> dict[str, Any]:
    """What a model's directory says of its image processor, in a file of its own or with others."""
    for file, key in (
        ("preprocessor_config.json", ""),
        ("processor_config.json", "image_processor"),
    ):
        path = directory / file
        try:
            given: Any = json.loads(path.read_text("utf-8"))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UnknownNameError(f"{path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            raise EncodeError(f"{path} is not JSON") from error
        settings = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        found: Any = settings.get(key) if key else settings
        if isinstance(found, dict):
            return cast("dict[str, Any]", found)
    raise UnknownNameError(
        f"no vision model named {clip(str(directory))}; known: {', '.join(VISIONS)}, or a "
        "directory with preprocessor_config.json or processor_config.json"
    )


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
        return str(_load(self.directory).image_token)

    def n_tokens(self, image: ImagePart) -> int:
        """How many tokens an image is.

        Raises:
            EncodeError: The image is missing, damaged or too large.
        """
        width, height = image_size(image.source, root=self.root)
        return _count(_load(self.directory), width, height)

    def within(self, root: Path) -> "ProcessorVision":
        """The same, with paths relative to a directory."""
        return replace(self, root=root)


def _count(processor: Any, width: int, height: int) -> int:
    found = processor._get_num_multimodal_tokens(image_sizes=[(height, width)])
    return int(found["num_image_tokens"][0])


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
    if not hasattr(processor, "_get_num_multimodal_tokens") or not _token(processor):
        raise EncodeError(
            f"the processor {type(processor).__name__} does not say how many tokens an image is"
        )
    _try(processor)
    return processor


def _token(processor: Any) -> str:
    return str(getattr(processor, "image_token", "") or "")


def _try(processor: Any) -> None:
    """Hold an image's tokens against what was counted."""
    numpy: Any = importlib.import_module("numpy")
    image = numpy.full((_TRIED, _TRIED, 3), 128, dtype="uint8")
    ids = processor(text=[_token(processor)], images=[image])["input_ids"][0]
    pad = processor.tokenizer.convert_tokens_to_ids(_token(processor))
    plain = processor.tokenizer(_token(processor))["input_ids"]
    n = _count(processor, _TRIED, _TRIED)
    expected = [i for known in plain for i in ([pad] * n if known == pad else [known])]
    if list(ids) != expected:
        raise EncodeError(
            f"the processor {type(processor).__name__} writes more than {_token(processor)!r} for "
            "an image, which is not known here"
        )
