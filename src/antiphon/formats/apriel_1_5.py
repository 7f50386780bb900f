"""Apriel 1.5 Thinker: role marks on lines of their own, calls as one JSON array.

    <|assistant|>
    Let me look.
    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Lima"}, "id": "call0"}]</tool_calls>
    <|end|>
    </s><|tool_result|>
    19 degrees
    <|end|>

The model is told to reason step by step and to mark the answer behind that; the template shows no
reasoning, so messages lose it and are listed in `Rendered.changed`, as are calls, which are shown
with their ids while they are not the last message.  Tools are shown as Python prints them.  Where
there are tools and no system message, the identity is shown in a turn with the tools and again
in one without, as upstream.

Differs from upstream: arguments are written as JSON, as the model is told, where the template
prints what it was given.
Source: ``unsloth-Apriel-1.5.jinja`` of llama.cpp's ``models/templates``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats import apriel
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Writer,
    as_said,
    of_tools,
    refuse_images,
    says_system,
    spec_value,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Around, Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, given, spelled
from antiphon.messages import Conversation, ToolCall, ToolSpec

_OPEN, _CLOSE = "<tool_calls>", "</tool_calls>"
_REASONING, _FINAL = "Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"
_END = "\n<|end|>\n"
_SYNTAX = Syntax(
    blocks=(
        Block(_OPEN, JsonCalls(_CLOSE, array=True, next_block=(_OPEN,)), before="\n"),
        *json_blocks(_OPEN),
    ),
    thinking=(
        Thinking(_REASONING, _FINAL, after_open="", after_close="\n"),
        Thinking("<thinking>", "</thinking>", after_open="", before_close="", after_close=""),
    ),
    bare=JsonCalls(bare_note="bare_json", array=True),
    doubled=(_CLOSE,),
    ignored=("\n[END FINAL RESPONSE]", "[END FINAL RESPONSE]"),
)
_WHO = (
    "You are a thoughtful and systematic AI assistant built by ServiceNow Language Models (SLAM) "
    "lab. Before providing an answer, analyze the problem carefully and present your reasoning "
    "step by step. After explaining your thought process, provide the final solution in the "
    "following format: [BEGIN FINAL RESPONSE] ... [END FINAL RESPONSE]."
)
_TOOLS = (
    "You are provided with function signatures within <available_tools></available_tools> XML "
    "tags. You may call one or more functions to assist with the user query. Don't make "
    "assumptions about the arguments. You should infer the argument values from previous user "
    "responses and the system message. Here are the available tools:\n<available_tools>\n"
)
_HOW = (
    "\nReturn all function calls as a list of json objects within <tool_call></tool_call> XML "
    "tags. Each json object should contain a function name and arguments as follows:\n"
    '<tool_calls>[{"name": <function-name-1>, "arguments": <args-dict-1>}, '
    '{"name": <function-name-2>, "arguments": <args-dict-2>},...]</tool_calls>'
)

_MARKS = frozenset(
    {f"<|{role}|>" for role in ("system", "user", "assistant", "tool_result", "end")}
    | {"<s>", "</s>"}
)
_QUESTION = Around((("<|user|>\n", "frame"),), "given", ((_END, "frame"),), _MARKS)
_RESULT = Around((("<|tool_result|>\n", "frame"),), "given", ((_END, "frame"),), _MARKS)
_ANSWER = Around((("<|assistant|>\n", "frame"),), "written", ((f"{_END}</s>", "written"),), _MARKS)


@dataclass(frozen=True, slots=True)
class Apriel15(Family):
    """The Apriel 1.5 Thinker family."""

    name = "apriel_1_5"
    models = ("ServiceNow-AI/Apriel-1.5-*", "ServiceNow-AI/Apriel-Nemotron-*")
    signs = ("<|tool_result|>", "[BEGIN FINAL RESPONSE]")
    stop = (_END + "</s>", "<|end|>", "</s>")
    prefix_stable = False
    specials = _MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            around=(f"{_OPEN}[", f"]{_CLOSE}"),
            between=", ",
            alone="\n",
            forbidden=(_OPEN,),
            thinking=(_REASONING, f"\n{_FINAL}\n"),
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        w.mark("<s>", "frame")
        tools = of_tools(_listing, conversation.tools) if conversation.tools else ""
        system, first = split_system(conversation)
        if system is not None:
            w.put("<|system|>\n", "frame", 0)
            w.text(_WHO, "frame", 0)
            w.text(system, "given", 0)
            w.text(f"\n{tools}" if tools else "", "frame", 0)
            w.put(_END, "frame", 0)
        elif tools:
            w.put("<|system|>\n", "frame")
            w.text(_WHO + tools + _HOW, "frame")
            w.put(_END, "frame")
        if not says_system(w, messages):
            w.put("<|system|>\n", "frame")
            w.text(_WHO, "frame")
            w.put(_END, "frame")
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            self._message(w, conversation, index, tools)
        if generate and not (messages and messages[-1].role == "assistant"):
            w.put("<|assistant|>\n", "frame")
        return w.done()

    def _message(self, w: Writer, conversation: Conversation, index: int, tools: str) -> None:
        message = conversation.messages[index]
        match message.role:
            case "assistant":
                _assistant(w, conversation, index)
                return
            case "system":
                w.put("<|system|>\n", "frame", index)
                w.text(_WHO, "frame", index)
                w.text(message.text, "given", index)
                w.text(f"\n{tools}" if tools else "", "frame", index)
            case role:
                w.around(_RESULT if role == "tool" else _QUESTION, message.text, index)
                return
        w.put(_END, "frame", index)


def _assistant(w: Writer, conversation: Conversation, index: int) -> None:
    given = conversation.messages[index]
    is_last = index + 1 == len(conversation.messages)
    said = as_said(w, given, index, text=given.text)
    w.put("<|assistant|>\n", "frame", index)
    since = len(w.pieces)
    calls: tuple[str, ...] = ()
    if said.tool_calls:
        if not is_last:
            w.changed.append(index)  # the ids are no words of the model's
        calls = (_calls_text(said.tool_calls, with_ids=not is_last),)
    write_answer(w, _SYNTAX, conversation, said, index, *calls, since=since)
    w.put(f"{_END}</s>", "written", index)


def _calls_text(calls: Sequence[ToolCall], *, with_ids: bool) -> str:
    objects = ", ".join([apriel.call_json(call, with_id=with_ids) for call in calls])
    return f"\n{_OPEN}[{objects}]{_CLOSE}"


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as Python prints them."""
    lines = "".join(f"{spec_value(spec)}\n" for spec in tools)
    return f"{_TOOLS}{lines}</available_tools>"


def _usual(place: Place) -> Usual | None:
    match place.kind:
        case "user":
            return given(_QUESTION)
        case "tool":
            return given(_RESULT)
        case "assistant":
            return answered(_ANSWER, _SYNTAX)
        case "calls" if place.after:  # the ids are no words of the model's
            return spelled(_ANSWER, lambda call: _calls_text((call,), with_ids=True), changes=True)
        case _:
            return None


_USUAL = Usuals(_usual)
FORMAT = Apriel15()
