"""Step3: calls as XML of its own, each in a block between marks, all of them in one.

    <｜tool_calls_begin｜>
    <｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather">
    <steptml:parameter name="city">Lima</steptml:parameter>
    </steptml:invoke><｜tool_call_end｜>
    <｜tool_calls_end｜>

What a string is in a tag is exactly what was written; what else a value is, the tool's schema says.
Reasoning stands in every message, between ``<think>`` and ``</think>``.

Second-hand: calls are those of SGLang's detector and vLLM's parser and of their tests; reasoning is
vLLM's.  How the family frames turns and lists tools is in no public source that was at hand: turns
are those of another family (`frame`; a family's name, or ``chatml``), the words around the tools
are ours.  For the family's own turns give its tokenizer directory to ``get_format``.
"""

from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._listed import listed
from antiphon.formats._react import turns_of
from antiphon.formats._render import (
    Writer,
    inline_reasoning,
    of_tools,
    refuse_images,
    split_system,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation

_CALLS, _CALLS_END = "<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"
_CALL, _CALL_END, _SEP = "<｜tool_call_begin｜>", "<｜tool_call_end｜>", "<｜tool_sep｜>"
_TAGS = Tagged(
    open=f"{_CALLS}\n",
    close=_CALLS_END,
    several=True,
    call=f'{_CALL}function{_SEP}<steptml:invoke name="',
    named='">\n',
    call_close=f"</steptml:invoke>{_CALL_END}\n",
    key='<steptml:parameter name="',
    keyed='">',
    value_close="</steptml:parameter>\n",
)
_SYNTAX = Syntax(
    blocks=(Block(_CALLS, _TAGS),),
    thinking=(Thinking(),),
    doubled=(_CALLS_END,),
)
_EXAMPLE = f"""{_CALLS}
{_CALL}function{_SEP}<steptml:invoke name="example_tool">
<steptml:parameter name="example_parameter">value</steptml:parameter>
</steptml:invoke>{_CALL_END}
{_CALLS_END}"""


@dataclass(frozen=True, slots=True)
class Step3(Family):
    """The Step3 family's calls in the turns of another."""

    frame: str = "chatml"
    """The family whose turns the text stands in."""

    name = "step3"
    models = ("stepfun-ai/step3", "stepfun-ai/step3-fp8")
    signs = ("<steptml:", _CALLS)

    @property
    def stop(self) -> tuple[str, ...]:  # type: ignore[override]  # the frame's
        """The mark that ends a turn."""
        return (turns_of(self.frame).end,)

    @property
    def specials(self) -> frozenset[str]:
        """Marks that are single tokens."""
        marks = {_CALLS, _CALLS_END, _CALL, _CALL_END, _SEP, "<think>", "</think>"}
        return turns_of(self.frame).specials | marks

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        thinking = ("<think>\n", "\n</think>\n\n")
        return tagged_form(_TAGS, self.specials, before="", end=self.stop, thinking=thinking)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        turns = turns_of(self.frame)
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        w.put(turns.before_all, "frame")
        if system or conversation.tools:
            turns.begin(w, "system", index)
            w.text(system or "", "given", index)
            w.text("\n\n" if system and conversation.tools else "", "frame", index)
            if conversation.tools:
                w.text(of_tools(listed, conversation.tools), "frame", index)
                w.put(_EXAMPLE, "frame", index)
            turns.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            if messages[index].role == "assistant":
                self._assistant(w, conversation, index)
            else:
                turns.whole(w, messages[index].role, messages[index].text, index)
        if generate:
            turns.begin(w, "assistant", None)
        return w.done()

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        turns = turns_of(self.frame)
        given = conversation.messages[index]
        message = inline_reasoning(given)
        if message is not given:
            w.changed.append(index)
        turns.begin(w, "assistant", index)
        since = len(w.pieces)
        if message.reasoning:
            w.put("<think>\n", "written", index)
            w.text(f"{message.reasoning}\n", "written", index)
            w.put("</think>\n\n", "written", index)
        w.text(message.text, "written", index)
        write_calls(w, _TAGS, message, index, before="")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools,
        )  # fmt: skip
        turns.finish(w, "assistant", index)


FORMAT = Step3()
