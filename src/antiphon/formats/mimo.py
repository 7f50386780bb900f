"""MiMo V2: ChatML without line feeds between turns, a tag per argument with the value inside.

    <|im_start|>assistant
    <think>The user wants the weather.</think>Let me look.<tool_call>
    <function=get_weather>
    <parameter=city>Lima</parameter>
    </function>
    </tool_call><|im_end|><|im_start|>tool
    <tool_response>
    19 degrees
    </tool_response>
    <|im_end|>

A value is exactly what stands between its tags; words like ``True`` are written as Python prints
them, objects and arrays as JSON.  A message without reasoning begins with an empty block.
Reasoning stays in every message, or, without `preserve_thinking`, behind the last user message
only; messages that lose it are listed in `Rendered.changed`.  The model opens the block itself.

Second-hand: the chat template of MiMo-V2.5 as it is quoted, whole, in public repositories that
work with it (its ``tokenizer_config.json`` in a converter of conversations, and a setup script for
vLLM that changes its advice on reasoning).  MiMo-V2-Flash's tests in vLLM show the same calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from antiphon.formats import _qwen as qwen
from antiphon.formats import _qwen_tags as tags
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._kin import tag_blocks
from antiphon.formats._render import (
    Turns,
    Writer,
    inline_reasoning,
    is_first_result,
    is_last_result,
    last_user,
    of_tools,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.formats._xml_tools import NESTED, tool_text
from antiphon.messages import Conversation, Message, ToolSpec

TURNS = Turns(between="")
_EMPTY = "<think></think>"
_TAGS = Tagged(
    open="<tool_call>\n",
    close="</tool_call>",
    between="",
    call="<function=",
    named=">\n",
    call_close="</function>\n",
    key="<parameter=",
    keyed=">",
    value_close="</parameter>\n",
    python=tags.SCALARS,
)
_SYNTAX = Syntax(
    blocks=(
        Block("<tool_call>", _TAGS),
        Block("<function=", _TAGS, before="\n", lost=True),
        *tag_blocks(_TAGS, "<tool_call>"),
    ),
    thinking=(Thinking(after_open="", before_close="", after_close=""),),
    doubled=("</tool_call>",),
)
_IDENTITY = "You are MiMo, a helpful AI assistant engineered by Xiaomi."
_INTRO = (
    "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You have access to the following functions:\n\n<tools>"
)
_HOW = """

For each function call, output the function name and arguments in the following format:
<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>value_1</parameter>
<parameter=example_parameter_2>This is the value for the second parameter
that can span
multiple lines</parameter>
</function>
</tool_call>

<IMPORTANT>
- Function calls MUST follow the specified format: an inner <function=...></function> block must \
be nested within <tool_call></tool_call> XML tags
- DO NOT use function calls inside <think></think> tags.
- The value enclosed between parameter tags is preserved exactly as-is, including newlines and \
spaces.
</IMPORTANT>"""


@dataclass(frozen=True, slots=True)
class MiMo(Family):
    """The MiMo V2 family."""

    thinking: bool = True
    """Whether the model may reason."""
    preserve_thinking: bool = True
    """Whether the reasoning of earlier turns is shown again."""

    name = "mimo"
    models = ("XiaomiMiMo/MiMo-V2*",)
    aliases = {"mimo_v2": {}, "mimo_v2_flash": {}}
    signs = ("engineered by Xiaomi", "<function=example_function_name>")
    stop = ("<|im_end|>", "<|endoftext|>")
    prefix_stable = False
    turns = TURNS
    specials = TURNS.specials | qwen.CALL_MARKS | qwen.RESULT_MARKS | qwen.THINK_MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        thinking = ("<think>", "</think>")
        return tagged_form(_TAGS, self.specials, before="", end=self.stop, thinking=thinking)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        TURNS.begin(w, "system", index)
        w.text(_IDENTITY if system is None else system, "given" if first else "frame", index)
        if conversation.tools:
            w.text(of_tools(_listing, conversation.tools), "frame", index)
            w.put(_HOW, "frame", index)
        TURNS.finish(w, "system", index)
        query = -1 if self.preserve_thinking else last_user(messages)
        for index in w.walk(self, messages, first, tools=conversation.tools, shown_from=query):
            match messages[index].role:
                case "assistant":
                    self._assistant(w, conversation, index, shows=index > query)
                case "tool":
                    _result(w, messages, index)
                case role:
                    TURNS.whole(w, role, messages[index].text, index)
        if generate:
            TURNS.begin(w, "assistant", None)
            w.put("" if self.thinking else _EMPTY, "frame")
        return w.done()

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shows: bool) -> None:
        given = conversation.messages[index]
        message = inline_reasoning(given)
        if message is not given or (message.reasoning and not shows):
            w.changed.append(index)
        reasoning = message.reasoning if shows else ""
        message = with_parts(message, reasoning=reasoning, text=message.text)
        TURNS.begin(w, "assistant", index)
        since = len(w.pieces)
        if message.reasoning:
            w.mark("<think>", "written", index)
            w.text(message.reasoning, "written", index)
            w.mark("</think>", "written", index)
        else:
            w.put(_EMPTY, "written" if self.thinking else "frame", index)
        w.text(message.text, "written", index)
        write_calls(w, _TAGS, message, index, before="")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools,
        )  # fmt: skip
        TURNS.finish(w, "assistant", index)


def _result(w: Writer, messages: Sequence[Message], index: int) -> None:
    """One tool result; a run of them is one turn."""
    if is_first_result(messages, index):
        TURNS.begin(w, "tool", index)
    w.put("<tool_response>\n", "frame", index)
    w.text(messages[index].text, "given", index)
    w.put("\n</tool_response>\n", "frame", index)
    if is_last_result(messages, index):
        TURNS.finish(w, "tool", index)


def _listing(tools: Sequence[ToolSpec]) -> str:
    return _INTRO + "".join(map(partial(tool_text, json=NESTED), tools)) + "\n</tools>"


FORMAT = MiMo()
