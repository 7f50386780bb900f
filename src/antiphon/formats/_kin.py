"""Calls as another family writes them, which models write in place of their own family's: other
marks around the same JSON or the same tags, and tags where JSON should be.

    <tools>{"name": "get_weather", "arguments": {"city": "Lima"}}</tools>
    <tool_call><function=get_weather><parameter=city>Lima</parameter></function></tool_call>

Marks of others count at the start of a line, and what they open is text unless it names a tool on
offer; each is noted.  It reads only; no family writes such.
"""

from dataclasses import replace

from antiphon.formats._readers import JsonCalls
from antiphon.formats._scan import Block
from antiphon.formats._tagged import Tagged

TAGS = Tagged(
    open="<tool_call>\n",
    close="</tool_call>",
    call="<function=",
    named=">\n",
    call_close="</function>\n",
    key="<parameter=",
    keyed=">\n",
    value_close="\n</parameter>\n",
)
"""Qwen3-Coder's tags, which its kin write where JSON should stand, too."""
_NAMES = (
    "tool_call", "tool_calls", "tools", "tool", "toolcall", "function_call", "function_calls",
    "functioncall",
)  # fmt: skip
_AROUND = (
    *((f"<{name}>", f"</{name}>") for name in _NAMES),
    ("<|tool_call|>", "<|/tool_call|>"),
    ("[TOOL_CALL]", "[/TOOL_CALL]"),
)
_SLIP = "other_marks"


def json_blocks(*own: str) -> tuple[Block, ...]:
    """The regions that hold calls in JSON between marks of others, and calls in tags.

    Args:
        own: The family's own marks.
    """
    blocks = [
        Block(open, JsonCalls(close, next_block=(open,), tagged=TAGS), lost=True, slip=_SLIP)
        for open, close in _AROUND
        if open not in own
    ]
    return (*blocks, Block("<function=", TAGS, lost=True, slip="tagged_call"))


def tag_blocks(tags: Tagged, *own: str) -> tuple[Block, ...]:
    """The regions that hold calls in a family's tags, or in JSON, between marks of others.

    Args:
        tags: The family's tags.
        own: The family's own marks.
    """
    return tuple(
        Block(open, replace(tags, open=f"{open}\n", close=close), lost=True, slip=_SLIP)
        for open, close in _AROUND
        if open not in own
    )
