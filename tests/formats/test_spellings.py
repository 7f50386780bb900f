"""Marks, names, ids and values that models spell otherwise than their family does: what was meant
is read and the slip is named, and off when strict; where it cannot be told, the call is refused
with its text.
"""

import re
from typing import Any

import pytest

from antiphon.formats import get_format
from formats.format_cases import VARIANTS, variant
from formats.slip_cases import FIND, Answer, answer_of, calls_of, kept_of, read, tool

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
    ("xlam", '[{"arguments": {"query": "nib", "limit": 02}, "name": "find"}]', "bad_number"),
    *(
        ("hermes", f"<tool_call>\n{call}\n</tool_call>", repair)
        for call, repair in (
            ('{"name": "find", "query": "nib", "limit": 2}', "flat_arguments"),
            ('{"find": {"query": "nib", "limit": 2}}', "name_as_key"),
            ('{"action": "find", "action_input": {"query": "nib", "limit": 2}}', "action_key"),
            ('{"name": "find", "arguments": [{"query": "nib", "limit": 2}]}', "array_arguments"),
            ('{"tool_calls": [{"name": "find", "arguments": {"query": "nib", "limit": 2}}]}',
             "calls_wrapper"),
            ('{name: "find", arguments: {query: "nib", limit: 2}}', "bare_key"),
            ('{"name": "find", "arguments": {"query": "nib", limit": 2}}', "missing_quote"),
            ('{"name": "find", "arguments": {"query": "nib", "limit": +2}}', "bad_number"),
            ("<function=find>\n<parameter=query>\nnib\n</parameter>\n<parameter=limit>\n2\n"
             "</parameter>\n</function>", "tagged_call"),
        )
    ),
    *(
        ("hermes", f'{opens}\n{{"name": "find", "arguments": {{"query": "nib", "limit": 2}}}}\n'
         f"{closes}", repair)
        for opens, closes, repair in (
            ("<tools>", "</tools>", "other_marks"),
            ("<function_call>", "</function_call>", "other_marks"),
            ("<|tool_call|>", "<|/tool_call|>", "other_marks"),
            ("<tool_call>", "</tool_calls>", "misspelt_tag"),
            ("<tool_call>", "</ tool_call >", "misspelt_tag"),
            ("<tool_call>", "</tool_ca", "missing_end"),
        )
    ),
    ("llama3_1", '<function=find>{"query": "nib", "limit": 2}</function>', "tagged_call"),
    *(
        ("minimax_m2", f'{opens}\n<invoke name="find">\n<parameter name="query">nib</parameter>\n'
         f'<parameter name="limit">2</parameter>\n</invoke>\n{closes}', "other_marks")
        for opens, closes in (("<tool_call>", "</tool_call>"), ("<function_calls>",
                              "</function_calls>"), ("[TOOL_CALL]", "[/TOOL_CALL]"))
    ),
    ("minimax_m2", '[TOOL_CALL]\n{"name": "find", "arguments": {"query": "nib", "limit": 2}}\n'
     "[/TOOL_CALL]", "other_marks"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "repair"), SPELLINGS)
