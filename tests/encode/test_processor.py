"""Where the arithmetic of a family is not written down, its own processor is asked."""

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from antiphon.encode import VISIONS, ProcessorVision, load_vision
from antiphon.errors import EncodeError, MissingExtraError, UnknownNameError
from antiphon.messages import AudioPart, ImagePart, VideoPart
from encode.test_images import png
from encode.test_media import film, wav


@pytest.fixture
def llava(tmp_path: Path, tiny_json: str) -> Path:
    """A LLaVA processor of tiny images, saved as a model's directory has it."""
    pytest.importorskip("PIL")
    transformers: Any = pytest.importorskip("transformers")
    engine = tokenizers.Tokenizer.from_str(tiny_json)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=engine, extra_special_tokens={"image_token": "<image>"}
    )
    pil = getattr(transformers, "CLIPImageProcessorPil", None)
    processor = transformers.LlavaProcessor(
        image_processor=(pil or transformers.CLIPImageProcessor)(
            size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}
        ),
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        image_token="<image>",
        num_additional_image_tokens=1,
    )
    processor.save_pretrained(tmp_path / "model")
    (tmp_path / "a.png").write_bytes(png(50, 30))
    return tmp_path / "model"


@pytest.mark.filterwarnings("ignore")  # transformers' own
def test_a_processor_says_how_many_tokens_an_image_is(llava: Path) -> None:
    vision = load_vision(str(llava))

    assert isinstance(vision, ProcessorVision)
    assert vision.pad == "<image>"
    assert vision.within(llava.parent).n_tokens(ImagePart("a.png")) == (56 // 14) ** 2
    with pytest.raises(EncodeError, match="cannot be read: no such file"):
        vision.n_tokens(ImagePart("none.png"))


def test_a_directory_without_settings_names_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"known: qwen2_vl, .* or a directory with"):
        load_vision(str(tmp_path))
    (tmp_path / "processor_config.json").write_text("{")
    with pytest.raises(EncodeError, match="is not JSON"):
        load_vision(str(tmp_path))


def test_another_familys_processor_needs_transformers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "transformers", None)
    settings = {"image_processor": {"image_processor_type": "CLIPImageProcessor"}}
    (tmp_path / "processor_config.json").write_text(json.dumps(settings))

    with pytest.raises(MissingExtraError, match=r"antiphon\[hf\]"):
        load_vision(str(tmp_path))


@pytest.mark.filterwarnings("ignore")  # transformers' own
def test_a_processor_says_how_many_tokens_a_film_is(tmp_path: Path, tiny_json: str) -> None:
    pytest.importorskip("torchvision")
    transformers: Any = pytest.importorskip("transformers")
    marks = {
        name: f"<|{name}|>" for name in ("vision_start", "image_pad", "video_pad", "vision_end")
    }
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizers.Tokenizer.from_str(tiny_json),
        extra_special_tokens=marks,
        pad_token="<|im_end|>",
    )
    pil = getattr(transformers, "Qwen2VLImageProcessorPil", None)
    processor = transformers.Qwen2_5_VLProcessor(
        image_processor=(pil or transformers.Qwen2VLImageProcessor)(),
        tokenizer=tokenizer,
        video_processor=transformers.Qwen2VLVideoProcessor(do_sample_frames=True, fps=2),
    )
    processor.save_pretrained(tmp_path / "model")
    film(tmp_path / "a.mp4", n_frames=20, fps=5)
    vision = ProcessorVision(str(tmp_path / "model"), root=tmp_path)

    found = vision.expand(VideoPart("a.mp4"))

    assert found == VISIONS["qwen2_5_vl"].within(tmp_path).expand(VideoPart("a.mp4"))
    (tmp_path / "a.wav").write_bytes(wav(16_000))
    with pytest.raises(EncodeError, match="how many tokens audio is, is not known"):
        vision.expand(AudioPart("a.wav"))
