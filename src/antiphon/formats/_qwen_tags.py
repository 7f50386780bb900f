"""What Qwen3-Coder, Qwen3.5 and their kin share: a tag per argument, and the words that ask for
it."""

from dataclasses import replace

from antiphon.formats._kin import TAGS, tag_blocks
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged as Tagged

SCALARS = frozenset({"boolean", "null"})
"""What templates that print values as strings write as Python does."""

HOW = """

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
- Function calls MUST follow the specified format: an inner <function=...></function> block must \
be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the \
function call, but NOT after
- If there is no function call available, answer the question like normal with your current \
knowledge and do not tell the user about function calls
</IMPORTANT>"""


def tags(python: frozenset[str]) -> Tagged:
    """The family's tags.

    Args:
        python: The JSON types whose values are written as Python writes them.
    """
    return replace(TAGS, python=python)


def syntax(of: Tagged, *, lead: str = "") -> Syntax:
    """The table that the parser runs on."""
    return Syntax(
        blocks=(
            Block("<tool_call>", of, before="\n\n"),
            Block("<function=", of, before="\n\n", lost=True),
            *tag_blocks(of, "<tool_call>"),
        ),
        thinking=(Thinking(),),
        doubled=("</tool_call>",),
        lead=lead,
    )