def test_a_spelling_that_models_use_in_place_of_the_family_s_is_read_and_named(
    name: str, text: str, repair: str
) -> None:
    """sgl-project/sglang#21377, QwenLM/Qwen3.8#178, exo-explore/exo#2281, hybridgroup/yzma#243,
    ollama/ollama#7824, vllm-project/vllm#32146, #47612, #47901 and #51075,
    vllm-project/vllm-gaudi#1724, lmstudio-ai/lmstudio-bug-tracker#1177, ollama/ollama#14493."""
    answer = Answer(get_format(name), text, "content")

    message, strict = read(answer, text), read(answer, text, strict=True)

    assert calls_of(message) == [("find", {"query": "nib", "limit": 2})]
    assert message.text == ""
    assert repair in message.tool_calls[0].repairs
    assert not any(call.repairs for call in strict.tool_calls)
    assert strict.text or strict.invalid_tool_calls
    assert "nib" in kept_of(strict)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hermes", '<tool_call>\n{"name": "NAME", "arguments": {"query": "nib", "limit": 2}}\n'
         "</tool_call>"),
        ("gemma4", '<|tool_call>call:NAME{query:<|"|>nib<|"|>,limit:2}<tool_call|>'),
        ("qwen3_coder", "<tool_call>\n<function=NAME>\n<parameter=query>\nnib\n</parameter>\n"
         "<parameter=limit>\n2\n</parameter>\n</function>\n</tool_call>"),
        ("pythonic", "[NAME(query='nib', limit=2)]"),
    ],
)  # fmt: skip
def test_a_name_with_a_namespace_before_it_is_of_the_tool_on_offer(name: str, text: str) -> None:
    """jundot/omlx#1830 and #1854."""
    answer = Answer(get_format(name), "", "content")
    for namespace in ("functions.", "default_api.", "google.mcp."):
        message = read(answer, text.replace("NAME", f"{namespace}find"))
        strict = read(answer, text.replace("NAME", f"{namespace}find"), strict=True)

        assert calls_of(message) == [("find", {"query": "nib", "limit": 2})]
        assert message.tool_calls[0].repairs == ("namespaced_name",)
        assert "find" not in [call.name for call in strict.tool_calls]
        assert "nib" in kept_of(strict)
    for other in ("finder", "tofind", "find.all", "functions.seek"):
        assert "find" not in [c.name for c in read(answer, text.replace("NAME", other)).tool_calls]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("hermes", '<tool_call>\n{"name": "find", "arguments": {"query": "the "big" one", "limit": '
         "2}}\n</tool_call>", 'the "big" one'),
        ("hermes", '<tool_call>\n{"name": "find", "arguments": {"query": "the "big"", "limit": '
         "2}}\n</tool_call>", None),
        ("llama3_1", '{"name": "find", "parameters": {"query": "a "b c" d", "limit": 2}}',
         'a "b c" d'),
        ("gemma4", "<|tool_call>call:find{query:'it's a nib, eh',limit:2}<tool_call|>",
         "it's a nib, eh"),
        ("pythonic", "[find(query='it's a nib', limit=2)]", "it's a nib"),
        ("pythonic", "[find(query='a' 'b', limit=2)]", "ab"),
        ("pythonic", "[find(query='a' + 'b', limit=2)]", None),
    ],
)  # fmt: skip
def test_a_quote_that_no_backslash_stands_before_does_not_end_a_string_where_a_word_is_glued_to_it(
    name: str, text: str, said: str | None
) -> None:
    answer = Answer(get_format(name), "", "content")

    message, strict = read(answer, text), read(answer, text, strict=True)

    assert [c["query"] for _, c in calls_of(message)] == ([] if said is None else [said])
    if said is None:
        assert text in kept_of(message)
    elif said != "ab":
        assert "unescaped_quote" in message.tool_calls[0].repairs
        assert not strict.tool_calls


def test_a_mark_of_another_family_in_prose_or_around_other_data_is_text() -> None:
    for text in (
        "<tools> are listed here.",
        '<tools>\n{"name": "hammer", "weight": 2}\n</tools>',
        "Use\n<function_call>\nto call.",
        "<function=find> is how it begins.",
        '[TOOL_CALL]\n{"a": 1}\n[/TOOL_CALL]',
    ):
        for name in ("hermes", "minimax_m2"):
            assert read(Answer(get_format(name), "", "content"), text).text == text


def test_an_object_that_names_a_tool_and_holds_none_of_its_arguments_has_none() -> None:
    text = '<tool_call>\n{"name": "ping", "why": 1}\n</tool_call>'

    message = read(Answer(get_format("hermes"), "", "content"), text)

    assert [(c.name, c.arguments, c.repairs) for c in message.tool_calls] == [
        ("ping", {}, ("extra_key",))
    ]


def test_a_bare_array_of_calls_holds_one_of_a_tool_without_parameters() -> None:
    """vllm-project/vllm#47901: what stands behind a call without arguments keeps its own."""
    find = '{"name": "find", "arguments": {"query": "nib", "limit": 2}}'
    for ping, repairs in (
        ('{"name": "ping", "arguments": {}}', ()),
        ('{"name": "ping"}', ("no_arguments",)),
        ('{"arguments": {}, "name": "ping"}', ()),
    ):
        message = read(Answer(get_format("xlam"), "", "content"), f"[{ping}, {find}]")

        assert calls_of(message) == [("ping", {}), ("find", {"query": "nib", "limit": 2})]
        assert message.tool_calls[0].repairs == repairs


def test_calls_with_commas_between_them_are_read_and_a_comma_before_text_is_kept() -> None:
    """vllm-project/vllm#47612."""
    find = '{"name": "find", "parameters": {"query": "nib", "limit": 2}}'
    fmt = get_format("llama3_1")

    two = read(Answer(fmt, "", "content"), f"{find}, {find}")
    one = read(Answer(fmt, "", "content"), f"{find}, so it is")

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
        message = read(Answer(get_format(name), "", "content"), text)

        assert calls_of(message) == [("find", {"query": said, "limit": 2})]
        assert message.tool_calls[0].repairs == ()


UNMARKED = [
    name
    for name in VARIANTS
    if (found := getattr(getattr(variant(name), "syntax", None), "unmarked", None))
    and not found.alone
]


