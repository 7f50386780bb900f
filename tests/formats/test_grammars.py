"""The grammar accepts what `render` writes and refuses calls that do not fit their schema."""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pytest

from antiphon.errors import RenderError, UnknownNameError, UsageError
from antiphon.formats import Format, get_format
from antiphon.formats._react import React
from antiphon.messages import Conversation, JsonObject, Message, ToolCall, ToolSpec
from formats.format_cases import VARIANTS, conversations, variant, written

llguidance = pytest.importorskip("llguidance")

UNSPECIAL: frozenset[str] = frozenset()


class _Bytes:
    """A vocabulary of single bytes, so that a grammar of texts can be tried without a model."""

    eos_token_id = 256
    bos_token_id = None
    tokens = (*(bytes([i]) for i in range(256)), b"<eos>")
    special_token_ids = (256,)

    def __call__(self, text: bytes | str) -> list[int]:
        return list(text if isinstance(text, bytes) else text.encode())


VOCABULARY: Any = llguidance.LLTokenizer(llguidance.TokenizerWrapper(_Bytes()))


@lru_cache(maxsize=8)
def matcher_of(lark: str) -> Any:
    """A matcher of a grammar, at its start."""
    matcher: Any = llguidance.LLMatcher(VOCABULARY, lark)
    assert not matcher.get_error(), matcher.get_error()
    return matcher


def accepts(lark: str, text: str) -> bool:
    """Whether a grammar takes a text as a whole."""
    matcher = matcher_of(lark)
    matcher.reset()
    tokens = list(text.encode())
    return matcher.try_consume_tokens(tokens) == len(tokens) and bool(matcher.is_accepting())


def grammar(fmt: Format, tools: Sequence[ToolSpec], **options: Any) -> str:
    """A format's grammar for a vocabulary without special tokens."""
    return fmt.grammar(tools, **options).to_lark(specials=UNSPECIAL)


def _answers(fmt: Format) -> list[tuple[str, str, Conversation, int]]:
    found: list[tuple[str, str, Conversation, int]] = []
    for conversation in conversations().values():
        for index, message in enumerate(conversation.messages):
            if message.role != "assistant":
                continue
            upto = Conversation(conversation.messages[: index + 1], conversation.tools)
            try:
                rendered = fmt.render(upto)
            except RenderError:
                continue
            text, start = written(rendered, index, fmt)
            found.append((text, start, upto, index))
    return found


@pytest.mark.parametrize("name", [n for n in VARIANTS if n != "react_python"])
def test_a_grammar_accepts_what_is_rendered(name: str) -> None:
    """With the tools of all conversations on offer, so that a family has few grammars."""
    fmt = variant(name)
    answers = [found for found in _answers(fmt) if found[2].tools]
    tools = {spec.name: spec for _, _, conversation, _ in answers for spec in conversation.tools}

    for start in sorted({start for _, start, _, _ in answers}):
        lark = grammar(fmt, tuple(tools.values()), start=start)
        for text in (text for text, begun, _, _ in answers if begun == start):
            assert accepts(lark, text + _ending(fmt, text)), text


@pytest.mark.parametrize("name", [n for n in VARIANTS if n != "react_python"])
def test_a_grammar_that_asks_for_calls_accepts_calls_as_they_are_rendered(name: str) -> None:
    """With all that the family writes before them where it writes no text."""
    fmt = variant(name)
    calls = [ToolCall("book", GOOD[0], "call00001"), ToolCall("ping", {}, "call00002")]
    tools = (TOOL, ToolSpec("ping"))
    for made in (calls[:1], calls[1:], calls):
        answer = Message.assistant(tool_calls=made)
        try:
            rendered = fmt.render(Conversation((Message.user("Go."), answer), tools))
        except RenderError:  # it writes one call at a time
            assert made is calls
            continue
        text, start = written(rendered, 1, fmt)

        assert accepts(
            grammar(fmt, tools, choice="required", start=start), text + _ending(fmt, text)
        )


def _ending(fmt: Format, text: str) -> str:
    """ReAct writes the mark that ends its calls; a grammar has it, a parsed text has not."""
    prompted = isinstance(fmt, React)
    acts = prompted and fmt.words.action in text
    return fmt.stop[0] if acts else ""


