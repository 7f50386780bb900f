"""SmolLM2: ChatML turns, calls as one JSON array between <tool_call> and </tool_call>.

    <|im_start|>assistant
    <tool_call>[
    {"name": "get_weather", "arguments": {"city": "Lima"}}
    ]</tool_call><|im_end|>

Two ways to list the tools: as the family publishes it (JSON in a long instruction, `compact` off),
and as one signature a line under a short instruction (`compact` on), which is what the embedded
model `local` is trained on: a fifth of the tokens.  Calls and results are the same in both.

Differs from upstream: several calls are joined by ",\\n" (the published Ollama template writes no
separator, so its own array is not JSON), and text before a call is kept.
Source: Ollama library ``smollm2:1.7b-instruct`` template, layer dfebd0343bdd (tools, calls and
results).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._kin import json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    CHATML,
    Writer,
    call_json,
    check_written,
    invalid_text,
    is_first_result,
    is_last_result,
    refuse_images,
    split_system,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._signature import signature
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec, dump_json

_PUBLISHED = """\
You are an expert in composing functions. You are given a question and a set of possible functions.
Based on the question, you will need to make one or more function/tool calls to achieve the purpose.
If none of the functions can be used, point it out and refuse to answer.
If the given question lacks the parameters required by the function, also point it out.
You have access to the following tools:
<tools>{tools}</tools>
The output MUST strictly adhere to the following format, and NO other text MUST be included.
The example format is as follows. Please make sure the parameter type is correct. \
If no function call is needed, please make the tool calls an empty list '[]'.
<tool_call>[
{{"name": "func_name1", "arguments": {{"argument1": "value1", "argument2": "value2"}}}},
(more tool calls as required)
]</tool_call>"""

_COMPACT = """\
Tools:
{tools}
To use tools, answer only <tool_call>[
{{"name": ..., "arguments": {{...}}}}
]</tool_call>. Else answer in plain text."""


_SYNTAX = Syntax(
    blocks=(
        Block("<tool_call>", JsonCalls("</tool_call>", array=True, next_block=("<tool_call>",))),
        *json_blocks("<tool_call>"),
    ),
    bare=JsonCalls(bare_note="bare_json", array=True),
    doubled=("</tool_call>",),
)


@dataclass(frozen=True, slots=True)
class SmolLM2(Family):
    """The SmolLM2 family."""

    compact: bool = False
    """Whether tools are listed as signatures, as the embedded model reads them."""

    name = "smollm2"
    models = ("HuggingFaceTB/SmolLM2-*",)
    signs = ("named SmolLM, trained by Hugging Face",)
    stop = ("<|im_end|>",)
    turns = CHATML
    specials = CHATML.specials

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            around=("<tool_call>[\n", "\n]</tool_call>"),
            between=",\n",
            before="",
            forbidden=("<tool_call>", "</tool_call>"),
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        if system or conversation.tools:
            index = 0 if first else None
            CHATML.begin(w, "system", index)
            w.text(system or "", "given", index)
            if conversation.tools:
                w.text("\n\n" if system else "", "frame", index)
                w.text(self._tools_text(conversation.tools), "frame", index)
            CHATML.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            self._message(w, conversation, index)
        if generate:
            CHATML.begin(w, "assistant", None)
        return w.done()

    def _tools_text(self, tools: Sequence[ToolSpec]) -> str:
        if self.compact:
            return _COMPACT.format(tools="\n".join(signature(spec) for spec in tools))
        return _PUBLISHED.format(tools=dump_json([spec.to_openai() for spec in tools]))

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        messages = conversation.messages
        message = messages[index]
        match message.role:
            case "system":
                raise w.refuse(
                    "a system message must come first; join system messages into one", index
                )
            case "user":
                CHATML.whole(w, "user", message.text, index)
            case "tool":
                _result(w, conversation, index)
            case "assistant":
                if message.reasoning:
                    raise w.refuse("reasoning cannot be written; drop the thinking parts", index)
                CHATML.begin(w, "assistant", index)
                since = len(w.pieces)
                lines = ",\n".join(call_json(call) for call in message.tool_calls)
                calls = f"<tool_call>[\n{lines}\n]</tool_call>" if lines else ""
                w.text(message.text + calls + invalid_text(message), "written", index)
                check_written(
                    w, _SYNTAX, message, index,
                    since=since, tools=conversation.tools,
                )  # fmt: skip
                CHATML.finish(w, "assistant", index)


def _result(w: Writer, conversation: Conversation, index: int) -> None:
    """One tool result; a run of them is one user turn."""
    if is_first_result(conversation.messages, index):
        CHATML.begin(w, "user", index)
    else:
        w.text("\n", "frame", index)
    w.text("<tool_response>\n", "frame", index)
    w.text(conversation.messages[index].text, "given", index)
    w.text("\n</tool_response>", "frame", index)
    if is_last_result(conversation.messages, index):
        CHATML.finish(w, "user", index)


FORMAT = SmolLM2()
