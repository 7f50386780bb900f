"""Functionary 3.1: Llama 3 turns, each call as JSON between <function=...> and </function>.

    <|start_header_id|>assistant<|end_header_id|>

    <function=get_weather>{"city": "Lima"}</function><|eom_id|>
    <|start_header_id|>ipython<|end_header_id|>

    19 degrees<|eot_id|>

(No line feed stands behind a turn.)  The tools stand in a system turn of the family's own, system
messages in turns behind it.  The family does not reason: reasoning is left out and its messages are
listed in `Rendered.changed`.

Differs from upstream: the listing of the tools is plain, where the template's ``safe`` filter makes
Jinja escape its quotes for HTML; a call of a tool named ``python``, which the template writes as
code, is refused.
Source: ``meetkai-functionary-medium-v3.1.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._readers import NamedJson
from antiphon.formats._render import (
    Turns,
    Writer,
    check_written,
    inline_reasoning,
    invalid_text,
    of_tools,
    refuse_images,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec, dump_json

_OPEN, _CLOSE, _EOM = "<function=", "</function>", "<|eom_id|>"
TURNS = Turns(
    open="<|start_header_id|>{role}<|end_header_id|>\n\n",
    end="<|eot_id|>",
    between="",
    before_all="<|begin_of_text|>",
    specials=frozenset(
        {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}
    ),
    roles=(("tool", "ipython"),),
)
_SYNTAX = Syntax(
    blocks=(Block(_OPEN, NamedJson(">", close=_CLOSE, next_block=(_OPEN,))),),
    doubled=(_CLOSE,),
)
_HOW = """
Think very carefully before calling functions.
If a you choose to call a function ONLY reply in the following format:
<{start_tag}={function_name}>{parameters}{end_tag}
where

start_tag => `<function`
parameters => a JSON dict with the function argument name as key and function argument value as \
value.
end_tag => `</function>`

Here is an example,
<function=example_function_name>{"example_name": "example_value"}</function>

Reminder:
- If looking for real time information use relevant functions before falling back to brave_search
- Function calls MUST follow the specified format, start with <function= and end with </function>
- Required parameters MUST be specified
- Only call one function at a time
- Put the entire function call reply on one line

"""


@dataclass(frozen=True, slots=True)
class FunctionaryV31(Family):
    """The Functionary 3.1 family."""

    name = "functionary_v3_1"
    models = ("meetkai/functionary-*-v3.1*",)
    aliases = {"functionary_3_1": {}}
    signs = ("version=v3-llama3.1", "<function=")
    stop = ("<|eot_id|>", _EOM)
    turns = TURNS
    specials = TURNS.specials | {_EOM}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""

        def call(spec: ToolSpec, rules: Rules) -> Node:
            return seq(f"{_OPEN}{spec.name}>", arguments_node(spec, rules), _CLOSE)

        return CallForm(call, forbidden=(_OPEN, *sorted(self.specials)), specials=self.specials)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages, tools = conversation.messages, conversation.tools
        refuse_images(w, messages)
        w.put(TURNS.before_all, "frame")
        TURNS.begin(w, "system", None)
        w.text("\nCutting Knowledge Date: December 2023\n\n", "frame")
        w.text(of_tools(_tools_text, tools) if tools else "", "frame")
        TURNS.finish(w, "system", None)
        for index in w.walk(self, messages, tools=tools):
            message = messages[index]
            if message.role == "assistant":
                TURNS.begin(w, "assistant", index)
                _assistant(w, conversation, index)
            else:
                TURNS.whole(w, message.role, message.text, index)
        if generate:
            TURNS.begin(w, "assistant", None)
        return w.done()


def _assistant(w: Writer, conversation: Conversation, index: int) -> None:
    message = inline_reasoning(conversation.messages[index])
    if message.reasoning:
        w.changed.append(index)
        message = with_parts(message, reasoning="", text=message.text)
    since = len(w.pieces)
    w.text(message.text, "written", index)
    for call in message.tool_calls:
        if call.name == "python" or ">" in call.name:
            raise w.refuse(f"a tool cannot be called {call.name!r}; rename it", index)
        w.text(f"{_OPEN}{call.name}>{dump_json(call.arguments)}{_CLOSE}", "written", index)
    w.text(invalid_text(message), "written", index)
    check_written(w, _SYNTAX, message, index, since=since, tools=conversation.tools)
    acts = message.tool_calls or message.invalid_tool_calls
    w.put(_EOM if acts else TURNS.end, "written", index)


def _tools_text(tools: Sequence[ToolSpec]) -> str:
    listing = "".join(
        f"Use the function '{spec.name}' to '{spec.description}'\n"
        f"{dump_json(spec.to_openai()['function'])}\n\n"
        for spec in tools
    )
    return f"\nYou have access to the following functions:\n\n{listing}{_HOW}"


FORMAT = FunctionaryV31()
