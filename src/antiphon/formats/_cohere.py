"""What Cohere's families with numbered calls have in common: turns, marks, calls and results."""

from collections.abc import Sequence
from dataclasses import replace

from antiphon.formats._grammar import CallForm, Chars, Node, Rep, Rules, seq
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import Turns, Writer, is_first_result, is_last_result
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Around, Form
from antiphon.formats._usual import Place, Usual, counted_call, counted_result
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec, dump_json, quoted_json

ACTION, END_ACTION = "<|START_ACTION|>", "<|END_ACTION|>"
THINK, END_THINK = "<|START_THINKING|>", "<|END_THINKING|>"
RESPONSE, END_RESPONSE = "<|START_RESPONSE|>", "<|END_RESPONSE|>"
TEXT, END_TEXT = "<|START_TEXT|>", "<|END_TEXT|>"
RESULT, END_RESULT = "<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>"
MARKS = frozenset({ACTION, END_ACTION, THINK, END_THINK, RESULT, END_RESULT})
TURNS = Turns(
    open="<|START_OF_TURN_TOKEN|><|{role}_TOKEN|>",
    end="<|END_OF_TURN_TOKEN|>",
    between="",
    before_all="<BOS_TOKEN>",
    specials=frozenset(
        {"<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"}
        | {f"<|{role}_TOKEN|>" for role in ("SYSTEM", "USER", "CHATBOT")}
    ),
    roles=(("system", "SYSTEM"), ("user", "USER"), ("assistant", "CHATBOT"), ("tool", "SYSTEM")),
)
_BARE = JsonCalls(
    name=("tool_name", "name"),
    arguments=("parameters", "arguments"),
    id=("tool_call_id", "id"),
    array=True,
    bare_note="bare_json",
)
_CALLS = replace(_BARE, close=END_ACTION, next_block=(ACTION,))
SYNTAX = Syntax(
    blocks=(Block(ACTION, _CALLS, token=True),),
    thinking=(Thinking(THINK, END_THINK, after_open="", before_close="", after_close=""),),
    bare=_BARE,
    doubled=(END_ACTION,),
    ignored=(RESPONSE, END_RESPONSE, TEXT, END_TEXT),
)


def call_form(specials: frozenset[str], say: str, end_say: str) -> CallForm:
    """How calls stand in the text, for the grammar."""

    def call(spec: ToolSpec, rules: Rules) -> Node:
        number = Rep(Chars((("0", "9"),)), 1, 6)
        name = f'", "tool_name": {dump_json(spec.name)}, "parameters": '
        return seq('{"tool_call_id": "', number, name, arguments_node(spec, rules), "}")

    return CallForm(
        call,
        open=f"{ACTION}[\n    ",
        between=",\n    ",
        close=f"\n]{END_ACTION}",
        before=end_say,
        forbidden=tuple(sorted(specials)),
        thinking=(THINK, END_THINK),
        specials=specials,
        lead=say,
    )


def listing(tools: Sequence[ToolSpec]) -> str:
    """Tools as the families list them."""
    return ",\n".join(f"    {_tool_json(spec)}" for spec in tools)


def _tool_json(spec: ToolSpec) -> str:
    fields = {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
    return dump_json({**fields, "responses": None})


def numbered(conversation: Conversation) -> list[Sequence[int]]:
    """The numbers of each message's calls, or of the call that it is the result of."""
    numbers: list[Sequence[int]] = []
    by_id: dict[str, int] = {}
    waiting: list[int] = []
    n_calls = 0
    for message in conversation.messages:
        own: Sequence[int] = ()
        if message.tool_calls:
            own = range(n_calls, n_calls + len(message.tool_calls))
            n_calls += len(message.tool_calls)
            waiting = list(own)
            by_id |= {c.id: n for c, n in zip(message.tool_calls, own, strict=True) if c.id}
        elif message.role == "tool":
            number = by_id.get(message.tool_call_id, waiting[0] if waiting else n_calls)
            own = (number,)
            waiting = [n for n in waiting if n != number]
        numbers.append(own)
    return numbers


def thought(w: Writer, reasoning: str, index: int, *, opened: bool = False) -> None:
    """A block of reasoning; the prompt has `opened` it or the model does."""
    w.mark(THINK, "frame" if opened else "written", index)
    w.text(reasoning, "written", index)
    w.mark(END_THINK, "written", index)


def calls_parts(message: Message, numbers: Sequence[int]) -> tuple[str, str, str]:
    """The text of a message's calls, between their marks."""
    lines = ",\n".join(map(_call_line, message.tool_calls, numbers))
    return ACTION, f"[\n{lines}\n]", END_ACTION


def _call_line(call: ToolCall, number: int) -> str:
    name, arguments = quoted_json(call.name), dump_json(call.arguments)
    return f'    {{"tool_call_id": "{number}", "tool_name": {name}, "parameters": {arguments}}}'


_RESULT_TAIL = '\n        },\n        "is_error": null\n    }'
_LAST = ("\n]", False), (END_RESULT, True)
_NOT_LAST = ((",\n", False),)
"""What stands behind a result, and behind the last one of a turn and the others."""


def result(
    w: Writer, conversation: Conversation, index: int, number: int, around: tuple[str, str]
) -> None:
    """What a tool said, in one turn with the results around it, and what stands around the text."""
    messages = conversation.messages
    if is_first_result(messages, index):
        TURNS.begin(w, "tool", index)
        w.mark(RESULT, "frame", index)
        w.text("[\n", "frame", index)
    w.text(_result_head(number, around), "frame", index)
    w.text(quoted_json(messages[index].text), "given", index)
    w.text(around[1] + _RESULT_TAIL, "frame", index)
    if is_last_result(messages, index):
        w.text("\n]", "frame", index)
        w.mark(END_RESULT, "frame", index)
        TURNS.finish(w, "tool", index)
    else:
        w.text(",\n", "frame", index)


def _result_head(number: int, around: tuple[str, str]) -> str:
    """What stands before what a tool said."""
    return (
        f'    {{\n        "tool_call_id": "{number}",\n        "results": {{\n'
        f'            "0": {around[0]}'
    )


def usual_call(specials: frozenset[str]) -> Usual:
    """How a message is written that is one call; see `_usual.py`."""
    frame = TURNS.frame("assistant", ACTION, END_ACTION, specials=specials)
    opens, closes = frame.opens + "[\n", "\n]" + frame.closes
    return counted_call(lambda call, number: (f"{opens}{_call_line(call, number)}{closes}", frame))


def usual_result(place: Place, around: tuple[str, str], specials: frozenset[str]) -> Usual:
    """How what a tool said is written; see `_usual.py`.

    Args:
        place: Where it stands.
        around: What stands around the text.
        specials: The family's marks.
    """
    is_first, is_last = place.before != "tool", place.after != "tool"
    own = (
        ((RESULT, True), ("[\n", False)) if is_first else (),
        (),
        ((around[1] + _RESULT_TAIL, False), *(_LAST if is_last else _NOT_LAST)),
    )
    turn = TURNS.frame("tool", specials=specials)
    frame = Around(
        turn.before if is_first else (), "frame", turn.after if is_last else (), turn.specials
    )
    form = Form(frame, own, ("frame", "given"))
    return counted_result(
        form, lambda text, number: (_result_head(number, around), quoted_json(text))
    )
