"""What transformers' own processors write is what is encoded, without being shown the files."""

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

from antiphon.encode import Encoder, Gemma4Vision, ProcessorVision, load_tokenizer, load_vision
from antiphon.errors import EncodeError
from antiphon.formats.gemma4 import FORMAT
from antiphon.messages import (
    AudioPart,
    Conversation,
    ImagePart,
    MediaPart,
    Message,
    TextPart,
    VideoPart,
)
from encode.test_images import png
from encode.test_media import LENGTHS, film, wav
from encode.vocabularies import byte_level_words

pytestmark = [
    pytest.mark.slow,  # most of it the import of transformers and its processors
    pytest.mark.filterwarnings("ignore"),  # transformers' own
]

GEMMA4 = {
    "image_token": "<|image|>", "boi_token": "<|image>", "eoi_token": "<image|>",
    "audio_token": "<|audio|>", "boa_token": "<|audio>", "eoa_token": "<audio|>",
}  # fmt: skip
GEMMA3N = {
    "image_token": "<image_soft_token>", "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>", "audio_token": "<audio_soft_token>",
    "boa_token": "<start_of_audio>", "eoa_token": "<end_of_audio>",
}  # fmt: skip
OMNI = {
    "image_token": "<|IMAGE|>", "video_token": "<|VIDEO|>", "audio_token": "<|AUDIO|>",
    "vision_bos_token": "<|vision_bos|>", "vision_eos_token": "<|vision_eos|>",
    "audio_bos_token": "<|audio_bos|>", "audio_eos_token": "<|audio_eos|>",
}  # fmt: skip
INTERNVL = {
    "start_image_token": "<img>", "end_image_token": "</img>",
    "context_image_token": "<IMG_CONTEXT>", "video_token": "<video>",
}  # fmt: skip
GEMMA3 = {name: mark for name, mark in GEMMA3N.items() if "a_token" not in name}
IDEFICS3 = {
    "image_token": "<image>", "fake": "<fake_token_around_image>", "global": "<global-img>",
    **{f"at_{i}": f"<row_{i // 6 + 1}_col_{i % 6 + 1}>" for i in range(36)},
}  # fmt: skip
LLAMA4 = {
    name: f"<|{name}|>"
    for name in (
        "image", "image_start", "image_end", "patch", "tile_x_separator", "tile_y_separator",
    )
}  # fmt: skip
GLM4V = {
    "image_token": "<|image|>", "video_token": "<|video|>", "begin": "<|begin_of_image|>",
    "end": "<|end_of_image|>", "open": "<|begin_of_video|>", "close": "<|end_of_video|>",
}  # fmt: skip
PHI4 = {"image_token": "<|endoftext10|>", "audio_token": "<|endoftext11|>"}
PIXTRAL = {"image_token": "[IMG]", "break_token": "[IMG_BREAK]", "end_token": "[IMG_END]"}


def vocabulary(transformers: Any, named: dict[str, str]) -> Any:
    """Byte-level words, Gemma 4's marks, and others by the names that a processor asks for."""
    engine: Any = byte_level_words(["the ferry to Holm runs today", "00:01 00:02"])
    engine.add_special_tokens(sorted(FORMAT.specials | set(named.values())))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine, pad_token="<eos>", extra_special_tokens=named
    )


def gemma4(transformers: Any) -> Any:
    return transformers.Gemma4Processor(
        feature_extractor=transformers.Gemma4AudioFeatureExtractor(),
        image_processor=transformers.Gemma4ImageProcessor(),
        tokenizer=vocabulary(transformers, GEMMA4),
        video_processor=transformers.Gemma4VideoProcessor(num_frames=8),
    )


def gemma3n(transformers: Any) -> Any:
    return transformers.Gemma3nProcessor(
        feature_extractor=transformers.Gemma3nAudioFeatureExtractor(),
        image_processor=transformers.SiglipImageProcessor(size={"height": 32, "width": 32}),
        tokenizer=vocabulary(transformers, GEMMA3N),
        audio_seq_length=12,
        image_seq_length=4,
    )