TOOL = ToolSpec(
    "book",
    "Book a seat.",
    {
        "type": "object",
        "properties": {
            "flight": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{1,4}$"},
            "row": {"type": "integer", "minimum": 0},
            "kind": {"enum": ["window", "aisle"]},
            "price": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "who": {"$ref": "#/$defs/person"},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2},
        },
        "required": ["flight", "row"],
        "$defs": {
            "person": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "boss": {"$ref": "#/$defs/person"}},
                "required": ["name"],
            }
        },
    },
)
GOOD: list[dict[str, Any]] = [
    {"flight": "LX318", "row": 14},
    {"flight": "LX3", "row": 0, "kind": "window", "price": None},
    {"flight": "LX3", "row": 0, "price": -12.5e10, "who": {"name": 'A\n"b', "boss": {"name": "ü"}}},
    {"flight": "LX3", "row": 7, "tags": []},
    {"flight": "LX3", "row": 7, "tags": ["a", "日本語"]},
]
BAD: list[dict[str, Any]] = [
    {"flight": "LX318"},
    {"flight": "lx318", "row": 1},
    {"flight": "LX318", "row": -1},
    {"flight": "LX318", "row": 1.5},
    {"flight": "LX318", "row": "1"},
    {"flight": "LX318", "row": 1, "kind": "middle"},
    {"flight": "LX318", "row": 1, "other": 1},
    {"flight": "LX318", "row": 1, "price": True},
    {"flight": "LX318", "row": 1, "who": {"boss": {"name": "B"}}},
    {"flight": "LX318", "row": 1, "tags": ["long one"]},
    {"flight": "LX318", "row": 1, "tags": ["a", "b", "c"]},
]


def _call(fmt: Format, arguments: dict[str, Any], tool: str = "book") -> str:
    answer = Message.assistant(tool_calls=[ToolCall(tool, arguments)])
    rendered = fmt.render(Conversation((Message.user("Go."), answer), (TOOL,)))
    text = written(rendered, 1, fmt)[0]
    return text.split("</think>\n\n")[-1] + _ending(fmt, text)


@pytest.mark.parametrize("name", ["hermes", "smollm2", "llama3_2", "react_en", "qwen3_nothinking"])
def test_a_required_call_obeys_its_schema(name: str) -> None:
    fmt = variant(name)
    lark = grammar(fmt, [TOOL], choice="required")

    assert all(accepts(lark, _call(fmt, arguments)) for arguments in GOOD)
    assert not any(accepts(lark, _call(fmt, arguments)) for arguments in BAD)
    assert not accepts(lark, _call(fmt, GOOD[0], tool="other"))
    assert not accepts(lark, "Let me think.")


def test_automatic_choice_leaves_text_free_but_no_broken_call() -> None:
    fmt = get_format("smollm2")
    lark = grammar(fmt, [TOOL])

    assert accepts(lark, "Just <b>text</b> < 5 and [a list]")
    assert accepts(lark, "Look.<tool_call>[\n" + _call(fmt, GOOD[0])[len("<tool_call>[\n") :])
    assert not accepts(lark, "Look.<tool_call>[\n{}\n]</tool_call>")
    assert not accepts(lark, "The mark <tool_call> in text")


def test_parallel_calls_can_be_switched_off() -> None:
    fmt = get_format("hermes")
    two = "\n".join([_call(fmt, GOOD[0])] * 2)

    assert accepts(grammar(fmt, [TOOL], choice="required"), two)
    assert not accepts(grammar(fmt, [TOOL], choice="required", parallel=False), two)


def test_a_named_tool_is_the_only_one() -> None:
    fmt = get_format("hermes")
    ping = ToolSpec("ping")

    lark = grammar(fmt, [TOOL, ping], choice="ping")

    assert accepts(lark, '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>')
    assert not accepts(lark, _call(fmt, GOOD[0]))


def test_what_a_grammar_does_not_hold_is_said() -> None:
    tool = ToolSpec(
        "f",
        "",
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "format": "date"},
                "b": {"type": "integer", "maximum": 5},
            },
        },
    )

    assert get_format("hermes").grammar([tool]).unheld == ("f.b: maximum", "f.a: format")


def test_a_choice_that_names_no_tool_is_refused() -> None:
    with pytest.raises(UnknownNameError, match="no tool named 'pong'"):
        get_format("hermes").grammar([ToolSpec("ping")], choice="pong")
    with pytest.raises(UsageError, match="needs tools"):
        get_format("hermes").grammar([], choice="required")


