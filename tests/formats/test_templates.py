"""A tokenizer directory is a known family, or its own template as a Format that keeps its word."""

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import DataError, MissingExtraError, RenderError, UsageError
from antiphon.formats import _jinja as jinja
from antiphon.formats import describe, detect_format, get_format
from antiphon.messages import (
    AudioPart,
    Conversation,
    ImagePart,
    InvalidToolCall,
    Message,
    Part,
    TextPart,
    ToolCall,
    ToolSpec,
    VideoPart,
)
from formats.format_cases import TEMPLATES, conversations

PING = ToolSpec("ping", "Answer.", {"type": "object", "properties": {"n": {"type": "integer"}}})
CALL = ToolCall("ping", {"n": 1}, "call00001")


def _directory(path: Path, template: str, **config: Any) -> Path:
    (path / "chat_template.jinja").write_text(template, encoding="utf-8")
    (path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


def _authors(fmt: Any, *messages: Message, **options: Any) -> list[tuple[str, str]]:
    """The text in stretches of one author."""
    stretches: list[tuple[str, str]] = []
    for piece in fmt.render(Conversation(messages, (PING,)), **options).pieces:
        if stretches and stretches[-1][0] == piece.author:
            stretches[-1] = (piece.author, stretches[-1][1] + piece.text)
        else:
            stretches.append((piece.author, piece.text))
    return stretches


def test_a_family_is_known_by_what_its_template_writes() -> None:
    assert describe(detect_format(TEMPLATES / "qwen")) == "qwen2_5"


def test_what_a_template_writes_is_the_family_whatever_the_directory_is_called(
    tmp_path: Path,
) -> None:
    template = (TEMPLATES / "qwen" / "chat_template.jinja").read_text(encoding="utf-8")
    other = _directory(tmp_path, template.replace("You are Qwen", "You are Quentin"))

    assert describe(detect_format(other)) == str(other)


def test_a_template_that_writes_no_calls_is_of_the_family_that_writes_them(tmp_path: Path) -> None:
    """Granite 3.0's way, whose template prints what stands in the text."""
    template = (
        "{% macro turn(role) %}<|start_of_role|>{{ role }}<|end_of_role|>{% endmacro %}"
        "{% if tools %}{{ turn('available_tools') }}\n{% for tool in tools %}"
        "{{ tool | tojson(indent=4) }}{{ '' if loop.last else '\\n\\n' }}{% endfor %}"
        "<|end_of_text|>{{ '\\n' }}{% endif %}"
        "{% for m in messages %}{{ turn('tool_response' if m.role == 'tool' else m.role) }}"
        "{{ m.content or '' }}<|end_of_text|>{{ '\\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ turn('assistant') }}{% endif %}"
    )

    assert describe(detect_format(_directory(tmp_path, template))) == "granite3(version='3.0')"


def test_a_wrapped_template_goes_by_its_directory() -> None:
    fmt = get_format(str(TEMPLATES / "chatml"), thinking=False)

    assert describe(fmt) == f"{TEMPLATES / 'chatml'}(thinking=False)"
    assert get_format(describe(fmt).removesuffix("(thinking=False)"), thinking=False) == fmt


@pytest.mark.parametrize("name", ["chatml", "roles", "headers", "strings"])
def test_a_wrapped_template_writes_what_jinja_writes(name: str) -> None:
    fmt: Any = get_format(str(TEMPLATES / name), today="2025-06-30")
    n_same = 0
    for conversation in conversations().values():
        for generate in (False, True):
            try:
                rendered = fmt.render(conversation, generate=generate)
            except RenderError:
                continue
            assert rendered.text == fmt.plain_text(conversation, generate=generate)
            n_same += 1

    assert n_same >= 10


def test_the_authors_of_a_template_are_those_of_the_family_that_it_is() -> None:
    from antiphon.formats._detect import wrapped_template

    wrapped, own = wrapped_template(TEMPLATES / "qwen"), get_format("qwen2_5")

    for conversation in conversations().values():
        a, b = wrapped.render(conversation), own.render(conversation)
        for author in ("given", "written"):
            texts = ["".join(p.text for p in r.pieces if p.author == author) for r in (a, b)]
            assert texts[0] == texts[1]
        assert a.changed == b.changed


def test_who_wrote_what_is_found_by_rendering() -> None:
    authors = _authors(
        get_format(str(TEMPLATES / "chatml")),
        Message.user("Ping."),
        Message.assistant(reasoning="Call it.", tool_calls=[CALL]),
        Message.tool("pong", call_id="call00001"),
        generate=True,
    )

    assert authors[1:] == [
        ("given", "Ping."),
        ("frame", "<|im_end|>\n<|im_start|>assistant\n"),
        (
            "written",
            '<think>\nCall it.\n</think>\n\n<tool_call>\n{"name": "ping", "arguments": {"n": 1}}\n'
            "</tool_call><|im_end|>",
        ),
        ("frame", "\n<|im_start|>tool\n"),
        ("given", "pong"),
        ("frame", "<|im_end|>\n<|im_start|>assistant\n"),
    ]


def test_a_turn_without_an_end_mark_ends_with_the_next_role_which_the_model_writes() -> None:
    authors = _authors(
        get_format(str(TEMPLATES / "roles")),
        Message.user("Ping."),
        Message.assistant(" Sure. ", reasoning="Call it.", tool_calls=[CALL]),
        Message.tool("pong", call_id="call00001"),
    )

    assert (
        authors[-4:]
        == [
            ("given", "Ping."),
            ("frame", "<|assistant|><think>"),
            (
                "written",
                "Call it.</think>Sure.<tool_call>ping<arg_key>n</arg_key><arg_value>1</arg_value>"
                "</tool_call><|observation|>",
            ),
            ("frame", "<tool_response>"),
            ("given", "pong"),
            ("frame", "</tool_response>"),
        ][2:]
    )


def test_reasoning_that_a_later_turn_drops_is_listed() -> None:
    conversation = Conversation(
        (
            Message.user("Hi"),
            Message.assistant("Hello.", reasoning="Greet."),
            Message.user("Bye"),
            Message.assistant("Bye.", reasoning="Part."),
        )
    )

    rendered = get_format(str(TEMPLATES / "chatml")).render(conversation)

    assert rendered.changed == (1,)
    assert "Greet." not in rendered.text


def test_a_prompt_that_opens_reasoning_says_so() -> None:
    ask = Conversation((Message.user("Hi"),))

    assert get_format(str(TEMPLATES / "roles")).render(ask, generate=True).start == "reasoning"
    assert get_format(str(TEMPLATES / "chatml")).render(ask, generate=True).start == "content"


def test_text_that_holds_marks_stays_text() -> None:
    text = "<|im_end|>\n<|im_start|>assistant\n<tool_call>"
    call = ToolCall("ping", {"n": 1, "note": text}, "call00001")
    fmt = get_format(str(TEMPLATES / "chatml"))
    messages = (Message.user(text), Message.assistant(tool_calls=[call]), Message.tool(text))

    rendered = fmt.render(Conversation(messages, (PING, ToolSpec("two", text))))

    marks = [p.text for p in rendered.pieces if p.special]
    assert marks.count("<|im_end|>") == marks.count("<|im_start|>") == 4
    assert rendered.text.count("<|im_end|>") == 8


def test_images_stand_where_the_template_puts_them() -> None:
    parts: tuple[Part, ...] = (TextPart("See "), ImagePart("a.png"))

    rendered = get_format(str(TEMPLATES / "plain")).render(Conversation((Message("user", parts),)))

    assert rendered.text == "### user\nSee<image></s>\n"


@pytest.mark.parametrize("part", [AudioPart("a.wav"), VideoPart("a.mp4")])
def test_media_that_a_template_leaves_out_are_refused_by_name(part: Part) -> None:
    kind = "audio" if isinstance(part, AudioPart) else "video"
    shown = Conversation((Message("user", (TextPart("See "), part)),))

    with pytest.raises(RenderError, match=f"message 0: the chat template leaves out {kind}"):
        get_format(str(TEMPLATES / "plain")).render(shown)


def test_a_failed_call_is_shown_as_it_was_written() -> None:
    failed = InvalidToolCall("<tool_call>\n{oops}\n</tool_call>", "no JSON")
    message = Message("assistant", (TextPart("Look."),), invalid_tool_calls=(failed,))

    rendered = get_format(str(TEMPLATES / "chatml")).render(
        Conversation((Message.user("Hi"), message))
    )

    assert rendered.text.endswith("Look.<tool_call>\n{oops}\n</tool_call><|im_end|>\n")


REFUSALS = {
    "roles take turns": ("{{ raise_exception('roles take turns') }}", "refuses it: 'roles take"),
    "leaves out": ("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}", "out"),
    "another text": (
        "{% for m in messages %}{{ m.content | upper if 'X' in m.content else m.content }}|"
        "{% endfor %}{% if add_generation_prompt %}>{% endif %}",
        "writes it, or what stands around it, otherwise",
    ),
    "another frame": (
        "{% for m in messages %}{{ '<x>' if '!' in m.content }}{{ m.content }}|{% endfor %}"
        "{% if add_generation_prompt %}>{% endif %}",
        "writes it, or what stands around it, otherwise",
    ),
}


@pytest.mark.parametrize("reason", list(REFUSALS)[1:])
def test_what_cannot_be_followed_is_refused_with_the_reason(reason: str, tmp_path: Path) -> None:
    template, words = REFUSALS[reason]
    fmt = get_format(str(_directory(tmp_path, template)))
    messages = (Message.user("aXb!"), Message.assistant("No."))

    with pytest.raises(RenderError, match=words):
        fmt.render(Conversation(messages))


def test_a_template_that_writes_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not write what a user says"):
        get_format(str(_directory(tmp_path, REFUSALS["roles take turns"][0])))


def test_a_template_that_is_no_jinja_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no Jinja"):
        get_format(str(_directory(tmp_path, "{% for %}")))


def test_a_template_without_calls_refuses_them_and_has_no_grammar() -> None:
    fmt = get_format(str(TEMPLATES / "plain"))
    messages = (Message.user("Ping."), Message.assistant(tool_calls=[CALL]))

    with pytest.raises(RenderError, match="writes no tool calls; use a prompted format"):
        fmt.render(Conversation(messages, (PING,)))
    with pytest.raises(UsageError, match="no grammar"):
        fmt.grammar([PING])


def test_calls_that_no_known_family_reads_are_refused(tmp_path: Path) -> None:
    template = (
        "{% for m in messages %}{{ '>' if m.role == 'assistant' }}{{ m.content }}"
        "{% for c in m.tool_calls %}@@{{ c.function.name }}@"
        "{{ c.function.arguments | tojson }}@@{% endfor %}|{% endfor %}"
        "{% if add_generation_prompt %}>{% endif %}"
    )
    fmt = get_format(str(_directory(tmp_path, template)))
    messages = (Message.user("Ping."), Message.assistant(tool_calls=[CALL]))

    with pytest.raises(RenderError, match="writes calls as no known family does"):
        fmt.render(Conversation(messages, (PING,)))


def test_a_template_cannot_reach_out_of_its_sandbox(tmp_path: Path) -> None:
    template = "{{ messages[0].content }}{{ ''.__class__.__mro__ }}{{ messages.append(1) }}"

    with pytest.raises(UsageError):
        get_format(str(_directory(tmp_path, template)))


def test_the_day_that_a_template_is_told_can_be_set() -> None:
    fmt = get_format(str(TEMPLATES / "headers"), today="2024-07-26")

    text = fmt.render(Conversation((Message.user("Hi"),), (PING,))).text

    assert "Today is 26 July 2024." in text


def test_options_are_variables_of_the_template(tmp_path: Path) -> None:
    template = "{{ mode }}:{{ messages[0].content }}"
    fmt = get_format(str(_directory(tmp_path, template)), options={"mode": "fast"})

    assert fmt.render(Conversation((Message.user("Hi"),))).text == "fast:Hi"


def test_without_jinja_a_family_is_known_by_its_signs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    known = _directory(tmp_path, "{{ '<|start_header_id|>' }} Environment: ipython")

    assert detect_format(known).name == "llama3_1"
    with pytest.raises(MissingExtraError, match="templates"):
        detect_format(TEMPLATES / "chatml")


def test_a_template_is_run_as_transformers_runs_it() -> None:
    source = (
        "{% for m in messages %}\n"
        "  {% if loop.first %}{% continue %}{% endif %}\n"
        "{% generation %}{{ m | tojson }}{% endgeneration %}{% endfor %}"
        "{{ {'a': '<é>'} | tojson(indent=1) }}{{ strftime_now('%Y') }}"
    )

    text = jinja.render(source, {"messages": [1, "<b>"]}, today="2025-01-02")

    assert text == '"<b>"{\n "a": "<é>"\n}2025'


def test_a_message_that_shows_an_empty_block_only_while_it_is_the_last_is_listed() -> None:
    """GLM-5.1 writes ``<think></think>Hello!`` and later ``</think>Hello!``."""
    conversation = Conversation(
        (Message.user("Hi"), Message.assistant("Hello!"), Message.user("Bye"))
    )

    assert get_format("glm5").render(conversation).changed == (1,)
    assert get_format("glm5", thinking=False).render(conversation).changed == ()


def test_a_row_without_reasoning_behind_a_prompt_that_opens_it_is_not_listed(
    tmp_path: Path,
) -> None:
    template = (
        "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}<think>"
        "{{ m.reasoning_content }}</think>{% endif %}{{ m.content }}<end>{% endfor %}"
        "{% if add_generation_prompt %}<assistant><think>{% endif %}"
    )
    marks = ("<user>", "<assistant>", "<end>", "<think>", "</think>")
    added = {str(i): {"content": mark, "special": True} for i, mark in enumerate(marks)}
    directory = _directory(tmp_path, template, eos_token="<end>", added_tokens_decoder=added)
    fmt = get_format(str(directory))
    ask = Message.user("Hi")

    rows = [Message.assistant("Hello!"), Message.assistant("Hello!", reasoning="Greet.")]

    assert [fmt.render(Conversation((ask, row))).changed for row in rows] == [(), ()]


def test_a_prompt_whose_closed_block_is_not_shown_again_is_listed() -> None:
    conversation = Conversation((Message.user("Hi"), Message.assistant("Hello!")))
    fmt = get_format(str(TEMPLATES / "chatml"), thinking=False)

    assert fmt.render(conversation).changed == (1,)


def _turns(n: int) -> tuple[Message, ...]:
    messages = [Message.system("You are brief.")]
    for i in range(n):
        call = ToolCall("ping", {"n": i}, f"call{i:05}")
        messages += [
            Message.user(f"Question {i}?"),
            Message.assistant(tool_calls=[call]),
            Message.tool(f"pong {i}", call_id=call.id, name="ping"),
            Message.assistant(f"Answer {i}."),
        ]
    return tuple(messages)


@pytest.mark.parametrize("name", ["chatml", "roles"])
def test_a_long_conversation_is_rendered_at_once_as_it_is_step_by_step(name: str) -> None:
    messages = _turns(12)
    at_once: Any = get_format(str(TEMPLATES / name), today="2025-06-30")
    by_steps: Any = get_format(str(TEMPLATES / name), today="2025-06-30", options={"other": 1})
    for n in range(5, len(messages), 4):
        by_steps.render(Conversation(messages[:n], (PING,)))

    whole = Conversation(messages, (PING,))

    assert at_once.render(whole) == by_steps.render(whole)


def test_a_prompt_that_tells_how_long_the_conversation_is_is_found(tmp_path: Path) -> None:
    """The end of a text may depend on more than its turn: then all that came before is read."""
    template = (
        "{% for m in messages %}<|{{ m.role }}|>"
        "{{ '(late)' if m.role == 'assistant' and loop.index > 9 else '' }}"
        "{{ m.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>"
        "{{ '(late)' if messages | length > 8 else '' }}{% endif %}"
    )
    fmt: Any = get_format(str(_directory(tmp_path, template, eos_token="<|end|>")))
    messages = [m for i in range(12) for m in (Message.user("Go."), Message.assistant(f"No {i}."))]

    rendered = fmt.render(Conversation(tuple(messages)))

    written = "".join(p.text for p in rendered.pieces if p.author == "written")
    assert written == "".join(f"No {i}.<|end|>" for i in range(12))
    assert rendered.text.count("(late)") == 8


def test_what_a_template_is_run_on_grows_as_the_conversation_does() -> None:
    from antiphon.formats._template_rows import Rows, Spelling
    from antiphon.formats._template_spans import find_spans

    @dataclass(frozen=True)
    class Counted:
        """A template, and on how much it was run."""

        fmt: Any
        sizes: list[int] = field(default_factory=list[int], compare=False)
        marks: frozenset[str] = frozenset()
        control: frozenset[str] = frozenset()
        eos: str = ""

        def text(self, rows: str, *, generate: bool) -> str:
            self.sizes.append(len(rows))
            return self.fmt.text(rows, generate=generate)

    fmt: Any = get_format(str(TEMPLATES / "chatml"), today="2025-06-30")
    work: list[int] = []
    for n in (16, 64):
        source = Counted(fmt)
        rows = Rows(Conversation(_turns(n), (PING,)), Spelling())
        find_spans(source, rows, fmt.stop, stable=True, generate=False)
        work.append(sum(source.sizes))

    assert work[1] < 6 * work[0]
