"""Exactness: the tokens trained on are the tokens served; what the model wrote is what counts."""

from typing import cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.encode import IGNORE, Encoder, FastTokenizer, TrainingExample
from antiphon.errors import EncodeError
from antiphon.formats import Format
from antiphon.formats.smollm2 import FORMAT
from antiphon.messages import Conversation, JsonObject, Message, TextPart, ToolCall, ToolSpec

SMOLLM2 = cast("Format", FORMAT)
MARKS = ["<|im_end|>", "<|im_start|>assistant\n", "<tool_call>", "</tool_call>", "<|endoftext|>"]

text = st.one_of(
    st.sampled_from([*MARKS, "", "\n\nhello", " lead", "trail \n", "e\u0301", "北京 ✿"]),
    st.text(max_size=20),
    st.lists(st.sampled_from([*MARKS, "a", "\n", " "]), max_size=6).map("".join),
)
# A text of the assistant's that would be read as a call is refused by `render`.
answers = text.filter(lambda said: "<tool_call>" not in said)
calls = st.builds(
    ToolCall,
    name=st.sampled_from(["f", "get_weather"]),
    arguments=st.dictionaries(st.text(max_size=5), text | st.integers(), max_size=2),
)


@st.composite
def conversations(draw: st.DrawFn) -> Conversation:
    """Turns of text, calls and results, hostile text among them."""
    messages = [Message.system(draw(text))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(1, 3))):
        messages.append(Message.user(draw(text)))
        made = tuple(draw(st.lists(calls, max_size=2)))
        messages.append(Message.assistant(draw(answers), tool_calls=made))
        if made:
            messages += [Message.tool(draw(text), name=call.name) for call in made]
            messages.append(Message.assistant(draw(answers)))
    tools = (ToolSpec("f", draw(text)),) if draw(st.booleans()) else ()
    return Conversation(tuple(messages), tools)


def said(text: str, *, loss: float | None = None, **metadata: object) -> Message:
    """An assistant message with a weight or metadata of its own."""
    extra: JsonObject = metadata  # type: ignore[assignment]  # JSON by construction
    return Message("assistant", (TextPart(text),), loss=loss, metadata=extra)


def written_text(conversation: Conversation, index: int) -> str:
    pieces = SMOLLM2.render(conversation).pieces
    return "".join(p.text for p in pieces if p.message == index and p.author == "written")


def turn_text(example: TrainingExample, tokenizer: FastTokenizer) -> dict[int, str]:
    ids: list[int] = example.token_ids.tolist()
    return {message: tokenizer.decode(ids[start:end]) for message, start, end in example.turns}


@given(conversation=conversations())
@settings(max_examples=40, deadline=None)
def test_the_written_spans_are_what_the_model_wrote(
    conversation: Conversation, tiny: FastTokenizer
) -> None:
    example = Encoder(tiny, SMOLLM2).encode(conversation)

    assistant = [i for i, m in enumerate(conversation.messages) if m.role == "assistant"]
    assert turn_text(example, tiny) == {i: written_text(conversation, i) for i in assistant}


@given(conversation=conversations())
@settings(max_examples=40, deadline=None)
def test_the_tokens_before_a_written_span_are_the_served_prompt(
    conversation: Conversation, tiny: FastTokenizer
) -> None:
    encoder = Encoder(tiny, SMOLLM2)
    example = encoder.encode(conversation)

    for index, start, _ in example.turns:
        before = Conversation(conversation.messages[:index], conversation.tools)
        prompt = encoder.encode_prompt(SMOLLM2.render(before, generate=True))
        assert example.token_ids[:start].tolist() == prompt


@given(
    conversation=conversations(),
    policy=st.sampled_from(["react", "hermes", "all", "last_turn+qwen"]),
)
@settings(max_examples=40, deadline=None)
def test_weights_change_no_ids(
    conversation: Conversation, policy: str, tiny: FastTokenizer
) -> None:
    plain = Encoder(tiny, SMOLLM2).encode(conversation)
    weighted = Encoder(tiny, SMOLLM2, loss=policy).encode(conversation)

    assert weighted.token_ids.tolist() == plain.token_ids.tolist()
    assert np.array_equal(weighted.labels != IGNORE, weighted.loss_weights > 0)


@given(conversation=conversations())
@settings(max_examples=40, deadline=None)
def test_hostile_text_never_becomes_a_mark(conversation: Conversation, tiny: FastTokenizer) -> None:
    example = Encoder(tiny, SMOLLM2).encode(conversation)

    pieces = SMOLLM2.render(conversation).pieces
    marks = set(tiny.marks.values())
    assert [i for i in example.token_ids.tolist() if i in marks] == [
        tiny.mark_id(p.text) for p in pieces if p.special
    ]


def test_a_reply_that_begins_with_line_breaks_is_cut_from_its_header(
    qwen2_5: FastTokenizer,
) -> None:
    """axolotl-ai-cloud/axolotl#2179: encoded at once, the header's line break joins the reply's."""
    example = Encoder(qwen2_5, SMOLLM2).encode(
        Conversation((Message.user("List two rivers."), Message.assistant("\n\nGlomma\nTana")))
    )

    _, start, end = example.turns[0]
    ids: list[int] = example.token_ids.tolist()
    assert qwen2_5.decode(ids[:start]).endswith("assistant\n")
    assert ids[start:end] == [*qwen2_5.encode("\n\nGlomma\nTana"), qwen2_5.mark_id("<|im_end|>")]


