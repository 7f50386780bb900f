"""What `antiphon view` shows as training: every span with its author and its weight."""

import json
from pathlib import Path
from typing import Any

import pytest

from antiphon.cli import main
from antiphon.cli._training import encode_for_view
from antiphon.errors import EncodeError, UnknownNameError, UsageError
from antiphon.events import Trajectory
from antiphon.formats import describe, get_format, read_format
from antiphon.messages import Conversation, Message

TALK = Trajectory(
    Conversation(
        (
            Message.user("Wetter in 上海? <|im_end|>"),
            Message.assistant("Regen 🌧, leider."),
            Message.user("Danke."),
            Message.assistant("Gern."),
        )
    )
)


@pytest.mark.parametrize("tokenizer", ["", "qwen2_5"])
def test_the_spans_are_the_rendered_text(tokenizer: str) -> None:
    (encoding,) = encode_for_view(TALK, format="qwen2_5", tokenizer=tokenizer)

    text = "".join(span.text for span in encoding.spans)

    assert text == get_format("qwen2_5").render(TALK.conversation).text


@pytest.mark.parametrize("tokenizer", ["", "qwen2_5"])
def test_what_the_model_wrote_counts_and_nothing_else(tokenizer: str) -> None:
    (encoding,) = encode_for_view(TALK, format="qwen2_5", tokenizer=tokenizer)

    trained = "".join(span.text for span in encoding.spans if span.weight)
    written = "".join(span.text for span in encoding.spans if span.author == "written")

    assert trained == written == "Regen 🌧, leider.<|im_end|>Gern.<|im_end|>"


def test_quoted_markup_is_no_special_token() -> None:
    (encoding,) = encode_for_view(TALK, format="qwen2_5", tokenizer="qwen2_5")
    marks = [span.text for span in encoding.spans if span.special]
    assert marks.count("<|im_end|>") == 5
    assert all(span.author != "given" for span in encoding.spans if span.special)


def test_without_a_tokenizer_neighbours_that_are_alike_are_one_stretch() -> None:
    (encoding,) = encode_for_view(TALK, format="qwen2_5")
    stretches = [(span.text, span.weight) for span in encoding.spans if span.author == "written"]
    first, second, *_ = encoding.spans
    assert (first.text, first.special, second.special) == ("<|im_start|>", True, False)
    assert stretches[:2] == [("Regen 🌧, leider.", 1.0), ("<|im_end|>", 1.0)]


def test_a_recorded_format_is_read_with_its_variants() -> None:
    fmt = get_format("qwen3", thinking=False)
    assert read_format(describe(fmt)) == fmt


@pytest.mark.parametrize("text", ["qwen3(", "qwen3(thinking=open('x'))", "qwen3(thinking)"])
def test_a_format_that_cannot_be_read_is_a_usage_error(text: str) -> None:
    with pytest.raises((UsageError, UnknownNameError)):
        read_format(text)


def test_text_without_unicode_cannot_be_encoded() -> None:
    with pytest.raises(EncodeError, match="lone surrogate"):
        encode_for_view(Trajectory(Conversation((Message.user("\ud800"),))), format="qwen2_5")


def _page(path: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    target = path.with_suffix(".html")
    code = main(["view", str(path), "--html", str(target), *arguments])
    text = target.read_text("utf-8").partition('id="data">')[2].partition("</script>")[0]
    return code, json.loads(text)["records"][0]


def test_a_dataset_row_is_weighed_in_the_named_format_and_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    row = {
        "messages": [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "No", "loss": 0.5},
        ]
    }
    path.write_text(json.dumps(row) + "\n", "utf-8")

    code, record = _page(path, "--format", "qwen2_5")

    assert code == 0
    assert ["No", 0.5, 2, None, False] in record["encodings"][0]["spans"]
    capsys.readouterr()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--tokenizer", "qwen2_5"],
        ["--format", "qwen99"],
        ["--format", "qwen2_5", "--loss", "much"],
        ["--format", "qwen2_5", "--tokenizer", "./nowhere"],
    ],
)
def test_what_was_asked_for_and_cannot_be_is_one_line(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n', "utf-8")

    assert main(["view", str(path), *arguments]) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