def omni(transformers: Any) -> Any:
    return transformers.Qwen2_5OmniProcessor(
        feature_extractor=transformers.WhisperFeatureExtractor(feature_size=4),
        image_processor=transformers.Qwen2VLImageProcessor(),
        tokenizer=vocabulary(transformers, OMNI),
        video_processor=transformers.Qwen2VLVideoProcessor(),
    )


def qwen2_audio(transformers: Any) -> Any:
    return transformers.Qwen2AudioProcessor(
        feature_extractor=transformers.WhisperFeatureExtractor(feature_size=4),
        tokenizer=vocabulary(transformers, {"audio_token": "<|AUDIO|>"}),
    )


def flamingo(transformers: Any) -> Any:
    return transformers.AudioFlamingo3Processor(
        feature_extractor=transformers.WhisperFeatureExtractor(feature_size=4),
        tokenizer=vocabulary(transformers, {"audio_token": "<sound>"}),
        max_audio_len=60,
    )


def phi4(transformers: Any) -> Any:
    return transformers.Phi4MultimodalProcessor(
        image_processor=transformers.Phi4MultimodalImageProcessor(size={"height": 56, "width": 56}),
        audio_processor=transformers.Phi4MultimodalFeatureExtractor(),
        tokenizer=vocabulary(transformers, PHI4),
    )


def pixtral(transformers: Any) -> Any:
    return transformers.PixtralProcessor(
        image_processor=transformers.PixtralImageProcessor(
            size={"longest_edge": 256}, patch_size={"height": 16, "width": 16}
        ),
        tokenizer=vocabulary(transformers, PIXTRAL),
        patch_size=16,
        image_token="[IMG]",
        image_break_token="[IMG_BREAK]",
        image_end_token="[IMG_END]",
    )


def internvl(transformers: Any) -> Any:
    return transformers.InternVLProcessor(
        image_processor=transformers.GotOcr2ImageProcessor(
            size={"height": 56, "width": 56}, crop_to_patches=True, max_patches=6
        ),
        tokenizer=vocabulary(transformers, INTERNVL),
        video_processor=transformers.InternVLVideoProcessor(size={"height": 56, "width": 56}),
        image_seq_length=4,
    )


def gemma3(transformers: Any) -> Any:
    return transformers.Gemma3Processor(
        image_processor=transformers.Gemma3ImageProcessor(size={"height": 32, "width": 32}),
        tokenizer=vocabulary(transformers, GEMMA3),
        image_seq_length=4,
    )


def idefics3(transformers: Any) -> Any:
    return transformers.Idefics3Processor(
        image_processor=transformers.Idefics3ImageProcessor(
            size={"longest_edge": 128}, max_image_size={"longest_edge": 64}
        ),
        tokenizer=vocabulary(transformers, IDEFICS3),
        image_seq_len=5,
    )


def llama4(transformers: Any) -> Any:
    return transformers.Llama4Processor(
        image_processor=transformers.Llama4ImageProcessor(
            size={"height": 56, "width": 56}, max_patches=4
        ),
        tokenizer=vocabulary(transformers, LLAMA4),
    )


def glm4v(transformers: Any) -> Any:
    return transformers.Glm4vProcessor(
        image_processor=transformers.Glm4vImageProcessor(),
        tokenizer=vocabulary(transformers, GLM4V),
        video_processor=transformers.Glm4vVideoProcessor(),
    )


Made = tuple[Any, ProcessorVision]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Callable[[Any], Any]], Made]:
    """A processor, and it as it is found in its model's directory; each is made once."""
    pytest.importorskip("torchvision")
    transformers: Any = pytest.importorskip("transformers", minversion="5.24")
    known: dict[str, Made] = {}

    def make(maker: Callable[[Any], Any]) -> Made:
        name = maker.__name__
        if name not in known:
            root = tmp_path_factory.mktemp(name)
            processor = maker(transformers)
            processor.save_pretrained(root / "model")
            known[name] = processor, ProcessorVision(str(root / "model"), root=root)
        return known[name]

    return make


Maker = Callable[[Callable[[Any], Any]], Made]


