"""What DeepSeek's V3, R1 and V3.1 share: turns without white space, system texts joined in front,
calls in a block of marks, results in their own.

The marks are written with U+FF5C and U+2581.  Each is one token of the vocabulary.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from antiphon.formats._cursor import Reading
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._readers import (
    Section,
    close_call,
    read_arguments,
    read_head,
    take_doubled,
)
from antiphon.formats._render import Writer, inline_reasoning, moved_up, with_parts
from antiphon.formats._scan import Block, Parser, Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Around, Parts
from antiphon.messages import Message, ToolCall, ToolSpec, dump_json

BOS, EOS = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
USER, ASSISTANT = "<｜User｜>", "<｜Assistant｜>"
CALLS, CALLS_END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
CALL, SEP, CALL_END = "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>"
OUTPUTS, OUTPUTS_END = "<｜tool▁outputs▁begin｜>", "<｜tool▁outputs▁end｜>"
OUTPUT, OUTPUT_END = "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"
SPECIALS = frozenset(
    {
        *(BOS, EOS, USER, ASSISTANT, CALLS, CALLS_END, CALL, SEP, CALL_END),
        *(OUTPUTS, OUTPUTS_END, OUTPUT, OUTPUT_END, "<think>", "</think>"),
    }
)
_FENCE = "```"
QUESTION = Around(((USER, "frame"),), "given", (), SPECIALS)
"""What stands around what a user says."""
ASKED = Around(((USER, "frame"),), "given", ((ASSISTANT, "frame"),), SPECIALS)
"""The same where the model's mark stands behind it."""
RESULT = Around(((OUTPUT, "frame"),), "given", ((OUTPUT_END, "frame"),), SPECIALS)
"""What stands around a result."""
ANSWER = Around((), "written", ((EOS, "written"),), SPECIALS)
"""What stands around an answer."""


@dataclass(frozen=True, slots=True)
class Calls:
    """A name and the arguments as a JSON object, of V3 and R1 with a type and a fence.

    Either is read in place of the other, with a note."""

    fenced: bool
    """Whether the family writes the type and the fence."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return (CALL_END, CALL, CALLS_END)

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        if not p.call_in_progress:
            p.call_begin()
        yield from take_doubled(p, opened_by)
        before = (yield from read_head(p, (SEP,), before=self.resync)).strip()
        yield from c.take(SEP)
        typed = before == "function" and (yield from c.space()) not in ("{", "`", "")
        if typed != self.fenced:
            p.note("missing_type" if self.fenced else "extra_type")
        name = (yield from c.until("\n", before=self.resync)).strip() if typed else before
        p.call_name(name, quoted=False)
        fenced = (yield from c.space()) == "`" and (yield from c.take(_FENCE))
        if fenced:
            yield from c.until("\n", limit=20)
        if fenced != self.fenced:
            p.note("json_fence" if fenced else "missing_fence")
        yield from read_arguments(p, end=CALL_END)
        if fenced and (yield from c.space()) == "`":
            yield from c.take(_FENCE)
        yield from close_call(p, CALL_END, others=(CALL, CALLS_END))
        p.call_end()


FENCED = Calls(fenced=True)
NAMED = Calls(fenced=False)


def syntax(reader: Calls, *, space: str = "") -> Syntax:
    """The table of a family whose calls that reader reads.

    Args:
        reader: What reads a call.
        space: What stands inside the reasoning marks.
    """
    return Syntax(
        blocks=(
            Block(CALL, reader, token=True),
            Block(CALLS, Section(CALL, CALLS_END, reader), token=True),
        ),
        thinking=(Thinking(after_open=space, before_close=space, after_close=space + space),),
        doubled=(CALL_END,),
        ignored=(CALLS_END,),
    )


def call_form(
    write: Callable[[str, Node], Node], *, between: str, thinking: tuple[str, str] | None
) -> CallForm:
    """The form of calls, for the grammar.

    Args:
        write: Puts a name and its arguments together.
        between: What stands between calls.
        thinking: What stands before and behind reasoning.
    """

    def call(spec: ToolSpec, rules: Rules) -> Node:
        return seq(CALL, write(spec.name, arguments_node(spec, rules)), CALL_END)

    return CallForm(
        call,
        open=CALLS,
        between=between,
        close=CALLS_END,
        forbidden=(CALLS, CALLS_END, CALL, CALL_END, EOS, USER, ASSISTANT, "<think>", "</think>"),
        thinking=thinking,
        specials=SPECIALS,
    )


def fenced(name: str, arguments: Node) -> Node:
    """A call of V3 and R1 between its marks."""
    return seq(f"function{SEP}{name}\n{_FENCE}json\n", arguments, f"\n{_FENCE}")


def named(name: str, arguments: Node) -> Node:
    """A call of V3.1 between its marks."""
    return seq(name + SEP, arguments)


def fenced_text(call: ToolCall) -> str:
    """A call of V3 and R1 between its marks, as text."""
    return f"function{SEP}{call.name}\n{_FENCE}json\n{dump_json(call.arguments)}\n{_FENCE}"


def named_text(call: ToolCall) -> str:
    """A call of V3.1 between its marks, as text."""
    return call.name + SEP + dump_json(call.arguments)


def write_calls(
    w: Writer, message: Message, index: int, text: Callable[[ToolCall], str], *, between: str
) -> None:
    """The calls of a message in one block; failed ones as they were written."""
    if not message.tool_calls and not message.invalid_tool_calls:
        return
    w.put(CALLS, "written", index)
    for i, call in enumerate(message.tool_calls):
        w.text(between if i else "", "written", index)
        for part in (CALL, *_cut(text(call)), CALL_END):
            w.mark(part, "written", index) if part in _OF_A_CALL else w.text(part, "written", index)
    for call in message.invalid_tool_calls:
        w.put(call.raw, "written", index)
    w.put(CALLS_END, "written", index)


_OF_A_CALL = {CALL, SEP, CALL_END}


def _cut(text: str) -> tuple[str, str, str]:
    """A call's text around its separator: what stands behind it is data."""
    head, _, tail = text.partition(SEP)
    return head, SEP, tail


def write_system(
    w: Writer, messages: Sequence[Message], *, join: str = "\n\n"
) -> list[tuple[str, int]]:
    """The texts of all system messages, which the family puts in front wherever they stood."""
    found = [(m.text, i) for i, m in enumerate(messages) if m.role == "system"]
    for n, (text, index) in enumerate(found):
        w.text(join if n else "", "frame", index)
        w.text(text, "given", index)
        moved_up(w, index, n)
    return found


def role_before(messages: Sequence[Message], index: int) -> str:
    """The role of the message before, system messages left out; ``""`` where there is none."""
    roles = (messages[i].role for i in range(index - 1, -1, -1))
    return next((role for role in roles if role != "system"), "")


def write_result(w: Writer, message: Message, index: int) -> None:
    """One result between its marks."""
    w.around(RESULT, message.text, index)


def call_around(opens: Parts, head: str) -> Around:
    """What stands around the arguments of a message's only call.

    Args:
        opens: What stands before the message.
        head: What stands before the separator.
    """
    before: Parts = (*opens, (CALLS + CALL, "written"), (head, "written"), (SEP, "written"))
    return Around(before, "written", ((CALL_END + CALLS_END + EOS, "written"),), SPECIALS)


def as_shown(w: Writer, message: Message, index: int, *, keep: bool) -> Message:
    """A message with its reasoning apart from its text, and without it where it is not shown."""
    split = inline_reasoning(message)
    if split.reasoning and not keep:
        w.changed.append(index)
        split = with_parts(split, reasoning="", text=split.text)
    return split
