"""ERNIE 4.5 Thinking: ChatML with blank lines, answers in <response>, calls as Hermes writes them.

    <|im_start|>assistant
    <think>
    The user wants the weather.
    </think>


    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    </tool_call>
    <|im_end|>

    <|im_start|>user
    <tool_response>
    19 degrees
    </tool_response><|im_end|>

The family always reasons: the prompt opens the block.  Text stands in ``<response>``, before calls.
Reasoning is shown again only behind the last user message; messages that lose it are listed in
`Rendered.changed`.

Second-hand: the text is what PaddleFormers, Baidu's own training code, writes for
``ERNIE-4.5-21B-A3B-Thinking`` (``ernie`` in its ``template.py`` and ``ERNIEToolUtils``), and what
ms-swift and a test of Unsloth's write of the parts that they have; calls are those of vLLM's tests.
That earlier reasoning is dropped is ms-swift's; that every result is a turn of its own,
PaddleFormers'.  The template in the model's repository was not at hand.  The models that do not
reason have no tools in public code and are not written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    call_json,
    check_written,
    invalid_text,
    last_user,
    of_tools,
    on_own_line,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Rendered, Start
from antiphon.messages import Conversation, ToolSpec, dump_json

TURNS = Turns(between="\n\n", roles=(("tool", "user"),))
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_SAYS, _SAID = "<response>", "</response>"
_SYNTAX = Syntax(
    blocks=(
        Block(_OPEN, JsonCalls(_CLOSE, next_block=(_OPEN,)), before="\n"),
        *json_blocks(_OPEN),
    ),
    thinking=(Thinking(),),
    bare=JsonCalls(bare_note="bare_json"),
    doubled=(_CLOSE,),
    ignored=(f"{_SAYS}\n", f"\n{_SAID}\n", f"\n{_SAID}", _SAYS, _SAID),
)
_SETTING = "<global_setting>\nthink_mode=True\n</global_setting>"


@dataclass(frozen=True, slots=True)
class Ernie45(Family):
    """The ERNIE 4.5 family of models that reason."""

    name = "ernie4_5"
    models = ("baidu/ERNIE-4.5-*-Thinking*", "PaddlePaddle/ERNIE-4.5-*-Thinking*")
    aliases = {"ernie45": {}, "ernie": {}, "ernie_thinking": {}}
    signs = ("<global_setting>", _SAYS)
    stop = ("<|im_end|>",)
    prefix_stable = False
    turns = TURNS
    specials = TURNS.specials | {"<think>", "</think>", _OPEN, _CLOSE, _SAYS, _SAID}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        form = json_form(
            self.specials,
            open=f"{_OPEN}\n",
            close=f"\n{_CLOSE}\n",
            forbidden=(_SAYS, _SAID),
            thinking=("<think>\n", "\n</think>\n\n"),
        )
        said = f"\n{_SAID}\n"
        return replace(form, open="\n", lead=f"{_SAYS}\n", tail=said, before=said)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        TURNS.begin(w, "system", index)
        if system:
            w.text("<system_setting>\n", "frame", index)
            w.text(system, "given", index)
            w.text("\n</system_setting>\n\n", "frame", index)
        w.text(_SETTING, "frame", index)
        if conversation.tools:
            w.text(of_tools(_listing, conversation.tools), "frame", index)
        TURNS.finish(w, "system", index)
        query = last_user(messages)
        for index in w.walk(self, messages, first, tools=conversation.tools, shown_from=query):
            message = messages[index]
            match message.role:
                case "assistant":
                    _assistant(w, conversation, index, shows=index > query)
                case "tool":
                    TURNS.begin(w, "tool", index)
                    w.text("<tool_response>\n", "frame", index)
                    w.text(message.text, "given", index)
                    w.text("\n</tool_response>", "frame", index)
                    TURNS.finish(w, "tool", index)
                case role:
                    TURNS.whole(w, role, message.text, index)
        if not generate:
            return w.done()
        TURNS.begin(w, "assistant", None)
        w.put("<think>\n", "frame")
        return w.done(start="reasoning")


def _assistant(w: Writer, conversation: Conversation, index: int, *, shows: bool) -> None:
    given = conversation.messages[index]
    message = on_own_line(given)
    if message is not given or (message.reasoning and not shows):
        w.changed.append(index)
    message = with_parts(message, reasoning=message.reasoning if shows else "", text=message.text)
    TURNS.begin(w, "assistant", index)
    since = len(w.pieces)
    start: Start = "content"
    if message.reasoning:
        w.put("<think>\n", "frame", index)
        w.text(f"{message.reasoning}\n", "written", index)
        w.put("</think>\n\n", "written", index)
        start = "reasoning"
    if message.text or not (message.tool_calls or message.invalid_tool_calls):
        w.put(f"{_SAYS}\n", "written", index)
        w.text(message.text, "written", index)
        w.put(f"\n{_SAID}\n", "written", index)
    for call in message.tool_calls:
        w.put(f"\n{_OPEN}\n", "written", index)
        w.text(call_json(call), "written", index)
        w.put(f"\n{_CLOSE}\n", "written", index)
    w.put(invalid_text(message), "written", index)
    check_written(
        w, _SYNTAX, message, index,
        since=since, tools=conversation.tools, start=start,
    )  # fmt: skip
    TURNS.finish(w, "assistant", index)


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as one JSON list, each in its wrapping."""
    listed = ", ".join(dump_json(spec.to_openai()) for spec in tools)
    return f"\n\n<tool_list>\n[{listed}]\n</tool_list>"


FORMAT = Ernie45()
