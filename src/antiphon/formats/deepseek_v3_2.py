"""DeepSeek-V3.2: DSML calls in a ``function_calls`` block, results in the same turn.

    <｜User｜>Weather in Lima?<｜Assistant｜><think>Look it up.</think>

    <｜DSML｜function_calls>
    <｜DSML｜invoke name="get_weather">
    <｜DSML｜parameter name="city" string="true">Lima</｜DSML｜parameter>
    </｜DSML｜invoke>
    </｜DSML｜function_calls><｜end▁of▁sentence｜>

    <function_results>
    <result>19 degrees</result>
    </function_results>

    <think>

Reasoning is shown again only behind the last user message; messages that lose it are listed in
`Rendered.changed`.

Differs from upstream: an answer without reasoning is written with an empty block when the model was
asked to reason, where upstream stops; fewer results than calls are closed like all of them.
Source: ``encoding/encoding_dsv32.py`` of deepseek-ai/DeepSeek-V3.2, as SGLang 0.5.23 ships it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats import _dsml as dsml
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Writer,
    inline_reasoning,
    is_first_result,
    is_last_result,
    last_user,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._tagged import check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

_TAGS = dsml.tags("function_calls")
_SYNTAX = dsml.syntax(_TAGS)
_OPEN = """\
## Tools
You have access to a set of tools you can use to answer the user's question.
You can invoke functions by writing a "<｜DSML｜function_calls>" block like the following as part \
of your reply to the user:
<｜DSML｜function_calls>
<｜DSML｜invoke name="$FUNCTION_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$FUNCTION_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜function_calls>
String and scalar parameters should be specified as is without any escaping or quotes, while lists \
and objects should use JSON format. The "string" attribute should be set to "true" for string type \
parameters and "false" for other types (numbers, booleans, arrays, objects).
If the thinking_mode is enabled, then after function results you should strongly consider \
outputting a thinking block. Here is an example:
<｜DSML｜function_calls>
...
</｜DSML｜function_calls>
<function_results>
...
</function_results>
<think>...thinking about results</think>
Here are the functions available in JSONSchema format:
<functions>
"""


@dataclass(frozen=True, slots=True)
class DeepSeekV32(Family):
    """The DeepSeek-V3.2 family."""

    thinking: bool = False
    """Whether the model is asked to reason."""

    name = "deepseek_v3_2"
    models = ("deepseek-ai/DeepSeek-V3.2*",)
    aliases = {"deepseek_v32": {}, "deepseekv32": {}}
    signs = ("｜DSML｜", "function_results>")
    stop = (dsml.END,)
    prefix_stable = False
    specials = dsml.SPECIALS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(
            _TAGS, self.specials,
            before="\n\n", end=self.stop, always=True, thinking=("<think>", "</think>"),
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        w.put("<｜begin▁of▁sentence｜>", "frame")
        w.text(system or "", "given", 0)
        _tools(w, conversation.tools)
        query = last_user(messages)
        for index in w.walk(self, messages, first, tools=conversation.tools, shown_from=query):
            message = messages[index]
            thinks = self.thinking and index >= query
            match message.role:
                case "system":
                    w.text(message.text, "given", index)
                case "user":
                    w.put("<｜User｜>", "frame", index)
                    w.text(message.text, "given", index)
                    _prompt(w, "<｜Assistant｜>", messages, index, thinks, generate)
                case "tool":
                    _result(w, messages, index)
                    if is_last_result(messages, index):
                        _prompt(w, "\n\n", messages, index, thinks, generate)
                case "assistant":
                    self._assistant(w, conversation, index, thinks=self.thinking and thinks)
        opened = generate and w.ends_with("<think>")
        return w.done(start="reasoning" if opened else "content")

    def _assistant(
        self, w: Writer, conversation: Conversation, index: int, *, thinks: bool
    ) -> None:
        message = inline_reasoning(conversation.messages[index])
        if message.reasoning and not thinks:
            w.changed.append(index)
            message = with_parts(message, reasoning="", text=message.text)
        since = len(w.pieces)
        if thinks:
            w.text(message.reasoning, "written", index)
            w.put("</think>", "written", index)
        w.text(message.text, "written", index)
        write_calls(w, _TAGS, message, index, before="\n\n")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools, start="reasoning" if thinks else "content",
        )  # fmt: skip
        w.put(dsml.END, "written", index)


def _prompt(
    w: Writer, lead: str, messages: Sequence[Message], index: int, thinks: bool, generate: bool
) -> None:
    """What asks the model for the next message; behind the last one only if it is to be
    generated."""
    at: int | None = index + 1 if index + 1 < len(messages) else None
    if at is None and not generate:
        return
    if at is not None and messages[at].role != "assistant":
        at = index
    w.put(lead, "frame", at)
    w.put("<think>" if thinks else "</think>", "frame", at)


def _tools(w: Writer, tools: Sequence[ToolSpec]) -> None:
    if tools:
        w.put("\n\n" + _OPEN, "frame")
        lines = "\n".join(dump_json(spec.to_openai()["function"]) for spec in tools)
        w.text(f"{lines}\n</functions>\n", "frame")


def _result(w: Writer, messages: Sequence[Message], index: int) -> None:
    """One tool result; a run of them is one block."""
    if is_first_result(messages, index):
        w.text("\n\n<function_results>", "frame", index)
    w.text("\n<result>", "frame", index)
    w.text(messages[index].text, "given", index)
    w.text("</result>", "frame", index)
    if is_last_result(messages, index):
        w.text("\n</function_results>", "frame", index)


FORMAT = DeepSeekV32()
