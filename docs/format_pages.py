"""Writes ``docs/formats/``: a page for each family, made from its own code, and the matrix.

A page says what a stranger needs to implement the family: its rules and sources (the module's
docstring), names and variants, marks, an example with the author of every stretch, what the prompt
ends with, what is refused, how text is read, and what constrained decoding may write.  The matrix
counts the cases that the tests hold.  `make_tables.py` calls `pages`.
"""

import importlib
import inspect
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

from antiphon.errors import AntiphonError
from antiphon.formats import Format, Piece, Rendered, get_format, list_formats
from antiphon.formats._example import example_conversation
from antiphon.messages import Conversation, ImagePart, Message, TextPart, ToolCall, ToolSpec

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "formats"
sys.path.insert(0, str(ROOT / "tests"))

from formats.format_cases import OFFICIAL, VARIANTS, rows, variant  # noqa: E402 - found above
from formats.published import PUBLISHED  # noqa: E402
from formats.test_bfcl import N_CALLS, test_every_call_is_read_back  # noqa: E402
from formats.test_grammar_samples import (  # noqa: E402
    test_what_a_grammar_writes_is_read_as_calls_that_fit,
)
from formats.test_own_conversations import DEVIATIONS, RECORDED  # noqa: E402
from formats.test_streaming import test_a_value_arrives_in_pieces  # noqa: E402

MADE = "<!-- made by `make docs` from the code; do not edit -->\n"
PING = ToolSpec("ping", "Answer.", {"type": "object", "properties": {"n": {"type": "integer"}}})


def pages() -> dict[Path, str]:
    """Every page of ``docs/formats/`` as it should be."""
    found = {FOLDER / f"{name}.md": page(name) for name in list_formats()}
    return found | {FOLDER / "README.md": matrix()}


# A family's page.


