"""Command R and R+: tools as Python signatures, calls as an indented JSON list behind ``Action:``.

    <|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>
    Action:
    ```json
    [
        {
            "tool_name": "get_weather",
            "parameters": {
                "city": "Lima"
            }
        }
    ]```
    <|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|><results>
    {"celsius": 19}</results><|END_OF_TURN_TOKEN|>

The instruction to write ``Action:`` is the last turn of every text, and so no answer stands behind
the prompt that it was written for: all are listed in `Rendered.changed`.  Text is trimmed;
reasoning is left out.  Instead of answering at once, the model calls ``directly-answer``.

Differs from upstream: arrays and objects are typed as the template means them (it looks for a
Python dictionary's method and writes ``List[Union[]]``, or fails), a parameter needs no
description, and there may be no tools.
Source: ``CohereForAI-c4ai-command-r-plus-tool_use.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    as_said,
    of_tools,
    refuse_images,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._schema_grammar import IndentedMaker, arguments_node
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, given, spelled
from antiphon.messages import Conversation, ToolCall, ToolSpec, dump_json, indented_json

_ACTION, _FENCE = "Action:\n```json", "```"
_TURNS = Turns(
    open="<|START_OF_TURN_TOKEN|><|{role}_TOKEN|>",
    end="<|END_OF_TURN_TOKEN|>",
    between="",
    before_all="<BOS_TOKEN>",
    specials=frozenset(
        {"<BOS_TOKEN>", "<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>"}
        | {f"<|{role}_TOKEN|>" for role in ("SYSTEM", "USER", "CHATBOT")}
    ),
    roles=(("system", "SYSTEM"), ("user", "USER"), ("assistant", "CHATBOT"), ("tool", "SYSTEM")),
)
_CALLS = JsonCalls(
    _FENCE, name=("tool_name", "name"), arguments=("parameters", "arguments"), array=True
)
_SYNTAX = Syntax(
    blocks=tuple(
        Block(mark, _CALLS, before="\n", line_start=True)
        for mark in (_ACTION, _ACTION.replace("\n", " "))
    ),
    bare=JsonCalls(
        name=("tool_name", "name"),
        arguments=("parameters", "arguments"),
        array=True,
        bare_note="bare_json",
    ),
)
_PREAMBLE = """\
# Safety Preamble
The instructions in this section override those in the task description and style guide sections. \
Don't answer questions that are harmful or immoral.

# System Preamble
## Basic Rules
You are a powerful conversational AI trained by Cohere to help people. You are augmented by a \
number of tools, and your job is to use and consume the output of these tools to best help the \
user. You will see a conversation history between yourself and a user, ending with an utterance \
from the user. You will then see a specific instruction instructing you what kind of response to \
generate. When you answer the user's requests, you cite your sources in your answers, according to \
those instructions.

# User Preamble
"""
_DEFAULT = """\
## Task and Context
You help people answer their questions and other requests interactively. You will be asked a very \
wide array of requests on all kinds of topics. You will be equipped with a wide range of search \
engines or similar tools to help you, which you use to research your answer. You should focus on \
serving the user's needs as best you can, which will be wide-ranging.