@pytest.mark.parametrize("name", UNMARKED)
def test_a_call_that_lost_the_mark_before_its_name_is_read_at_the_start_of_a_line(
    name: str,
) -> None:
    answer = answer_of(name, "find")
    assert answer is not None
    answer = answer._replace(start="content")
    found = re.search(r"\bfind\b", answer.text)
    assert found is not None
    text = answer.text[found.start() :]
    if "[ARGS]" not in text and "_key>" not in text and "tool_sep" not in text:
        text = 'find[ARGS]{"query": "wordquince", "limit": 2}'  # a family that writes arrays
    for before in ("", "I look.\n", "I look.\n\n", "find is what I need:\nfind\n"):
        message = read(answer, before + text)

        assert calls_of(message) == [("find", FIND.arguments)]
        assert message.text.rstrip() == before.rstrip()
        assert "missing_open" in message.tool_calls[0].repairs
        assert not read(answer, before + text, strict=True).tool_calls
    for prose in ("I find ", "seek "):
        message = read(answer, prose + text if prose[0] == "I" else prose + text[5:])

        assert message.tool_calls == ()
    message = read(answer, "find it\nfind\nping\n- find: x")
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
    assert calls_of(read(Answer(get_format(name), text, "content"), text)) == [("ping", {})]


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
            message = read(Answer(get_format(name), text, "content"), text)

            assert calls_of(message) == [("find", {"query": "nib", "limit": 2})]
            assert message.text == ""


_DSML = (
    '<BARSfunction_calls>\n<BARSinvoke name="find">\n'
    '<BARSparameter name="query" string="true">nib</BARSparameter>\n'
    '<BARSparameter name="limit" string="false">2</BARSparameter>\n</BARSinvoke>\n'
    "</BARSfunction_calls>"
)
_NIB: tuple[str, dict[str, Any]] = ("find", {"query": "nib", "limit": 2})
_PING: tuple[str, dict[str, Any]] = ("ping", {})


@pytest.mark.parametrize(
    "token",
    ["|DSML|", "DSML", "｜｜DSML｜｜", "||DSML||", "|DSML｜", "｜DSML|", "｜DSML", "DSML｜"],
)
def test_dsml_with_other_bars_is_read_and_named(token: str) -> None:
    for name, block in (
        ("deepseek_v3_2", "tool_calls"),
        ("deepseek_v4", "function_calls"),
        ("deepseek_v4", "tool_calls"),
    ):
        for before in ("", "I look.\n\n"):
            text = _DSML.replace("BARS", token).replace("function_calls", block)
            answer = Answer(get_format(name), "", "content")

            message = read(answer, before + text)
            strict = read(answer, before + text, strict=True)

            assert calls_of(message) == [_NIB]
            assert message.tool_calls[0].repairs == ("misspelt_bars",)
            assert message.text.rstrip() == before.rstrip()
            assert strict.text == before + text


def test_dsml_without_bars_in_prose_is_text() -> None:
    text = "<DSML> is markup, as is <|DSML|>.\n\n<DSML>\nIt has no <DSML invoke here."

    assert read(Answer(get_format("deepseek_v4"), "", "content"), text).text == text


def _kimi(id: str, arguments: str = '{"query": "nib", "limit": 2}') -> str:
    return f"<|tool_call_begin|>{id}<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"


def _kimi_section(*calls: str) -> str:
    return f"<|tool_calls_section_begin|>{''.join(calls)}<|tool_calls_section_end|>"


@pytest.mark.parametrize(
    "id",
    ["call_0", "0", "", ":0", "functions.:0", "functions.0", "call_a1b2c3d4e5", "chatcmpl-tool-12"],
)
def test_a_call_with_an_id_and_no_name_is_of_the_only_tool_that_its_arguments_fit(id: str) -> None:
    """sgl-project/sglang#25362, vllm-project/vllm#46127."""
    answer = Answer(get_format("kimi_k2"), "", "content")
    text = _kimi_section(_kimi(id), _kimi(id, '{"path": "p", "body": "b"}'))

    message, strict = read(answer, text), read(answer, text, strict=True)

    assert calls_of(message) == [_NIB, ("write", {"path": "p", "body": "b"})]
    assert {call.repairs for call in message.tool_calls} == {("missing_name",)}
    assert not strict.tool_calls
    assert kept_of(strict).count("nib") == 1


