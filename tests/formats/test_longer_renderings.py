"""A conversation that grew is rendered as if it had never been rendered before.

What was written of a shorter conversation is taken over by identity (`Writer.walk`); copies of the
same messages are other objects, so they are rendered anew.
"""

import random
from dataclasses import replace

import pytest

from antiphon.errors import RenderError
from antiphon.formats import Format, Rendered
from antiphon.messages import Conversation, Message, TextPart, ToolCall
from formats.format_cases import VARIANTS, variant
from formats.format_strategies import TOOLS


def _call(rng: random.Random, n: int) -> ToolCall:
    if rng.random() < 0.2:
        return ToolCall("ping", {}, f"call{n:05}")
    return ToolCall("find", {"q": f"thing {n}", "n": n}, f"call{n:05}")


def _messages(rng: random.Random, *, plain: bool) -> list[Message]:
    """Turns of one or more steps; if not plain, with text, reasoning and parallel calls."""
    messages = [Message.system("You are brief.")] if rng.random() < 0.5 else []
    n = 0
    for turn in range(rng.randint(2, 4)):
        messages.append(Message.user(f"Question {turn}?"))
        for _ in range(rng.randint(0, 3)):
            calls = [_call(rng, n + i) for i in range(1 if plain else rng.choice((1, 1, 2)))]
            n += len(calls)
            text = "" if plain else rng.choice(("", "Look."))
            reasoning = "" if plain else rng.choice(("", "Hm."))
            messages.append(Message.assistant(text, reasoning=reasoning, tool_calls=calls))
            results = [Message.tool(f"got {c.id}", call_id=c.id, name=c.name) for c in calls]
            messages += reversed(results) if not plain and rng.random() < 0.3 else results
        messages.append(
            Message.assistant(f"Answer {turn}.", reasoning="" if plain else rng.choice(("", "So.")))
        )
    return messages


def _rendered(fmt: Format, conversation: Conversation, *, generate: bool) -> Rendered | str:
    try:
        return fmt.render(conversation, generate=generate)
    except RenderError as error:
        return str(error)


def _copied(conversation: Conversation) -> Conversation:
    messages = [replace(message, name=message.name) for message in conversation.messages]
    return replace(conversation, messages=tuple(messages))


@pytest.mark.parametrize("name", VARIANTS)
def test_a_longer_conversation_is_rendered_as_one_never_seen(name: str) -> None:
    """Grown by one or two messages at a time, cut back, and gone on with in another way."""
    fmt = variant(name)
    n_same = 0
    for seed in range(2):
        rng = random.Random(seed)
        plain = seed == 0
        messages = _messages(rng, plain=plain)
        other = [*messages[: len(messages) // 2], *_messages(rng, plain=plain)]
        lengths = sorted(rng.sample(range(1, len(messages) + 1), min(len(messages), 4)))
        walks = [messages[:n] for n in (*lengths, *lengths[:2])]
        for known in (*walks, other, messages):
            conversation = Conversation(tuple(known), TOOLS)
            generate = rng.random() < 0.5

            seen = _rendered(fmt, conversation, generate=generate)

            assert seen == _rendered(fmt, _copied(conversation), generate=generate)
            n_same += isinstance(seen, Rendered)
    assert n_same >= 5


def test_what_was_written_before_is_taken_over() -> None:
    fmt = variant("qwen2_5")
    messages = (
        # with text before its calls, as a call alone is cut out of its turn at each rendering
        replace(m, parts=(TextPart("I look."),)) if m.tool_calls else m
        for m in _messages(random.Random(1), plain=True)
    )
    conversation = Conversation(tuple(messages), TOOLS)
    longer = conversation.append(Message.user("And then?"))

    first, second = fmt.render(conversation), fmt.render(longer)

    texts = [(a.text, b.text) for a, b in zip(first.pieces, second.pieces, strict=False)]
    calls = [(a, b) for a, b in texts if a.startswith('\n{"name"')]
    assert len(calls) > 2
    assert all(a is b for a, b in calls)


def test_other_tools_and_variants_are_written_anew() -> None:
    messages = (Message.user("Go."), Message.assistant("I go."), Message.user("On."))
    fmt = variant("llama3_2")

    with_tools = fmt.render(Conversation(messages, TOOLS)).text
    without = fmt.render(Conversation(messages)).text

    assert "find" in with_tools
    assert "find" not in without
    assert variant("qwen2_5").render(Conversation(messages)).text.count("<|im_start|>") == 4