def shown(vision: ProcessorVision, part: MediaPart) -> str:
    """What stands for a part, as text."""
    return "".join(text * (n or 1) for text, n in vision.expand(part).pieces)


def theirs(processor: Any, token: str, **media: Any) -> str:
    """What a processor writes in the place of a mark."""
    answer = processor(text=[token], return_text_replacement_offsets=True, **media)
    return answer["text_replacement_offsets"][0][0]["replacement"]


def grey(*size: int) -> Any:
    numpy: Any = pytest.importorskip("numpy")
    return numpy.full((*size, 3), 128, dtype="uint8")


def silence(n_samples: int) -> Any:
    numpy: Any = pytest.importorskip("numpy")
    return numpy.zeros(n_samples, dtype="float32")


SIZES = [(64, 48), (8, 30), (33, 100), (320, 240), (1000, 31), (360, 640), (1280, 720)]


@pytest.mark.parametrize(
    "maker",
    [gemma4, gemma3n, gemma3, omni, pixtral, internvl, idefics3, llama4, glm4v, phi4],
)
def test_every_image_is_what_its_processor_writes(made: Maker, maker: Callable[[Any], Any]) -> None:
    processor, vision = made(maker)

    for width, height in SIZES:
        (vision.root / "a.png").write_bytes(png(width, height))
        ours = shown(vision, ImagePart("a.png"))
        assert ours == theirs(processor, processor.image_token, images=[grey(height, width)])


@pytest.mark.parametrize("maker", [gemma4, gemma3n, omni, qwen2_audio, flamingo, phi4])
def test_every_sound_is_what_its_processor_writes(made: Maker, maker: Callable[[Any], Any]) -> None:
    processor, vision = made(maker)

    for n_samples in LENGTHS[7:]:
        (vision.root / "a.wav").write_bytes(wav(n_samples))
        ours = shown(vision, AudioPart("a.wav"))
        assert ours == theirs(processor, processor.audio_token, audio=[silence(n_samples)])


@pytest.mark.parametrize("maker", [gemma4, glm4v])
@pytest.mark.parametrize(("n_frames", "fps"), [(8, 5), (20, 5), (33, 1), (75, 1), (130, 25)])
def test_every_film_is_what_its_processor_writes(
    made: Maker, maker: Callable[[Any], Any], n_frames: int, fps: int
) -> None:
    processor, vision = made(maker)
    utils: Any = pytest.importorskip("transformers.video_utils")
    film(vision.root / "a.mp4", n_frames, fps, (96, 64))

    ours = shown(vision, VideoPart("a.mp4"))

    known = utils.VideoMetadata(total_num_frames=n_frames, fps=float(fps), duration=n_frames / fps)
    videos = {"videos": [grey(n_frames, 64, 96)], "video_metadata": [known]}
    assert ours == theirs(processor, processor.video_token, **videos)
    assert re.search(r"00:0\d <\|image>|<\|begin_of_image\|>", ours)


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_conversation_has_the_tokens_of_gemma_4s_processor(made: Maker, is_asked: bool) -> None:
    processor, known = made(gemma4)
    vision = known if is_asked else load_vision(known.directory).within(known.root)
    utils: Any = pytest.importorskip("transformers.video_utils")
    (vision.root / "a.png").write_bytes(png(320, 240))
    (vision.root / "a.wav").write_bytes(wav(20_000))
    film(vision.root / "a.mp4", 20, 5, (96, 64))
    parts = (
        TextPart("the ferry"),
        VideoPart("a.mp4"),
        TextPart("00:01 or"),
        AudioPart("a.wav"),
        ImagePart("a.png"),
        TextPart("Holm"),
    )
    conversation = Conversation((Message("user", parts), Message.assistant("today")))
    encoder = Encoder(load_tokenizer(known.directory), FORMAT, loss="all", vision=vision)

    example = encoder.encode(conversation)

    answer = processor(
        text=[FORMAT.render(conversation).text],
        images=[grey(240, 320)],
        audio=[silence(20_000)],
        videos=[grey(20, 64, 96)],
        video_metadata=[utils.VideoMetadata(total_num_frames=20, fps=5.0)],
    )
    assert example.token_ids.tolist() == answer["input_ids"][0]
    pads = {encoder.tokenizer.mark_id(f"<|{kind}|>") for kind in ("image", "audio", "video")}
    counted = set(example.token_ids[example.loss_weights > 0].tolist())
    assert not pads & counted
    assert encoder.tokenizer.mark_id("<|image>") in counted


