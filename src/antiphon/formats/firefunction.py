"""Firefunction v2: Llama 3 header turns, calls as one JSON array behind the word ``functools``.

    <|start_header_id|>assistant<|end_header_id|>

     functools[{"name": "get_weather", "arguments": {"city": "Lima"}}]<|eot_id|>

Text is trimmed.  Reasoning is left out; messages that are not written as they were are listed in
`Rendered.changed`.

Differs from upstream: the template ends every text with the next assistant header; here only a
prompt has it.  The time is `now`, not the moment of rendering.
Source: ``fireworks-ai-llama-3-firefunction-v2.jinja`` in the source of llama-cpp-python 0.3.36;
functions as the model's card prints them (``json.dumps(..., indent=4)``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    as_said,
    calls_json,
    of_tools,
    refuse_images,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec, indented_json

MARK = "functools["
SYNTAX = Syntax(
    blocks=(Block(MARK, JsonCalls(array=True, next_block=(MARK,)), before=" "),),
    bare=JsonCalls(bare_note="bare_json", array=True),
)
_TURNS = Turns(
    open="<|start_header_id|>{role}<|end_header_id|>\n\n",
    end="<|eot_id|>",
    between="",
    before_all="<|begin_of_text|>",
    specials=frozenset(
        {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}
    ),
)
RULES = """\
In addition to plain text responses, you can {chose} to call one or more of the provided functions.

Use the following rule to decide when to call a function:
  * if the response can be generated from your internal knowledge (e.g., as in the case of queries \
like "What is the capital of Poland?"), do so
  * if you need external information that can be obtained by calling one or more of the provided \
functions, generate a function calls

If you decide to call functions:
  * prefix function calls with functools marker (no closing marker required)
  * all function calls should be generated in a single JSON list formatted as \
functools[{"name": [function name], "arguments": [function arguments as JSON]}, ...]
  * follow the provided JSON schema. Do not hallucinate arguments or values. Do to blindly copy \
values from the provided samples
  * respect the argument type formatting. E.g., if the type {if} number and format is float, write \
value 7 as 7.0
  * make sure you pick the right functions that match the user intent"""
_RULES = RULES.replace("{chose}", "chose").replace("{if}", "if")


def functools_form(specials: frozenset[str], *, alone: str = "") -> CallForm:
    """How calls stand in the text, for the grammar. See `json_form`."""
    return json_form(
        specials,
        around=(MARK, "]"),
        between=", ",
        before=" ",
        alone=alone,
        forbidden=(MARK,),
    )


@dataclass(frozen=True, slots=True)
class Firefunction(Family):
    """The Firefunction v2 family."""

    now: str = "2025-06-30 12:00:00 UTC"
    """The time as the system text says it."""

    name = "firefunction"
    models = ("fireworks-ai/*firefunction-v2*",)
    aliases = {"firefunction_v2": {}}
    signs = ("functools[", "<|start_header_id|>", "datetime")
    stop = ("<|eot_id|>",)
    turns = _TURNS
    specials = _TURNS.specials

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return functools_form(self.specials, alone=" ")

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        w.put(_TURNS.before_all, "frame")
        _TURNS.begin(w, "system", index)
        if system is None:
            w.text("You are a helpful assistant with access to functions.", "frame")
        else:
            w.text(system.strip(), "given", index)
        w.text(f"\n{_RULES}\n\nAvailable functions as JSON spec:\n", "frame", index)
        if conversation.tools:
            w.text(of_tools(_listing, conversation.tools), "frame", index)
        w.text(f"\nToday is {self.now}.", "frame", index)
        _TURNS.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            message = messages[index]
            if message.role != "assistant":
                _TURNS.whole(w, message.role, message.text.strip(), index)
                continue
            _TURNS.begin(w, "assistant", index)
            said = as_said(w, message, index, text=message.text.strip())
            calls = " functools" + calls_json(said.tool_calls) if said.tool_calls else ""
            write_answer(w, SYNTAX, conversation, said, index, calls)
            _TURNS.finish(w, "assistant", index)
        if generate:
            _TURNS.begin(w, "assistant", None)
        return w.done()


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as one indented list."""
    specs = [spec.to_openai()["function"] for spec in tools]
    return indented_json(specs)


FORMAT = Firefunction()
