"""MiniCPM5: ChatML turns, reasoning in <think>, calls as <function> elements without a frame.

    <|im_start|>assistant
    <think>
    The user wants the weather.
    </think>

    <function name="get_weather"><param name="city">Lima</param></function><|im_end|>

A string with markup or line feeds stands in a CDATA section; values that are no strings are written
as Python prints them: so does the published template.  The 1B model shows reasoning again only
behind the last user turn, the 2B model everywhere, with an empty block where there is none.
Messages that are not written as they once were are listed in `Rendered.changed`.  The beginning of
the text that a tokenizer adds (``bos_token``) is left to it.

Differs from upstream: ``<tool_sep>`` in a text does not place calls; the template loses what stands
behind it.
Source: the chat templates of MiniCPM5-1B and MiniCPM5-2B as xinference 4.1 ships them.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from antiphon.formats import _qwen as qwen
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    CHATML,
    Writer,
    inline_reasoning,
    last_query,
    refuse_images,
    spec_json,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged, called, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Parts, Rendered, Start
from antiphon.formats._usual import Place, Usual, Usuals, answered
from antiphon.messages import Conversation, Message, ToolSpec

Edition = Literal["1b", "2b"]

_TAGS = Tagged(
    call='<function name="',
    named='">',
    call_close="</function>",
    key='<param name="',
    keyed='">',
    value_close="</param>",
    cdata=True,
    python=frozenset({"boolean", "null", "array", "object"}),
)
_SYNTAX = Syntax(
    blocks=(Block("<function", _TAGS, before="\n", line_start=True),),
    thinking=(Thinking(),),
)
_HOW = """
</tools>

Tool usage guidelines:
- You may call zero or more functions. If no function calls are needed, just answer normally and \
do not include any <function ... </function>.
- When calling a function, return an XML object within <function ... </function> using:
<function name="function-name"><param name="param-name">param-value</param></function>
- param-value may be multi-line. If it contains <, & or newline characters, wrap it in a CDATA \
block: <param name="param-name"><![CDATA[...multi-line value...]]></param>"""
_SLOT = "<tool_def_sep>"

_NO_REASONING: dict[bool | None, Parts] = {
    None: (("<think>\n", "written"), ("\n", "written"), ("</think>\n\n", "written")),
    True: (("<think>\n", "frame"), ("\n", "written"), ("</think>\n\n", "written")),
    False: (("<think>\n", "frame"), ("\n", "frame"), ("</think>\n\n", "frame")),
}
"""A block without reasoning, by whether the model was asked for some."""


@dataclass(frozen=True, slots=True)
class MiniCPM5(Family):
    """The MiniCPM5 family."""

    thinking: bool | None = None
    """Whether the model is asked to reason; ``None`` leaves it to the model."""
    edition: Edition = "1b"
    """Which of the family's texts."""

    name = "minicpm5"
    models = ("openbmb/MiniCPM5-*",)
    aliases = {"openbmb/MiniCPM5-2B*": {"edition": "2b"}}
    signs = ('<function name="', "CDATA")
    stop = ("<|im_end|>",)
    turns = CHATML
    specials = CHATML.specials | qwen.THINK_MARKS | qwen.RESULT_MARKS

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]  # a variant of the class's constant
        """Whether a longer conversation extends the text of a shorter one."""
        return self.edition == "2b"

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        thinking = None if self.thinking is False else ("<think>\n", "\n</think>\n\n")
        return tagged_form(
            _TAGS, self.specials,
            before="\n", end=self.stop, thinking=thinking, forbidden=("<function name=",),
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        if system is not None or conversation.tools:
            _system(w, system, conversation.tools, 0 if first else None)
        query = last_query(messages)
        query = len(messages) - 1 if query is None else query
        tools = conversation.tools
        usual = _usuals(self)
        for index in w.walk(self, messages, first, tools=tools, shown_from=query, usual=usual):
            message = messages[index]
            if message.role == "assistant":
                CHATML.begin(w, "assistant", index)
                self._assistant(w, conversation, index, shows=index > query)
                CHATML.finish(w, "assistant", index)
            elif message.role == "tool":
                qwen.write_result(w, messages, index)
            else:
                CHATML.whole(w, message.role, message.text, index)
        if not generate:
            return w.done()
        CHATML.begin(w, "assistant", None)
        w.put(
            {None: "", True: "<think>\n", False: "<think>\n\n</think>\n\n"}[self.thinking], "frame"
        )
        return w.done(start="reasoning" if self.thinking else "content")

    def usual(self, place: Place) -> Usual | None:
        """How a message without reasoning is written; see `_usual.py`."""
        if place.role != "assistant":
            return qwen.usual(place, specials=self.specials)
        opens = self.edition == "2b"
        block = _NO_REASONING[self.thinking] if opens else ""
        frame = CHATML.frame("assistant", block, specials=self.specials)
        if place.kind == "calls":
            return called(frame, _TAGS)
        return answered(frame, _SYNTAX, _without_feeds if opens else None)

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shows: bool) -> None:
        message = self._as_written(w, conversation.messages[index], index, shows=shows)
        since = len(w.pieces)
        start: Start = "content"
        if message.reasoning or self.edition == "2b":
            start = self._think(w, message.reasoning, index)
        w.text(message.text, "written", index)
        write_calls(w, _TAGS, message, index, before="\n" if message.text else "")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools, start=start,
        )  # fmt: skip

    def _as_written(self, w: Writer, message: Message, index: int, *, shows: bool) -> Message:
        split = inline_reasoning(message)
        reasoning = split.reasoning.strip("\n") if shows or self.edition == "2b" else ""
        opens = bool(reasoning) or self.edition == "2b"
        text = split.text.lstrip("\n") if opens else split.text
        if (reasoning, text) != (message.reasoning, message.text):
            w.changed.append(index)
        return with_parts(split, reasoning=reasoning, text=text)

    def _think(self, w: Writer, reasoning: str, index: int) -> Start:
        """The reasoning block: the prompt's part of it is the frame's, the rest is written."""
        by_prompt = self.thinking is False and not reasoning
        w.put("<think>\n", "frame" if self.thinking or by_prompt else "written", index)
        w.text(f"{reasoning}\n", "frame" if by_prompt else "written", index)
        w.put("</think>\n\n", "frame" if by_prompt else "written", index)
        return "reasoning" if self.thinking else "content"


@cache
def _usuals(family: MiniCPM5) -> Usuals:
    return Usuals(family.usual)


def _without_feeds(text: str) -> str:
    return text.lstrip("\n")


def _system(w: Writer, system: str | None, tools: tuple[ToolSpec, ...], index: int | None) -> None:
    CHATML.begin(w, "system", index)
    head, slot, tail = (system or "").partition(_SLOT) if tools else (system or "", "", "")
    w.text(head, "given", index)
    if tools:
        w.text("\n\n" if system is not None and not slot else "", "frame", index)
        lines = "".join("\n" + spec_json(spec) for spec in tools)
        w.text(
            "# Tools\n\nYou are provided with function signatures within <tools></tools> XML "
            f"tags:\n<tools>{lines}{_HOW}",
            "frame",
            index,
        )
    w.text(tail, "given", index)
    CHATML.finish(w, "system", index)


FORMAT = MiniCPM5()
