"""What Cohere's families with numbered calls have in common: turns, marks, calls and results."""

from collections.abc import Sequence
from dataclasses import replace

from antiphon.formats._grammar import CallForm, Chars, Node, Rep, Rules, seq
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import Turns, Writer, is_first_result, is_last_result
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

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


def numbered(conversation: Conversation) -> dict[int, list[int]]:
    """The numbers of each message's calls, or of the call that it is the result of."""
    numbers: dict[int, list[int]] = {}
    by_id: dict[str, int] = {}
    waiting: list[int] = []
    n_calls = 0
    for index, message in enumerate(conversation.messages):
        if message.tool_calls:
            numbers[index] = list(range(n_calls, n_calls + len(message.tool_calls)))
            n_calls += len(message.tool_calls)
            waiting = list(numbers[index])
            by_id |= {c.id: n for c, n in zip(message.tool_calls, waiting, strict=True) if c.id}
        elif message.role == "tool":
            number = by_id.get(message.tool_call_id, waiting[0] if waiting else n_calls)
            numbers[index] = [number]
            waiting = [n for n in waiting if n != number]
    return numbers


def thought(w: Writer, reasoning: str, index: int, *, opened: bool = False) -> None:
    """A block of reasoning; the prompt has `opened` it or the model does."""
    w.mark(THINK, "frame" if opened else "written", index)
    w.text(reasoning, "written", index)
    w.mark(END_THINK, "written", index)


def calls_parts(message: Message, numbers: Sequence[int]) -> tuple[str, str, str]:
    """The text of a message's calls, between their marks."""
    lines = ",\n".join(
        f'    {{"tool_call_id": "{number}", "tool_name": {dump_json(call.name)}, '
        f'"parameters": {dump_json(call.arguments)}}}'
        for number, call in zip(numbers, message.tool_calls, strict=True)
    )
    return ACTION, f"[\n{lines}\n]", END_ACTION


def result(
    w: Writer, conversation: Conversation, index: int, number: int, around: tuple[str, str]
) -> None:
    """What a tool said, in one turn with the results around it, and what stands around the text."""
    messages = conversation.messages
    if is_first_result(messages, index):
        TURNS.begin(w, "tool", index)
        w.mark(RESULT, "frame", index)
        w.text("[\n", "frame", index)
    head = f'    {{\n        "tool_call_id": "{number}",\n        "results": {{\n'
    w.text(f'{head}            "0": {around[0]}', "frame", index)
    w.text(dump_json(messages[index].text), "given", index)
    w.text(f'{around[1]}\n        }},\n        "is_error": null\n    }}', "frame", index)
    if is_last_result(messages, index):
        w.text("\n]", "frame", index)
        w.mark(END_RESULT, "frame", index)
        TURNS.finish(w, "tool", index)
    else:
        w.text(",\n", "frame", index)
