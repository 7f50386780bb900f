"""Slips of models by kind, in every family where each can happen: what was meant is read and the
slip is named, or the call is refused with its text; nothing becomes another call in silence.

The texts are made from what the families write, so that a family joins by being there.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, cast

import pytest

from antiphon.errors import RenderError
from antiphon.formats import Format, Start, get_format
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec
from formats.format_cases import VARIANTS, joined, parse, variant, written

_STRING = {"type": "string"}


def _tool(name: str, required: tuple[str, ...] = (), **properties: Any) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, name, schema)


TOOLS = (
    _tool("find", ("query", "limit"), query=_STRING, limit={"type": "integer"}),
    _tool("write", ("path", "body"), path=_STRING, body=_STRING),
    _tool("ping"),
)
FIND = ToolCall("find", {"query": "wordquince", "limit": 2}, "call00001")
WRITE = ToolCall("write", {"path": "wordpath", "body": "wordbody"}, "call00002")


class _Answer(NamedTuple):
    """What a family writes."""

    fmt: Format
    text: str
    start: Start


@cache
def _answer(name: str, *calls: str) -> _Answer | None:
    fmt = variant(name)
    made = [{"find": FIND, "write": WRITE}[call] for call in calls]
    conversation = Conversation((Message.user("Go."), Message.assistant(tool_calls=made)), TOOLS)
    try:
        text, start = written(fmt.render(conversation), 1, fmt)
    except RenderError:
        return None
    return _Answer(fmt, text, start)


def _calls(message: Message) -> list[tuple[str, dict[str, Any]]]:
    return [(call.name, dict(call.arguments)) for call in message.tool_calls]


def _read(answer: _Answer, text: str, *, strict: bool = False) -> Message:
    """A text read whole and by characters: both must say the same, and the deltas too."""
    found: list[Message] = []
    for chunks in ([text], list(text)):
        message, deltas = parse(answer.fmt, chunks, tools=TOOLS, start=answer.start, strict=strict)
        said, thought, calls = joined(deltas)
        assert (said, thought) == (message.text, message.reasoning)
        if not message.invalid_tool_calls:
            assert [(name, json.loads(arguments)) for name, arguments in calls] == _calls(message)
        found.append(message)
    assert found[0] == found[1]
    return found[0]


def _kept(message: Message) -> str:
    calls = json.dumps(_calls(message), ensure_ascii=False)
    invalid = "".join(call.raw for call in message.invalid_tool_calls)
    return message.text + message.reasoning + calls + invalid


# One variant of each way to write calls.
_SHAPES: dict[str, str] = {}
for _name in VARIANTS:
    if _made := _answer(_name, "find"):
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
    answer = _answer(name, "find", "write") or _answer(name, "find")
    assert answer is not None
    for text in _damaged(answer.text):
        for strict in (False, True):
            kept = _kept(_read(answer, text, strict=strict))

            assert [w for w in re.findall(r"word[a-z]+", text) if w not in kept] == [], text


@pytest.mark.parametrize("name", NAMES)
def test_a_call_that_stops_before_what_its_tool_requires_is_no_call(name: str) -> None:
    """A token limit may cut between two arguments, where every tag is closed."""
    answer = _answer(name, "write")
    assert answer is not None
    first = answer.text.index("wordpath") if "wordpath" in answer.text else 0
    ends = [m.end() for m in re.finditer(r">|\n|\}|,", answer.text) if m.end() > first]
    for end in ends:
        message, _ = parse(answer.fmt, [answer.text[:end]], tools=TOOLS, start=answer.start)

        assert all(call == ("write", dict(WRITE.arguments)) for call in _calls(message))
        assert "wordpath" in _kept(message)


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
    answer = _answer(name, "find")
    assert answer is not None
    assert section in answer.text
    message = _read(answer, answer.text.replace(call, "", 1))

    assert _calls(message) == [("find", FIND.arguments)]
    assert message.tool_calls[0].repairs == ("missing_open",)
    assert not _read(answer, answer.text.replace(call, "", 1), strict=True).tool_calls


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
    answer = _Answer(get_format(name), text, start)

    message, strict = _read(answer, text), _read(answer, text, strict=True)

    assert set(map(str, _calls(message))) == {str(("find", {"query": "nib", "limit": 2}))}
    assert slip in {repair for call in message.tool_calls for repair in call.repairs}
    assert not any(call.repairs for call in strict.tool_calls)
    assert len(strict.tool_calls) < len(message.tool_calls)
    assert "nib" in _kept(strict)


_M3 = "]<]minimax[>["
SPELLINGS = [
    *(
        ("kimi_k2", f"<|tool_calls_section_begin|><|tool_call_begin|>{id}<|tool_call_argument_begin"
         '|>{"query": "nib", "limit": 2}<|tool_call_end|><|tool_calls_section_end|>', "misspelt_id")
        for id in ("functions.find5", "functionsfind5", "functions_find_1", "find_0")
    ),
    ("kimi_k2", '<|tool_call_section_begin|><|tool_call_begin|>functions.find:0<|tool_call_argument'
     '_begin|>{"query": "nib", "limit": 2}<|tool_call_end|><|tool_call_section_end|>',
     "misspelt_tag"),
    ("mistral_nemo", '[TOOL_CALLS]find[ARGS]{"query": "nib", "limit": 2}', "other_version"),
    ("mistral", '[TOOL_CALLS] find{"query": "nib", "limit": 2}', "other_version"),
    ("minimax_m3", f'{_M3}<tool_call>\n{_M3}invoke name="find">{_M3}<query>nib{_M3}</query>{_M3}'
     f"<limit>2{_M3}</limit>{_M3}</invoke>\n{_M3}</tool_call>", "misspelt_tag"),
    ("minimax_m3", f'{_M3}<tool_call>\n{_M3}<invoke name="find">{_M3}nib{_M3}</query>{_M3}<limit>'
     f"2{_M3}</limit>{_M3}</invoke>\n{_M3}</tool_call>", "missing_tag"),
    ("glm4_5", "find\n<arg_key>query</arg_key>\n<arg_value>nib</arg_value>\n<arg_key>limit"
     "</arg_key>\n<arg_value>2</arg_value>\n</tool_call>", "missing_open"),
    ("glm4_7", "find<arg_key>query</arg_key><arg_value>nib</arg_value><arg_key>limit</arg_key>"
     "<arg_value>2</arg_value>", "missing_open"),
    ("glm4_7", '<tool_call>find{"query": "nib", "limit": 2}</tool_call>', "json_arguments"),
    ("mistral_v13", 'find[ARGS]{"query": "nib", "limit": 2}', "missing_open"),
    ("mistral_v13", 'find[CALL_ID]abcdefghi[ARGS]{"query": "nib", "limit": 2}', "missing_open"),
    ("qwen3_coder", "<tool_call>\n<function=find>\n<parameter=query>\nnib\n</parameter >\n"
     "<parameter=limit>\n2\n</parameter>\n</function>\n</tool_call>", "misspelt_tag"),
    ("qwen3_5", "<tool_call>\n<function=find\n<parameter=query>\nnib\n</parameter>\n"
     "<parameter=limit>\n2\n</parameter>\n</function>\n</tool_call>", "misspelt_tag"),
    ("qwen3_coder", "<tool_call>\n<function=find>\n<parameter=query\nnib\n</parameter>\n"
     "<parameter=limit>\n2\n</parameter>\n</function>\n</tool_call>", "misspelt_tag"),
    *(
        ("qwen3_5", "<tool_call>\n<function=find>\n<parameter=query>\nnib\n</parameter>\n"
         f"<parameter=limit>\n2\n</parameter>\n</function>\n{stray}\n</tool_call>", repair)
        for stray, repair in (("</function>", "doubled_tag"), ("</function_call>", "stray_tag"))
    ),
    ("gemma4", '<|tool_call>call:find{query:<|"|>nib<|"|>limit:2}<tool_call|>', "missing_comma"),
    ("gemma4", '<|tool_call>call:find{{query:<|"|>nib<|"|>,limit:2}}<tool_call|>',
     "doubled_bracket"),
    ("hermes", '<tool_call>\n{"name": "find", "arguments": {{"query": "nib", "limit": 2}}}\n'
     "</tool_call>", "doubled_bracket"),
    ("hermes", '<tool_call>\n{"name": "find" "arguments": {"query": "nib" "limit": 2}}\n'
     "</tool_call>", "missing_comma"),
    ("llama3_1", '{"function": "find", "parameters": {"query": "nib", "limit": 2}}',
     "function_key"),
    ("hermes", '<tool_call>\n{"tool": "find", "input": {"query": "nib", "limit": 2}}\n</tool_call>',
     "input_key"),
    ("llama3_2", "[find(query='nib', limit=2)]", "python_calls"),
    ("llama4", "<|python_start|>[find(query='nib', limit=2)]<|python_end|>", "python_calls"),
    ("llama4", '<|python_tag|>{"name": "find", "parameters": {"query": "nib", "limit": 2}}',
     "misspelt_tag"),
    ("pythonic", '[{"name": "find", "parameters": {"query": "nib", "limit": 2}}]', "json_calls"),
    ("lfm2", '{"name": "find", "arguments": {"query": "nib", "limit": 2}}', "json_calls"),
    ("mistral_v13", '[{"name": "find", "arguments": {"query": "nib", "limit": 2}}]', "bare_json"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "repair"), SPELLINGS)
def test_a_spelling_that_models_use_in_place_of_the_family_s_is_read_and_named(
    name: str, text: str, repair: str
) -> None:
    """sgl-project/sglang#21377, QwenLM/Qwen3.8#178, exo-explore/exo#2281, hybridgroup/yzma#243,
    ollama/ollama#7824, vllm-project/vllm#32146, #47612 and #51075,
    vllm-project/vllm-gaudi#1724."""
    answer = _Answer(get_format(name), text, "content")

    message, strict = _read(answer, text), _read(answer, text, strict=True)

    assert _calls(message) == [("find", {"query": "nib", "limit": 2})]
    assert message.text == ""
    assert repair in message.tool_calls[0].repairs
    assert not any(call.repairs for call in strict.tool_calls)
    assert strict.text or strict.invalid_tool_calls
    assert "nib" in _kept(strict)


