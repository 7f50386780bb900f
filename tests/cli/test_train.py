"""`antiphon train` from rows to a model with its page; the rest of training is in tests/train."""

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

from antiphon.cli import main
from antiphon.datasets import write_row
from antiphon.encode import load_tokenizer
from antiphon.events import dump_row
from antiphon.train import export_model
from tiny_training import CONVERSATIONS, merging_tokenizer_json, tiny_model, tokenizer_json

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(dump_row(write_row(c)[0]) + "\n" for c in CONVERSATIONS), "utf-8")
    return path


def model_in(directory: Path) -> Path:
    directory.mkdir()
    tiny_model().save_pretrained(str(directory))
    (directory / "tokenizer.json").write_text(tokenizer_json(), "utf-8")
    return directory


@pytest.mark.skipif(find_spec("torch") is not None, reason="the extra is here")
def test_without_the_extra_it_says_which_one(rows: Path, tmp_path: Path, capsys: Capture) -> None:
    code = main(["train", str(rows), "--model", "hf/m", "--out", str(tmp_path / "run")])

    assert code == 1
    assert "pip install 'antiphon[train]'" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_rows_become_an_adapter_with_figures_and_gguf(
    rows: Path, tmp_path: Path, capsys: Capture
) -> None:
    for name in ("torch", "accelerate", "peft", "gguf"):
        pytest.importorskip(name)
    base, out = model_in(tmp_path / "base"), tmp_path / "run"
    words = ["train", str(rows), "--model", f"hf/{base}", "--format", "qwen2_5", "--out", str(out)]
    words += ["--lora", "2", "--pack", "2000", "--eval", str(rows), "--steps", "2"]
    words += ["--accumulate", "1", "--log-steps", "1", "--gguf", "--loss", "hermes"]

    assert main(words) == 0
    told = capsys.readouterr().out

    assert "held out: step 2/2  loss" in told
    assert f"hf/{out}/model?format=qwen2_5" in told
    page = (out / "report.html").read_text("utf-8")
    assert "Held-out loss by kind of text" in page
    assert "calls right" in page
    assert (out / "model" / "adapter.gguf").exists()
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["resumed_at"] == 2


@pytest.mark.filterwarnings("ignore:.*is deprecated:FutureWarning")
def test_a_gguf_file_is_trained_whole_and_becomes_one_again(
    rows: Path, tmp_path: Path, capsys: Capture
) -> None:
    for name in ("torch", "accelerate", "gguf"):
        pytest.importorskip(name)
    base = model_in(tmp_path / "base")
    (base / "tokenizer.json").write_text(merging_tokenizer_json(), "utf-8")
    export_model(base, tmp_path / "base.gguf", type="float32")
    words = ["train", str(rows), "--model", f"gguf/{tmp_path}/base.gguf", "--format", "qwen2_5"]
    words += ["--steps", "1", "--out", str(tmp_path / "run")]

    assert main(words) == 0

    made = tmp_path / "run" / "model" / "model.gguf"
    assert f"gguf/{made}?format=qwen2_5" in capsys.readouterr().out
    ours, theirs = (load_tokenizer(path) for path in (made, base))
    assert ours.encode_batch(["that a"]) == theirs.encode_batch(["that a"])


def test_rows_that_are_encoded_are_not_encoded_otherwise(
    rows: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    base, encoded = model_in(tmp_path / "base"), tmp_path / "encoded"
    made = ["encode", str(rows), "--tokenizer", str(base), "--format", "qwen2_5"]
    assert main([*made, "--out", str(encoded)]) == 0
    words = ["train", str(encoded), "--model", f"hf/{base}", "--out", str(tmp_path / "run")]

    assert main([*words, "--pack", "9", "--share", "9"]) == 2
    assert "give one of --pack and --share" in capsys.readouterr().err
    assert main([*words, "--loss", "react"]) == 2
    assert "is encoded already, with 'qwen2_5' and 'default'" in capsys.readouterr().err
    assert main([*words, "--steps", "1", "--share", "3000"]) == 0
    monkeypatch.setenv("RANK", "1")
    assert main(["train", str(rows), *words[2:]]) == 2
    assert "several processes would encode it at once" in capsys.readouterr().err
    assert (tmp_path / "run" / "model" / "model.safetensors").exists()


def test_rows_in_two_formats_are_trained_on_together(
    rows: Path, tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("accelerate")
    base = model_in(tmp_path / "base")
    for name in ("qwen2_5", "react_en"):
        words = ["encode", str(rows), "--tokenizer", str(base), "--format", name]
        assert main([*words, "--out", str(tmp_path / name)]) == 0
    both = [str(tmp_path / name) for name in ("qwen2_5", "react_en")]
    words = ["--model", f"hf/{base}", "--out", str(tmp_path / "run"), "--steps", "1", "--json"]
    capsys.readouterr()

    assert main(["train", *both, *words]) == 0

    assert json.loads(capsys.readouterr().out)["n_rows"] == 2 * len(CONVERSATIONS)
    said = json.loads((tmp_path / "run" / "model" / "antiphon.json").read_text())
    assert "format=qwen2_5" in said["serve"]["antiphon"]
    assert main(["train", str(rows), both[0], *words]) == 2
    assert "only directories that antiphon encode wrote" in capsys.readouterr().err
    index = tmp_path / "react_en" / "index.json"
    index.write_text(index.read_text().replace(str(base), "another"))
    assert main(["train", *both, *words]) == 2
    assert "is encoded with 'another'" in capsys.readouterr().err
