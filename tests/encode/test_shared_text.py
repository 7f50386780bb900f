"""Text that conversations share is encoded once, and the ids are those of the whole."""

from collections.abc import Sequence
from typing import Any, cast

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from antiphon.encode import Encoder, FastTokenizer
from antiphon.errors import RenderError
from antiphon.formats import get_format, list_formats
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec

TOOLS = tuple(
    ToolSpec(
        f"tool_{i}",
        f"What tool {i} does, at some length, so that it is worth sharing: «caf\u00e9», 天气.",
        {"type": "object", "properties": {"at": {"type": "string", "description": "Where."}}},
    )
    for i in range(4)
)


def asked(system: str, question: str) -> Conversation:
    call = ToolCall("tool_1", {"at": question}, "c0")
    said = (
        Message.user(question),
        Message.assistant(tool_calls=[call]),
        Message.tool("yes", call_id="c0", name="tool_1"),
        Message.assistant("Yes."),
    )
    return Conversation((*((Message.system(system),) if system else ()), *said), TOOLS)


class Counting(FastTokenizer):
    """Counts the characters that it is asked to encode."""

    n_chars = 0

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        self.n_chars += sum(map(len, texts))
        return super().encode_batch(texts)

    @classmethod
    def like(cls, tokenizer: FastTokenizer) -> "Counting":
        """The same vocabulary, counting."""
        made = object.__new__(cls)
        made.__dict__.update(tokenizer.__dict__)
        return made


@pytest.mark.parametrize("name", list_formats())
def test_the_ids_are_those_of_the_whole_texts(name: str, qwen2_5: FastTokenizer) -> None:
    fmt = get_format(name)
    marks: frozenset[str] = getattr(fmt, "specials", frozenset())
    tokenizer = qwen2_5.with_marks(sorted(marks))
    systems = (
        "",
        "Be brief.",
        "Be brief.\n\n",
        "  ",
        "Sei\u0301 kurz\n\u0301",
        "短く。",
        "a\n\n\n",
    )
    for system in systems:
        try:
            rendered = fmt.render(asked(system, "Holm?"))
        except RenderError:
            continue
        ids: list[int] = []
        for run in rendered.cut(lambda mark: tokenizer.mark_id(mark) is not None):
            mark = tokenizer.mark_id(run[0].text) if run[0].special and len(run) == 1 else None
            text = "".join(piece.text for piece in run)
            ids += [mark] if mark is not None else tokenizer.encode(text)

        assert Encoder(tokenizer, fmt).encode_prompt(rendered) == ids


def test_tools_that_rows_share_are_encoded_once(qwen2_5: FastTokenizer) -> None:
    tokenizer = Counting.like(qwen2_5)
    encoder = Encoder(tokenizer, get_format("qwen2_5"))
    encoder.encode(asked("The first system text.", "Holm?"))
    first, tokenizer.n_chars = tokenizer.n_chars, 0

    encoder.encode(asked("Another system text.", "Elba?"))

    assert tokenizer.n_chars < first / 4


@pytest.mark.parametrize("words", [None, pre_tokenizers.Metaspace()])
def test_a_vocabulary_that_joins_words_over_line_feeds_is_not_cut(words: Any) -> None:
    engine = tokenizers.Tokenizer(models.BPE())
    if words is not None:
        cast("Any", engine).pre_tokenizer = words
    joins = FastTokenizer(engine, marks={}, spelling={})

    assert not joins.cuts_between("a\n", "b")


def test_a_cut_is_behind_a_line_feed_and_before_no_space(qwen2_5: FastTokenizer) -> None:
    assert qwen2_5.cuts_between("Be brief.\n\n", "# Tools")
    assert qwen2_5.cuts_between("word\n", "word")
    assert not qwen2_5.cuts_between("Be brief.", "\n# Tools")
    assert not qwen2_5.cuts_between("Be brief.\n", "\n# Tools")
    assert not qwen2_5.cuts_between("Be brief.\n", " # Tools")
    assert not qwen2_5.cuts_between("Be brief.\n", "\u0301")