def page(name: str) -> str:
    """One family."""
    fmt = get_format(name)
    title, _, about = (inspect.getdoc(_module(name)) or "").partition("\n\n")
    parts = [
        f"# `{name}`\n\n{MADE}\n{_prose(title)}\n\n{_prose(about)}\n",
        "## Names and variants\n\n" + _names(fmt),
        "## Marks\n\n" + _marks(fmt),
    ]
    if name != "plain":
        parts += [
            "## An example\n\n" + _example(fmt),
            "## What is refused, and what is changed\n\n" + _limits(fmt),
            "## How text is read\n\n" + _reading(fmt),
            "## What constrained decoding may write\n\n" + _grammar(fmt),
        ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _module(name: str) -> Any:
    return importlib.import_module(f"antiphon.formats.{name}")


def _prose(text: str) -> str:
    """A docstring as Markdown: tags in prose become code; indented text is code as it is."""
    lines = [line if line.startswith("    ") else _coded(line) for line in text.splitlines()]
    return "\n".join(lines)


def _coded(line: str) -> str:
    return re.sub(r"``(.*?)``|(`[^`]*`)|(<[^<>\s]+>)", _as_code, line)


def _as_code(found: "re.Match[str]") -> str:
    return f"`{found[1]}`" if found[1] else found[2] or f"`{found[3]}`"


def _names(fmt: Format) -> str:
    known = cast("Any", fmt)
    models = ", ".join(f"`{model}`" for model in known.models) or "any; it is named"
    lines = [f"- Models: {models}"]
    for alias, fields_of in sorted(known.aliases.items()):
        values = ", ".join(f"{key}={value!r}" for key, value in fields_of.items())
        lines.append(f"- `{alias}`" + (f": `{values}`" if values else ""))
    for field in fields(known):
        if field.init:
            told = _field_doc(known, field.name)
            lines.append(f"- Variant `{field.name}={getattr(fmt, field.name)!r}`: {told}")
    return "\n".join(lines) + "\n"


def _field_doc(value: Any, field: str) -> str:
    """The string under a field."""
    source = inspect.getsource(cast("type[Any]", type(value)))
    found = re.search(rf'^    {field}: .*?\n    """(.*?)"""', source, re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def _marks(fmt: Format) -> str:
    specials = sorted(cast("frozenset[str]", getattr(fmt, "specials", frozenset[str]())))
    stop = ", ".join(f"`{mark}`" for mark in fmt.stop) or "nothing of its own"
    stable = cast("Any", fmt).prefix_stable
    lines = [
        "- Single tokens of the vocabulary: "
        + (", ".join(f"`{mark}`" for mark in specials) or "none"),
        f"- A turn of the model ends with: {stop}",
        "- A longer conversation "
        + ("extends the text of a shorter one." if stable else "may rewrite earlier messages."),
    ]
    return "\n".join(lines) + "\n"


def _example(fmt: Format) -> str:
    conversation = _expressible(fmt)
    rendered = fmt.render(conversation)
    asked = replace(conversation, messages=conversation.messages[:2])
    prompt = fmt.render(asked, generate=True)
    return (
        "As text:\n\n"
        + _fenced(rendered.text)
        + "\nWho wrote what; `⏎` is a line feed, `«»` stand around single tokens:\n\n"
        + _fenced("\n".join(_authors(rendered)))
        + "\nThe prompt for the second message ends with the following, and the model goes on with "
        + f"{'its reasoning' if prompt.start == 'reasoning' else 'text or a call'}:\n\n"
        + _fenced("\n".join(list(_authors(prompt))[-3:]))
    )


def _expressible(fmt: Format) -> Conversation:
    """The example, with as much of reasoning, text and a second call as the family writes."""
    plain = example_conversation()
    first = plain.messages[2].tool_calls[0]
    second = ToolCall("get_weather", {"city": "Cusco"}, id="call00001")
    results = (plain.messages[3], Message.tool("14", call_id="call00001", name="get_weather"))
    reasoning = "I need both."
    for text, calls in (("Let me look.", (first, second)), ("", (first, second)), ("", (first,))):
        step = Message.assistant(text, reasoning=reasoning, tool_calls=calls)
        messages = (*plain.messages[:2], step, *results[: len(calls)], plain.messages[-1])
        try:
            fmt.render(Conversation(messages, plain.tools))
        except AntiphonError:
            continue
        return Conversation(messages, plain.tools)
    return plain


def _authors(rendered: Rendered) -> Iterator[str]:
    """The stretches of one author, a line each."""
    stretch: list[Piece] = []
    for piece in (*rendered.pieces, None):
        goes_on = (
            piece is not None
            and bool(stretch)
            and (piece.author, piece.message) == (stretch[-1].author, stretch[-1].message)
        )
        if stretch and not goes_on:
            of = "" if stretch[0].message is None else f"message {stretch[0].message}"
            shown = "".join(f"«{p.text}»" if p.special else p.text for p in stretch)
            yield f"{stretch[0].author:8}{of:11}{_one_line(shown)}"
            stretch = []
        if piece is not None and piece.text:
            stretch.append(piece)


def _one_line(text: str) -> str:
    text = text.replace("\n", "⏎")
    return text if len(text) <= 160 else f"{text[:90]} … {text[-60:]}"


def _fenced(text: str) -> str:
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    return f"{fence}text\n{text.rstrip(chr(10))}\n{fence}\n"


_USER, _ANSWER = Message.user("Go."), Message.assistant("Gone.")
_PROBES: dict[str, tuple[Message, ...]] = {
    "two system messages": (Message.system("A."), Message.system("B."), _USER),
    "a system message in the middle": (_USER, _ANSWER, Message.system("B."), _USER),
    "an image in a question": (Message.user((TextPart("See "), ImagePart("a.png"))),),
    "two questions in a row": (_USER, _USER),
    "a result without a call": (_USER, Message.tool("1", call_id="call00000", name="ping")),
    "no question": (Message.system("A."),),
    "an answer without text": (_USER, Message.assistant("")),
    "reasoning": (_USER, Message.assistant("Gone.", reasoning="Go where?")),
    "earlier reasoning": (_USER, Message.assistant("Gone.", reasoning="Hm."), _USER),
    "text before a call": (
        _USER, Message.assistant("I go.", tool_calls=[ToolCall("ping", {"n": 1}, "call00000")]),
    ),
    "two calls": (
        _USER,
        Message.assistant(
            tool_calls=[ToolCall("ping", {"n": i}, f"call0000{i}") for i in range(2)]
        ),
    ),
    "an id of another form": (
        _USER, Message.assistant(tool_calls=[ToolCall("ping", {"n": 1}, "call_1-of-2")]),
    ),
    "an argument that is null": (
        _USER, Message.assistant(tool_calls=[ToolCall("ping", {"n": None}, "call00000")]),
    ),
}  # fmt: skip


def _limits(fmt: Format) -> str:
    lines: list[str] = []
    for what, messages in _PROBES.items():
        try:
            rendered = fmt.render(Conversation(messages, (PING,)))
        except AntiphonError as error:
            reason = str(error).removeprefix(f"{fmt.name}: ")
            lines.append(f"- {what.capitalize()}: refused. {_coded(reason)}.")
        else:
            if rendered.changed:
                which = ", ".join(map(str, rendered.changed))
                lines.append(f"- {what.capitalize()}: written otherwise; listed: {which}.")
    refused = "\n".join(lines) or "- Nothing of what is tried here."
    return (
        "What is tried: "
        + ", ".join(_PROBES)
        + ". Everything else of these is written as it is.\n\n"
        f"{refused}\n"
    )


def _reading(fmt: Format) -> str:
    syntax = cast("Any", fmt).syntax
    lines: list[str] = []
    others: dict[str, list[str]] = {}
    for block in syntax.blocks:
        if block.slip in ("misspelt_bars", "other_marks", "tagged_call"):
            others.setdefault(block.slip, []).append(f"`{block.open.strip()}`")
            continue
        where = " at the start of a line" if block.line_start or block.lost else ""
        lost = ", and names a tool on offer" if block.lost else ""
        lost += f", noted (`{block.slip}`)" if block.slip else ""
        lines.append(f"- `{block.open.strip()}` opens a call{where}{lost}: {_reader(block.reader)}")
    for slip, marks in others.items():
        lines.append(f"- So do these, noted (`{slip}`): " + ", ".join(marks))
    for thinking in syntax.thinking:
        lines.append(
            f"- Reasoning stands between `{thinking.open}` and `{thinking.close}`; the family's "
            f"own white space there, which is not part of it: {thinking.after_open!r}, "
            f"{thinking.before_close!r}, {thinking.after_close!r}"
        )
    if syntax.first is not None:
        lines.append(f"- A message begins with a header or a name: {_reader(syntax.first)}")
    if syntax.bare is not None:
        how = "at the start of any line" if syntax.bare_is_native else "as a whole answer, noted"
        lines.append(f"- A call without marks counts {how}: {_reader(syntax.bare)}")
    if syntax.unmarked is not None:
        marks = " or ".join(f"`{mark}`" for mark in syntax.unmarked.behind)
        alone = syntax.unmarked.alone
        lines.append(
            f"- The name of a tool on offer at the start of a line, with {marks} behind it, is a "
            + (
                "call where the whole answer is such lines, noted (`bare_calls`)"
                if alone
                else "call, noted (`missing_open`)"
            )
        )
    if syntax.blocks:
        lines.append(
            "- A mark of these in a sentence, with no call behind it, is text; so is a call in a "
            "span of code, and one in a fence behind which the text goes on"
        )
    for word, marks in (("left out", syntax.ignored), ("dropped behind a call", syntax.doubled)):
        if marks:
            lines.append(f"- Marks that are {word}: " + ", ".join(f"`{m.strip()}`" for m in marks))
    lines.append(f"- Ids of calls: {_ids(fmt)}")
    return "\n".join(lines) + "\n\n" + _repairs(fmt)


def _reader(reader: Any) -> str:
    """What a reader reads, with the fields that are set."""
    told = (inspect.getdoc(cast("type[Any]", type(reader))) or "").partition("\n")[0].rstrip(".")
    if not is_dataclass(reader):
        return f"{told}."
    set_ones = ((f.name, getattr(reader, f.name), f.default) for f in fields(reader) if f.init)
    values = [
        f"`{name}={value!r}`"
        for name, value, default in set_ones
        if isinstance(value, str | tuple | bool) and value != default
    ]
    return f"{told}" + (f" ({', '.join(values)})." if values else ".")


def _written(fmt: Format, calls: Sequence[ToolCall]) -> str:
    answer = Message.assistant(tool_calls=calls)
    rendered = fmt.render(Conversation((_USER, answer), (PING,)))
    text = "".join(p.text for p in rendered.pieces if p.message == 1 and p.author == "written")
    for stop in fmt.stop:
        text = text.removesuffix(stop)
    return text.partition("</think>")[2] if "</think>" in text else text


def _ids(fmt: Format) -> str:
    text = _written(fmt, [ToolCall("ping", {"n": 1}, "call00007")])
    read = fmt.parse(text, tools=(PING,)).tool_calls
    if read and read[0].id:
        same = read[0].id == "call00007"
        return "as the conversation has them" if same else f"the family's own, `{read[0].id}`"
    return "none are written; results follow their calls in order"


_SLIPS: dict[str, Callable[[str], str]] = {
    "the closing mark is missing": lambda text: re.sub(r"\s*[<\[|(][^<>\n]*[>\])|]\s*\Z", "", text),
    "a comma too many": lambda text: re.sub(r"1(\s*\})", r"1,\1", text, count=1),
    "Python's quotes": lambda text: text.replace('"n"', "'n'"),
    "`parameters` for `arguments`, or the other way": lambda text: (
        text.replace("arguments", "parameters")
        if "arguments" in text
        else text.replace("parameters", "arguments")
    ),
    "the arguments as a string": lambda text: re.sub(r'\{"n": 1\}', r'"{\\"n\\": 1}"', text),
    "bare JSON": lambda text: '{"name": "ping", "arguments": {"n": 1}}',
    "JSON in a fence": lambda text: '```json\n{"name": "ping", "arguments": {"n": 1}}\n```',
    "the arguments break off": lambda text: text[: text.rfind("1")],
}


def _repairs(fmt: Format) -> str:
    text = _written(fmt, [ToolCall("ping", {"n": 1}, "call00000")])
    lines = [
        "Slips, tried on this call, and what becomes of them (`strict=True` mends nothing):\n",
        _fenced(text),
    ]
    for what, damage in _SLIPS.items():
        damaged = damage(text)
        if damaged != text:
            lines.append(f"- {what[0].upper()}{what[1:]}: {_outcome(fmt, damaged)}.")
    return "\n".join(lines) + "\n"


def _outcome(fmt: Format, text: str) -> str:
    message = fmt.parse(text, tools=(PING,))
    if message.invalid_tool_calls:
        return f"an invalid call, because {_coded(message.invalid_tool_calls[0].reason)}"
    if not message.tool_calls:
        return "text"
    repairs = message.tool_calls[0].repairs
    return "a call" + (f", with `{'`, `'.join(repairs)}`" if repairs else ", with nothing to mend")


def _grammar(fmt: Format) -> str:
    grammar = fmt.grammar((PING,), choice="required", parallel=False)
    return (
        "One call that must be made of the tool `ping`, whose argument `n` is an integer, in "
        "llama.cpp's GBNF (`to_lark` and `to_structural_tag` say the same to others):\n\n"
        + _fenced(grammar.to_gbnf(specials=frozenset()))
    )


# The matrix.


def matrix() -> str:
    """Every variant that the tests run on, and what they hold of it."""
    head = (
        "| variant | shared cases | own conversations | BFCL calls | streamed | drawn from its "
        "grammar | extends earlier text | reasons | several calls |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    )
    names = sorted((n for n in VARIANTS if not n.startswith("template_")), key=_by_family)
    body = "".join(_row(name) for name in names)
    reasons = "".join(_deviations(name) for name in names)
    return (
        f"# The families and what is proven of each\n\n{MADE}\n"
        "Each row is a variant that every test of `tests/formats` runs on. *Shared cases* and *own "
        "conversations* are equal, byte for byte, to the text and the prompt of the family's "
        "published template; a dash means that no package ships it, and the family's page names "
        "the code that was read instead. *BFCL calls* are the right calls of the Berkeley "
        "Function-Calling data without doubles, written and read back whole, by characters and in "
        "random chunks. *Streamed*: values of calls arrive in pieces no longer than a mark. *Drawn "
        "from its grammar*: texts that llguidance's matcher draws in the modes auto, required and "
        "named are read as calls that fit their schemas.\n\n"
        f"{head}{body}\n## Where a text is not the template's\n\n{reasons}\n"
        f"## Families whose text is second-hand\n\n{_second_hand()}"
    )


def _second_hand() -> str:
    """What the families say of texts that no published template was found for."""
    lines: list[str] = []
    for name in list_formats():
        text = inspect.getdoc(_module(name)) or ""
        _, found, rest = text.partition("Second-hand: ")
        if found:
            said = " ".join(rest.partition("\n\n")[0].partition("\nSource:")[0].split())
            lines.append(f"- [`{name}`]({name}.md): {said}\n")
    return "".join(lines)


def _by_family(name: str) -> tuple[str, str]:
    return VARIANTS[name][0], name


def _row(name: str) -> str:
    fmt = variant(name)
    known = cast("Any", fmt)
    shared, own = "-", "-"
    if name in OFFICIAL:
        n = sum("text" in row for row in rows(f"official/{name}.jsonl"))
        shared = f"{n} of {n}"
    if name in PUBLISHED and name in RECORDED:
        n = sum(any(digests) for digests in RECORDED[name])
        own = f"{n - 2 * len(DEVIATIONS.get(name, ()))} of {n}"
    calls = f"{N_CALLS:,}" if _is_tested(test_every_call_is_read_back, name) else "-"
    streamed = "yes" if _is_tested(test_a_value_arrives_in_pieces, name) else "-"
    drawn = "yes" if _is_tested(test_what_a_grammar_writes_is_read_as_calls_that_fit, name) else "-"
    stable = "yes" if known.prefix_stable else "no; says where"
    reasoning = _writes(fmt, Message.assistant("Gone.", reasoning="Go where?"))
    several = _writes(fmt, _PROBES["two calls"][1])
    return (
        f"| [`{name}`]({fmt.name}.md) | {shared} | {own} | {calls} | {streamed} | {drawn} | "
        f"{stable} | {reasoning} | {several} |\n"
    )


def _is_tested(test: Callable[..., None], name: str) -> bool:
    """Whether a test runs on a variant, as its parameters say."""
    for mark in cast("Any", test).pytestmark:
        if mark.name == "parametrize" and mark.args[0] == "name":
            return name in [getattr(value, "values", (value,))[0] for value in mark.args[1]]
    raise LookupError(f"{test.__name__} has no parameter 'name'")


def _writes(fmt: Format, answer: Message) -> str:
    try:
        rendered = fmt.render(Conversation((_USER, answer), (PING,)))
    except AntiphonError:
        return "refused"
    return "dropped" if answer.reasoning and 1 in rendered.changed else "yes"


def _deviations(name: str) -> str:
    shapes = Counter(DEVIATIONS.get(name, {}).values())
    lines = [f"- `{name}`, {n} shape{'s' * (n > 1)}: {why}.\n" for why, n in shapes.items()]
    return "".join(lines)
