"""Gemma 4 is told what surrounds what it sees and hears."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.encode import (
    VISIONS,
    Encoder,
    FillRule,
    Gemma4Vision,
    load_tokenizer,
    load_vision,
)
from antiphon.errors import EncodeError
from antiphon.formats.gemma4 import FORMAT
from antiphon.messages import AudioPart, Conversation, ImagePart, Message, TextPart, VideoPart
from encode.test_images import png
from encode.test_media import film, wav


@pytest.mark.parametrize("rule", [FillRule(), FillRule(70), FillRule(1120, patch=14, pool=2)])
def test_every_size_has_the_tokens_of_transformers_processor(rule: FillRule) -> None:
    name = "transformers.models.gemma4.processing_gemma4"
    module: Any = pytest.importorskip(name, exc_type=ImportError)
    unit, most = rule.patch * rule.pool, rule.max_tokens * rule.pool**2
    sides = (1, 7, 15, 16, 47, 48, 49, 100, 333, 756, 1000, 1919, 4000, 9000, 40_000)

    for width in sides:
        for height in sides:
            down, across = module.get_aspect_ratio_preserving_size(
                height, width, rule.patch, most, rule.pool
            )
            assert rule.n_tokens_of(width, height) == (down // unit) * (across // unit)


@pytest.mark.parametrize(
    ("size", "n_image", "n_frame"),
    [((50, 30), 252, 60), ((640, 480), 266, 63), ((8, 30), 256, 64), ((1000, 3), 280, 70)],
)
def test_small_images_have_as_many_tokens_as_large_ones(
    size: tuple[int, int], n_image: int, n_frame: int
) -> None:
    vision = Gemma4Vision()

    assert vision.image.n_tokens_of(*size) == n_image
    assert vision.frame.n_tokens_of(*size) == n_frame


def test_marks_and_times_stand_around_what_is_shown(tmp_path: Path, tiny_json: str) -> None:
    definition = json.loads(tiny_json)
    whole = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    definition["added_tokens"] += [
        {"id": 900 + i, "content": mark, "special": True, **whole}
        for i, mark in enumerate(sorted(FORMAT.specials))
    ]
    (tmp_path / "tokenizer.json").write_text(json.dumps(definition), "utf-8")
    (tmp_path / "a.png").write_bytes(png(50, 30))
    (tmp_path / "a.wav").write_bytes(wav(16_000))
    tokenizer, vision = load_tokenizer(tmp_path), VISIONS["gemma4"].within(tmp_path)
    media = (ImagePart("a.png"), AudioPart("a.wav"), VideoPart(("a.png",) * 25))
    asked = Message("user", (*media, TextPart("the ferry")))
    encoder = Encoder(tokenizer, FORMAT, loss="all", vision=vision)

    example = encoder.encode(Conversation((asked, Message.assistant("today"))))

    frame = f"<|image>{'<|video|>' * 60}<image|>"
    text = tokenizer.decode(example.token_ids.tolist())
    assert text == (
        "<bos><|turn>user\n"
        f"<|image>{'<|image|>' * 252}<image|><|audio>{'<|audio|>' * 25}<audio|>"
        f"{' '.join([f'00:00 {frame}'] * 24)} 00:01 {frame}the ferry<turn|>\n"
        "<|turn>model\ntoday<turn|>\n"
    )
    pads = {tokenizer.mark_id(part) for part in ("<|image|>", "<|audio|>", "<|video|>")}
    trained = set(example.labels.tolist())
    assert not pads & trained
    assert tokenizer.mark_id("<audio|>") in trained


def test_frames_evenly_apart_are_looked_at(tmp_path: Path) -> None:
    film(tmp_path / "a.mp4", n_frames=130, fps=1)

    shown = Gemma4Vision(n_frames=4, root=tmp_path).expand(VideoPart("a.mp4"))

    times = [text for text, n in shown.pieces if not n]
    assert times == ["00:00 ", " 00:32 ", " 01:05 ", " 01:37 "]
    assert len(Gemma4Vision(n_frames=None, root=tmp_path).expand(VideoPart("a.mp4")).pieces) == 520


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (AudioPart("long.wav"), r"audio 'long\.wav' is 30\.5 s long, and the model hears 30 s"),
        (AudioPart("short.wav"), r"audio 'short\.wav' is too short to be heard: 100 samples"),
        (VideoPart("a.mp4"), r"video 'a\.mp4' is too short: 5 frames, and 32 are looked at"),
        (ImagePart("none.png"), r"image 'none\.png' cannot be read: no such file"),
    ],
)
def test_what_cannot_be_shown_is_named(tmp_path: Path, part: Any, said: str) -> None:
    (tmp_path / "long.wav").write_bytes(wav(244_000, 8000))
    (tmp_path / "short.wav").write_bytes(wav(100))
    if part == VideoPart("a.mp4"):
        film(tmp_path / "a.mp4", n_frames=5)

    with pytest.raises(EncodeError, match=said):
        Gemma4Vision(root=tmp_path).expand(part)


def test_a_directory_says_how_much_its_model_sees(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "processor_class": "Gemma4Processor",
        "image_processor": {"image_processor_type": "Gemma4ImageProcessor", "max_soft_tokens": 560},
        "video_processor": {"num_frames": 16, "max_soft_tokens": 140, "patch_size": 14},
        "feature_extractor": {"sampling_rate": 8000, "hop_length": 80, "frame_length": 160},
    }
    (tmp_path / "processor_config.json").write_text(json.dumps(settings), "utf-8")

    assert load_vision("gemma4") == Gemma4Vision()
    assert load_vision(str(tmp_path)) == Gemma4Vision(
        FillRule(560), FillRule(140, patch=14), n_frames=16, rate=8000, hop=80, window=160
    )
