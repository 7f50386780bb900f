"""Qwen3-Coder: ChatML turns, tools as XML, calls with a tag per argument in <tool_call>.

    <|im_start|>assistant
    I will look.

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Lima
    </parameter>
    </function>
    </tool_call><|im_end|>

The family does not reason; reasoning is left out and its messages are listed in `Rendered.changed`.
Booleans, null and arrays are written as Python prints them, objects as JSON: so does the published
template.  Strings have no quotes: what a string would be read as is told by the tool's schema, and
one that would be read as something else is refused.

Differs from upstream: nothing.
Source: Qwen3-Coder's chat_template as xinference 4.1 ships it (``llm_family.json``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats import _qwen as qwen
from antiphon.formats import _qwen_tags as tags
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    CHATML,
    Writer,
    inline_reasoning,
    is_first_result,
    is_last_result,
    of_tools,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._tagged import called, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Place, Usual, Usuals
from antiphon.formats._xml_tools import tool_text
from antiphon.messages import Conversation, Message, ToolSpec

_IDENTITY = "You are Qwen, a helpful AI assistant that can interact with a computer to solve tasks."
_TAGS = tags.tags(tags.SCALARS | {"array"})
_SYNTAX = tags.syntax(_TAGS)
_RESULT = "<tool_response>\n", "\n</tool_response>\n"


@dataclass(frozen=True, slots=True)
class Qwen3Coder(Family):
    """The Qwen3-Coder family."""

    name = "qwen3_coder"
    models = ("Qwen/Qwen3-Coder-*",)
    aliases = {"qwen3_xml": {}}
    signs = ("<function=example_function_name>", "interact with a computer")
    stop = ("<|im_end|>", "<|endoftext|>")
    turns = CHATML
    specials = CHATML.specials | qwen.CALL_MARKS | qwen.RESULT_MARKS | qwen.THINK_MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(_TAGS, self.specials, before="\n\n", end=self.stop)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        if system is not None or conversation.tools:
            index = 0 if first else None
            CHATML.begin(w, "system", index)
            w.text(_IDENTITY if system is None else system, "given" if first else "frame", index)
            if conversation.tools:
                w.text(of_tools(_tools_text, conversation.tools), "frame", index)
                w.put(tags.HOW, "frame", index)
            CHATML.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            message = messages[index]
            if message.role == "assistant":
                self._assistant(w, conversation, index)
            elif message.role == "tool":
                _result(w, messages, index)
            else:
                CHATML.whole(w, message.role, message.text, index)
        if generate:
            CHATML.begin(w, "assistant", None)
        return w.done()

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = _as_written(w, conversation.messages[index], index)
        CHATML.begin(w, "assistant", index)
        since = len(w.pieces)
        w.text(message.text, "written", index)
        write_calls(w, _TAGS, message, index, before="\n\n" if message.text else "")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools,
        )  # fmt: skip
        CHATML.finish(w, "assistant", index)


def _as_written(w: Writer, message: Message, index: int) -> Message:
    """A message without reasoning; text before a call is trimmed."""
    split = inline_reasoning(message)
    acts = split.tool_calls or split.invalid_tool_calls
    text = split.text.strip() if acts else split.text
    if split.reasoning or text != message.text:
        w.changed.append(index)
    return with_parts(split, reasoning="", text=text)


def _result(w: Writer, messages: tuple[Message, ...], index: int) -> None:
    """One tool result; a run of them is one user turn."""
    if is_first_result(messages, index):
        CHATML.begin(w, "user", index)
    w.put(_RESULT[0], "frame", index)
    w.text(messages[index].text, "given", index)
    w.put(_RESULT[1], "frame", index)
    if is_last_result(messages, index):
        CHATML.finish(w, "user", index)


def _tools_text(specs: Sequence[ToolSpec]) -> str:
    listing = "".join(map(tool_text, specs))
    return f"\n\nYou have access to the following functions:\n\n<tools>{listing}\n</tools>"


def _usual(place: Place) -> Usual | None:
    if place.kind == "calls":
        return called(CHATML.frame("assistant", specials=Qwen3Coder.specials), _TAGS)
    return qwen.usual(place, _SYNTAX, specials=Qwen3Coder.specials, result=_RESULT)


_USUAL = Usuals(_usual)

FORMAT = Qwen3Coder()
