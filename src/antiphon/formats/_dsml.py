"""What DeepSeek since V3.2 shares: DSML, calls in tags that say which values are strings.

A value is a string or JSON by its own tag, so nothing depends on the tool's schema.
"""

from collections.abc import Sequence

from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged
from antiphon.messages import Message, ToolSpec, dump_json

TOKEN = "｜DSML｜"
END = "<｜end▁of▁sentence｜>"
_BARS = ("｜｜", "｜", "||", "|", "")
_OTHER_TOKENS = tuple(
    f"{a}DSML{b}" for a in _BARS for b in _BARS if f"{a}DSML{b}" != TOKEN and len(a) == len(b)
) + tuple(f"{a}DSML{b}" for a, b in (("｜", ""), ("", "｜"), ("|", ""), ("", "|")))
"""How models write the token with other bars: of another kind, doubled, or left out."""
_BLOCKS = ("function_calls", "tool_calls", "calls", "toolcalls", "tool")
SPECIALS = frozenset(
    {
        "<｜begin▁of▁sentence｜>", END, "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>",
        TOKEN,
    }
)  # fmt: skip


def tags(block: str, *, space: str = "", token: str = TOKEN) -> Tagged:
    """The tags of calls.

    Args:
        block: The name of the tag around all calls.
        space: What stands between the token and a tag's name.
        token: The token, or what stands in its place.
    """
    lead = token + space
    return Tagged(
        open=f"<{lead}{block}>\n",
        close=f"</{lead}{block}>",
        several=True,
        call=f'<{lead}invoke name="',
        named='">\n',
        empty="\n",
        call_close=f"</{lead}invoke>\n",
        key=f'<{lead}parameter name="',
        keyed='" string="{type}">',
        value_close=f"</{lead}parameter>\n",
        types="string",
    )


def syntax(of: Tagged) -> Syntax:
    """The table that the parser runs on: the family's tags, and the names and the spacing that
    models give them, too."""
    invoke = of.call.partition(" name=")[0]
    space = "" if invoke.startswith(f"<{TOKEN} ") else " "
    otherwise = tags("tool_calls", space=space)  # as the versions before and after it write a call
    own = of.open.strip().removeprefix(f"<{TOKEN}").removesuffix(">")
    own_space = own[: len(own) - len(own.lstrip())]
    barred = [
        tags(name, space=own_space, token=token)
        for token in _OTHER_TOKENS
        for name in dict.fromkeys((own.lstrip(), "function_calls", "tool_calls"))
    ]
    slips = {
        mark: Block(mark, each, before="\n\n", slip="misspelt_bars")
        for each in barred
        for mark in (each.open.strip(), each.call.partition(" name=")[0])
    }
    blocks = (f"{tag}{TOKEN}{gap}{n}>" for n in _BLOCKS for tag in ("<", "</") for gap in ("", " "))
    return Syntax(
        blocks=(
            Block(of.open.strip(), of, before="\n\n"),
            Block(invoke, of, before="\n\n"),
            Block(f"<{TOKEN}{space}invoke", otherwise, before="\n\n"),
            *slips.values(),
        ),
        thinking=(Thinking(after_open="", before_close="", after_close=""),),
        doubled=(of.close, *(each.close for each in barred)),
        ignored=tuple(mark for mark in blocks if mark not in (of.open.strip(), of.close)),
    )


def tools_text(of: Tagged, tools: Sequence[ToolSpec]) -> str:
    """The tools and how to call them, since V4."""
    schemas = "\n".join(dump_json(spec.to_openai()["function"]) for spec in tools)
    call = of.call + "$TOOL_NAME"
    return (
        "## Tools\n\nYou have access to a set of tools to help answer the user's question. You can "
        f'invoke tools by writing a "{of.open.strip()}" block like the following:\n\n'
        f'{of.open}{call}">\n'
        f'{of.key}$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE{of.value_close}...\n'
        f'{of.call_close}{call}2">\n...\n{of.call_close}{of.close}\n\n'
        'String parameters should be specified as is and set `string="true"`. For all other types '
        "(numbers, booleans, arrays, objects), pass the value in JSON format and set "
        '`string="false"`.\n\n'
        "If thinking_mode is enabled (triggered by <think>), you MUST output your complete "
        "reasoning inside <think>...</think> BEFORE any tool calls or final response.\n\n"
        "Otherwise, output directly after </think> with tool calls or final response.\n\n"
        f"### Available Tool Schemas\n\n{schemas}\n\n"
        "You MUST strictly follow the above defined tool name and parameter schemas to invoke tool "
        "calls.\n"
    )


def in_call_order(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Messages with the results between two assistant's in the order of their calls."""
    ordered = list(messages)
    order: dict[str, int] = {}
    run: list[int] = []
    for index, message in enumerate([*messages, Message("assistant")]):
        if message.role == "tool":
            run.append(index)
        elif message.role == "assistant":
            if len(run) > 1 and order:
                results = sorted(
                    (messages[i] for i in run), key=lambda m: order.get(m.tool_call_id, 0)
                )
                for at, result in zip(run, results, strict=True):
                    ordered[at] = result
            run = []
            if message.tool_calls:
                order = {c.id: i for i, c in enumerate(message.tool_calls) if c.id}
    return tuple(ordered)
