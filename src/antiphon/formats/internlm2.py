"""InternLM2 and 2.5: ChatML turns, tools as a JSON list in a turn of their own, calls behind marks.

    <|im_start|>assistant
    Let me look.<|action_start|><|plugin|>
    {"name": "get_weather", "parameters": {"city": "Lima"}}<|action_end|><|im_end|>
    <|im_start|>environment name=<|plugin|>
    {"celsius": 19}<|im_end|>

Reasoning is left out and its messages are listed in `Rendered.changed`.

Differs from upstream: vLLM's template writes the key ``arguments``; the family's own documents, and
its models, have ``parameters``.
Source: ``chat/chat_format.md`` of InternLM/InternLM; ``tool_chat_template_internlm2_tool.jinja`` in
the source of vllm 0.33.0.
"""

from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    as_said,
    call_json,
    functions_json,
    of_tools,
    refuse_images,
    refuse_late_systems,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation

ACTION, PLUGIN, END = "<|action_start|>", "<|plugin|>", "<|action_end|>"
TURNS = Turns(
    before_all="<s>",
    specials=frozenset({"<s>", "<|im_start|>", "<|im_end|>", ACTION, PLUGIN, END}),
    roles=(("tool", f"environment name={PLUGIN}"),),
)
_CALLS = JsonCalls(END, arguments=("parameters", "arguments"), next_block=(ACTION,))
SYNTAX = Syntax(
    blocks=(
        *(
            Block(ACTION + gap + mark, _CALLS, token=True)
            for mark in (PLUGIN, "<|interpreter|>")
            for gap in ("", " ")
        ),
        Block(ACTION, _CALLS, slip="missing_mark"),
    ),
    thinking=(Thinking(after_close="\n"),),
    bare=JsonCalls(arguments=("parameters", "arguments"), bare_note="bare_json"),
    doubled=(END,),
)


@dataclass(frozen=True, slots=True)
class InternLM2(Family):
    """The InternLM2 and InternLM2.5 families."""

    name = "internlm2"
    models = ("internlm/internlm2*",)
    aliases = {"internlm": {}, "internlm2_5": {}}
    signs = (ACTION, "environment name=")
    stop = ("<|im_end|>",)
    turns = TURNS
    specials = TURNS.specials

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            open=f"{ACTION}{PLUGIN}\n",
            close=END,
            between="",
            before="",
            arguments="parameters",
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        w.put(TURNS.before_all, "frame")
        if system is not None:
            TURNS.whole(w, "system", system, 0)
        if conversation.tools:
            TURNS.begin(w, f"system name={PLUGIN}", None)
            w.text(of_tools(functions_json, conversation.tools), "frame")
            TURNS.finish(w, "system", None)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            message = messages[index]
            if message.role != "assistant":
                TURNS.whole(w, message.role, message.text, index)
                continue
            TURNS.begin(w, "assistant", index)
            said = as_said(w, message, index, text=message.text)
            calls: list[str] = []
            for call in said.tool_calls:
                calls += [ACTION, PLUGIN, f"\n{call_json(call, arguments='parameters')}", END]
            write_answer(w, SYNTAX, conversation, said, index, *calls)
            TURNS.finish(w, "assistant", index)
        if generate:
            TURNS.begin(w, "assistant", None)
        return w.done()


FORMAT = InternLM2()