@pytest.mark.parametrize("ended", [True, False])
def test_recorded_ids_stand_for_the_text(ended: bool, qwen2_5: FastTokenizer) -> None:
    """THUDM/slime#117: what was sampled need not be what encoding its text again gives."""
    pieces = ["Pan", "tom", "ime", " is", " the", " word", "."]
    ids = [i for piece in pieces for i in qwen2_5.encode(piece)]
    end_mark = qwen2_5.mark_id("<|im_end|>")
    recorded = said("Pantomime is the word.", token_ids=[*ids, end_mark] if ended else ids)

    example = Encoder(qwen2_5, SMOLLM2).encode(
        Conversation((Message.user("Say the word."), recorded))
    )

    _, start, end = example.turns[0]
    assert ids != qwen2_5.encode("Pantomime is the word.")
    assert example.token_ids[start:end].tolist() == [*ids, end_mark]
    assert example.labels[start:end].tolist() == [*ids, end_mark]


def test_an_end_mark_that_was_not_written_is_not_trained(qwen2_5: FastTokenizer) -> None:
    """allenai/open-instruct#1876: an end forced at a cut teaches to stop in the middle."""
    cut = said("One, two,", stop_reason="length")

    example = Encoder(qwen2_5, SMOLLM2).encode(Conversation((Message.user("Count."), cut)))

    _, start, end = example.turns[0]
    assert example.labels[end - 1] == IGNORE
    assert (example.labels[start : end - 1] != IGNORE).all()


def test_recorded_ids_outside_the_vocabulary_are_refused(qwen2_5: FastTokenizer) -> None:
    wrong = said("x", token_ids=[999_999])

    with pytest.raises(EncodeError, match="no token has the id 999999"):
        Encoder(qwen2_5, SMOLLM2).encode(Conversation((Message.user("a"), wrong)))


def test_recorded_ids_must_be_integers(tiny: FastTokenizer) -> None:
    wrong = said("x", token_ids="12")

    with pytest.raises(EncodeError, match="message 1: token_ids must be a list of integers"):
        Encoder(tiny, SMOLLM2).encode(Conversation((Message.user("a"), wrong)))


def test_a_message_with_loss_0_stays_in_the_context_and_is_not_trained(
    tiny: FastTokenizer,
) -> None:
    """verl-project/verl#5316: a wrong step is shown, not learned."""
    conversation = Conversation(
        (Message.user("a"), said("bad", loss=0.0), Message.user("b"), said("good"))
    )

    shown = Encoder(tiny, SMOLLM2).encode(conversation).show(color=False)

    assert "bad" in shown
    assert "⟦good<|im_end|>⟧" in shown
    assert shown.count("⟦") == 1


def test_a_user_message_with_loss_counts_by_its_content_only(tiny: FastTokenizer) -> None:
    asked = Message("user", (TextPart("why"),), loss=0.5)

    shown = (
        Encoder(tiny, SMOLLM2)
        .encode(Conversation((asked, Message.assistant("so"))))
        .show(color=False)
    )

    assert "⟦why⟧*0.5" in shown
    assert shown.count("⟦") == 2


def test_a_scale_weighs_tokens_by_their_first_byte(qwen2_5: FastTokenizer) -> None:
    answer = "Thought: look\nAction: find\nAction Input: {'q': 'é'}\nObservation:"
    conversation = Conversation((Message.user("q"), Message.assistant(answer)))

    shown = Encoder(qwen2_5, SMOLLM2, loss="react").encode(conversation).show(color=False)

    assert shown.endswith(
        "⟦Thought: look\n⟧⟦Action: find\nAction Input: {'q': 'é'}\nObservation:⟧*2⟦<|im_end|>⟧\n"
    )


def test_all_trains_everything(tiny: FastTokenizer) -> None:
    conversation = Conversation((Message.system("s"), Message.user("a"), Message.assistant("b")))

    example = Encoder(tiny, SMOLLM2, loss="all").encode(conversation)

    assert example.n_trained == len(example)


def test_many_conversations_encode_as_each_alone(tiny: FastTokenizer) -> None:
    rows = [
        Conversation((Message.user(f"q{i % 7}"), Message.assistant("a" * (i % 5))))
        for i in range(150)
    ]

    groups = Encoder(tiny, SMOLLM2).encode_many(rows)

    assert [e.token_ids.tolist() for group in groups for e in group] == [
        Encoder(tiny, SMOLLM2).encode(row).token_ids.tolist() for row in rows
    ]


def test_control_characters_cannot_steer_the_terminal(tiny: FastTokenizer) -> None:
    example = Encoder(tiny, SMOLLM2).encode(
        Conversation((Message.user("\x1b[2J"), Message.assistant("\x07")))
    )

    shown = example.show(color=False)

    assert "\x1b" not in shown
    assert "\\x1b[2J" in shown
    assert "⟦\\x07<|im_end|>⟧" in shown


def test_an_example_without_its_tokenizer_cannot_be_shown() -> None:
    example = TrainingExample(np.zeros(1, int), np.zeros(1, int), np.zeros(1, np.float32))

    with pytest.raises(ValueError, match="without its tokenizer"):
        example.show()
