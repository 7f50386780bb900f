"""Ling 3: roles between <role> and </role>, reasoning in <think>, calls with a tag per argument.

    <role>ASSISTANT</role>
    <think>The user wants the weather.</think>Let me look.
    <tool_call>get_weather
    <arg_key>city</arg_key>
    <arg_value>Lima</arg_value>
    </tool_call><|role_end|>

Reasoning is shown in every turn.  Whether the model is to reason stands at the end of the system
turn, unless the system message says it itself.  Messages that are not written as they once were are
listed in `Rendered.changed`.

Differs from upstream: nothing.
Source: Ling-3.0-flash's chat_template as xinference 4.1 ships it; Ling-3.0-tiny's is the same.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import (
    Turns,
    Writer,
    inline_reasoning,
    is_first_result,
    is_last_result,
    refuse_images,
    spec_json,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking, Unmarked
from antiphon.formats._tagged import Tagged, called, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Parts, Rendered, Start
from antiphon.formats._usual import Place, Usual, Usuals, answered, given
from antiphon.messages import Conversation, Message, ToolSpec

TURNS = Turns(
    open="<role>{role}</role>",
    end="<|role_end|>",
    between="",
    specials=frozenset({"<role>", "</role>", "<|role_end|>"}),
    roles=(
        ("system", "SYSTEM"),
        ("user", "HUMAN"),
        ("assistant", "ASSISTANT"),
        ("tool", "OBSERVATION"),
    ),
)
_TAGS = Tagged(
    open="<tool_call>",
    close="\n</tool_call>",
    named="\n",
    keyed="</arg_key>\n",
    value="<arg_value>",
    value_close="</arg_value>",
)
_SYNTAX = Syntax(
    blocks=(Block("<tool_call>", _TAGS, before="\n"),),
    thinking=(Thinking(after_open="", before_close="", after_close=""),),
    unmarked=Unmarked(_TAGS, ("<arg_key>",)),
    doubled=("</tool_call>",),
)
_HOW = (
    "\n</tools>\n\n"
    "If none of the functions can be used, point it out. If the given question lacks the "
    "parameters required by the function, also point it out.\n"
    "If you need to use a function, for each function call, output the function name and arguments "
    "within the following XML format:\n"
)
_EXAMPLE = (
    "<tool_call>{function-name}\n<arg_key>{arg-key-1}</arg_key>\n"
    "<arg_value>{arg-value-1}</arg_value>\n<arg_key>{arg-key-2}</arg_key>\n"
    "<arg_value>{arg-value-2}</arg_value>\n...\n</tool_call>\n"
)

_RESULT = "\n<tool_response>\n", "\n</tool_response>"
_NO_REASONING: dict[bool, Parts] = {
    True: (("\n", "frame"), ("<think>", "frame"), ("</think>", "written")),
    False: (("\n", "frame"), ("<think>", "frame"), ("</think>", "frame")),
}
"""A block without reasoning, by whether the model was asked for some."""


@dataclass(frozen=True, slots=True)
class Ling3(Family):
    """The Ling 3 family."""

    thinking: bool = True
    """Whether the model is asked to reason."""

    name = "ling3"
    models = ("inclusionAI/Ling-3*",)
    signs = ("<role>", "detailed thinking", "<arg_key>")
    stop = ("<|role_end|>",)
    turns = TURNS
    specials = TURNS.specials | {
        "<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>",
        "<arg_value>", "</arg_value>", "<tool_response>", "</tool_response>",
    }  # fmt: skip

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(
            _TAGS, self.specials,
            before="\n", end=self.stop, thinking=("<think>", "</think>"),
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        self._system(w, system, conversation.tools, 0 if first else None)
        tools = conversation.tools
        usual = _usuals(self.thinking)
        for index in w.walk(self, messages, first, tools=tools, usual=usual):
            message = messages[index]
            if message.role == "assistant":
                self._assistant(w, conversation, index)
            elif message.role == "tool":
                _result(w, messages, index)
            else:
                TURNS.whole(w, message.role, message.text, index)
        if not generate:
            return w.done()
        TURNS.begin(w, "assistant", None)
        w.put("\n<think>" if self.thinking else "\n<think></think>", "frame")
        return w.done(start="reasoning" if self.thinking else "content")

    def _system(
        self, w: Writer, system: str | None, tools: Sequence[ToolSpec], index: int | None
    ) -> None:
        TURNS.begin(w, "system", index)
        w.text(system or "", "given", index)
        says = system is not None and any(
            f"detailed thinking {option}" in system for option in ("on", "off")
        )
        if system is not None and (tools or not says):
            w.text("\n", "frame", index)
        if tools:
            lines = "".join("\n" + spec_json(spec) for spec in tools)
            w.text(
                "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
                "You are provided with function signatures within <tools></tools> XML tags:\n"
                f"<tools>{lines}{_HOW}",
                "frame",
                index,
            )
            w.put(_EXAMPLE, "frame", index)
        if not says:
            w.text(f"detailed thinking {'on' if self.thinking else 'off'}", "frame", index)
        TURNS.finish(w, "system", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        given = conversation.messages[index]
        split = inline_reasoning(given)
        reasoning = split.reasoning.strip("\n")
        text = split.text.lstrip("\n") if reasoning else split.text
        if (reasoning, text) != (given.reasoning, given.text):
            w.changed.append(index)
        message = with_parts(split, reasoning=reasoning, text=text)
        TURNS.begin(w, "assistant", index)
        since = len(w.pieces)
        start = self._think(w, reasoning, index)
        w.text(text, "written", index)
        write_calls(w, _TAGS, message, index, before="\n" if text else "")
        check_calls(
            w, _TAGS, _SYNTAX, message, index,
            since=since, tools=conversation.tools, start=start,
        )  # fmt: skip
        TURNS.finish(w, "assistant", index)

    def _think(self, w: Writer, reasoning: str, index: int) -> Start:
        """The reasoning block: the prompt's part of it is the frame's, the rest is written."""
        w.text("\n", "frame", index)
        if self.thinking:
            w.put("<think>", "frame", index)
            w.text(reasoning, "written", index)
            w.put("</think>", "written", index)
            return "reasoning"
        author = "written" if reasoning else "frame"
        w.put("<think>", author, index)
        w.text(reasoning, author, index)
        w.put("</think>", author, index)
        return "content"


def _result(w: Writer, messages: Sequence[Message], index: int) -> None:
    """One tool result; a run of them is one turn."""
    if is_first_result(messages, index):
        TURNS.begin(w, "tool", index)
    w.put(_RESULT[0], "frame", index)
    w.text(messages[index].text, "given", index)
    w.put(_RESULT[1], "frame", index)
    if is_last_result(messages, index):
        TURNS.finish(w, "tool", index)


@cache
def _usuals(thinking: bool) -> Usuals:
    def usual(place: Place) -> Usual | None:
        frame = TURNS.frame("assistant", _NO_REASONING[thinking], specials=Ling3.specials)
        match place.kind:
            case "calls":
                return called(frame, _TAGS)
            case "assistant":
                return answered(frame, _SYNTAX)
            case "tool":
                if "tool" in (place.before, place.after):
                    return None
                return given(TURNS.frame("tool", *_RESULT, specials=Ling3.specials))
            case role:
                return given(TURNS.frame(role, specials=Ling3.specials))

    return Usuals(usual)


FORMAT = Ling3()
