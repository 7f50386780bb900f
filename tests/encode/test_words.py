"""Texts that are encoded word by word have the ids that the engine gives them."""

import re
from typing import Any, cast

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers

from antiphon.encode import Encoder, FastTokenizer
from antiphon.encode._load import (  # pyright: ignore[reportPrivateUsage]
    _LLAMA3,  # pyright: ignore[reportPrivateUsage]
    _QWEN2,  # pyright: ignore[reportPrivateUsage]
    _QWEN35,  # pyright: ignore[reportPrivateUsage]
)
from antiphon.encode._words import Words, make_words
from antiphon.errors import EncodeError, RenderError
from antiphon.formats import get_format, list_formats
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec

O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
DEEPSEEK = [
    r"\p{N}{1,3}",
    r"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    r"| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
]
FAMILIES = {
    "qwen2": [_QWEN2],
    "qwen3_5": [_QWEN35],
    "llama3": [_LLAMA3],
    "o200k": [O200K],
    "deepseek_v3": DEEPSEEK,
    "smollm": [r"\p{N}"],
    "gpt2": list[str](),
}
TEXT = (
    "the ferry to Holm runs today, isn't it? 1234 times\n\n  "
    '{"a": [true]}\tDON\'T café 天气 e\u0301'
)


def engine_of(patterns: list[str], *, gpt2: bool) -> tokenizers.Tokenizer:
    """An engine with the words of a family, trained on a little text."""
    made = tokenizers.Tokenizer(models.BPE())
    cuts = [pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns]
    spelling = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=gpt2)
    any_engine = cast("Any", made)
    any_engine.pre_tokenizer = pre_tokenizers.Sequence([*cuts, spelling])
    any_engine.normalizer = normalizers.NFC()
    any_engine.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator([TEXT] * 3, trainer)
    return made


ENGINES = {n: engine_of(p, gpt2=n in ("smollm", "gpt2")) for n, p in FAMILIES.items()}
WORDS: dict[str, Words | None] = {name: make_words(engine) for name, engine in ENGINES.items()}
PIECES = st.sampled_from(
    [*"aZz09 '\n\r\t.,{}$_\x1c\x85\u00a0\u3000\u0301é天ſK€", "  ", "'s", "'LL", " the", "ferry"]
)


@pytest.mark.parametrize("name", FAMILIES)
@given(texts=st.lists(st.lists(PIECES, max_size=24).map("".join), max_size=3))
@settings(max_examples=30, deadline=None)
def test_the_ids_are_the_engines(name: str, texts: list[str]) -> None:
    words = WORDS[name]
    assert words is not None
    theirs = ENGINES[name].encode_batch(texts, add_special_tokens=False)

    assert words.encode_batch(texts) == [encoding.ids for encoding in theirs]
    assert words.encode_batch(texts) == [encoding.ids for encoding in theirs]


