"""What a chat template's own answers look like: told by running it on a few that are known.

How it takes arguments, which marks end a turn, and which known family's parser and grammar read
what it writes.  A family is taken only if it reads every answer back exactly, and its grammar only
if it writes the same calls.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import pairwise, product
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

from antiphon.errors import AntiphonError, UsageError
from antiphon.formats._grammar import CallForm, calls_of
from antiphon.formats._names import family, list_formats, with_variants
from antiphon.formats._scan import Parser, Syntax
from antiphon.formats._template_rows import Rows, Source, Spelling, Unwritten
from antiphon.formats._template_spans import Span, find_spans
from antiphon.formats._types import Format, Start
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec

_TOOL = ToolSpec(
    "find_city",
    "Find a city.",
    {
        "type": "object",
        "properties": {
            "days": {"type": "integer", "enum": [3]},
            "near": {"type": "boolean", "enum": [True]},
            "city": {"type": "string", "enum": ["Lima"]},
        },
        "required": ["days", "near", "city"],
    },
)
_CALL = ToolCall("find_city", {"days": 3, "near": True, "city": "Lima"}, "call00000")
_RESULT = Message.tool("Nineteen degrees", call_id="call00000", name="find_city")
_USER = Message.user("How warm is Lima")
_THANKS = Message.user("Thank you")


@dataclass(frozen=True, slots=True)
class Reading:
    """What probing a template tells."""

    spelling: Spelling
    """How it takes messages."""
    ends: tuple[str, ...]
    """Marks that end the model's turn."""
    syntax: Syntax
    """The table that reads what it writes."""
    family: str = ""
    """The family whose table it is; ``""`` where no calls are read."""
    call_form: CallForm | None = None
    """How calls stand in its text, where a family writes them so."""
    why_no_calls: str = ""
    """Why calls are refused, where they are."""
    prefix_stable: bool = False
    """Whether a longer conversation extends the text of a shorter one."""

    @property
    def block(self) -> tuple[str, str]:
        """The marks around reasoning; empty where there is none."""
        thinking = self.syntax.thinking
        return (thinking[0].open, thinking[0].close) if thinking else ("", "")


def reading_of(source: Source) -> Reading:
    """What probing a template tells.

    Raises:
        UsageError: The template does not even write a question.
    """
    spelling = Spelling(content=_content_of(source))
    refused: list[str] = []
    arguments = _arguments_of(source, spelling, refused)
    spelling = replace(spelling, arguments=arguments or "object")
    ends = _ends_of(source, spelling)
    plain = list(_answers(source, spelling, ends, [], calls=False))
    acts = list(_answers(source, spelling, ends, refused, calls=True)) if arguments else []
    stable = _is_stable(source, spelling)
    fitting = [(f, syntax) for f, syntax in _tables() if _reads(syntax, plain)]
    for f, syntax in fitting:
        if not acts or not _reads(syntax, acts):
            continue
        form = next((g for g in _forms(fitting, acts)), None)
        return Reading(spelling, ends, syntax, f.name, form, "", stable)
    because = f" ({refused[-1]})" if refused else ""
    why = (
        "the chat template writes calls as no known family does, so they could not be read back; "
        "name the family whose text it is"
        if acts
        else f"the chat template writes no tool calls{because}; "
        "use a prompted format, for example 'react_en'"
    )
    thinking = fitting[0][1].thinking if fitting else ()
    return Reading(spelling, ends, Syntax(thinking=thinking), "", None, why, stable)


def _text(
    source: Source,
    spelling: Spelling,
    *messages: Message,
    generate: bool = False,
    tools: bool = False,
) -> str:
    offered = (_TOOL,) if tools or any(m.tool_calls for m in messages) else ()
    rows = Rows(Conversation(messages, offered), spelling)
    return source.text(rows.real(), generate=generate)


