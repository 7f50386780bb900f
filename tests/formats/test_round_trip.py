"""What a family writes it reads back as the same message, however it is cut."""

import random
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from antiphon.errors import RenderError
from antiphon.formats._family import Family
from antiphon.formats._render import inline_reasoning
from antiphon.messages import Conversation, Message, ToolCall
from formats.format_cases import VARIANTS, conversations, parse, variant, written
from formats.format_strategies import TOOLS, answers


def _cut(text: str, seed: int) -> list[str]:
    chance = random.Random(seed)
    at = sorted(chance.sample(range(len(text)), min(len(text), chance.randint(0, 8))))
    return [text[a:b] for a, b in zip([0, *at], [*at, len(text)], strict=True)]


def _apart(answer: Message) -> tuple[str, str]:
    """An answer's text and reasoning where a row has the one inside the other."""
    message = inline_reasoning(answer)
    return message.text, message.reasoning


def _is_read_back(answer: Message, seed: int) -> None:
    conversation = Conversation((Message.user("Go."), answer), TOOLS)
    said = answer.text, answer.reasoning
    read: dict[Any, Message] = {}  # families share tables and texts: each is read once
    for name in VARIANTS:
        fmt = cast("Family", variant(name))
        try:
            rendered = fmt.render(conversation)
        except RenderError:
            continue
        text, start = written(rendered, 1, fmt)
        key = (fmt.syntax, text, start)
        if key not in read:
            read[key], _ = parse(fmt, [text], tools=TOOLS, start=start)
            for chunks in (list(text), _cut(text, seed)):
                message, _ = parse(fmt, chunks, tools=TOOLS, start=start)

                assert message == read[key], name
        whole = read[key]
        assert whole.invalid_tool_calls == (), name
        if 1 not in rendered.changed:
            assert (whole.text, whole.reasoning) in (said, _apart(answer)), name
            assert whole.without_ids().tool_calls == answer.without_ids().tool_calls, name
            assert all(call.repairs == () for call in whole.tool_calls), name


@given(answer=answers, seed=st.integers(0, 1000))
@example(answer=Message.assistant("a", reasoning="\n0"), seed=0)
@example(answer=Message.assistant("\na", reasoning="0\n"), seed=0)
@settings(max_examples=10, deadline=None)
def test_a_rendered_answer_is_read_back_in_any_cut(answer: Message, seed: int) -> None:
    """What a family cannot express it refuses at render, or lists among what it changed."""
    _is_read_back(answer, seed)


@pytest.mark.slow
@given(answer=answers, seed=st.integers(0, 1000))
@settings(max_examples=100, deadline=None)
def test_many_rendered_answers_are_read_back_in_any_cut(answer: Message, seed: int) -> None:
    """As the one above."""
    _is_read_back(answer, seed)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_family_expresses_a_call(name: str) -> None:
    """So that the property above is one of something."""
    fmt = variant(name)
    answer = Message.assistant(tool_calls=[ToolCall("find", {"q": "a"})])

    rendered = fmt.render(Conversation((Message.user("Go."), answer), TOOLS))

    text, start = written(rendered, 1, fmt)
    assert fmt.parse(text, tools=TOOLS, start=start).without_ids() == answer


WITHOUT_NULL = ("minimax_m3",)
"""Families that cannot write null: they leave it out and say so."""


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {k: _without_nulls(v) for k, v in fields.items() if v is not None}
    if isinstance(value, list):
        return [_without_nulls(v) for v in cast("list[Any]", value) if v is not None]
    return value


@pytest.mark.parametrize("name", VARIANTS)
def test_every_answer_of_the_shared_conversations_is_read_back(name: str) -> None:
    fmt = variant(name)
    n_read = 0
    for conversation in conversations().values():
        for index, answer in enumerate(conversation.messages):
            if answer.role != "assistant":
                continue
            try:
                rendered = fmt.render(
                    Conversation(conversation.messages[: index + 1], conversation.tools)
                )
            except RenderError:
                continue
            text, start = written(rendered, index, fmt)
            message, _ = parse(fmt, [text], tools=conversation.tools, start=start, strict=True)
            n_read += 1
            assert message.invalid_tool_calls == ()
            wanted, read = answer.without_ids().tool_calls, message.without_ids().tool_calls
            if fmt.name in WITHOUT_NULL:
                said = wanted
                wanted = tuple(replace(c, arguments=_without_nulls(c.arguments)) for c in said)
                assert said == wanted or index in rendered.changed
            assert read == wanted
            if index not in rendered.changed:
                assert message.text == answer.text
    assert n_read >= 10


def _is_read_alike(text: str, seed: int, *, strict: bool) -> None:
    tables = {cast("Family", variant(name)).syntax: name for name in VARIANTS}
    for name in tables.values():  # a table is all that reading depends on
        fmt = variant(name)
        whole, _ = parse(fmt, [text], tools=TOOLS, strict=strict)
        kept = whole.text + whole.reasoning
        kept += "".join(call.raw for call in whole.tool_calls + whole.invalid_tool_calls)

        for chunks in (list(text), _cut(text, seed)):
            message, _ = parse(fmt, chunks, tools=TOOLS, strict=strict)

            assert message == whole, name
        for letters in ("日", "🤖", "L"):
            assert kept.count(letters) >= text.count(letters), name


any_text = st.lists(st.sampled_from("<>/|{}[]\"'\\:,\n abtolcnirhkAF."), max_size=40).map("".join)
texts = any_text | answers.map(lambda m: m.text)


@given(text=texts, seed=st.integers(0, 1000), strict=st.booleans())
@settings(max_examples=10, deadline=None)
def test_any_text_is_read_alike_in_any_cut(text: str, seed: int, strict: bool) -> None:
    """And every letter of it is in the text, the reasoning, or a call's raw text."""
    _is_read_alike(text, seed, strict=strict)


@pytest.mark.slow
@given(text=texts, seed=st.integers(0, 1000), strict=st.booleans())
@settings(max_examples=200, deadline=None)
def test_many_texts_are_read_alike_in_any_cut(text: str, seed: int, strict: bool) -> None:
    """As the one above."""
    _is_read_alike(text, seed, strict=strict)
