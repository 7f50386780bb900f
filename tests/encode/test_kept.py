"""With its history kept, a conversation is one text that a server would have sent, turn by turn."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from antiphon.encode import Encoder
from antiphon.errors import RenderError, UsageError
from antiphon.formats import (
    Format,
    Kept,
    describe,
    get_format,
    keep_history,
    keep_history_in,
    list_formats,
    read_format,
)
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec
from encode.test_served_context import faults
from encode.vocabularies import vocabulary

TEMPLATE = """\
{%- for t in tools or [] %}{{ t.function | tojson }}{{ '\n' }}{% endfor %}
{%- set ns = namespace(last=-1) %}
{%- for m in messages if m.role == 'user' %}{% set ns.last = m.content %}{% endfor %}
{%- set ns.seen = false %}
{%- for m in messages %}
{%- if m.role == 'user' and m.content == ns.last %}{% set ns.seen = true %}{% endif %}
{{- '<|im_start|>' + m.role + '\n' }}
{%- if ns.seen and m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}
{{- m.content }}
{%- for c in m.tool_calls or [] %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}
{{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}
"""


def conversation(reasoning: str) -> Conversation:
    """Three questions, each with a call, all answered with reasoning or without."""
    messages: list[Message] = []
    for i in range(3):
        call = ToolCall("find", {"n": i}, f"c{i}")
        messages += [
            Message.user(f"question {i}"),
            Message.assistant(reasoning=reasoning, tool_calls=[call]),
            Message.tool("found", call_id=call.id, name="find"),
            Message.assistant(f"answer {i}", reasoning=reasoning),
        ]
    return Conversation(tuple(messages), (ToolSpec("find", "Finds."),))


@cache
def encoder(name: str) -> Encoder:
    fmt = get_format(name, history="keep")
    marks: frozenset[str] = getattr(fmt, "specials", frozenset())
    return Encoder(vocabulary().with_marks(sorted(marks)), fmt)


REFUSED = {"apertus", "apriel", "command_r_plus", "qwq"}
"""Families whose prompts do not go on from what is shown of the answer."""


@pytest.mark.parametrize("name", [n for n in list_formats() if n not in REFUSED])
def test_a_conversation_is_one_example_that_was_served(name: str) -> None:
    use = encoder(name)
    n_examples: list[int] = []
    for reasoning in ("Look it up.", ""):
        asked = conversation(reasoning)
        try:
            n_examples.append(len(use.encode_all(asked)))
        except RenderError:
            continue  # what the family cannot say is refused by name
        if n_examples[-1] == 1:
            assert faults(use, asked) == []

    assert n_examples == [] or 1 in n_examples


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_family_whose_prompts_do_not_go_on_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=f"'{name}' cannot keep its history"):
        get_format(name, history="keep")


def test_another_word_for_history_is_refused() -> None:
    with pytest.raises(UsageError, match="history may be 'keep', got 'all'"):
        get_format("qwen3", history="all")


@pytest.mark.parametrize("variants", [{}, {"edition": "thinking"}, {"thinking": False}])
def test_its_description_is_read_again(variants: dict[str, Any]) -> None:
    fmt = get_format("qwen3", history="keep", **variants)

    assert isinstance(fmt, Kept)
    assert read_format(describe(fmt)) == fmt
    assert get_format("qwen3", **variants) == fmt.of


def texts(fmt: Format, asked: Conversation) -> list[str]:
    """What is shown of a conversation as it goes on."""
    parts = [Conversation(asked.messages[: n + 1], asked.tools) for n in range(len(asked.messages))]
    return [fmt.render(c, generate=c.messages[-1].role != "assistant").text for c in parts]


def test_a_saved_template_writes_the_kept_text_and_is_known_again(tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "chat_template.jinja").write_text(TEMPLATE)
    config = json.dumps({"eos_token": "<|im_end|>", "chat_template": TEMPLATE})
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "tokenizer_config.json").write_text(config)
    asked = conversation("Look it up.")
    plain = get_format(str(tmp_path / "plain"))

    assert keep_history_in(tmp_path / "kept")
    assert keep_history_in(tmp_path / "kept")
    fmt = get_format(str(tmp_path / "kept"))

    assert isinstance(fmt, Kept)
    assert texts(fmt, asked) == texts(get_format(str(tmp_path / "plain"), history="keep"), asked)
    assert texts(fmt, asked) != texts(plain, asked)
    kept = keep_history(TEMPLATE)
    assert keep_history(kept) == kept
    assert [run(kept, part) for part in prefixes(asked)] == texts(fmt, asked)
    assert not keep_history_in(tmp_path)


def prefixes(asked: Conversation) -> list[Conversation]:
    return [Conversation(asked.messages[: n + 1], asked.tools) for n in range(len(asked.messages))]


def run(template: str, asked: Conversation) -> str:
    """A template's own text, as transformers runs it."""
    from antiphon.formats._jinja import render

    messages: list[dict[str, Any]] = []
    for message in asked.messages:
        entry: dict[str, Any] = {"role": message.role, "content": message.text}
        if message.reasoning:
            entry["reasoning_content"] = message.reasoning
        if message.tool_calls:
            entry["tool_calls"] = [
                {"type": "function", "function": {"name": c.name, "arguments": c.arguments}}
                for c in message.tool_calls
            ]
        messages.append(entry)
    tools = [tool.to_openai() for tool in asked.tools]
    ahead = asked.messages[-1].role != "assistant"
    return render(template, {"messages": messages, "tools": tools, "add_generation_prompt": ahead})
