"""An image is as many tokens as its model's processor makes of it; what is no image is named."""

import base64
import json
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from antiphon.datasets import read_row
from antiphon.encode import (
    IGNORE,
    VISIONS,
    Encoder,
    FastTokenizer,
    PatchVision,
    image_size,
    load_vision,
)
from antiphon.errors import EncodeError, UnknownNameError
from antiphon.formats import get_format
from antiphon.messages import Conversation, ImagePart, Message

CASES = Path(__file__).parents[1] / "formats" / "cases" / "seed_samples.jsonl"
SAMPLES = [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
SHOWN = next(s for s in SAMPLES if "images" in s["row"])


def png(width: int, height: int) -> bytes:
    """A PNG file of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = (b"\0" + b"\x80" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


FRAME = b"\xff\xe0\x00\x04ab\xff\xc2" + struct.pack(">HBHHB", 8, 8, 30, 50, 1)
FILES = {
    "a.png": (png(50, 30), (50, 30)),
    "a.jpg": (b"\xff\xd8" + FRAME + b"\xff\xda\x00\x02..\xff\xd9", (50, 30)),
    "a.gif": (b"GIF89a" + struct.pack("<HH", 50, 30) + b"...\x3b", (50, 30)),
    "lossy.webp": (
        b"RIFF" + struct.pack("<I", 22) + b"WEBPVP8 " + b"." * 10 + struct.pack("<HH", 50, 30),
        (50, 30),
    ),
    "lossless.webp": (
        b"RIFF" + struct.pack("<I", 17) + b"WEBPVP8L....\x2f" + struct.pack("<I", 49 | 29 << 14),
        (50, 30),
    ),
    "a.bmp": (b"BM" + struct.pack("<I", 26) + b"." * 12 + struct.pack("<ii", 50, -30), (50, 30)),
}


@pytest.mark.parametrize("name", FILES)
def test_the_size_of_an_image_is_read_from_its_head(tmp_path: Path, name: str) -> None:
    data, size = FILES[name]
    (tmp_path / name).write_bytes(data)

    assert image_size(name, root=tmp_path) == size
    assert image_size("data:image/x;base64," + base64.b64encode(data).decode()) == size
    for cut in (5, len(data) // 2, len(data) - 4):
        (tmp_path / name).write_bytes(data[:cut])
        with pytest.raises(EncodeError, match=f"image '{name}' is"):
            image_size(name, root=tmp_path)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("none.png", "cannot be read: no such file"),
        ("https://x.org/a.png", "is at a URL; fetch it first"),
        ("data:image/png,abc", "is a data URI without base64"),
        ("data:image/png;base64,####", "is no base64"),
        ("text.png", r"is no PNG, JPEG, GIF, WebP or BMP: it begins b'hello"),
        ("empty.png", "is empty"),
        ("huge.png", "claims to be 1000000 x 1000000 pixels"),
    ],
)
def test_what_is_no_image_is_named(tmp_path: Path, source: str, said: str) -> None:
    (tmp_path / "text.png").write_text("hello there", "utf-8")
    (tmp_path / "empty.png").touch()
    small = png(5, 5)
    (tmp_path / "huge.png").write_bytes(
        small[:16] + struct.pack(">II", 1000000, 1000000) + small[24:]
    )

    with pytest.raises(EncodeError, match=said):
        image_size(source, root=tmp_path)


def test_the_second_sample_has_the_seeds_masked_runs(
    tmp_path: Path, qwen2_5: FastTokenizer
) -> None:
    for name in SHOWN["row"]["images"]:
        (tmp_path / name).write_bytes(png(756, 756))
    vision = VISIONS["qwen2_5_vl"].within(tmp_path)
    fmt = get_format("qwen2_5_vl")

    example = Encoder(qwen2_5, fmt, vision=vision).encode(read_row(SHOWN["row"]))

    assert SHOWN["masked_runs"] == [924, 759]
    assert example.masked_runs() == SHOWN["masked_runs"]
    text = qwen2_5.decode(example.token_ids.tolist())
    assert text.replace("<|image_pad|>" * 729, "[151655 * 729]") == SHOWN["text"]


def test_an_image_never_counts(tmp_path: Path, qwen2_5: FastTokenizer) -> None:
    (tmp_path / "a.png").write_bytes(png(56, 56))
    encoder = Encoder(
        qwen2_5, get_format("qwen2_5_vl"), loss="all", vision=PatchVision(root=tmp_path)
    )
    asked = Message("user", (ImagePart("a.png"),))

    example = encoder.encode(Conversation((asked, Message.assistant("A."))))

    pad = qwen2_5.mark_id("<|image_pad|>")
    assert (example.token_ids == pad).sum() == 4
    assert ((example.labels == IGNORE) == (example.token_ids == pad)).all()


def test_images_without_a_vision_are_refused(qwen2_5: FastTokenizer) -> None:
    asked = Conversation((Message("user", (ImagePart("a.png"),)), Message.assistant("A.")))

    with pytest.raises(EncodeError, match="give the encoder a vision"):
        Encoder(qwen2_5, get_format("qwen2_5_vl")).encode(asked)


def test_the_numbers_of_a_model_are_those_of_its_directory(tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "image_processor_type": "Qwen2VLImageProcessorFast",
        "processor_class": "Qwen3VLProcessor",
        "patch_size": 16,
        "size": {"shortest_edge": 65536, "longest_edge": 16777216},
    }
    path = tmp_path / "preprocessor_config.json"
    path.write_text(json.dumps(config), "utf-8")

    assert load_vision(str(tmp_path)) == VISIONS["qwen3_vl"]
    with pytest.raises(UnknownNameError, match="known: qwen2_vl, qwen2_5_vl, qwen3_vl"):
        load_vision("qwen9_vl")


def test_a_narrow_image_is_refused() -> None:
    with pytest.raises(EncodeError, match="2 x 500 is too narrow"):
        PatchVision().n_tokens_of(2, 500)


@pytest.mark.parametrize("rule", [v for v in VISIONS.values() if isinstance(v, PatchVision)])
def test_every_size_has_the_tokens_of_transformers_processor(rule: PatchVision) -> None:
    pytest.importorskip("torch")
    module: Any = pytest.importorskip(
        "transformers.models.qwen2_vl.image_processing_pil_qwen2_vl", exc_type=ImportError
    )
    unit = rule.patch * rule.merge
    sides = [
        1,
        7,
        13,
        14,
        15,
        27,
        28,
        29,
        41,
        42,
        55,
        56,
        57,
        100,
        333,
        756,
        1000,
        1919,
        4000,
        9000,
    ]
    for width in sides:
        for height in sides:
            if max(width, height) > 200 * min(width, height):
                continue
            down, across = module.smart_resize(
                height, width, unit, rule.min_pixels, rule.max_pixels
            )
            assert rule.n_tokens_of(width, height) == (down // unit) * (across // unit)
