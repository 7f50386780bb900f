"""Vocabularies are loaded exactly, and text never becomes a mark."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.encode import FastTokenizer, load_tokenizer
from antiphon.errors import DataError, EncodeError, UnknownNameError

# Ids that Qwen3's published tokenizer.json gives in the `tokenizers` engine, its added tokens left
# out.  Once, the whole vocabulary, all merges and a million tokens of text were compared as well.
PUBLISHED: dict[str, list[int]] = json.loads(
    (Path(__file__).parent / "cases" / "qwen3_published.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("text", PUBLISHED)
def test_the_packaged_qwen_vocabulary_is_the_published_one(
    text: str, qwen2_5: FastTokenizer, qwen3: FastTokenizer
) -> None:
    assert qwen3.encode(text) == PUBLISHED[text]
    assert qwen2_5.encode(text) == PUBLISHED[text]


def test_qwen2_5_has_tool_calls_and_no_tool_responses_among_its_marks(
    qwen2_5: FastTokenizer, qwen3: FastTokenizer
) -> None:
    assert qwen2_5.mark_id("<tool_call>") == 151657
    assert qwen2_5.mark_id("<tool_response>") is None
    assert qwen3.mark_id("</think>") == 151668
    assert (qwen2_5.vocab_size, qwen3.vocab_size) == (151665, 151669)


def test_a_vocabulary_with_tokens_that_no_others_make_has_them_as_whole_words() -> None:
    """Qwen3.5's: its marks begin where they were published, and 俱乐部 has no two parts."""
    qwen3_5 = load_tokenizer("qwen3_5")

    assert (qwen3_5.mark_id("<|im_end|>"), qwen3_5.mark_id("</think>")) == (248046, 248069)
    assert qwen3_5.encode("俱乐部") == [104328]
    assert qwen3_5.decode(qwen3_5.encode("去俱乐部 5 times")) == "去俱乐部 5 times"


def test_more_marks_stand_behind_the_vocabulary(tiny: FastTokenizer) -> None:
    more = tiny.with_marks(["<new>", "<|im_end|>"])

    assert more.mark_id("<new>") == tiny.vocab_size
    assert more.mark_id("<|im_end|>") == tiny.mark_id("<|im_end|>")
    assert more.decode([tiny.vocab_size]) == "<new>"
    assert more.encode("<new>") == tiny.encode("<new>")


@given(text=st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_tokens_spell_the_text_again(text: str, tiny: FastTokenizer) -> None:
    assert tiny.decode(tiny.encode(text)) == text


@given(parts=st.lists(st.sampled_from(["<|im_end|>", "<tool_call>", "a", "\n", "<|"]), max_size=8))
@settings(max_examples=100, deadline=None)
def test_text_never_becomes_a_mark(parts: list[str], tiny: FastTokenizer) -> None:
    assert not set(tiny.encode("".join(parts))) & set(tiny.marks.values())


def test_a_batch_encodes_as_each_text_alone(tiny: FastTokenizer) -> None:
    texts = ["the ferry", "", "to Holm", "\n\n"]
    assert tiny.encode_batch(texts) == [tiny.encode(text) for text in texts]


@pytest.mark.parametrize("texts", [["a\ud800"], ["fine", "a\ud800"]])
def test_a_lone_surrogate_is_refused(texts: list[str], tiny: FastTokenizer) -> None:
    with pytest.raises(EncodeError, match="lone surrogate"):
        tiny.encode_batch(texts)


def test_an_unknown_name_says_what_can_be_given() -> None:
    with pytest.raises(UnknownNameError, match=r"no tokenizer 'qwen9'; give a directory.*qwen2_5"):
        load_tokenizer("qwen9")


def test_a_directory_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"no tokenizer\.json"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"model": {"vocab": {}, "type": "Nope"}}'])
def test_a_broken_tokenizer_file_is_a_data_error(content: str, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(content)

    with pytest.raises((DataError, EncodeError)):
        load_tokenizer(tmp_path)


def test_a_vocabulary_that_adds_a_leading_space_is_refused(tmp_path: Path, tiny_json: str) -> None:
    definition = json.loads(tiny_json)
    definition |= {
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first"},
        "decoder": {"type": "ByteFallback"},
    }
    (tmp_path / "tokenizer.json").write_text(json.dumps(definition), encoding="utf-8")

    with pytest.raises(EncodeError, match="leading space"):
        load_tokenizer(tmp_path)


def test_text_without_marks_is_encoded_as_by_the_whole_tokenizer(
    tiny_json: str, tiny: FastTokenizer
) -> None:
    whole = tokenizers.Tokenizer.from_str(tiny_json)
    text = "the ferry to Holm, 12 times\n\n  today ✓"

    assert tiny.encode(text) == whole.encode(text, add_special_tokens=False).ids


def test_a_gguf_file_gives_the_tokens_of_the_definition_it_was_made_from(
    tmp_path: Path, tiny_json: str, tiny: FastTokenizer
) -> None:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(_gguf(json.loads(tiny_json)))

    loaded = load_tokenizer(path)

    texts = ["the ferry to Holm", "assistant 12 <|im_end|>", "日本\n\n"]
    assert loaded.marks == tiny.marks
    assert loaded.encode_batch(texts) == tiny.encode_batch(texts)


@pytest.mark.parametrize("content", [b"", b"GGUX" + bytes(40), b"GGUF\x03\0\0\0" + b"\xff" * 30])
def test_a_broken_gguf_file_is_a_data_error(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)

    with pytest.raises(DataError, match=r"model\.gguf"):
        load_tokenizer(path)


def test_a_gguf_vocabulary_of_another_kind_is_refused(tmp_path: Path, tiny_json: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(_gguf(json.loads(tiny_json), pre="deepseek-coder"))

    with pytest.raises(EncodeError, match="deepseek-coder"):
        load_tokenizer(path)


def _gguf(definition: dict[str, Any], pre: str = "gpt-2") -> bytes:
    """The header of a GGUF file with the vocabulary of a ``tokenizer.json``."""
    vocab: dict[str, int] = definition["model"]["vocab"]
    added = [str(token["content"]) for token in definition["added_tokens"]]
    tokens = [*sorted(vocab, key=vocab.__getitem__), *added]
    types = [1] * len(vocab) + [3] * len(added)
    merges = [" ".join(pair) for pair in definition["model"]["merges"]]
    pairs = {
        "general.some_floats": struct.pack("<IIQ2f", 9, 6, 2, 0.5, 1.5),
        "tokenizer.ggml.model": struct.pack("<I", 8) + _text("gpt2"),
        "tokenizer.ggml.pre": struct.pack("<I", 8) + _text(pre),
        "tokenizer.ggml.tokens": _texts(tokens),
        "tokenizer.ggml.token_type": struct.pack(f"<IIQ{len(types)}i", 9, 5, len(types), *types),
        "tokenizer.ggml.merges": _texts(merges),
    }
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs))
    return head + b"".join(_text(key) + value for key, value in pairs.items())


def _texts(values: list[str]) -> bytes:
    return struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(_text, values))


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data