class Counting:
    """An engine that counts the words that it is asked for."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.model = self
        self.asked: list[str] = []

    def tokenize(self, word: str) -> Any:
        self.asked.append(word)
        return self._engine.model.tokenize(word)

    def encode_batch_fast(self, texts: list[str], **given: Any) -> Any:
        self.asked += texts
        return self._engine.encode_batch_fast(texts, **given)


def test_a_word_that_is_known_is_not_encoded_again() -> None:
    engine = Counting(ENGINES["qwen2"])
    words = Words(engine, [re.compile(r" ?[a-z]+|,")])
    ids = words.encode_batch(["the ferry, café"])

    assert sorted(engine.asked) == [" café", ",", "the", "Ġferry"]
    assert words.encode_batch(["the ferry, ferry café"]) == [[*ids[0][:3], ids[0][1], ids[0][3]]]
    assert len(engine.asked) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"normalizer": normalizers.NFKC()},
        {"pre_tokenizer": pre_tokenizers.Metaspace()},
        {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)},
        {"pre_tokenizer": pre_tokenizers.Split(Regex("a"), "removed")},
        {"model": models.BPE(dropout=0.1)},
        {"model": models.WordLevel({"a": 0}, unk_token="a")},
        *(
            {
                "pre_tokenizer": pre_tokenizers.Sequence(
                    [
                        pre_tokenizers.Split(Regex(pattern), "isolated"),
                        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
                    ]
                )
            }
            for pattern in (r"\p{Han}+", r"(a) ", r"a(?=b)", r"^a", r"[a&&b]", r"[\p{Lt}]", "a b")
        ),
    ],
    ids=repr,
)
def test_an_engine_whose_words_do_not_stand_alone_does_everything_itself(
    change: dict[str, Any],
) -> None:
    engine = engine_of([_QWEN2], gpt2=False)
    for part, value in change.items():
        setattr(engine, part, value)

    assert make_words(engine) is None


def test_marks_among_the_text_of_an_engine_are_left_to_it() -> None:
    engine = engine_of([_QWEN2], gpt2=False)
    cast("Any", engine).add_tokens(["  "])

    assert make_words(engine) is None


def test_many_words_do_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from antiphon.encode import _words

    monkeypatch.setattr(_words, "_KEPT_WORDS", 50)
    words = make_words(ENGINES["qwen2"])
    assert words is not None

    for i in range(40):
        text = " ".join(f"w{chr(97 + i % 26)}{chr(97 + j)}{'x' * (i // 26)}" for j in range(20))
        (ids,) = words.encode_batch([text + " é" * 50])
        assert ids == ENGINES["qwen2"].encode(text + " é" * 50).ids

    assert len(words._known) <= 100  # pyright: ignore[reportPrivateUsage]


def test_a_lone_surrogate_between_words_is_refused(tiny: FastTokenizer) -> None:
    with pytest.raises(EncodeError, match="lone surrogate"):
        tiny.encode("the ferry \ud800 runs")


TOOLS = tuple(
    ToolSpec(
        f"tool_{i}",
        f"What tool {i} does, at some length: «café», 天气.",
        {"type": "object", "properties": {"at": {"type": "string", "description": "Where."}}},
    )
    for i in range(4)
)


@pytest.fixture(scope="module")
def qwen2_5_engine(qwen2_5: FastTokenizer) -> tokenizers.Tokenizer:
    """An engine of the same vocabulary that no tokenizer of ours has touched."""
    return tokenizers.Tokenizer.from_str(qwen2_5.engine_json())


@pytest.mark.parametrize("name", list_formats())
def test_a_familys_prompt_has_the_ids_of_its_whole_texts(
    name: str, qwen2_5: FastTokenizer, qwen2_5_engine: tokenizers.Tokenizer
) -> None:
    fmt = get_format(name)
    marks: frozenset[str] = getattr(fmt, "specials", frozenset())
    tokenizer = qwen2_5.with_marks(sorted(marks))
    for system in ("", "Be brief.\n\n", "Sei\u0301 kurz\n\u0301", "短く。", "a\n\n\n"):
        said = (
            Message.user("Holm?"),
            Message.assistant(tool_calls=[ToolCall("tool_1", {"at": "Holm"}, "c0")]),
            Message.tool("yes", call_id="c0", name="tool_1"),
        )
        messages = (*((Message.system(system),) if system else ()), *said)
        try:
            rendered = fmt.render(Conversation(messages, TOOLS), generate=True)
        except RenderError:
            continue
        ids: list[int] = []
        for run in rendered.cut(lambda mark: tokenizer.mark_id(mark) is not None):
            mark = tokenizer.mark_id(run[0].text) if run[0].special and len(run) == 1 else None
            text = "".join(piece.text for piece in run)
            ids += [mark] if mark is not None else qwen2_5_engine.encode(text).ids

        assert Encoder(tokenizer, fmt).encode_prompt(rendered) == ids