def test_a_call_whose_name_stands_among_its_arguments_is_of_that_tool() -> None:
    """vllm-project/vllm#32146."""
    text = _kimi_section(_kimi("call_abc123def456", '{"name": "find", "query": "nib", "limit": 2}'))

    message = read(Answer(get_format("kimi_k2"), "", "content"), text)

    assert calls_of(message) == [_NIB]
    assert message.tool_calls[0].repairs == ("missing_name",)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ('{"zip": "nib"}', "fit none"),
        ('{"query": "nib", "limit": "two"}', "fit none"),
        ('{"query": "nib"}', "fit none"),
        ("{}", "say nothing"),
    ],
)
def test_a_call_without_a_name_whose_arguments_do_not_tell_it_is_refused_alone(
    arguments: str, reason: str
) -> None:
    answer = Answer(get_format("kimi_k2"), "", "content")

    message = read(answer, _kimi_section(_kimi("call_0", arguments), _kimi("functions.find:1")))

    (invalid,) = message.invalid_tool_calls
    assert reason in invalid.reason
    assert arguments in invalid.raw
    assert invalid.id == "call_0"
    assert calls_of(message) == [_NIB]


def test_a_call_without_a_name_that_fits_two_tools_is_refused_with_both() -> None:
    tools = (tool("find", query={"type": "string"}), tool("seek", query={"type": "string"}))
    text = _kimi_section(_kimi("call_0", '{"query": "nib"}'))

    message = get_format("kimi_k2").parse(text, tools=tools)

    assert not message.tool_calls
    assert "fit find, seek" in message.invalid_tool_calls[0].reason


def test_a_call_of_a_tool_that_is_not_on_offer_keeps_its_name() -> None:
    for id in ("functions.call_taxi:0", "call_taxi", "tool_2b"):
        message = read(Answer(get_format("kimi_k2"), "", "content"), _kimi_section(_kimi(id)))

        assert message.tool_calls[0].name == id.removeprefix("functions.").removesuffix(":0")


_STEP3 = (
    "<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>"
    '<steptml:invoke name="find">\n'
    '<steptml:parameter name="query">nib</steptml:parameter>\n'
    '<steptml:parameter name="limit">2</steptml:parameter>\n'
    "</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>"
)


@pytest.mark.parametrize(
    ("mark", "spaced"),
    [
        ("function<", "function\n<"),
        ("｜>function", "｜>\n function"),
        ("<｜tool_sep", "<｜ tool_sep"),
        ("sep｜><", "sep｜>\n<"),
        ("<steptml", "< steptml"),
        ("<steptml", "<\nsteptml"),
        ("</steptml:invoke>", "</steptml:invoke\n>"),
        ("</steptml:invoke>", "</steptml:invoke>\n"),
        ("</steptml:parameter>", "</steptml:parameter\n>"),
        ("steptml:parameter ", "steptml:parameter\n"),
    ],
)
def test_white_space_inside_a_mark_of_step3_does_not_cost_the_call(mark: str, spaced: str) -> None:
    answer, text = Answer(get_format("step3"), "", "content"), _STEP3.replace(mark, spaced)

    message, strict = read(answer, text), read(answer, text, strict=True)

    assert text != _STEP3
    assert calls_of(message) == [_NIB]
    assert message.text == ""
    assert not any(call.repairs for call in strict.tool_calls)
    assert "nib" in kept_of(strict)


BARE_LINES = ("pythonic", "toolace", "llama3_1", "llama3_2", "llama4", "olmo3", "lfm2")


@pytest.mark.parametrize("name", BARE_LINES)
def test_an_answer_of_nothing_but_lines_of_python_calls_is_calls(name: str) -> None:
    answer = Answer(get_format(name), "", "content")
    for text, calls in (
        ("find(query='nib', limit=2)", [_NIB]),
        ("\nfind(query='nib', limit=2)\nping()\n", [_NIB, _PING]),
        ('find(\n    query="nib",\n    limit=2,\n)', [_NIB]),
    ):
        message, strict = read(answer, text), read(answer, text, strict=True)

        assert calls_of(message) == calls
        assert message.text.strip() == ""
        assert all("bare_calls" in call.repairs for call in message.tool_calls)
        assert strict.text == text


@pytest.mark.parametrize("name", BARE_LINES)
@pytest.mark.parametrize(
    "text",
    [
        "find(query='nib', limit=2)\nis what I would call.",
        "I do.\nfind(query='nib', limit=2)",
        "ping() is a tool.",
        "seek(query='nib')",
        "find(query='nib', limit=2)\nseek(query='nib')",
        "find(query, limit)",
        "find(query='nib'",
        "find (a tool) is what I need",
        "find",
    ],
)
def test_a_line_like_a_call_in_an_answer_of_more_is_text(name: str, text: str) -> None:
    message = read(Answer(get_format(name), "", "content"), text)

    assert message.text == text
    assert not message.tool_calls
    assert not message.invalid_tool_calls