def test_gemma_4s_arithmetic_is_its_processor(made: Maker) -> None:
    _, asked = made(gemma4)
    rule = load_vision(asked.directory).within(asked.root)
    assert rule == Gemma4Vision(n_frames=8, root=asked.root)
    (asked.root / "1.png").write_bytes(png(500, 333))
    parts: list[MediaPart] = [VideoPart(("1.png",) * n) for n in (1, 7, 30)]
    for n_frames, fps in ((8, 5), (75, 1), (130, 25)):
        parts.append(VideoPart(film(asked.root / f"{n_frames}.mp4", n_frames, fps).name))
    for n_samples in LENGTHS[7:]:
        (asked.root / f"{n_samples}.wav").write_bytes(wav(n_samples))
        parts.append(AudioPart(f"{n_samples}.wav"))
    sides = (1, 7, 48, 100, 333, 756, 1919)
    for width, height in product(sides, sides):
        (asked.root / f"{width}_{height}.png").write_bytes(png(width, height))
        parts.append(ImagePart(f"{width}_{height}.png"))

    for part in parts:
        assert rule.expand(part) == asked.expand(part), part


def test_frames_of_their_own_are_a_film_at_24_a_second(made: Maker) -> None:
    processor, vision = made(gemma4)
    (vision.root / "1.png").write_bytes(png(96, 64))

    ours = shown(vision, VideoPart(("1.png",) * 30))

    videos = {"videos": [grey(30, 64, 96)], "do_sample_frames": False}
    assert ours == theirs(processor, "<|video|>", **videos)
    assert " 00:01 <|image>" in ours


@pytest.mark.parametrize(
    ("part", "said"),
    [
        (AudioPart("long.wav"), r"audio 'long\.wav' is 30\.5 s long, and the model hears 30 s"),
        (AudioPart("short.wav"), r"audio 'short\.wav' is too small to be a token"),
        (VideoPart("short.mp4"), r"video 'short\.mp4': the processor Gemma4Processor refuses it"),
        (ImagePart("none.png"), r"image 'none\.png' cannot be read: no such file"),
    ],
)
def test_what_a_processor_cannot_take_is_named(made: Maker, part: MediaPart, said: str) -> None:
    _, vision = made(gemma4)
    (vision.root / "long.wav").write_bytes(wav(244_000, 8000))
    (vision.root / "short.wav").write_bytes(wav(100))
    film(vision.root / "short.mp4", n_frames=5)

    with pytest.raises(EncodeError, match=said):
        vision.expand(part)


def test_a_sound_of_several_windows_is_heard_as_long_as_all_of_them(made: Maker) -> None:
    processor, vision = made(flamingo)
    for name, seconds in (("a.wav", 45), ("long.wav", 61)):
        (vision.root / name).write_bytes(wav(seconds * 16_000))

    ours = shown(vision, AudioPart("a.wav"))

    assert ours == theirs(processor, "<sound>", audio=[silence(45 * 16_000)])
    with pytest.raises(EncodeError, match=r"is 61\.0 s long, and the model hears 60 s at most"):
        vision.expand(AudioPart("long.wav"))


@pytest.mark.parametrize("maker", [flamingo, phi4, glm4v, idefics3])
def test_a_directory_of_another_family_is_asked(made: Maker, maker: Callable[[Any], Any]) -> None:
    _, vision = made(maker)

    assert load_vision(vision.directory).within(vision.root) == vision


def test_what_a_processor_has_no_mark_for_is_refused(made: Maker) -> None:
    _, vision = made(qwen2_audio)
    (vision.root / "a.png").write_bytes(png(64, 48))

    assert vision.pad == ""
    with pytest.raises(EncodeError, match="how many tokens image is, is not known of this model"):
        vision.expand(ImagePart("a.png"))
