"""What is too long is cut at turns and steps; packs hold every row once."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.encode import (
    IGNORE,
    EncodedRow,
    Encoder,
    FastTokenizer,
    fit,
    pack,
    pack_stream,
    to_row,
    unpack,
)
from antiphon.formats import get_format
from antiphon.messages import Conversation, Message, ToolCall

SMOLLM2 = get_format("smollm2")


def talk(n_turns: int) -> Conversation:
    turns = (m for i in range(n_turns) for m in (Message.user(f"q{i}"), Message.assistant(f"a{i}")))
    return Conversation((Message.system("Be brief."), *turns))


def texts(encoder: Encoder, conversation: Conversation, **options: object) -> list[str]:
    examples = fit(encoder.encode_all, conversation, **options)  # type: ignore[arg-type]
    return [example.show(color=False) for example in examples]


def test_a_long_conversation_is_split_into_whole_turns(tiny: FastTokenizer) -> None:
    encoder = Encoder(tiny, SMOLLM2)
    limit = len(encoder.encode(talk(2)))

    first, second, third = texts(encoder, talk(5), max_tokens=limit)

    assert [t.count("⟦") for t in (first, second, third)] == [1, 2, 2]
    assert "⟦a0<|im_end|>⟧" in first
    assert "⟦a1<|im_end|>⟧" in second
    assert "⟦a4<|im_end|>⟧" in third
    assert all(t.startswith("<|im_start|>system\nBe brief.") for t in (first, second, third))


def test_the_oldest_turns_may_be_dropped(tiny: FastTokenizer) -> None:
    encoder = Encoder(tiny, SMOLLM2)
    limit = len(encoder.encode(talk(2)))

    (text,) = texts(encoder, talk(5), max_tokens=limit, too_long="drop_turns")

    assert "q2" not in text
    assert "⟦a3<|im_end|>⟧" in text


def test_a_row_may_be_left_out(tiny: FastTokenizer) -> None:
    assert texts(Encoder(tiny, SMOLLM2), talk(5), max_tokens=20, too_long="drop_row") == []


def test_a_long_turn_loses_its_last_steps_and_no_half_call(tiny: FastTokenizer) -> None:
    steps = [
        m
        for i in range(4)
        for m in (
            Message.assistant(tool_calls=[ToolCall("f", {"n": i}, f"c{i}")]),
            Message.tool(f"r{i}", call_id=f"c{i}", name="f"),
        )
    ]
    conversation = Conversation((Message.user("go"), *steps, Message.assistant("done")))
    encoder = Encoder(tiny, SMOLLM2)
    limit = len(encoder.encode(Conversation(conversation.messages[:5])))

    (text,) = texts(encoder, conversation, max_tokens=limit)

    assert text.count("</tool_call><|im_end|>⟧") == 2
    assert "r1" not in text


def test_where_not_even_one_step_fits_nothing_is_left(tiny: FastTokenizer) -> None:
    assert texts(Encoder(tiny, SMOLLM2), talk(1), max_tokens=5) == []


def test_cutting_keeps_the_labels_before_the_cut(tiny: FastTokenizer) -> None:
    """huggingface/transformers#34494: the mask was lost with the end of the span."""
    encoder = Encoder(tiny, SMOLLM2)
    whole = encoder.encode(talk(2))

    (cut,) = fit(encoder.encode_all, talk(2), max_tokens=len(whole) - 2, too_long="cut")

    assert cut.labels[-1] == cut.token_ids[-1]
    assert len(cut) == len(whole) - 2


rows = st.lists(st.integers(1, 40), max_size=30).map(
    lambda lengths: [
        EncodedRow(
            np.arange(n) + 100 * i,
            np.arange(n) + 100 * i,
            np.ones(n, np.float32),
            np.arange(n, dtype=np.int32),
            i,
        )
        for i, n in enumerate(lengths)
    ]
)


def packed_in_a_stream(rows: list[EncodedRow], max_tokens: int) -> list[EncodedRow]:
    return [*pack_stream(iter(rows), max_tokens, n_open=2)]


@pytest.mark.parametrize("packing", [pack, packed_in_a_stream])
@given(rows=rows)
@settings(deadline=None, max_examples=50)
def test_unpacking_gives_the_rows_back(
    packing: Callable[[list[EncodedRow], int], list[EncodedRow]], rows: list[EncodedRow]
) -> None:
    packs = packing(rows, 40)

    assert all(len(row) <= 40 for row in packs)
    back = sorted((e.input_ids.tolist() for p in packs for e in unpack(p)), key=lambda ids: ids[0])
    assert back == [row.input_ids.tolist() for row in rows]


@given(rows=rows)
@settings(deadline=None)
def test_in_a_pack_no_label_crosses_into_the_next_example(rows: list[EncodedRow]) -> None:
    """huggingface/trl#1230: the first token of an example must not be predicted from another."""
    for packed in pack(rows, 40):
        starts = packed.position_ids == 0
        assert (packed.labels[starts] == IGNORE).all()
        assert (packed.loss_weights[starts] == 0).all()
        assert (packed.labels[~starts] == packed.input_ids[~starts]).all()


def test_packing_fills_rows(tiny: FastTokenizer) -> None:
    encoder = Encoder(tiny, SMOLLM2)
    made = [to_row(encoder.encode(talk(1 + i % 3)), i) for i in range(60)]

    packs = pack(made, 200)
    in_a_stream = [*pack_stream(iter(made), 200)]

    assert sum(map(len, packs)) / (200 * len(packs)) > 0.85
    assert sum(map(len, in_a_stream)) / (200 * len(in_a_stream)) > 0.8


@pytest.mark.parametrize("too_long", ["split", "drop_turns", "drop_row", "cut"])
def test_what_fits_stays_as_it_is(too_long: str, tiny: FastTokenizer) -> None:
    encoder = Encoder(tiny, SMOLLM2)

    assert texts(encoder, talk(2), max_tokens=1000, too_long=too_long) == [
        encoder.encode(talk(2)).show(color=False)
    ]
