"""Apriel 1.6 Thinker: a mark before each turn, reasoning as plain text, calls as one JSON array.

    <|begin_assistant|>
    Here are my reasoning steps:
    The user wants the weather.
    [BEGIN FINAL RESPONSE]

    <tool_calls>[{"name": "get_weather", "arguments": {"city": "Lima"}}]</tool_calls>
    <|end|>

The prompt writes the first line of the reasoning.  Reasoning is shown in the last message only, and
earlier calls are shown with their ids; all answers are listed in `Rendered.changed`.

Differs from upstream: the last message has its end mark, as with the template's `training_prompt`.
Source: ``Apriel-1.6-15b-Thinker-fixed.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Writer,
    as_said,
    of_tools,
    refuse_images,
    refuse_late_systems,
    spec_value,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Around, Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, given, spelled
from antiphon.messages import Conversation, ToolCall, ToolSpec, dump_json

_OPEN, _CLOSE = "<tool_calls>", "</tool_calls>"
_REASONING, _FINAL = "Here are my reasoning steps:\n", "[BEGIN FINAL RESPONSE]"
_MARKS = frozenset(
    {f"<|begin_{role}|>" for role in ("system", "user", "assistant", "tool_result")}
    | {"<s>", "<|end|>"}
)
_SYNTAX = Syntax(
    blocks=(
        Block(_OPEN, JsonCalls(_CLOSE, array=True, next_block=(_OPEN,)), before="\n"),
        *json_blocks(_OPEN),
    ),
    thinking=(Thinking(_REASONING, _FINAL, after_open="", after_close="\n"),),
    bare=JsonCalls(bare_note="bare_json", array=True),
    doubled=(_CLOSE,),
    ignored=("[END FINAL RESPONSE]",),
)
_WHO = """\
You are a thoughtful, systematic AI assistant from ServiceNow Language Models (SLAM) lab.
    Analyze each question carefully, present your reasoning step-by-step, then provide the final
    response after the marker [BEGIN FINAL RESPONSE].
"""
_TOOLS = """\
You are provided with function signatures within <available_tools></available_tools> XML tags.
        You may call one or more functions to assist with the user query.
        Don't make assumptions about the arguments. You should infer the argument values from \
previous
        user responses and the system message.
        Here are the available tools:\x20
        <available_tools>
"""
_HOW = """\
        \n        </available_tools>.

        Return all function calls as a list of JSON objects within <tool_calls></tool_calls> XML \
tags.
        Each JSON object should contain a function name and arguments as follows:
        <tool_calls>[
            {"name": <function-name-1>, "arguments": <args-dict-1>},
            {"name": <function-name-2>, "arguments": <args-dict-2>},
            ...
        ]</tool_calls>
"""

_QUESTION = Around((("<|begin_user|>\n", "frame"),), "given", (), _MARKS)
_RESULT = Around((("<|begin_tool_result|>\n", "frame"),), "given", (("\n\n\n", "frame"),), _MARKS)
_ANSWER = Around(
    (("\n<|begin_assistant|>\n", "frame"),),
    "written",
    (("\n<|end|>", "written"), ("\n", "frame")),
    _MARKS,
)


@dataclass(frozen=True, slots=True)
class Apriel(Family):
    """The Apriel 1.6 Thinker family."""

    thinking: bool = True
    """Whether the prompt begins the reasoning, as the family's always does."""

    name = "apriel"
    models = ("ServiceNow-AI/Apriel-1.6-*",)
    aliases = {"apriel_1_6": {}}
    signs = ("<|begin_assistant|>", _FINAL)
    stop = ("\n<|end|>", "<|end|>")
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
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        index = 0 if first else None
        w.put("<s><|begin_system|>", "frame")
        w.text(f"\n{_WHO}", "frame", index)
        if system is not None:
            w.text(system, "given", index)
            w.text("\n", "frame", index)
        if conversation.tools:
            w.text(_TOOLS + of_tools(_listing, conversation.tools) + _HOW, "frame", index)
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            self._message(w, conversation, index)
        if not generate:
            return w.done()
        w.put("\n<|begin_assistant|>\n", "frame")
        w.text(_REASONING if self.thinking else "", "frame")
        return w.done(start="reasoning" if self.thinking else "content")

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        match message.role:
            case "tool":
                w.around(_RESULT, message.text, index)
            case "assistant":
                self._assistant(w, conversation, index)
            case _:
                w.around(_QUESTION, message.text, index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        given = conversation.messages[index]
        is_last = index + 1 == len(conversation.messages)
        said = as_said(
            w, given, index, text=given.text, reasoning=given.reasoning if is_last else ""
        )
        w.changed.append(index)  # as the prompt had it, its reasoning was begun
        w.put("\n<|begin_assistant|>\n", "frame", index)
        since = len(w.pieces)
        if said.reasoning:
            w.text(f"{said.reasoning}\n{_FINAL}\n", "written", index)
        calls: tuple[str, ...] = ()
        if said.tool_calls:
            objects = ", ".join(call_json(call, with_id=not is_last) for call in said.tool_calls)
            calls = (f"\n{_OPEN}[{objects}]{_CLOSE}",)
        start = "reasoning" if said.reasoning else "content"
        write_answer(w, _SYNTAX, conversation, said, index, *calls, since=since, start=start)
        w.put("\n<|end|>", "written", index)
        w.text("\n", "frame", index)


def call_json(call: ToolCall, *, with_id: bool) -> str:
    id = {"id": call.id} if with_id and call.id else {}
    return dump_json({"name": call.name, "arguments": call.arguments, **id})


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as Python prints them."""
    return "".join(str(spec_value(spec)) for spec in tools)


def _usual(place: Place) -> Usual | None:
    match place.kind:
        case "user":
            return given(_QUESTION)
        case "tool":
            return given(_RESULT)
        case "assistant":
            return answered(_ANSWER, _SYNTAX, changes=True)
        case "calls" if place.after:
            return spelled(_ANSWER, _call_text, changes=True)
        case _:
            return None


def _call_text(call: ToolCall) -> str:
    return f"\n{_OPEN}[{call_json(call, with_id=True)}]{_CLOSE}"


_USUAL = Usuals(_usual)
FORMAT = Apriel()
