"""Slips of models by kind, in every family where each can happen: what was meant is read and the
slip is named, or the call is refused with its text; nothing becomes another call in silence.

The texts are made from what the families write, so that a family joins by being there.
Marks, names and values in other spellings are in `test_spellings.py`.
"""

import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from antiphon.formats import Start, get_format
from formats.format_cases import VARIANTS, parse
from formats.slip_cases import FIND, TOOLS, WRITE, Answer, answer_of, calls_of, kept_of, read

# One variant of each way to write calls.
_SHAPES: dict[str, str] = {}
for _name in VARIANTS:
    if _made := answer_of(_name, "find"):
        _SHAPES.setdefault(re.sub(r".*?(?=\S*find)", "", _made.text, count=1), _name)
NAMES = sorted(_SHAPES.values())
_OFTEN = ("hermes", "glm4_7", "qwen3_coder", "deepseek_v4", "kimi_k2_thinking", "gemma4", "lfm2")
SOME = [pytest.param(n, marks=() if n in _OFTEN else pytest.mark.slow) for n in NAMES]
_TAG = re.compile(r"</?[^<>\s][^<>]*>|\[/?[A-Z_]+\]|✿\w+✿:|Action(?: Input)?:")


def _damaged(text: str) -> Iterator[str]:
    """A text with each of its tags left out, doubled, and alone on a line, and cut after it."""
    for tag in _TAG.finditer(text):
        before, after = text[: tag.start()], text[tag.end() :]
        yield before + after
        yield before + tag.group() * 2 + after
        yield f"{before}\n{tag.group()}\n{after}"
        yield before + tag.group()


@pytest.mark.parametrize("name", SOME)
def test_whatever_tag_is_missing_or_doubled_no_word_is_lost_in_any_cut(name: str) -> None:
    answer = answer_of(name, "find", "write") or answer_of(name, "find")
    assert answer is not None
    for text in _damaged(answer.text):
        for strict in (False, True):
            kept = kept_of(read(answer, text, strict=strict))

            assert [w for w in re.findall(r"word[a-z]+", text) if w not in kept] == [], text


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_stops_before_what_its_tool_requires_is_no_call(name: str) -> None:
    """A token limit may cut between two arguments, where every tag is closed."""
    answer = answer_of(name, "write")
    assert answer is not None
    first = answer.text.index("wordpath") if "wordpath" in answer.text else 0
    ends = [m.end() for m in re.finditer(r">|\n|\}|,", answer.text) if m.end() > first]
    for end in ends:
        message, _ = parse(answer.fmt, [answer.text[:end]], tools=TOOLS, start=answer.start)

        assert all(call == ("write", dict(WRITE.arguments)) for call in calls_of(message))
        assert "wordpath" in kept_of(message)


