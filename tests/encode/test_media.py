"""A sound or a film is as many tokens as its model's processor makes of it."""

import base64
import json
import re
import struct
import wave
from io import BytesIO
from pathlib import Path
from typing import Any, cast

import pytest

from antiphon.datasets import read_row
from antiphon.encode import (
    IGNORE,
    VISIONS,
    AudioRule,
    EncodeJob,
    Encoder,
    FastTokenizer,
    PatchVision,
    VideoRule,
    audio_length,
    load_vision,
)
from antiphon.encode._streams import packets
from antiphon.errors import EncodeError, MissingExtraError, RenderError
from antiphon.formats import get_format
from antiphon.messages import AudioPart, Conversation, ImagePart, MediaPart, Message, VideoPart
from encode.test_images import png


def wav(n_samples: int, rate: int = 16_000, channels: int = 1) -> bytes:
    """A WAV file of silence."""
    data = BytesIO()
    with wave.open(data, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(2 * channels * n_samples))
    return data.getvalue()


def film(path: Path, n_frames: int = 10, fps: int = 5, size: tuple[int, int] = (64, 48)) -> Path:
    """A video file of grey pictures."""
    av: Any = pytest.importorskip("av")
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=fps)
        stream.width, stream.height = size
        for _ in range(n_frames):
            picture = av.VideoFrame(*size, "yuv420p")
            for plane in picture.planes:
                plane.update(b"\x80" * plane.buffer_size)
            container.mux(stream.encode(picture))
        container.mux(stream.encode())
    return path


def asked(*parts: MediaPart) -> Conversation:
    """A question about what is shown, and its answer."""
    return Conversation((Message("user", parts), Message.assistant("A.")))


# ---- rules ------------------------------------------------------------------------------------

RULES = {
    "qwen2_vl": VideoRule(),
    "qwen2_vl, all frames": VideoRule(fps=None),
    "qwen2_vl, few and small": VideoRule(max_frames=10, max_pixels=200 * 28 * 28, min_frames=6),
    "qwen2_vl, capped": VideoRule(max_tokens=8000),
    "qwen3_vl": cast("VideoRule", cast("PatchVision", VISIONS["qwen3_vl"]).video),
    "qwen3_vl, small": VideoRule(patch=16, timed=True, max_pixels=32 * 32 * 768),
    "qwen3_vl, capped": VideoRule(
        patch=16, timed=True, min_pixels=4096, max_pixels=3 << 23, max_tokens=768
    ),
}
FILMS = [
    (n, fps)
    for n in (2, 3, 4, 5, 7, 8, 19, 30, 47, 100, 333, 999, 4001, 20_000)
    for fps in (1.0, 5.0, 23.976, 25.0, 29.97, 60.0)
]
SIZES = [
    (64, 48), (8, 30), (31, 32), (33, 100), (320, 240), (640, 360), (360, 640), (1000, 30),
    (1280, 720), (1920, 1080), (3840, 2160),
]  # fmt: skip


def video_processor(rule: VideoRule) -> Any:
    """The processor of transformers with a rule's numbers."""
    pytest.importorskip("torch")
    pytest.importorskip("torchvision")
    name = "qwen3_vl" if rule.timed else "qwen2_vl"
    module: Any = pytest.importorskip(f"transformers.models.{name}.video_processing_{name}")
    make = module.Qwen3VLVideoProcessor if rule.timed else module.Qwen2VLVideoProcessor
    return make(
        size={"shortest_edge": rule.min_pixels, "longest_edge": rule.max_pixels},
        patch_size=rule.patch,
        merge_size=rule.merge,
        temporal_patch_size=rule.group,
        min_frames=rule.min_frames,
        max_frames=rule.max_frames,
        fps=rule.fps,
        cap_pixels_per_frame=rule.max_tokens is not None,
        **({} if rule.max_tokens is None else {"max_video_tokens": rule.max_tokens}),
    )