def test_calls_with_commas_between_them_are_read_and_a_comma_before_text_is_kept() -> None:
    """vllm-project/vllm#47612."""
    find = '{"name": "find", "parameters": {"query": "nib", "limit": 2}}'
    fmt = get_format("llama3_1")

    two = _read(_Answer(fmt, "", "content"), f"{find}, {find}")
    one = _read(_Answer(fmt, "", "content"), f"{find}, so it is")

    assert [call.repairs for call in two.tool_calls] == [(), ("comma_between",)]
    assert (len(one.tool_calls), one.text) == (1, ", so it is")


@pytest.mark.parametrize(
    ("literal", "said"),
    [
        ('"""a\n"b" c"""', 'a\n"b" c'),
        ("'''it's'''", "it's"),
        ("'nib' \"wort\"", "nibwort"),
        ('r"\\d+\\""', '\\d+\\"'),
        ('""', ""),
    ],
)
def test_every_spelling_of_a_python_string_is_read(literal: str, said: str) -> None:
    for name in ("pythonic", "lfm2", "olmo3"):
        opens, closes = {
            "pythonic": ("[", "]"),
            "lfm2": ("<|tool_call_start|>[", "]<|tool_call_end|>"),
            "olmo3": ("<function_calls>", "</function_calls>"),
        }[name]
        text = f"{opens}find(query={literal}, limit=2){closes}"
        message = _read(_Answer(get_format(name), "", "content"), text)

        assert _calls(message) == [("find", {"query": said, "limit": 2})]
        assert message.tool_calls[0].repairs == ()