@pytest.mark.parametrize(
    ("name", "section", "call"),
    [
        ("kimi_k2_thinking", "<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
        ("deepseek_v3", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"),
        ("deepseek_v3_1", "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>"),
        ("solar_open", "<|tool_calls|>", "<|tool_call:begin|>"),
        ("k2_horizon_json", "<ifm|tool_calls>", "<ifm|tool_call>"),
    ],
)
def test_a_section_of_calls_without_a_calls_own_mark_is_read(
    name: str, section: str, call: str
) -> None:
    answer = answer_of(name, "find")
    assert answer is not None
    assert section in answer.text
    message = read(answer, answer.text.replace(call, "", 1))

    assert calls_of(message) == [("find", FIND.arguments)]
    assert message.tool_calls[0].repairs == ("missing_open",)
    assert not read(answer, answer.text.replace(call, "", 1), strict=True).tool_calls


HERMES = '<tool_call>\n{"name": "find", "arguments": {"query": "nib", "limit": 2}}'
SLIPS: dict[str, tuple[str, str, Start]] = {
    "missing_close": ("hermes", f"{HERMES}\n{HERMES}\n</tool_call>", "content"),
    "trailing_comma": ("hermes", f"{HERMES},\n</tool_call>", "content"),
    "repeated_key": ("hermes", HERMES.replace('"li', '"query": "nib", "li') + "\n</tool_call>",
                     "content"),
    "unclosed_reasoning": ("qwen3_thinking", f"Look.{HERMES}\n</tool_call>", "reasoning"),
    "missing_tag": ("glm4_7", "<tool_call>find<arg_key>query<arg_value>nib</arg_value>"
                    "<arg_key>limit</arg_key><arg_value>2</arg_value></tool_call>", "content"),
    "written_line_feed": ("glm4_5", r"<tool_call>find\n<arg_key>query</arg_key>\n<arg_value>nib"
                          r"</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>2</arg_value>\n"
                          "</tool_call>", "content"),
    "misspelt_tag": ("qwen3_coder", "<tool_call>\n<function=find>\n<parameter=query>\nnib\n"
                     "</parameter1>\n<parameter=limit>\n2\n</parameter>\n</function>\n</tool_call>",
                     "content"),
    "doubled_tag": ("seed_oss", "<seed:tool_call>\n<function=find>\n<function=find>\n"
                    "<parameter=query>nib</parameter>\n<parameter=limit>2</parameter>\n</function>"
                    "\n</seed:tool_call>", "content"),
    "missing_delimiters": ("gemma4", "<|tool_call>call:find{query:nib,limit:2}<tool_call|>",
                           "content"),
    "missing_open": ("gemma4", 'call:find{query:<|"|>nib<|"|>,limit:2}<tool_call|>', "content"),
    "bare_calls": ("lfm2", "[find(query='nib', limit=2)]", "content"),
    "bare_json": ("command_a", '[{"tool_name": "find", "parameters": {"query": "nib", '
                  '"limit": 2}}]', "content"),
    "extra_type": ("deepseek_v3_1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function"
                   '<｜tool▁sep｜>find\n```json\n{"query": "nib", "limit": 2}\n```'
                   "<｜tool▁call▁end｜><｜tool▁calls▁end｜>", "content"),
    "misspelt_id": ("kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>functions_find_1"
                    '<|tool_call_argument_begin|>{"query": "nib", "limit": 2}<|tool_call_end|>'
                    "<|tool_calls_section_end|>", "content"),
    "other_version": ("mistral_v13", '[TOOL_CALLS][{"name": "find", "arguments": {"query": "nib", '
                      '"limit": 2}}]', "content"),
    "missing_mark": ("internlm2", '<|action_start|>\n{"name": "find", "parameters": {"query": '
                     '"nib", "limit": 2}}<|action_end|>', "content"),
    "missing_type": ("deepseek_v3", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>find<｜tool▁sep｜>"
                     '{"query": "nib", "limit": 2}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
                     "content"),
}  # fmt: skip


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_is_mended_with_its_name_and_refused_when_strict(slip: str) -> None:
    name, text, start = SLIPS[slip]
    answer = Answer(get_format(name), text, start)

    message, strict = read(answer, text), read(answer, text, strict=True)

    assert set(map(str, calls_of(message))) == {str(("find", {"query": "nib", "limit": 2}))}
    assert slip in {repair for call in message.tool_calls for repair in call.repairs}
    assert not any(call.repairs for call in strict.tool_calls)
    assert len(strict.tool_calls) < len(message.tool_calls)
    assert "nib" in kept_of(strict)


def test_a_call_considered_in_a_line_of_reasoning_is_none_if_reasoning_is_closed() -> None:
    text = f"I might send {HERMES}\n</tool_call> but no.\n</think>\n\nNo."

    message = read(Answer(get_format("qwen3_thinking"), text, "reasoning"), text)

    assert message.tool_calls == message.invalid_tool_calls == ()
    assert message.reasoning == text.partition("\n</think>")[0]
    assert message.text == "No."


def test_a_mark_named_in_reasoning_that_is_cut_off_stays_reasoning() -> None:
    text = "I may write <tool_call> or <tool_call>{} later"

    message = read(Answer(get_format("qwen3_thinking"), text, "reasoning"), text)

    assert message.reasoning == text
    assert not message.invalid_tool_calls


def test_one_damaged_call_of_an_array_does_not_cost_the_others() -> None:
    text = (
        '[TOOL_CALLS] [{"name": "find", "arguments": {"query": "\\ud83e", "limit": 2}}, '
        '{"name": "ping", "arguments": {}}]'
    )

    message = read(Answer(get_format("mistral"), text, "content"), text)

    assert calls_of(message) == [("ping", {})]
    (invalid,) = message.invalid_tool_calls
    assert (invalid.name, "surrogate" in invalid.reason) == ("find", True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>\n{"name": "ping", "name": "find", "arguments": {}}\n</tool_call>'),
        ("glm4_7", "<tool_call>findquery</arg_key><arg_value>nib</arg_value></tool_call>"),
    ],
)
def test_a_call_with_two_names_or_markup_in_its_name_is_refused(name: str, text: str) -> None:
    message = read(Answer(get_format(name), text, "content"), text)

    assert not message.tool_calls
    assert "name" in cast("Any", message.invalid_tool_calls)[0].reason