def _content_of(source: Source) -> Literal["text", "parts"]:
    ways: list[tuple[Literal["text", "parts"], bool]]
    ways = [("text", False), ("parts", False), ("text", True), ("parts", True)]
    for content, tools in ways:
        try:
            if _USER.text in _text(source, Spelling(content=content), _USER, tools=tools):
                return content
        except Unwritten:
            continue
    raise UsageError("the chat template does not write what a user says; name a family instead")


def _arguments_of(
    source: Source, spelling: Spelling, refused: list[str]
) -> Literal["object", "string"] | None:
    """How arguments are given so that they are written once and not as Python prints a dict."""
    call = Message.assistant(tool_calls=[_CALL])
    for arguments in ("object", "string"):
        way = replace(spelling, arguments=arguments)
        try:
            text = _text(source, way, _USER, call, _RESULT, generate=True)
        except Unwritten as error:
            refused.append(str(error))
            continue
        text = text.partition(_USER.text)[2]
        if "Lima" in text and "{'days'" not in text and '\\"days' not in text:
            return arguments
    return None


def _ends_of(source: Source, spelling: Spelling) -> tuple[str, ...]:
    """Marks that end the model's turn: behind an answer, and behind a call."""
    found: list[str] = []
    answer = Message.assistant("It is warm")
    call = Message.assistant(tool_calls=[_CALL])
    for message, last, following in (
        (answer, "It is warm", _THANKS),
        (call, "Lima", _RESULT),
    ):
        try:
            alone = _text(source, spelling, _USER, message).rpartition(last)[2]
            text = _text(source, spelling, _USER, message, following)
        except Unwritten:
            continue
        between = text.rpartition(following.text)[0].rpartition(last)[2]
        found.append(_end_of(source, alone.rstrip(), between, found))
    return tuple(dict.fromkeys(mark for mark in (*found, source.eos) if mark))


def _end_of(source: Source, alone: str, between: str, known: list[str]) -> str:
    """The mark at the end of a turn that nothing follows, else the first one that follows it.

    Where the vocabulary names no marks it is all that stands behind an answer.
    """
    for mark in (*sorted(source.control, key=len, reverse=True), *known):
        if mark and alone.endswith(mark):
            return mark
    places = [(at, -len(m), m) for m in source.control if (at := between.find(m)) >= 0]
    return min(places)[2] if places else "" if known else alone


def _answers(
    source: Source, spelling: Spelling, ends: tuple[str, ...], refused: list[str], *, calls: bool
) -> Iterator[tuple[Message, Span]]:
    """Known answers and what the template writes of them."""
    two = (_CALL, replace(_CALL, id="call00001"))
    results = (_RESULT, replace(_RESULT, tool_call_id="call00001"))
    told = Message.assistant("It is warm", reasoning="Nineteen is warm")
    probes: list[tuple[Message, ...]] = [(_USER, Message.assistant("It is warm")), (_USER, told)]
    if calls:
        probes = [
            (_USER, Message.assistant(tool_calls=[_CALL]), _RESULT),
            (_USER, Message.assistant(tool_calls=two), *results),
            (_USER, Message.assistant("Look it up", tool_calls=[_CALL]), _RESULT),
            (_USER, Message.assistant(reasoning="Look it up", tool_calls=[_CALL]), _RESULT),
        ]
    for messages in probes:
        rows = Rows(Conversation(messages, (_TOOL,) if calls else ()), spelling, source.marks)
        try:
            spans = find_spans(source, rows, ends, stable=True, generate=False)
        except Unwritten as error:
            refused.append(str(error))
            continue
        message = messages[1]
        if 1 in spans.changed and message.reasoning:
            continue  # the template does not show reasoning here
        yield message, spans.written[0]


@cache
def _tables() -> tuple[tuple[Format, Syntax], ...]:
    """Every family's tables, each once, the usual variants first."""
    found: dict[Syntax, Format] = {}
    rest: list[Format] = []
    for name in list_formats():
        found.setdefault(_syntax(family(name)), family(name))
        rest += list(variants_of(family(name)))[1:]
    for format in rest:
        found.setdefault(_syntax(format), format)
    return tuple((format, syntax) for syntax, format in found.items())