UNMARKED = [
    name for name in VARIANTS if getattr(getattr(variant(name), "syntax", None), "unmarked", None)
]


@pytest.mark.parametrize("name", UNMARKED)
def test_a_call_that_lost_the_mark_before_its_name_is_read_at_the_start_of_a_line(
    name: str,
) -> None:
    answer = _answer(name, "find")
    assert answer is not None
    answer = answer._replace(start="content")
    found = re.search(r"\bfind\b", answer.text)
    assert found is not None
    text = answer.text[found.start() :]
    if "[ARGS]" not in text and "_key>" not in text and "tool_sep" not in text:
        text = 'find[ARGS]{"query": "wordquince", "limit": 2}'  # a family that writes arrays
    for before in ("", "I look.\n", "I look.\n\n", "find is what I need:\nfind\n"):
        message = _read(answer, before + text)

        assert _calls(message) == [("find", FIND.arguments)]
        assert message.text.rstrip() == before.rstrip()
        assert "missing_open" in message.tool_calls[0].repairs
        assert not _read(answer, before + text, strict=True).tool_calls
    for prose in ("I find ", "seek "):
        message = _read(answer, prose + text if prose[0] == "I" else prose + text[5:])

        assert message.tool_calls == ()
    message = _read(answer, "find it\nfind\nping\n- find: x")
    assert message.text == "find it\nfind\nping\n- find: x"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("mistral_v13", "[TOOL_CALLS]ping[ARGS]"),
        ("deepseek_v3_1", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>ping<｜tool▁sep｜>"
         "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"),
        ("kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>functions.ping:0"
         "<|tool_call_argument_begin|><|tool_call_end|><|tool_calls_section_end|>"),
        ("gemma4", "<|tool_call>call:ping<tool_call|>"),
        ("glm4_7", "<tool_call>ping</tool_call>"),
        ("solar_open", "<|tool_calls|><|tool_call:begin|>a1<|tool_call:name|>ping<|tool_call:args|>"
         "<|tool_call:end|>"),
    ],
)  # fmt: skip
def test_a_call_with_nothing_where_arguments_stand_has_none(name: str, text: str) -> None:
    assert _calls(_read(_Answer(get_format(name), text, "content"), text)) == [("ping", {})]