def test_marks_that_are_tokens_are_token_literals_in_gbnf() -> None:
    gbnf = get_format("hermes").grammar([ToolSpec("ping")], choice="required").to_gbnf()

    assert '<tool_call> "\\n{\\"name\\": \\"ping\\"' in gbnf
    assert json.dumps("<tool_call>") not in gbnf


@pytest.mark.parametrize("name", ["qwen2_5", "smollm2", "llama3_2", "granite4"])
def test_a_regular_grammar_is_a_regular_expression(name: str) -> None:
    fmt = variant(name)
    parameters = {k: v for k, v in TOOL.parameters["properties"].items() if k != "who"}
    tool = ToolSpec("book", "", {**TOOL.parameters, "properties": parameters})

    regex = re.compile(fmt.grammar([tool], choice="required", parallel=False).to_regex())

    assert regex.fullmatch(_call(fmt, GOOD[0]))
    assert not any(regex.fullmatch(_call(fmt, arguments)) for arguments in BAD)


def test_free_text_and_recursion_are_no_regular_expression() -> None:
    with pytest.raises(UsageError, match="free text"):
        get_format("hermes").grammar([ToolSpec("ping")]).to_regex()
    with pytest.raises(UsageError, match="refers to itself"):
        get_format("qwen2_5").grammar([TOOL], choice="required").to_regex()


@pytest.mark.parametrize("name", ["hermes", "llama3_2", "qwen3_hybrid", "smollm2"])
def test_an_answer_is_held_to_a_schema_and_calls_stay_possible(name: str) -> None:
    fmt = variant(name)
    schema: Any = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = (ToolSpec("ping", "", {"type": "object", "properties": {}}),)
    alone = fmt.grammar((), answer=schema).to_lark(specials=UNSPECIAL)
    beside = fmt.grammar(tools, answer=schema).to_lark(specials=UNSPECIAL)
    rendered = fmt.render(
        Conversation(
            (Message.user("Go."), Message.assistant(tool_calls=[ToolCall("ping", {})])), tools
        )
    )
    call, _ = written(rendered, 1, fmt)

    assert accepts(alone, '{"n": 3}')
    assert not accepts(alone, '{"n": "3"}')
    assert not accepts(alone, "three")
    assert accepts(beside, '{"n": 3}')
    assert accepts(beside, call)


@pytest.mark.parametrize(
    ("answer", "right", "wrong"),
    [
        ({"type": "string", "pattern": "^[^x]+$"}, ['"a\\"b\\n"', '"é"'], ['"x"', '"\n"', '""']),
        ({"type": "string", "pattern": '^["a]$'}, ['"\\""', '"a"'], ['"b"']),
        ({"type": "array", "items": {"const": 1}, "maxItems": 1}, ["[]", "[1]"], ["[1, 1]"]),
        (
            {"type": "array", "prefixItems": [{"const": 1}, {"const": 2}]},
            ["[]", "[1]", "[1, 2]"],
            ["[2]", "[1, 2, 3]"],
        ),
        (
            {"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "minItems": 2},
            ["[1, 2]", "[1, 2, 2]"],
            ["[]", "[1]", "[1, 1]"],
        ),
        ("yes|no( #[0-9]{1,2})?", ["yes", "no", "no #12"], ["yes ", "no #", "no #123", ""]),
        ('say "[^"\n]*"', ['say "a\\b"', 'say ""'], ['say "\n"', "say"]),
    ],
)
def test_an_answer_is_held_to_a_schema_or_a_pattern(
    answer: "JsonObject | str", right: list[str], wrong: list[str]
) -> None:
    lark = get_format("qwen2_5").grammar((), answer=answer).to_lark()

    assert [text for text in right if not accepts(lark, text)] == []
    assert [text for text in wrong if accepts(lark, text)] == []


def test_a_pattern_that_no_grammar_holds_is_refused() -> None:
    with pytest.raises(UsageError, match="look-around"):
        get_format("qwen2_5").grammar((), answer="(?=a)a")


def test_what_is_repeated_a_counted_number_of_times_is_a_rule_in_gbnf() -> None:
    """llama.cpp refuses to write out large groups many times."""
    schema: JsonObject = {"type": "string", "pattern": "^(?:(?:ab){1,40}|c){0,200}$"}
    gbnf = get_format("qwen2_5").grammar((), answer=schema).to_gbnf()

    assert re.findall(r"(\S*)\{\d+,\d+\}", gbnf) == ["each", "each1"]