def metadata(n_frames: int, fps: float) -> Any:
    """What transformers knows of a film."""
    utils: Any = pytest.importorskip("transformers.video_utils")
    return utils.VideoMetadata(total_num_frames=n_frames, fps=fps)


@pytest.mark.parametrize("name", [name for name in RULES if RULES[name].fps])
def test_every_film_is_looked_at_as_transformers_does(name: str) -> None:
    rule = RULES[name]
    processor = video_processor(rule)

    for n_frames, fps in FILMS:
        ours = rule.looked_at(n_frames, fps)
        theirs = processor.sample_frames(metadata(n_frames, fps), fps=rule.fps)
        if rule.timed:
            assert ours == theirs.tolist()
        else:
            assert len(ours) == len(theirs)


@pytest.mark.parametrize("name", RULES)
def test_every_film_has_the_tokens_of_transformers_processor(name: str) -> None:
    rule = RULES[name]
    processor = video_processor(rule)
    torch: Any = pytest.importorskip("torch")
    unit = rule.patch * rule.merge
    n_compared = 0

    for n_frames in (2, 3, 4, 5, 8, 31, 100, 768):
        for width, height in SIZES:
            if rule.max_tokens is None:
                theirs = processor.get_num_of_video_patches(n_frames, height, width, {})
            else:  # of Qwen2-VL's, the count leaves the cap out that the resizing has
                shape = torch.empty((1, n_frames, 1, height, width), device="meta")
                resized = processor.resize(
                    shape, processor.size, 3, unit,
                    temporal_factor=rule.group, cap_pixels_per_frame=True,
                ).shape  # fmt: skip
                groups = -(-n_frames // rule.group)
                theirs = groups * resized[-1] // rule.patch * resized[-2] // rule.patch
            n_groups = -(-n_frames // rule.group)
            ours = n_groups * rule.n_tokens_each(n_frames, width, height)
            assert ours == theirs // rule.merge**2, (n_frames, width, height)
            n_compared += 1

    assert n_compared == 8 * len(SIZES)


def test_a_timed_film_is_the_text_of_transformers_processor() -> None:
    rule = RULES["qwen3_vl"]
    video_processor(rule)
    numpy: Any = pytest.importorskip("numpy")
    module: Any = pytest.importorskip("transformers.models.qwen3_vl.processing_qwen3_vl")

    class Bare(module.Qwen3VLProcessor):
        def __init__(self) -> None:
            self.video_token, self.vision_start_token = rule.pad, "<|vision_start|>"
            self.vision_end_token = "<|vision_end|>"
            self.video_processor = video_processor(rule)

    for n_frames, fps in FILMS[:60]:
        known = metadata(n_frames, fps)
        known.frames_indices = numpy.array(rule.looked_at(n_frames, fps))
        groups = -(-len(known.frames_indices) // rule.group)
        if not groups:
            continue
        shown = {"video_grid_thw": numpy.array([[groups, 6, 4]]), "video_metadata": [known]}
        theirs = Bare().replace_video_token(shown, 0)

        times = rule.times(rule.looked_at(n_frames, fps), fps)
        ours = "".join(
            f"<{t:.1f} seconds><|vision_start|>{rule.pad * 6}<|vision_end|>" for t in times
        )
        assert ours == theirs


LENGTHS = [
    *(1, 159, 160, 161, 319, 320, 321, 480, 640, 800, 1600, 15_840, 15_999, 16_000, 16_001),
    *(31_999, 48_000, 123_457, 479_839, 479_840, 480_000),
]


@pytest.mark.parametrize("name", ["qwen2_audio", "qwen2_5_omni", "qwen3_omni"])
def test_every_sound_has_the_tokens_of_transformers_processor(name: str) -> None:
    numpy: Any = pytest.importorskip("numpy")
    folder = {"qwen3_omni": "qwen3_omni_moe"}.get(name, name)
    whisper: Any = pytest.importorskip("transformers.models.whisper.feature_extraction_whisper")
    module: Any = pytest.importorskip(
        f"transformers.models.{folder}.processing_{folder}", exc_type=ImportError
    )
    rule = cast("AudioRule", cast("PatchVision", VISIONS[name]).audio)
    extractor = whisper.WhisperFeatureExtractor(feature_size=4, n_fft=400)
    padding = {"padding": True, "truncation": False} if rule.chunked else {"padding": "max_length"}

    for n_samples in LENGTHS[5:] if rule.chunked else LENGTHS:  # it pads no shorter ones
        heard = extractor(
            [numpy.zeros(n_samples, dtype="float32")],
            sampling_rate=16_000, return_attention_mask=True, **padding,
        )  # fmt: skip
        frames = int(heard["attention_mask"].sum(-1)[0])
        if name == "qwen2_audio":  # which has no function of its own for it
            theirs = (((frames - 1) // 2 + 1) - 2) // 2 + 1
        else:
            theirs = int(module._get_feat_extract_output_lengths(frames))
        assert rule.n_tokens_of(n_samples) == theirs, n_samples


# ---- files ------------------------------------------------------------------------------------


def test_the_length_of_a_sound_is_read_from_its_head(tmp_path: Path) -> None:
    data = wav(12_345, 44_100, channels=2)
    (tmp_path / "a.wav").write_bytes(data)

    assert audio_length("a.wav", root=tmp_path) == (12_345, 44_100)
    inline = "data:audio/wav;base64," + base64.b64encode(data).decode()
    assert audio_length(inline) == (12_345, 44_100)
    for cut in (14, 30, 200, len(data) - 1):
        (tmp_path / "a.wav").write_bytes(data[:cut])
        with pytest.raises(EncodeError, match=r"audio 'a\.wav' is truncated or damaged"):
            audio_length("a.wav", root=tmp_path)


def test_a_chunk_before_the_sound_is_passed_over(tmp_path: Path) -> None:
    data = wav(100)
    chunk = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    (tmp_path / "a.wav").write_bytes(data[:12] + chunk + data[12:])

    assert audio_length("a.wav", root=tmp_path) == (100, 16_000)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("none.wav", "cannot be read: no such file"),
        ("https://x.org/a.wav", "is at a URL; fetch it first"),
        ("data:audio/wav,abc", "is a data URI without base64"),
        ("empty.wav", "is empty"),
        ("short.wav", "is too short to be heard: 10 samples"),
        ("long.wav", r"is 30\.5 s long, and the model hears 30 s at most; cut it"),
    ],
)
def test_what_cannot_be_heard_is_named(tmp_path: Path, source: str, said: str) -> None:
    (tmp_path / "empty.wav").touch()
    (tmp_path / "short.wav").write_bytes(wav(10))
    (tmp_path / "long.wav").write_bytes(wav(int(30.5 * 8000), 8000))

    with pytest.raises(EncodeError, match=f"audio {re.escape(repr(source))} {said}"):
        VISIONS["qwen2_audio"].within(tmp_path).expand(AudioPart(source))


def test_a_sound_at_another_rate_is_heard_at_the_models(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(wav(44_100, 44_100))

    found = VISIONS["qwen2_audio"].within(tmp_path).expand(AudioPart("a.wav"))

    assert found.pieces == (("<|AUDIO|>", 25),)


def test_the_length_of_a_film_is_that_of_its_packets(tmp_path: Path) -> None:
    for name in ("a.mp4", "a.mkv", "a.avi"):
        path = film(tmp_path / name, n_frames=7, fps=5, size=(80, 48))
        found = packets(path, "video", name)
        assert (found.n_frames, found.fps, found.width, found.height) == (7, 5.0, 80, 48)
        assert packets(path.read_bytes(), "video", name) == found


def test_other_sounds_than_wav_are_measured(tmp_path: Path) -> None:
    av: Any = pytest.importorskip("av")
    path = tmp_path / "a.flac"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("flac", rate=16_000, layout="mono")
        frame = av.AudioFrame(format="s16", layout="mono", samples=4096)
        frame.sample_rate = 16_000
        frame.planes[0].update(bytes(frame.planes[0].buffer_size))
        container.mux(stream.encode(frame))
        container.mux(stream.encode())

    assert audio_length("a.flac", root=tmp_path) == (4096, 16_000)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("none.mp4", "cannot be read: no such file"),
        ("https://x.org/a.mp4", "is at a URL; fetch it first"),
        ("text.mp4", "is no video or damaged"),
        ("cut.mp4", "is (no video or damaged|truncated or damaged)"),
        ("cut.avi", "is (no video or damaged|truncated or damaged)"),
        ("a.wav", "holds no video"),
        ("still.mp4", "is too short: 1 pictures to look at, and 2 are the least"),
    ],
)
def test_what_is_no_film_is_named(tmp_path: Path, source: str, said: str) -> None:
    film(tmp_path / "still.mp4", n_frames=1)
    (tmp_path / "text.mp4").write_text("hello there", "utf-8")
    (tmp_path / "a.wav").write_bytes(wav(1000))
    for name in ("cut.mp4", "cut.avi"):
        data = film(tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data[: len(data) * 2 // 3])

    with pytest.raises(EncodeError, match=f"video {re.escape(repr(source))} {said}"):
        VISIONS["qwen3_vl"].within(tmp_path).expand(VideoPart(source))


def test_a_film_needs_the_extra_and_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qwen2_5: FastTokenizer
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "av", None)
    (tmp_path / "a.mp4").write_bytes(b"....")
    vision = VISIONS["qwen2_5_vl"].within(tmp_path)
    encoder = Encoder(qwen2_5, get_format("qwen2_5_vl"), vision=vision)

    with pytest.raises(MissingExtraError, match=r"pip install 'antiphon\[media\]'"):
        list(encoder.try_many([asked(VideoPart("a.mp4"))]))


def test_frames_of_their_own_are_a_film(tmp_path: Path) -> None:
    for name, size in (("1.png", (64, 48)), ("2.png", (64, 48)), ("3.png", (64, 50))):
        (tmp_path / name).write_bytes(png(*size))
    vision = VISIONS["qwen2_5_vl"].within(tmp_path)

    found = vision.expand(VideoPart(("1.png", "2.png", "1.png")))

    each = VideoRule().n_tokens_each(3, 64, 48)
    assert found.pieces == (("<|video_pad|>", 2 * each),)
    with pytest.raises(EncodeError, match="frames of a video must have one size"):
        vision.expand(VideoPart(("1.png", "3.png")))


# ---- texts ------------------------------------------------------------------------------------


def test_a_film_is_encoded_where_its_tag_stands(tmp_path: Path, qwen2_5: FastTokenizer) -> None:
    frames = ["1.png", "2.png", "3.png", "4.png"]
    for name in frames:
        (tmp_path / name).write_bytes(png(64, 48))
    row = {
        "messages": [
            {"role": "user", "content": "<image>Then <video>?"},
            {"role": "assistant", "content": "A ferry."},
        ],
        "images": ["1.png"],
        "videos": [frames],
    }
    vision = VISIONS["qwen2_5_vl"].within(tmp_path)

    example = Encoder(qwen2_5, get_format("qwen2_5_vl"), vision=vision).encode(read_row(row))

    text = qwen2_5.decode(example.token_ids.tolist())
    each = VideoRule().n_tokens_each(4, 64, 48)
    n_image = PatchVision().n_tokens_of(64, 48)
    assert (
        f"user\n<|vision_start|>{'<|image_pad|>' * n_image}<|vision_end|>Then "
        f"<|vision_start|>{'<|video_pad|>' * (2 * each)}<|vision_end|>?<|im_end|>"
    ) in text
    assert qwen2_5.decode(example.labels[example.labels != IGNORE].tolist()) == "A ferry.<|im_end|>"


def test_the_times_of_a_film_are_text_and_its_marks_are_marks(
    tmp_path: Path, qwen3: FastTokenizer
) -> None:
    film(tmp_path / "a.mp4", n_frames=10, fps=5)
    vision = VISIONS["qwen3_vl"].within(tmp_path)
    encoder = Encoder(qwen3, get_format("qwen3_vl"), loss="all", vision=vision)

    example = encoder.encode(asked(VideoPart("a.mp4")))

    each = RULES["qwen3_vl"].n_tokens_each(4, 64, 48)
    shown = f"<|vision_start|>{'<|video_pad|>' * each}<|vision_end|>"
    text = qwen3.decode(example.token_ids.tolist())
    assert f"user\n<0.3 seconds>{shown}<1.5 seconds>{shown}<|im_end|>" in text
    ids = example.token_ids.tolist()
    start, pad = qwen3.mark_id("<|vision_start|>"), qwen3.mark_id("<|video_pad|>")
    assert (ids.count(start), ids.count(pad)) == (2, 2 * each)
    assert ((example.labels == IGNORE) == (example.token_ids == pad)).all()


def test_the_marks_around_stay_where_transformers_5_leaves_them(
    tmp_path: Path, qwen3: FastTokenizer
) -> None:
    film(tmp_path / "a.mp4", n_frames=10, fps=5)
    rule = VideoRule(patch=16, timed=True, min_pixels=4096, max_pixels=3 << 23, bare=True)
    vision = PatchVision(video=rule, root=tmp_path)

    example = Encoder(qwen3, get_format("qwen3_vl"), vision=vision).encode(
        asked(VideoPart("a.mp4"))
    )

    text = re.sub(r"(<\|video_pad\|>)+", "#", qwen3.decode(example.token_ids.tolist()))
    frames = (
        "<0.3 seconds><|vision_start|>#<|vision_end|><1.5 seconds><|vision_start|>#<|vision_end|>"
    )
    assert f"<|vision_start|>{frames}<|vision_end|>" in text


@pytest.mark.parametrize("name", ["qwen2_audio", "qwen2_5_omni"])
def test_a_sound_is_encoded_between_its_marks(tmp_path: Path, tiny_json: str, name: str) -> None:
    definition = json.loads(tiny_json)
    marks = ["<|audio_bos|>", "<|AUDIO|>", "<|audio_eos|>"]
    whole = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    definition["added_tokens"] += [
        {"id": 900 + i, "content": mark, "special": True, **whole} for i, mark in enumerate(marks)
    ]
    (tmp_path / "tokenizer.json").write_text(json.dumps(definition), "utf-8")
    from antiphon.encode import load_tokenizer

    tokenizer = load_tokenizer(tmp_path)
    (tmp_path / "a.wav").write_bytes(wav(16_000))
    vision = VISIONS[name].within(tmp_path)

    example = Encoder(tokenizer, get_format(name), vision=vision).encode(asked(AudioPart("a.wav")))

    text = tokenizer.decode(example.token_ids.tolist())
    heard = f"<|audio_bos|>{'<|AUDIO|>' * 25}<|audio_eos|>"
    assert (f"user\nAudio 1: {heard}\n" if name == "qwen2_audio" else f"user\n{heard}<") in text
    assert example.token_ids.tolist().count(901) == 25


def test_what_a_model_has_no_sense_for_is_refused(tmp_path: Path, qwen2_5: FastTokenizer) -> None:
    (tmp_path / "a.wav").write_bytes(wav(16_000))
    sees, hears = (VISIONS[name].within(tmp_path) for name in ("qwen2_5_vl", "qwen2_audio"))

    with pytest.raises(EncodeError, match="how many tokens audio is, is not known of this model"):
        sees.expand(AudioPart("a.wav"))
    for part in (ImagePart("a.png"), VideoPart("a.mp4")):
        with pytest.raises(EncodeError, match="is not known of this model"):
            hears.expand(part)
    with pytest.raises(RenderError, match="audio cannot be shown; this family reads text and im"):
        Encoder(qwen2_5, get_format("qwen2_5_vl"), vision=sees).encode(asked(AudioPart("a.wav")))


def test_another_models_vision_is_found_out(tmp_path: Path, qwen2_5: FastTokenizer) -> None:
    (tmp_path / "a.png").write_bytes(png(64, 48))
    vision = PatchVision(pad="<|video_pad|>", root=tmp_path)

    with pytest.raises(EncodeError, match=r"message 0: hermes wrote no '<\|video_pad\|>' for what"):
        Encoder(qwen2_5, get_format("qwen2_5_vl"), vision=vision).encode(asked(ImagePart("a.png")))


def test_a_row_whose_film_is_missing_is_named_and_the_rest_goes_on(
    tmp_path: Path, qwen2_5: FastTokenizer
) -> None:
    (tmp_path / "1.png").write_bytes(png(64, 48))
    vision = VISIONS["qwen2_5_vl"].within(tmp_path)
    encoder = Encoder(qwen2_5, get_format("qwen2_5_vl"), vision=vision)

    good, bad = encoder.try_many(
        [asked(VideoPart(("1.png", "1.png"))), asked(VideoPart(("1.png", "none.png")))]
    )

    assert isinstance(good, list)
    assert isinstance(bad, EncodeError)
    assert "'none.png' cannot be read: no such file" in str(bad)


# ---- directories ------------------------------------------------------------------------------


def test_a_directory_says_what_its_model_sees_and_hears(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "processor_class": "Qwen2_5OmniProcessor",
        "image_processor_type": "Qwen2VLImageProcessor",
        "min_pixels": 3136,
        "max_pixels": 12_845_056,
        "nb_max_frames": 30_000,
        "hop_length": 160,
        "sampling_rate": 16_000,
    }
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings), "utf-8")
    assert load_vision(str(tmp_path)) == VISIONS["qwen2_5_omni"]

    settings = {
        "processor_class": "Qwen3VLProcessor",
        "image_processor": {
            "image_processor_type": "Qwen2VLImageProcessorFast",
            "patch_size": 16,
            "size": {"shortest_edge": 65_536, "longest_edge": 16_777_216},
        },
        "video_processor": {
            "video_processor_type": "Qwen3VLVideoProcessor",
            "fps": 1,
            "max_frames": 64,
            "cap_pixels_per_frame": True,
            "size": {"shortest_edge": 4096, "longest_edge": 25_165_824},
        },
    }
    other = tmp_path / "other"
    other.mkdir()
    (other / "processor_config.json").write_text(json.dumps(settings), "utf-8")
    found = load_vision(str(other))
    assert isinstance(found, PatchVision)
    assert found.video == VideoRule(
        patch=16, timed=True, min_pixels=4096, max_pixels=3 << 23, fps=1.0, max_frames=64,
        max_tokens=768,
    )  # fmt: skip


def test_a_directory_of_a_model_that_only_hears_says_so(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "processor_class": "Qwen2AudioProcessor",
        "feature_extractor": {"feature_extractor_type": "WhisperFeatureExtractor"},
    }
    (tmp_path / "processor_config.json").write_text(json.dumps(settings), "utf-8")

    assert load_vision(str(tmp_path)) == VISIONS["qwen2_audio"]


def test_a_job_tells_one_models_films_from_anothers() -> None:
    def described(name: str) -> Any:
        job = EncodeJob(
            "qwen2_5", get_format("qwen2_5_vl"), read=lambda _: [], vision=VISIONS[name]
        )
        return job.describe()["vision"]

    assert described("qwen2_5_vl") != described("qwen3_vl")