def test_a_call_considered_in_a_line_of_reasoning_is_none_if_reasoning_is_closed() -> None:
    text = f"I might send {HERMES}\n</tool_call> but no.\n</think>\n\nNo."

    message = _read(_Answer(get_format("qwen3_thinking"), text, "reasoning"), text)

    assert message.tool_calls == message.invalid_tool_calls == ()
    assert message.reasoning == text.partition("\n</think>")[0]
    assert message.text == "No."


def test_a_mark_named_in_reasoning_that_is_cut_off_stays_reasoning() -> None:
    text = "I may write <tool_call> or <tool_call>{} later"

    message = _read(_Answer(get_format("qwen3_thinking"), text, "reasoning"), text)

    assert message.reasoning == text
    assert not message.invalid_tool_calls


def test_a_call_of_another_version_of_dsml_is_read() -> None:
    spaced = (
        '<｜DSML｜ calls>\n<｜DSML｜ invoke name="find">\n'
        '<｜DSML｜ parameter name="query" string="true">nib</｜DSML｜ parameter>\n'
        '<｜DSML｜ parameter name="limit" string="false">2'
        "</｜DSML｜ parameter>\n</｜DSML｜ invoke>\n</｜DSML｜ calls>"
    )
    tight = spaced.replace("｜ ", "｜").replace("calls", "tool_calls")
    for name in ("deepseek_v3_2", "deepseek_v4", "deepseek_v4_1"):
        for text in (spaced, tight):
            message = _read(_Answer(get_format(name), text, "content"), text)

            assert _calls(message) == [("find", {"query": "nib", "limit": 2})]
            assert message.text == ""


def test_one_damaged_call_of_an_array_does_not_cost_the_others() -> None:
    text = (
        '[TOOL_CALLS] [{"name": "find", "arguments": {"query": "\\ud83e", "limit": 2}}, '
        '{"name": "ping", "arguments": {}}]'
    )

    message = _read(_Answer(get_format("mistral"), text, "content"), text)

    assert _calls(message) == [("ping", {})]
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
    message = _read(_Answer(get_format(name), text, "content"), text)

    assert not message.tool_calls
    assert "name" in cast("Any", message.invalid_tool_calls)[0].reason
