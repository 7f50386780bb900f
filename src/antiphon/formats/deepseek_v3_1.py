"""DeepSeek V3.1: turns without white space, each call as name and JSON between marks.

    <｜User｜>Weather?<｜Assistant｜></think><｜tool▁calls▁begin｜>
    <｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>{"city": "Lima"}<｜tool▁call▁end｜>
    <｜tool▁calls▁end｜><｜end▁of▁sentence｜><｜tool▁output▁begin｜>19<｜tool▁output▁end｜>

(without these line feeds).  The prompt opens reasoning with ``<think>``, or closes it at once with
``</think>`` where `thinking` is off.  Behind a result nothing is opened: the model goes on.
System messages are joined in front, wherever they stood.

Differs from upstream: with `thinking` on, reasoning of the last message is shown as the model wrote
it, where it answers a user; the template never shows any, so that the text it was trained on could
not be made.  Earlier reasoning is dropped, as there.
Source: ``tokenizer_config.json`` of deepseek-ai/DeepSeek-V3.1 as xinference 4.1 ships it
(Deepseek-V3.1).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from antiphon.formats import _deepseek as ds
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import Writer, check_written, of_tools, refuse_images
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Parts, Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, called, given
from antiphon.messages import Conversation, ToolSpec, dump_json

_HOW = f"""
IMPORTANT: ALWAYS adhere to this exact format for tool use:
{ds.CALLS}{ds.CALL}tool_call_name{ds.SEP}tool_call_arguments{ds.CALL_END}\
{{{{additional_tool_calls}}}}{ds.CALLS_END}

Where:

- `tool_call_name` must be an exact match to one of the available tools
- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema
- For multiple tool calls, chain them directly without separators or spaces
"""
_SYNTAX = ds.syntax(ds.NAMED)


@dataclass(frozen=True, slots=True)
class DeepSeekV31(Family):
    """The DeepSeek V3.1 family."""

    thinking: bool = False
    """Whether the model is asked to reason."""

    name = "deepseek_v3_1"
    models = ("deepseek-ai/DeepSeek-V3.1*",)
    aliases = {"deepseek_v31": {}, "deepseekv31": {}}
    signs = ("<｜tool▁output▁begin｜>", "is_last_user", "thinking")
    stop = (ds.EOS,)
    prefix_stable = False
    specials = ds.SPECIALS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return ds.call_form(ds.named, between="", thinking=("<think>", "</think>"))

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        w.mark(ds.BOS, "frame")
        ds.write_system(w, messages)
        if conversation.tools:
            w.text("\n\n" + of_tools(_listing, conversation.tools), "frame")
            w.put(_HOW, "frame")
        for index in w.walk(self, messages, tools=conversation.tools, usual=_USUAL):
            message = messages[index]
            if message.role == "user":
                w.around(ds.QUESTION, message.text, index)
            elif message.role == "tool":
                ds.write_result(w, message, index)
            elif message.role == "assistant":
                self._assistant(w, conversation, index)
        if generate and ds.role_before(messages, len(messages)) == "user":
            w.mark(ds.ASSISTANT, "frame")
            w.mark("<think>" if self.thinking else "</think>", "frame")
            return w.done(start="reasoning" if self.thinking else "content")
        return w.done()

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        opens = ds.role_before(conversation.messages, index) == "user"
        last = index + 1 == len(conversation.messages)
        keep = opens and last and self.thinking
        message = ds.as_shown(w, conversation.messages[index], index, keep=keep)
        reasons = bool(message.reasoning)
        if opens:
            w.mark(ds.ASSISTANT, "frame", index)
            w.mark("<think>" if reasons else "</think>", "frame", index)
        since = len(w.pieces)
        if reasons:
            w.text(message.reasoning, "written", index)
            w.mark("</think>", "written", index)
        w.text(message.text, "written", index)
        ds.write_calls(w, message, index, ds.named_text, between="")
        check_written(
            w, _SYNTAX, message, index,
            since=since, tools=conversation.tools, start="reasoning" if reasons else "content",
        )  # fmt: skip
        w.mark(ds.EOS, "written", index)


def _listing(tools: Sequence[ToolSpec]) -> str:
    text = "## Tools\nYou have access to the following tools:\n"
    for tool in tools:
        function = tool.to_openai()["function"]
        parameters = dump_json(function.get("parameters", {}))
        text += f"\n### {tool.name}\nDescription: {tool.description}\n\nParameters: {parameters}\n"
    return text


def _usual(place: Place) -> Usual | None:
    asked: Parts = ((ds.ASSISTANT, "frame"), ("</think>", "frame"))
    opens = asked if place.before == "user" else ()
    match place.kind:
        case "user":
            return given(ds.QUESTION)
        case "tool":
            return given(ds.RESULT)
        case _ if place.before == "system":
            return None
        case "assistant":
            return answered(replace(ds.ANSWER, before=opens), _SYNTAX)
        case "calls":
            return called(lambda name: ds.call_around(opens, name))
        case _:
            return None


_USUAL = Usuals(_usual)
FORMAT = DeepSeekV31()
