"""What a processor of transformers writes in a placeholder's place: it is asked with blanks.

Most write one mark for each token, some with marks or text around them (``<|image>`` and
``<image|>``), some cut an image of another size into other pieces.  A few blanks of different sizes
tell which: where only the number of marks differs, the processor's own count of a size is enough,
and else it is shown a blank of that size.  The text between a film's frames depends on when each
was seen, so it is shown a film of as many frames, small and blank.  Nothing here knows a family or
opens what the user shows.

Source: transformers 5.24 ``processing_utils.py``; what is written beside marks is told by versions
that have ``get_text_with_replacements``.
"""

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, TypeAlias, cast

from antiphon.encode._streams import Stream
from antiphon.errors import AntiphonError, EncodeError, MissingExtraError, UnknownNameError, clip

Kind: TypeAlias = Literal["image", "audio", "video"]
Size: TypeAlias = "tuple[int, ...]"
"""Height and width of an image; samples of a sound; frames, height and width of a film."""
Pieces: TypeAlias = "tuple[tuple[str, int], ...]"
"""A mark and how often, or a text and 0."""

_PARTS = {
    "image": ("image_processor",),
    "audio": ("audio_processor", "feature_extractor"),
    "video": ("video_processor",),
}
"""What of a processor looks or listens."""
_SIZES = {"image": "image_sizes", "audio": "audio_lengths", "video": "video_sizes"}
"""The argument of a processor's count that takes the sizes of a kind."""
_IMAGES: tuple[Size, ...] = ((64, 64), (160, 640), (640, 160), (1000, 1536), (1536, 1000))
_SECONDS = (0.5, 1.01, 3.7)
_FRAME = (64, 96)
_FAULTS = (
    ArithmeticError,
    AttributeError,
    ImportError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a processor may raise of what it is shown, or of a library that it has not."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Which frames of a film are looked at."""

    frames: tuple[int, ...]
    """By position."""
    fps: float
    """Frames a second of the film."""
    n_frames: int
    """How many the film has."""


@dataclass(frozen=True, slots=True)
class _Habit:
    """What a processor does alike with all of a kind."""

    pad: str
    """The mark of one token."""
    before: Pieces = ()
    """What stands before the marks."""
    after: Pieces = ()
    """What stands behind them."""
    n_more: int | None = None
    """How many more it counts than marks it writes; ``None`` where a size has to be shown."""


@cache
def load_processor(directory: str) -> Any:
    """A processor by the directory of its model.

    Raises:
        UnknownNameError: There is none.
        EncodeError: It has no mark for anything.
        MissingExtraError: transformers is not installed.
    """
    try:
        transformers: Any = importlib.import_module("transformers")
    except ImportError as error:
        raise MissingExtraError("asking a model's processor", "hf") from error
    try:
        processor = transformers.AutoProcessor.from_pretrained(directory, local_files_only=True)
    except (OSError, ValueError, ImportError) as error:
        raise UnknownNameError(f"no processor in {clip(directory)}: {_reason(error)}") from error
    if not any(_has(processor, kind) for kind in ("image", "audio", "video")):
        raise EncodeError(
            f"the processor {type(processor).__name__} has no mark for what is shown or heard"
        )
    return processor


def pad_of(directory: str, kind: Kind) -> str:
    """The mark of one token of a kind; empty where the model has no sense for it.

    Raises:
        EncodeError: The processor cannot be asked.
    """
    habit = _habit(directory, kind)
    return habit.pad if habit else ""


def placeholder(directory: str, kind: Kind) -> str:
    """The mark that stands in a text for one of a kind."""
    return str(getattr(load_processor(directory), f"{kind}_token"))


def written(directory: str, kind: Kind, size: Size, shown: str, seen: Seen | None = None) -> Pieces:
    """What a processor writes for one of a kind that the model has a sense for.

    Args:
        directory: The processor's.
        kind: What is shown.
        size: Its size.
        shown: What messages call it.
        seen: Of a film.

    Raises:
        EncodeError: The processor refuses the size, or does not say how many tokens it is.
    """
    habit = _habit(directory, kind)
    assert habit is not None, "there is a sense"
    with _refused(directory, shown):
        if habit.n_more is not None:
            n = cast("int", _counted(directory, kind, size)) - habit.n_more
            return (*habit.before, *(((habit.pad, n),) if n > 0 else ()), *habit.after)
        if seen is None:
            return _pieces(directory, _text(directory, kind, size), habit.pad)
        return _frames(directory, habit.pad, size, shown, seen)


def sampled(directory: str, film: Stream, shown: str) -> Seen:
    """Which frames of a film are looked at.

    Raises:
        EncodeError: The processor refuses it, as too short for example.
    """
    looks = load_processor(directory).video_processor
    if not looks.do_sample_frames:
        return Seen(tuple(range(film.n_frames)), film.fps, film.n_frames)
    metadata: Any = importlib.import_module("transformers.video_utils").VideoMetadata(
        total_num_frames=film.n_frames,
        fps=film.fps,
        duration=film.n_frames / film.fps,
        height=film.height,
        width=film.width,
    )
    with _refused(directory, shown):
        frames = looks.sample_frames(metadata, fps=looks.fps, num_frames=looks.num_frames)
        return Seen(tuple(int(i) for i in frames), film.fps, film.n_frames)


def rate_of(directory: str) -> int:
    """How many samples of a sound are heard in a second, by a model that hears."""
    return int(_part(load_processor(directory), "audio").sampling_rate)


@cache
def longest(directory: str) -> int | None:
    """How many samples of a sound are heard; ``None`` where nothing is cut off."""
    processor = load_processor(directory)
    known = inspect.signature(type(_part(processor, "audio")).__call__).parameters
    options: dict[str, Any] = {
        name: known[name].default for name in ("truncation", "max_length") if name in known
    }
    if _tells(processor):
        options |= processor._merge_kwargs()["audio_kwargs"]
    most = options.get("max_length") or getattr(_part(processor, "audio"), "n_samples", None)
    if options.get("truncation") and most:
        heard, twice = (_n_marks(directory, n) for n in (int(most), 2 * int(most)))
        if heard == twice:  # and not one window of several
            return int(most)
    seconds = getattr(processor, "max_audio_len", None)
    return None if seconds is None else int(seconds * rate_of(directory))


def _n_marks(directory: str, n_samples: int) -> int:
    pad = pad_of(directory, "audio")
    pieces = written(directory, "audio", (n_samples,), "a blank audio")
    return sum(n for mark, n in pieces if mark == pad)


@cache
def _habit(directory: str, kind: Kind) -> _Habit | None:
    processor = load_processor(directory)
    if not _has(processor, kind):
        return None
    sizes = _trials(processor, kind)
    with _refused(directory, f"a blank {kind}"):
        texts = [_text(directory, kind, size) for size in sizes]
        counts = [_counted(directory, kind, size) for size in sizes]
    marks = Counter(mark for text in texts for mark in _marks(directory).findall(text))
    if not marks:
        raise EncodeError(f"the processor {type(processor).__name__} writes no mark for one {kind}")
    pad = marks.most_common(1)[0][0]
    more: set[int | None] = set()
    around: set[tuple[Pieces, Pieces] | None] = set()
    for text, counted in zip(texts, counts, strict=True):
        pieces = _pieces(directory, text, pad)
        rows = [i for i, (mark, n) in enumerate(pieces) if n and mark == pad]
        around.add((pieces[: rows[0]], pieces[rows[0] + 1 :]) if len(rows) == 1 else None)
        more.add(None if counted is None else counted - sum(pieces[i][1] for i in rows))
    if len(more) > 1 or len(around) > 1 or None in around:
        return _Habit(pad)
    ((before, after),) = cast("set[tuple[Pieces, Pieces]]", around)
    return _Habit(pad, before, after, more.pop())


def _frames(directory: str, pad: str, size: Size, shown: str, seen: Seen) -> Pieces:
    """A film's frames with the text between: that of a small film, with the marks of this one."""
    small = (size[0], *_FRAME)
    pieces = _pieces(directory, _text(directory, "video", small, seen), pad)
    rows = [n for mark, n in pieces if n and mark == pad]
    n, n_small = _counted(directory, "video", size), _counted(directory, "video", small)
    if n is None or n_small != sum(rows) or len(set(rows)) != 1 or n % len(rows):
        raise EncodeError(
            f"{shown}: the processor {type(load_processor(directory)).__name__} does not say how "
            "many tokens it is"
        )
    each = n // len(rows)
    return tuple((mark, each if n and mark == pad else n) for mark, n in pieces)


# ---- asking -----------------------------------------------------------------------------------


def _has(processor: Any, kind: Kind) -> bool:
    return bool(_part(processor, kind) and getattr(processor, f"{kind}_token", None))


def _part(processor: Any, kind: Kind) -> Any:
    found = (getattr(processor, name, None) for name in _PARTS[kind])
    return next((part for part in found if part is not None), None)


def _tells(processor: Any) -> bool:
    """Whether it says what it writes, and not only the ids of that."""
    return hasattr(processor, "get_text_with_replacements")


def _trials(processor: Any, kind: Kind) -> tuple[Size, ...]:
    match kind:
        case "image":
            return _IMAGES
        case "audio":
            return tuple((int(s * _part(processor, "audio").sampling_rate),) for s in _SECONDS)
        case "video":
            return ((4, *_FRAME), (8, *_FRAME), (4, 160, 96))


def _counted(directory: str, kind: Kind, size: Size) -> int | None:
    """How many tokens the processor says that a size is; ``None`` where it does not say."""
    processor = load_processor(directory)
    counts = getattr(processor, "_get_num_multimodal_tokens", None)
    if counts is None or _SIZES[kind] not in inspect.signature(counts).parameters:
        return None
    found = counts(**{_SIZES[kind]: [size[0] if kind == "audio" else size]})
    said = getattr(found, f"num_{kind}_tokens", None)
    return int(said[0]) if said else None


@lru_cache(1 << 12)
def _text(directory: str, kind: Kind, size: Size, seen: Seen | None = None) -> str:
    """What the processor writes for a blank of a size."""
    numpy: Any = importlib.import_module("numpy")
    processor = load_processor(directory)
    shown: dict[str, Any]
    match kind:
        case "image":
            shown = {"images": [numpy.full((*size, 3), 128, dtype="uint8")]}
        case "audio":
            shown = {"audio": [numpy.zeros(size, dtype="float32")]}
        case "video":
            shown = _film(numpy.full((*size, 3), 128, dtype="uint8"), seen)
    if _tells(processor):
        shown["return_text_replacement_offsets"] = True
    token = placeholder(directory, kind)
    answer = processor(text=[token], **shown)
    told = answer.get("text_replacement_offsets")
    if told and told[0]:
        return str(told[0][0]["replacement"])
    ids = list(answer["input_ids"][0])
    pad = processor.tokenizer.convert_tokens_to_ids(token)
    plain = list(processor.tokenizer(token)["input_ids"])
    n = len(ids) - len(plain) + 1
    if ids != [i for known in plain for i in ([pad] * n if known == pad else [known])]:
        raise EncodeError(
            f"the processor {type(processor).__name__} writes more than {token!r} for one {kind}, "
            "and this version of transformers does not tell what; update it"
        )
    return token * n


def _film(frames: Any, seen: Seen | None) -> dict[str, Any]:
    utils: Any = importlib.import_module("transformers.video_utils")
    seen = seen or Seen(tuple(range(len(frames))), 1.0, len(frames))
    metadata = utils.VideoMetadata(
        total_num_frames=seen.n_frames,
        fps=seen.fps,
        duration=seen.n_frames / seen.fps,
        frames_indices=list(seen.frames),
    )
    return {"videos": [frames], "video_metadata": [metadata], "do_sample_frames": False}


@contextmanager
def _refused(directory: str, shown: str) -> Generator[None]:
    """A processor's refusal in our words."""
    try:
        yield
    except AntiphonError:
        raise
    except _FAULTS as error:
        name = type(load_processor(directory)).__name__
        raise EncodeError(f"{shown}: the processor {name} refuses it: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).strip() or type(error).__name__).splitlines()[0]


# ---- texts ------------------------------------------------------------------------------------


@cache
def _marks(directory: str) -> re.Pattern[str]:
    """The marks of a processor's vocabulary."""
    processor = load_processor(directory)
    added = getattr(processor.tokenizer, "added_tokens_decoder", None)
    if not added:
        name = type(processor.tokenizer).__name__
        raise EncodeError(f"the tokenizer {name} does not say what its marks are")
    known = {str(token) for token in added.values()}
    return re.compile("|".join(map(re.escape, sorted(known, key=len, reverse=True))))


def _pieces(directory: str, text: str, pad: str) -> Pieces:
    """A text as marks and what is between; `pad` in rows, every other mark alone."""
    found: list[tuple[str, int]] = []
    place = 0
    for match in _marks(directory).finditer(text):
        if match.start() > place:
            found.append((text[place : match.start()], 0))
        if match.group() == pad and match.start() == place and found and found[-1][0] == pad:
            found[-1] = (pad, found[-1][1] + 1)
        else:
            found.append((match.group(), 1))
        place = match.end()
    if place < len(text):
        found.append((text[place:], 0))
    return tuple(found)
