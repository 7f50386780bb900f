"""LongCat-Flash: rounds that are counted in one line, calls as JSON in marks of its own.

    SYSTEM:Be brief. [Round 0] USER:Weather in Lima? ASSISTANT:I will look.<longcat_tool_call>
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    </longcat_tool_call></longcat_s> TOOL:19 degrees ASSISTANT:It is 19 degrees.</longcat_s>
    [Round 1] USER:And in Cusco? ASSISTANT:

(All but the call in one line.)  With tools their description stands before everything.  Asked to
reason, as LongCat-Flash-Thinking is, every question ends with ``/think_on``; the model opens the
block itself, and reasoning is shown behind the last user message only: messages that lose it are
listed in `Rendered.changed`.

Second-hand: the model cards of LongCat-Flash-Chat and LongCat-Flash-Thinking, which show the turns,
the tools and the calls and name the ``tokenizer_config.json`` that was not at hand.  They do not
show how results are; ``TOOL:`` is what another public renderer of the family writes before them.
LongCat-Flash-Lite, LongCat-Flash-Thinking-2601 and later ones have marks of their own for turns
and a tag per argument, and are not written here.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Writer,
    call_json,
    inline_reasoning,
    last_user,
    of_tools,
    refuse_images,
    refuse_late_systems,
    split_system,
    with_parts,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec

_OPEN, _CLOSE = "<longcat_tool_call>", "</longcat_tool_call>"
_THINK, _THINK_END = "<longcat_think>", "</longcat_think>"
_END = "</longcat_s>"
_SYNTAX = Syntax(
    blocks=(
        Block(_OPEN, JsonCalls(_CLOSE, next_block=(_OPEN,))),
        *json_blocks(_OPEN),
    ),
    thinking=(Thinking(_THINK, _THINK_END, after_close="\n"),),
    bare=JsonCalls(bare_note="bare_json"),
    doubled=(_CLOSE,),
)
_INTRO = "## Tools\nYou have access to the following tools: \n\n### Tool namespace: function\n\n"
_CALL = f'{_OPEN}\n{{"name": <function-name>, "arguments": <args-dict>}}\n{_CLOSE}'
_HOW = (
    "**Note**: For each function call, return a json object with function name and arguments "
    f"within {_OPEN}{_CLOSE} XML tags as follows:\n{_CALL}\n"
    "When multiple functions need to be called simultaneously, each function call should be "
    f"wrapped in its own {_OPEN} tag and placed consecutively. For example:\n{_CALL}{_CALL}"
    "\n\n## Messages\n"
)


@dataclass(frozen=True, slots=True)
class LongCat(Family):
    """The LongCat-Flash family."""

    thinking: bool = False
    """Whether the model is asked to reason."""

    name = "longcat"
    models = ("meituan-longcat/LongCat-Flash-Chat*",)
    aliases = {
        "longcat_flash": {},
        "longcat_flash_thinking": {"thinking": True},
        "meituan-longcat/LongCat-Flash-Thinking": {"thinking": True},
        "meituan-longcat/LongCat-Flash-Thinking-FP8": {"thinking": True},
    }
    signs = (_OPEN, "Tool namespace")
    stop = (_END,)
    prefix_stable = False
    specials = frozenset({_OPEN, _CLOSE, _THINK, _THINK_END, _END})

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            open=f"{_OPEN}\n",
            close=f"\n{_CLOSE}",
            between="",
            before="",
            forbidden=(_END,),
            thinking=(f"{_THINK}\n", f"\n{_THINK_END}\n") if self.thinking else None,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        index = 0 if first else None
        if conversation.tools:
            w.text(of_tools(_listing, conversation.tools), "frame", index)
            w.put(_HOW, "frame", index)
        if system is not None:
            w.text("SYSTEM:", "frame", index)
            w.text(system, "given", index)
        w.state = 0  # how many rounds there were
        query = last_user(messages)
        for index in w.walk(self, messages, first, tools=conversation.tools, shown_from=query):
            match messages[index].role:
                case "assistant":
                    self._assistant(w, conversation, index, shows=index > query)
                case "tool":
                    w.text(" TOOL:", "frame", index)
                    w.text(messages[index].text, "given", index)
                case _:
                    lead = " " if first or w.state else ""
                    w.text(f"{lead}[Round {w.state}] USER:", "frame", index)
                    w.text(messages[index].text, "given", index)
                    w.text(" /think_on" if self.thinking else "", "frame", index)
                    w.state += 1
        if generate:
            w.text(" ASSISTANT:", "frame")
        return w.done()

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shows: bool) -> None:
        given = conversation.messages[index]
        message = inline_reasoning(given)
        keeps = shows and self.thinking
        if message is not given or (message.reasoning and not keeps):
            w.changed.append(index)
        message = with_parts(
            message, reasoning=message.reasoning if keeps else "", text=message.text
        )
        w.text(" ASSISTANT:", "frame", index)
        since = len(w.pieces)
        if message.reasoning:
            w.put(f"{_THINK}\n", "written", index)
            w.text(f"{message.reasoning}\n", "written", index)
            w.put(f"{_THINK_END}\n", "written", index)
        calls = [
            part
            for call in message.tool_calls
            for part in (_OPEN, f"\n{call_json(call)}\n", _CLOSE)
        ]
        write_answer(w, _SYNTAX, conversation, message, index, *calls, since=since)
        w.mark(_END, "written", index)


def _listing(tools: Sequence[ToolSpec]) -> str:
    return _INTRO + "".join(map(_told, tools))


def _told(spec: ToolSpec) -> str:
    schema = json.dumps(spec.parameters, indent=2, ensure_ascii=False)
    return (
        f"#### Tool name: {spec.name}\n\nDescription: {spec.description}\n\n"
        f"InputSchema: \n{schema}\n\n"
    )


FORMAT = LongCat()