## Style Guide
Unless the user asks for a different style of answer, you should answer in full sentences, using \
proper grammar and spelling."""
_RESULTS = "<results>\n", "</results>"
_TOOLS = "\n\n## Available Tools\nHere is a list of tools that you have available to you:\n\n"
_HOW = """\
Write 'Action:' followed by a json-formatted list of actions that you want to perform in order to \
produce a good response to the user's last input. You can use any of the supplied tools any number \
of times, but you should aim to execute the minimum number of necessary actions for the input. You \
should use the `directly-answer` tool if calling the other tools is unnecessary. The list of \
actions you want to call should be formatted as a list of json objects, for example:
```json
[
    {
        "tool_name": title of the tool in the specification,
        "parameters": a dict of parameters to input into the tool as they are defined in the \
specs, or {} if it takes no parameters
    }
]```"""


@dataclass(frozen=True, slots=True)
class CommandRPlus(Family):
    """The Command R and Command R+ families."""

    name = "command_r_plus"
    models = (
        "CohereForAI/c4ai-command-r-plus*",
        "CohereForAI/c4ai-command-r-v01",
        "CohereLabs/c4ai-command-r-plus*",
    )
    aliases = {"command_r": {}}
    signs = ("## Available Tools", "directly-answer")
    stop = ("<|END_OF_TURN_TOKEN|>",)
    prefix_stable = False
    turns = _TURNS
    specials = _TURNS.specials

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""

        def call(spec: ToolSpec, rules: Rules) -> Node:
            head = f'    {{\n        "tool_name": {dump_json(spec.name)},\n        "parameters": '
            return seq(head, arguments_node(spec, rules, maker=IndentedMaker), "\n    }")

        return CallForm(
            call,
            open=f"{_ACTION}\n[\n",
            between=",\n",
            close=f"\n]{_FENCE}",
            before="\n",
            alone="\n",
            forbidden=(_ACTION, *sorted(self.specials)),
            specials=self.specials,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        w.put(_TURNS.before_all, "frame")
        _TURNS.begin(w, "system", index)
        w.text(_PREAMBLE, "frame", index)
        w.text(_DEFAULT if system is None else system, "given" if first else "frame", index)
        w.text(_TOOLS + of_tools(_listing, conversation.tools), "frame", index)
        _TURNS.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            message = messages[index]
            match message.role:
                case "assistant":
                    self._assistant(w, conversation, index)
                case "tool":
                    _TURNS.begin(w, "tool", index)
                    w.text(_RESULTS[0], "frame", index)
                    w.text(message.text.strip(), "given", index)
                    w.text(_RESULTS[1], "frame", index)
                    _TURNS.finish(w, "tool", index)
                case role:
                    _TURNS.whole(w, role, message.text.strip(), index)
        _TURNS.begin(w, "system", None)
        w.text(_HOW, "frame")
        _TURNS.finish(w, "system", None)
        if generate:
            _TURNS.begin(w, "assistant", None)
        return w.done()

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        said = as_said(w, message, index, text=message.text.strip())
        w.changed.append(index)  # its prompt ended with the instruction
        _TURNS.begin(w, "assistant", index)
        listing = _calls_text(said.tool_calls)
        write_answer(w, _SYNTAX, conversation, said, index, listing)
        if listing:
            w.text("\n", "frame", index)
        else:
            _TURNS.finish(w, "assistant", index)


def _calls_text(calls: Sequence[ToolCall]) -> str:
    objects = ",\n".join(map(_call, calls))
    return f"\n{_ACTION}\n[\n{objects}\n]{_FENCE}" if calls else ""


def _call(call: ToolCall) -> str:
    arguments = indented_json(call.arguments).replace("\n", "\n        ")
    return (
        f'    {{\n        "tool_name": {dump_json(call.name)},\n        "parameters": {arguments}'
        "\n    }"
    )


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as Python functions."""
    return "\n\n".join(map(_function, tools))


def _function(spec: ToolSpec) -> str:
    properties = cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
    required = cast("Sequence[str]", spec.parameters.get("required") or ())
    takes: list[str] = []
    lines: list[str] = []
    for name, schema in properties.items():
        kind = _type(schema)
        needed = name in required
        takes.append(f"{name}: {kind if needed else f'Optional[{kind}] = None'}")
        shown = kind if needed else f"Optional[{kind}]"
        lines.append(f"{name} ({shown}): {schema.get('description') or ''}")
    docs = "\n\n    Args:\n        " + "\n        ".join(lines) if lines else ""
    return (
        f"```python\ndef {spec.name}({', '.join(takes)}) -> List[Dict]:\n"
        f'    """{spec.description}{docs}\n    """\n    pass\n```'
    )


_NAMES = {"string": "str", "number": "float", "integer": "int", "boolean": "bool", "null": "None"}


def _type(schema: Any) -> str:
    """A schema as a Python type."""
    fields = cast("Mapping[str, Any]", schema if isinstance(schema, Mapping) else {})
    kind: Any = fields.get("type")
    if isinstance(kind, list):
        return "Union[" + ",".join(_type({"type": one}) for one in cast("list[Any]", kind)) + "]"
    if kind == "array":
        return f"List[{_type(fields.get('items'))}]"
    if kind == "object":
        return f"Dict[str, {_type(fields.get('additionalProperties'))}]"
    return _NAMES.get(str(kind), "Any")


def _usual(place: Place) -> Usual | None:
    frame = _TURNS.frame(place.role)
    match place.kind:
        case "assistant":
            return answered(frame, _SYNTAX, trims=True, changes=True)
        case "calls":
            frame = replace(frame, after=(("\n", "frame"),))
            return spelled(frame, lambda call: _calls_text((call,)), changes=True)
        case "tool":
            return given(_TURNS.frame("tool", *_RESULTS), str.strip)
        case _:
            return given(frame, str.strip)


_USUAL = Usuals(_usual)
FORMAT = CommandRPlus()
