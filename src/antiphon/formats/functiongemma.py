"""FunctionGemma: tools, calls and results in Gemma's own objects, strings between <escape> tokens.

    <start_of_turn>model
    <start_function_call>call:get_weather{city:<escape>Lima<escape>}<end_function_call>
    <start_function_response>response:get_weather{value:<escape>19<escape>}
    <end_function_response>It is 19 degrees.<end_of_turn>

(From the call to the answer there is no line feed.)  A model that has called writes
``<start_function_response>`` and stops; it goes on behind the results in the same turn.  What a
system message says stands in a developer's turn, with the tools behind it; the family is trained
to call behind the words *You are a model that can do function calling with the following
functions*.  There is no reasoning; texts are trimmed.

Second-hand: turns, calls and results are LiteRT-LM's default template of the family
(``runtime/util/model_type_utils.cc``), which Google's guide *FunctionGemma formatting and best
practices* shows as well; where the two differ, in line feeds before the tools, the guide is
followed.  A user who speaks behind a result gets a turn of their own.  Declarations are the
guide's, with the rules of Gemma 4's template for what it does not show.  The template in the
model's repository was not at hand.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats import _gemma as gemma
from antiphon.formats._family import Family
from antiphon.formats._gemma_grammar import call_form
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import Writer, as_said, check_written, refuse_images, split_system
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Author, Rendered
from antiphon.formats._values import Dialect
from antiphon.messages import Conversation, Message, ToolCall

_QUOTE = "<escape>"
_CALL, _CALL_END = "<start_function_call>", "<end_function_call>"
_RESULT, _RESULT_END = "<start_function_response>", "<end_function_response>"
_TOOL, _TOOL_END = "<start_function_declaration>", "<end_function_declaration>"
_OPEN, _CLOSE = "<start_of_turn>", "<end_of_turn>"
_OBJECTS = Dialect(delimiter=_QUOTE, bare_keys=True)
_SYNTAX = Syntax(
    blocks=gemma.blocks(gemma.GemmaCalls(_CALL, _CALL_END, _OBJECTS)),
    doubled=(_CALL_END,),
    ignored=(_RESULT,),
)


@dataclass(frozen=True, slots=True)
class FunctionGemma(Family):
    """The FunctionGemma family."""

    name = "functiongemma"
    models = ("google/functiongemma-*",)
    aliases = {"function_gemma": {}}
    signs = (_CALL, _TOOL)
    stop = (_CLOSE, _RESULT, "<eos>")
    specials = frozenset(
        {
            *("<bos>", _OPEN, _CLOSE, _QUOTE),
            *(_CALL, _CALL_END, _RESULT, _RESULT_END, _TOOL, _TOOL_END),
        }
    )

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return call_form(self.specials, marks=(_CALL, _CALL_END), quote=_QUOTE)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        w.mark("<bos>", "frame")
        system, first = split_system(conversation)
        if system is not None or conversation.tools:
            index = 0 if first else None
            w.put(f"{_OPEN}developer\n", "frame", index)
            w.text((system or "").strip(), "given", index)
            for tool in conversation.tools:
                if found := gemma.problem(tool.to_openai(), _QUOTE):
                    raise w.refuse(f"the tool {tool.name!r} holds {found}; change it", index)
                w.mark(_TOOL, "frame", index)
                _object(w, gemma.declaration(tool, _QUOTE), "frame", index)
                w.mark(_TOOL_END, "frame", index)
            w.put(f"{_CLOSE}\n", "frame", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            match messages[index].role:
                case "assistant":
                    _assistant(w, conversation, index)
                case "tool":
                    _result(w, messages, index)
                case role:
                    if index > first and messages[index - 1].role == "tool":
                        w.put(f"{_CLOSE}\n", "frame", index)
                    w.put(f"{_OPEN}{role}\n", "frame", index)
                    w.text(messages[index].text.strip(), "given", index)
                    w.put(f"{_CLOSE}\n", "frame", index)
        if generate and not (messages and messages[-1].role == "tool"):
            w.put(f"{_OPEN}model\n", "frame")
        return w.done()


def _assistant(w: Writer, conversation: Conversation, index: int) -> None:
    messages = conversation.messages
    message = messages[index]
    goes_on = index > 0 and messages[index - 1].role == "tool"
    if not goes_on:
        w.put(f"{_OPEN}model\n", "frame", index)
    said = as_said(w, message, index, text=message.text.strip())
    since = len(w.pieces)
    w.text(said.text, "written", index)
    for call in said.tool_calls:
        _call(w, call, index)
    for invalid in said.invalid_tool_calls:
        w.put(invalid.raw, "written", index)
    check_written(w, _SYNTAX, said, index, since=since, tools=conversation.tools)
    if said.tool_calls:
        w.mark(_RESULT, "written", index)
    else:
        w.mark(_CLOSE, "written", index)
        w.text("\n", "frame", index)


def _call(w: Writer, call: ToolCall, index: int) -> None:
    if found := gemma.problem(call.arguments, _QUOTE):
        raise w.refuse(f"the arguments of {call.name!r} hold {found}; change it", index)
    w.mark(_CALL, "written", index)
    arguments = gemma.written(call.arguments, quote=_QUOTE)
    _object(w, f"call:{call.name}{arguments}", "written", index)
    w.mark(_CALL_END, "written", index)


def _object(w: Writer, text: str, author: Author, index: int | None) -> None:
    """An object, whose delimiters are single tokens."""
    for i, part in enumerate(text.split(_QUOTE)):
        if i:
            w.mark(_QUOTE, author, index)
        w.text(part, author, index)


def _result(w: Writer, messages: Sequence[Message], index: int) -> None:
    """One result of a run of them behind a call."""
    start = index
    while start and messages[start - 1].role == "tool":
        start -= 1
    calls = messages[start - 1].tool_calls if start else ()
    if not calls:
        raise w.refuse("a result must follow a call; add the call or drop the result", index)
    message = messages[index]
    named = [c.name for c in calls if message.tool_call_id and c.id == message.tool_call_id]
    order = calls[index - start].name if index - start < len(calls) else "unknown"
    if index > start:
        w.mark(_RESULT, "frame", index)
    w.text(f"response:{(named or [message.name or order])[-1]}{{value:", "frame", index)
    w.mark(_QUOTE, "frame", index)
    w.text(message.text.strip(), "given", index)
    w.mark(_QUOTE, "frame", index)
    w.text("}", "frame", index)
    w.mark(_RESULT_END, "frame", index)


FORMAT = FunctionGemma()
