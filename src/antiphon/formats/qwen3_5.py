"""Qwen3.5, 3.6 and 3.8: ChatML turns, reasoning in <think>, calls with a tag per argument.

    <|im_start|>assistant
    <think>
    The user wants the weather.
    </think>

    <tool_call>
    <function=get_weather>
    <parameter=city>
    Lima
    </parameter>
    </function>
    </tool_call><|im_end|>

Three versions: 3.5 prints booleans and null as Python does, 3.6 and 3.8 as JSON; 3.5 and 3.6 show
reasoning again only behind the last user turn (3.6 everywhere when asked to `preserve`), 3.8 shows
it everywhere and says in the system turn how much `effort` is wanted.  All text is trimmed.
Messages that are not written as they once were are listed in `Rendered.changed`.

Differs from upstream: nothing.
Source: ``qwen3_5_think.jinja``, ``qwen3_5_nothink.jinja``, ``qwen3_6.jinja`` and ``qwen3_8.jinja``
as trl 1.16 ships them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from antiphon.formats import _qwen as qwen
from antiphon.formats import _qwen_tags as tags
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    CHATML,
    Writer,
    inline_reasoning,
    last_query,
    of_tools,
    refuse_media,
    spec_json,
    split_system,
    trimmed,
    with_parts,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._tagged import called, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Parts, Rendered, Start
from antiphon.formats._usual import Place, Usual, Usuals, answered
from antiphon.messages import Conversation, Message, ToolSpec

Version = Literal["3.5", "3.6", "3.8"]
Effort = Literal["low", "medium", "xhigh"]

_EFFORTS = {
    "xhigh": "Reasoning effort is set to xhigh. Please think carefully through the task, validate "
    "key assumptions, consider plausible alternatives, and prioritize correctness, consistency, "
    "and clarity in the final answer.",
    "medium": "",
    "low": "Reasoning effort is set to low. Keep your thinking brief and focused, moving directly "
    "to the conclusion without unnecessary elaboration.",
}
_NO_REASONING: dict[bool, Parts] = {
    True: (("<think>\n", "frame"), ("\n", "written"), ("</think>\n\n", "written")),
    False: (("<think>\n", "frame"), ("\n", "frame"), ("</think>\n\n", "frame")),
}
"""A block without reasoning, by whether the model was asked for some."""
_PYTHON, _JSON = tags.tags(tags.SCALARS), tags.tags(frozenset())
_SYNTAX = {True: tags.syntax(_PYTHON), False: tags.syntax(_JSON)}


@dataclass(frozen=True, slots=True)
class Qwen35(Family):
    """The Qwen3.5, Qwen3.6 and Qwen3.8 families."""

    version: Version = "3.5"
    """Which of the family's texts."""
    thinking: bool = True
    """Whether the model is asked to reason."""
    preserve: bool = False
    """Whether 3.6 shows the reasoning of earlier turns again; 3.8 does by itself."""
    effort: Effort = "xhigh"
    """How much 3.8 is asked to reason."""

    name = "qwen3_5"
    models = ("Qwen/Qwen3.5-*",)
    aliases = {
        "qwen3_6": {"version": "3.6"},
        "qwen3_8": {"version": "3.8"},
        "Qwen/Qwen3.6-*": {"version": "3.6"},
        "Qwen/Qwen3.8-*": {"version": "3.8"},
    }
    signs = ("<function=example_function_name>", "multi_step_tool")
    stop = ("<|im_end|>", "<|endoftext|>")
    turns = CHATML
    specials = (
        CHATML.specials | qwen.CALL_MARKS | qwen.RESULT_MARKS | qwen.THINK_MARKS | qwen.VISION_MARKS
    )

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]  # a variant of the class's constant
        """Whether a longer conversation extends the text of a shorter one."""
        return self._keeps

    @property
    def _keeps(self) -> bool:
        return self.version == "3.8" or (self.version == "3.6" and self.preserve)

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX[self.version == "3.5"]

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(
            _PYTHON if self.version == "3.5" else _JSON,
            self.specials,
            before="\n\n",
            end=self.stop,
            thinking=("<think>\n", "\n</think>\n\n") if self.thinking else None,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        refuse_media(w, conversation.messages, shows=tuple(qwen.MEDIA["vision"]))
        messages = tuple(trimmed(m) for m in conversation.messages)
        conversation = replace(conversation, messages=messages)
        query = last_query(messages)
        if query is None:
            raise w.refuse("a conversation needs a message of the user's; add one")
        self._system(w, conversation)
        first = split_system(conversation)[1]
        tools = conversation.tools
        usual = _usuals(self)
        for index in w.walk(self, messages, first, tools=tools, shown_from=query, usual=usual):
            self._message(w, conversation, index, query)
        if not generate:
            return w.done()
        CHATML.begin(w, "assistant", None)
        if self.thinking:
            w.put("<think>\n", "frame")
            return w.done(start="reasoning")
        w.put("<think>\n\n</think>\n\n", "frame")
        return w.done()

    def _system(self, w: Writer, conversation: Conversation) -> None:
        system, first = split_system(conversation)
        effort = _EFFORTS[self.effort] if self.version == "3.8" and self.thinking else ""
        if self.version == "3.8" and not (system or effort or conversation.tools):
            return
        if system is None and not conversation.tools and not effort:
            return
        index = 0 if first else None
        CHATML.begin(w, "system", index)
        follows = bool(conversation.tools or system)
        w.text(effort + ("\n\n" if effort and follows else ""), "frame", index)
        if conversation.tools:
            w.text(of_tools(_tools_text, conversation.tools), "frame", index)
            w.put(tags.HOW, "frame", index)
            w.text("\n\n" if system else "", "frame", index)
        w.text(system or "", "given", index)
        CHATML.finish(w, "system", index)

    def _message(self, w: Writer, conversation: Conversation, index: int, query: int) -> None:
        message = conversation.messages[index]
        match message.role:
            case "system":
                raise w.refuse(
                    "a system message must come first; join system messages into one", index
                )
            case "tool":
                qwen.write_result(w, conversation.messages, index)
            case "user":
                CHATML.begin(w, "user", index)
                qwen.write_content(w, conversation.messages, index)
                CHATML.finish(w, "user", index)
            case "assistant":
                CHATML.begin(w, "assistant", index)
                self._assistant(w, conversation, index, query)
                CHATML.finish(w, "assistant", index)

    def usual(self, place: Place) -> Usual | None:
        """How a message without reasoning is written; see `_usual.py`."""
        if place.kind == "system":
            return None
        if place.role != "assistant":
            return qwen.usual(place, specials=self.specials)
        shows = self._keeps or place.is_shown
        block = _NO_REASONING[self.thinking] if shows else ""
        frame = CHATML.frame("assistant", block, specials=self.specials)
        if place.kind == "calls":
            return called(frame, self._tags, changes=not shows)
        return answered(frame, self.syntax, trims=True, changes=not shows)

    def _assistant(self, w: Writer, conversation: Conversation, index: int, query: int) -> None:
        message = self._as_written(w, conversation.messages[index], index)
        shows = self._keeps or index > query
        since = len(w.pieces)
        start: Start = "content"
        if shows:
            start = self._think(w, message, index)
        else:
            w.changed.append(index)
            message = with_parts(message, reasoning="", text=message.text)
        w.text(message.text, "written", index)
        write_calls(w, self._tags, message, index, before="\n\n" if message.text else "")
        check_calls(
            w, self._tags, self.syntax, message, index,
            since=since, tools=conversation.tools, start=start,
        )  # fmt: skip

    @property
    def _tags(self) -> tags.Tagged:
        return _PYTHON if self.version == "3.5" else _JSON

    def _as_written(self, w: Writer, message: Message, index: int) -> Message:
        split = inline_reasoning(message) if self.version != "3.8" else message
        reasoning, text = split.reasoning.strip(), split.text.strip()
        if (reasoning, text) != (split.reasoning, split.text):
            w.changed.append(index)
        return with_parts(split, reasoning=reasoning, text=text)

    def _think(self, w: Writer, message: Message, index: int) -> Start:
        """The reasoning block: the prompt's part of it is the frame's, the rest is written."""
        if self.thinking:
            w.put("<think>\n", "frame", index)
            w.text(f"{message.reasoning}\n", "written", index)
            w.put("</think>\n\n", "written", index)
            return "reasoning"
        author = "written" if message.reasoning else "frame"
        w.put("<think>\n", author, index)
        w.text(f"{message.reasoning}\n", author, index)
        w.put("</think>\n\n", author, index)
        return "content"


@cache
def _usuals(family: Qwen35) -> Usuals:
    return Usuals(family.usual)


def _tools_text(tools: Sequence[ToolSpec]) -> str:
    lines = "".join("\n" + spec_json(spec) for spec in tools)
    return f"# Tools\n\nYou have access to the following functions:\n\n<tools>{lines}\n</tools>"


FORMAT = Qwen35()
