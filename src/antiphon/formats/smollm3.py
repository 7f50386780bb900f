"""SmolLM3: ChatML turns, a system turn of sections, tools as Python prints them, Hermes calls.

    <|im_start|>assistant
    <think>
    The user wants the weather.
    </think>
    <tool_call>
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    </tool_call><|im_end|>
    <|im_start|>user
    {"celsius": 19}<|im_end|>

Reasoning stays where it was written, unless the model must not reason; then it is left out and
its messages are listed in `Rendered.changed`.  ``/think`` and ``/no_think`` in the system text
switch it and are taken out, as ``/system_override`` is, which replaces all of the system turn.

Differs from upstream: the system turn is ended without tools, too; calls, which the template knows
only as text, are written as its instructions ask for them.  The date is `date`.
Source: the chat template of HuggingFaceTB/SmolLM3-3B, given its tools as ``xml_tools``;
``HuggingFaceTB-SmolLM3-3B.jinja`` in the source of llama-cpp-python 0.3.36, which has no tools and
ends the system turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats import _qwen as qwen
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    CHATML,
    Writer,
    as_said,
    check_written,
    inline_reasoning,
    of_tools,
    refuse_images,
    refuse_late_systems,
    spec_value,
    split_system,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec

_SYNTAX = Syntax(
    blocks=(
        Block("<tool_call>", JsonCalls("</tool_call>", next_block=("<tool_call>",)), before="\n"),
        *json_blocks("<tool_call>"),
    ),
    thinking=(Thinking(after_close="\n"),),
    bare=JsonCalls(bare_note="bare_json"),
    doubled=("</tool_call>",),
)
_DEFAULT = "You are a helpful AI assistant named SmolLM, trained by Hugging Face."
_HOW_TO_THINK = (
    " Your role as an assistant involves thoroughly exploring questions through a systematic "
    "thinking process before providing the final precise and accurate solutions. This requires "
    "engaging in a comprehensive cycle of analysis, summarizing, exploration, reassessment, "
    "reflection, backtracking, and iteration to develop well-considered thinking process. Please "
    "structure your response into two main sections: Thought and Solution using the specified "
    "format: <think> Thought section </think> Solution section. In the Thought section, detail "
    "your reasoning process in steps. Each step should include detailed considerations such as "
    "analysing questions, summarizing relevant findings, brainstorming new ideas, verifying the "
    "accuracy of the current steps, refining any errors, and revisiting previous steps. In the "
    "Solution section, based on various attempts, explorations, and reflections from the Thought "
    "section, systematically present the final solution that you deem correct. The Solution "
    "section should be logical, accurate, and concise and detail necessary steps needed to reach "
    "the conclusion."
)
_TOOLS = (
    "### Tools\n\nYou may call one or more functions to assist with the user query.\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n\n<tools>\n"
)
_HOW = (
    "</tools>\n\nFor each function call, return a json object with function name and arguments "
    "within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>\n\n'
)
_EMPTY = "<think>\n\n</think>\n"


@dataclass(frozen=True, slots=True)
class SmolLM3(Family):
    """The SmolLM3 family."""

    thinking: bool = True
    """Whether the model reasons, where the system text does not say."""
    date: str = "30 June 2025"
    """Today's date as the system turn says it."""

    name = "smollm3"
    models = ("HuggingFaceTB/SmolLM3-*",)
    signs = ("Reasoning Mode: ", "named SmolLM")
    stop = ("<|im_end|>",)
    turns = CHATML
    specials = CHATML.specials | qwen.CALL_MARKS | qwen.THINK_MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            open="<tool_call>\n",
            close="\n</tool_call>",
            thinking=("<think>\n", "\n</think>\n") if self.thinking else None,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        thinks = self._system(w, conversation, system)
        walk = w.walk((self, thinks), messages, first, tools=conversation.tools)
        for index in walk:
            message = messages[index]
            if message.role == "assistant":
                self._assistant(w, conversation, index, thinks=thinks)
            else:
                role = "user" if message.role == "tool" else message.role
                CHATML.whole(w, role, message.text, index)
        if generate:
            CHATML.begin(w, "assistant", None)
            w.put("" if thinks else _EMPTY, "frame")
        return w.done()

    def _system(self, w: Writer, conversation: Conversation, system: str | None) -> bool:
        """The system turn; whether the model reasons."""
        index = None if system is None else 0
        text, thinks = system or "", self.thinking
        if "/no_think" in text or "/think" in text:
            thinks = "/no_think" not in text
        text = text.replace("/no_think", "").replace("/think", "").rstrip()
        CHATML.begin(w, "system", index)
        if "/system_override" in text:
            w.text(text.replace("/system_override", "").rstrip(), "given", index)
            CHATML.finish(w, "system", index)
            return thinks
        w.text(
            f"## Metadata\n\nKnowledge Cutoff Date: June 2025\nToday Date: {self.date}\n"
            f"Reasoning Mode: {'/think' if thinks else '/no_think'}\n\n## Custom Instructions\n\n",
            "frame",
            index,
        )
        if text:
            w.text(text, "given", index)
        else:
            w.text(_DEFAULT + (_HOW_TO_THINK if thinks else ""), "frame", index)
        w.text("\n\n", "frame", index)
        if conversation.tools:
            w.text(_TOOLS + of_tools(_listing, conversation.tools), "frame", index)
            w.put(_HOW, "frame", index)
        CHATML.finish(w, "system", index)
        return thinks

    def _assistant(
        self, w: Writer, conversation: Conversation, index: int, *, thinks: bool
    ) -> None:
        given = inline_reasoning(conversation.messages[index])
        reasoning = given.reasoning.strip("\n") if thinks else ""
        said = as_said(w, given, index, text=given.text.lstrip("\n"), reasoning=reasoning)
        CHATML.begin(w, "assistant", index)
        since = len(w.pieces)
        if not thinks:
            w.put(_EMPTY, "frame", index)
        elif reasoning:
            w.put("<think>", "written", index)
            w.text(f"\n{reasoning}\n", "written", index)
            w.put("</think>\n", "written", index)
        w.text(said.text, "written", index)
        qwen.write_calls(w, said, index, after_text=bool(said.text))
        check_written(w, _SYNTAX, said, index, since=since, tools=conversation.tools)
        CHATML.finish(w, "assistant", index)


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as Python prints them."""
    return "".join(f"{spec_value(spec)}\n" for spec in tools)


FORMAT = SmolLM3()
