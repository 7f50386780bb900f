"""The one test of exactness: each trained turn stands behind the prompt that was served for it.

Over every family that is here, on the conversations that all families share, and on made-up ones
for families that rewrite their history.
"""

import json
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon.datasets import read_row
from antiphon.encode import IGNORE, Encoder, FastTokenizer, TrainingExample
from antiphon.errors import RenderError
from antiphon.formats import get_format, list_formats
from antiphon.messages import Conversation, Message, ToolCall
from encode.vocabularies import vocabulary

CASES = Path(__file__).parents[1] / "formats" / "cases" / "conversations.jsonl"
CONVERSATIONS = {
    case["id"]: read_row(case["unified"])
    for line in CASES.read_text(encoding="utf-8").splitlines()
    if (case := json.loads(line))
}


@cache
def encoder(name: str) -> Encoder:
    """A family over a vocabulary that has its marks."""
    fmt = get_format(name)
    marks: frozenset[str] = getattr(fmt, "specials", frozenset())
    return Encoder(vocabulary().with_marks(sorted(marks)), fmt)


def faults(use: Encoder, conversation: Conversation) -> list[str]:
    """What is not as served: a context, a span, or a turn that counts never or twice."""
    found: list[str] = []
    counted: list[int] = []
    for example in use.encode_all(conversation):
        ids: list[int] = example.token_ids.tolist()
        for message, start, end in example.turns:
            if (example.labels[start:end] == IGNORE).all():
                continue
            counted.append(message)
            before = Conversation(conversation.messages[:message], conversation.tools)
            prompt = use.format.render(before, generate=True)
            if ids[:start] != use.encode_prompt(prompt):
                found.append(f"message {message}: not behind its served prompt")
            upto = Conversation(conversation.messages[: message + 1], conversation.tools)
            alone = use.encode(upto)
            own, last = next((s, e) for m, s, e in reversed(alone.turns) if m == message)
            written: list[int] = alone.token_ids[own:last].tolist()
            # Where the next turn's mark ends a turn, it is there only once that turn is.
            rest = [use.tokenizer.decode([i]) for i in ids[start + len(written) : end]]
            if ids[start : start + len(written)] != written or not {*rest} <= {*use.format.stop}:
                found.append(f"message {message}: not as it was written")
    said = [i for i, m in enumerate(conversation.messages) if m.role == "assistant"]
    if sorted(counted) != said:
        found.append(f"messages {counted} count, and {said} were written")
    return found


@pytest.mark.parametrize("name", list_formats())
def test_a_trained_turn_stands_behind_its_served_prompt(name: str) -> None:
    use = encoder(name)
    found: list[str] = []
    n_said = 0
    for case, read in CONVERSATIONS.items():
        messages = (Message(**{f: getattr(m, f) for f in FIELDS}) for m in read.messages)
        conversation = Conversation(tuple(messages), read.tools)
        try:
            use.format.render(conversation)
        except RenderError:
            continue  # what a family cannot say is refused by name; tests/formats holds that
        n_said += 1
        try:
            found += [f"{case}: {fault}" for fault in faults(use, conversation)]
        except Exception as error:
            error.add_note(f"case {case}")
            raise

    assert found == []
    assert n_said or name == "plain"  # which shows no tools


FIELDS = ("role", "parts", "tool_calls", "tool_call_id", "name", "is_error")
"""A message without the weights that a row gives it."""


@pytest.mark.parametrize("name", ["glm4_7", "minimax_m2", "deepseek_v3_2"])
def test_an_answer_without_reasoning_closes_the_block_that_its_prompt_opened(name: str) -> None:
    use = encoder(name)
    asked = Conversation((Message.user("1+1?"),))
    (example,) = use.encode_all(asked.append(Message.assistant("2")))

    prompt = use.format.render(asked, generate=True)
    wrote = use.tokenizer.decode(example.token_ids[example.labels != IGNORE].tolist())

    for mark in use.format.stop:
        wrote = wrote.removesuffix(mark)
    read = use.format.parse(wrote, start=prompt.start)
    assert (read.text, read.reasoning) == ("2", "")
    if prompt.start == "reasoning":
        assert "</think>" in wrote


@st.composite
def reasoned(draw: st.DrawFn) -> Conversation:
    """Turns with and without reasoning, with and without calls, in any order."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 3))):
        messages.append(Message.user(f"question {turn}"))
        for step in range(draw(st.integers(0, 2))):
            thought = draw(st.sampled_from(["", "Look it up."]))
            call = ToolCall("find", {"n": step}, f"c{turn}{step}")
            messages.append(Message.assistant("", reasoning=thought, tool_calls=[call]))
            messages.append(Message.tool("found", call_id=call.id, name="find"))
        thought = draw(st.sampled_from(["", "That is it."]))
        messages.append(Message.assistant(f"answer {turn}", reasoning=thought))
    return Conversation(tuple(messages))


LATE = Conversation(
    (
        Message.user("Where to?"),
        Message.assistant("North."),
        Message.system("Say it in French."),
        Message.user("And then?"),
        Message.assistant("Ouest."),
        Message.system("Shorter."),
        Message.user("Then?"),
        Message.assistant("Sud."),
    )
)


@pytest.mark.parametrize("name", list_formats())
def test_a_later_system_message_is_not_in_what_was_served_before_it(name: str) -> None:
    """Some families put all system messages in front, or leave out their own text for any."""
    try:
        found = faults(encoder(name), LATE)
    except RenderError:  # a system message stands first
        return

    assert [fault for fault in found if "served prompt" in fault] == []


@pytest.mark.parametrize("name", [n for n in ("qwen3", "qwen2_5", "hermes") if n in list_formats()])
@given(conversation=reasoned())
@settings(max_examples=15, deadline=None)
def test_every_turn_counts_once_in_the_text_that_was_served(
    name: str, conversation: Conversation
) -> None:
    assert faults(encoder(name), conversation) == []


def test_a_history_that_is_rewritten_costs_one_example_a_question(qwen3: FastTokenizer) -> None:
    turns = [
        m
        for i in range(4)
        for m in (Message.user(f"q{i}"), Message.assistant(f"a{i}", reasoning="Hm."))
    ]
    use = Encoder(qwen3, get_format("qwen3"))

    examples = use.encode_all(Conversation(tuple(turns)))

    assert len(examples) == 4
    assert [counted(example) for example in examples] == [[7], [5], [3], [1]]


def counted(example: TrainingExample) -> list[int]:
    """The messages that count in an example."""
    return [m for m, s, e in example.turns if (example.labels[s:e] != IGNORE).any()]