def _syntax(format: Format) -> Syntax:
    return cast("Syntax", cast("Any", format).syntax)


def variants_of(format: Format, *, limit: int = 48) -> Iterator[Format]:
    """A family in each combination of its switches and choices, the usual one first."""
    yield format
    hints = get_type_hints(type(format))
    choices: dict[str, tuple[Any, ...]] = {}
    for field in fields(cast("Any", format)):
        if not field.init:
            continue
        hint = hints.get(field.name)
        if hint is bool:
            choices[field.name] = (True, False)
        elif get_origin(hint) is Literal:
            choices[field.name] = get_args(hint)
    usual = [getattr(format, name) for name in choices]

    def n_changed(values: tuple[Any, ...]) -> int:
        return sum(value != was for value, was in zip(values, usual, strict=True))

    for values in sorted(product(*choices.values()), key=n_changed)[:limit]:
        try:
            changed = with_variants(format, **dict(zip(choices, values, strict=True)))
        except AntiphonError:
            continue
        if changed != format:
            yield changed


def _reads(syntax: Syntax, answers: list[tuple[Message, Span]]) -> bool:
    """Whether a table reads every answer back exactly, and the same without mending anything."""
    return all(_read(syntax, message, span) for message, span in answers)


def _read(syntax: Syntax, message: Message, span: Span) -> bool:
    opened = any(span.before.rstrip().endswith(t.open.strip()) for t in syntax.thinking)
    start: Start = "reasoning" if opened else "content"
    parser = Parser(syntax, tools=(_TOOL,), start=start, strict=True)
    parser.feed(span.text)
    parser.finish()
    back = parser.message
    return (
        (back.text, back.reasoning) == (message.text, message.reasoning)
        and [(c.name, c.arguments) for c in back.tool_calls]
        == [(c.name, c.arguments) for c in message.tool_calls]
        and not back.invalid_tool_calls
    )


def _forms(
    fitting: list[tuple[Format, Syntax]], acts: list[tuple[Message, Span]]
) -> Iterator[CallForm]:
    """The call forms, of families that read the answers, whose grammar writes the same calls."""
    for format, syntax in fitting:
        if not _reads(syntax, acts):
            continue
        form = cast("CallForm", cast("Any", format).call_form)
        if all(_writes(form, message, span) for message, span in acts):
            yield form


def _writes(form: CallForm, message: Message, span: Span) -> bool:
    """Whether a grammar's calls are those at the end of an answer, behind its text."""
    n = len(message.tool_calls)
    if n > 1 and not form.parallel:
        return True
    try:
        calls = calls_of(form, [_TOOL], n=n).to_regex()
    except UsageError:
        return False
    said = message.text or message.reasoning
    before = form.before if message.text else ""
    if said:
        gap = r"(?s:.*)" if not message.text else ""
        return (
            re.fullmatch(r"(?s:.*)" + re.escape(said) + gap + re.escape(before) + calls, span.text)
            is not None
        )
    return re.search(calls + r"\Z", span.text) is not None


def _is_stable(source: Source, spelling: Spelling) -> bool:
    """Whether turns with reasoning, calls and results stay as they were when more follows."""
    messages = (
        _USER,
        Message.assistant(reasoning="Look it up", tool_calls=[_CALL]),
        _RESULT,
        Message.assistant("It is warm", reasoning="Nineteen is warm"),
        _THANKS,
        Message.assistant("You are welcome"),
    )
    try:
        texts = [_text(source, spelling, *messages[:n]) for n in range(1, len(messages) + 1)]
    except Unwritten:
        messages = tuple(m for m in messages if m.role != "tool" and not m.tool_calls)
        try:
            texts = [_text(source, spelling, *messages[:n]) for n in range(1, len(messages) + 1)]
        except Unwritten:
            return False
    return all(later.startswith(text) for text, later in pairwise(texts))
