"""GigaChat 3 and 3.1: role names with marks behind them, tools in TypeScript, one call a message.

    assistant<|role_sep|>
    Let me look.<|function_call|>{"name": "get_weather", "arguments": {"city": "Lima"}}
    <|message_sep|>

    function result<|role_sep|>
    {"celsius": 19}<|message_sep|>

(The second line above is broken for reading.)  Version 3 writes the call as a message of its own,
of the role ``function call``.  Reasoning is left out and its messages are listed in
`Rendered.changed`; parallel calls are refused.

Differs from upstream: several calls in a message are refused; the template writes the first only.
Source: ``GigaChat3-10B-A1.8B.jinja`` and ``GigaChat3.1-10B-A1.8B.jinja`` in the source of
llama-cpp-python 0.3.36.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Turns,
    Writer,
    as_said,
    call_json,
    of_tools,
    refuse_images,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec

_CALL, _SEP, _END = "<|function_call|>", "<|role_sep|>", "<|message_sep|>"
_CALL_TURN = f"{_END}\n\nfunction call{_SEP}\n"
_TURNS = Turns(
    open="{role}" + f"{_SEP}\n",
    end=_END,
    between="\n\n",
    before_all="<s>",
    specials=frozenset({"<s>", _SEP, _END}),
    roles=(("tool", "function result"),),
)
_SYNTAX = {
    "3": Syntax(
        blocks=(
            Block(_CALL_TURN, JsonCalls(next_block=(_END,))),
            Block(f"function call{_SEP}\n", JsonCalls(next_block=(_END,)), line_start=True),
        ),
        bare=JsonCalls(bare_note="bare_json"),
        ignored=(_END,),
    ),
    "3.1": Syntax(
        blocks=(Block(_CALL, JsonCalls(next_block=(_CALL, _END))),),
        bare=JsonCalls(bare_note="bare_json"),
        ignored=(_END,),
    ),
}
_DEVELOPER = """\
<role_description>
Description of the roles available in the dialog.

`developer system`
A message added by Sber before the main dialog. It has the highest priority and sets global, \
non-overridable conditions (for example, conversation rules, the safety policy, the assistant's \
overall response style, etc.).

`system`
A system instruction added by developers or by the user, but with a lower priority than \
`developer system`. It usually describes the assistant's instructions, a specific response style, \
and other conditions for this particular dialog.

`user`
A message or request from the user. The assistant follows it if it does not conflict with \
higher-priority instructions (see <instruction_priority>).

`user memory`
A sequence of the most up-to-date long-term facts about the user at the time of their request, \
presented as a JSON list of strings. Facts are listed in chronological order, meaning newer facts \
are appended to the end of the sequence. When facts are changed or deleted, records of previous \
facts remain in the sequence. The assistant saves facts using a function and uses them in \
accordance with the <memory_guidelines> block below.

`added files`
Metadata about files available for use in the dialog, presented in JSON format. It contains the \
following keys: id (a unique file identifier), name (file name), type (file type).

`assistant`
The assistant's reply to the user's request. If the system instruction or the user does not set \
additional rules for `assistant`, this reply must comply with the instructions in the \
<assistant_guidelines> block below. The list of functions available to call is contained in \
`function descriptions`. The name of the required function and its arguments will be generated \
next by the `function call` role. In its replies, the assistant follows the instructions in \
accordance with <instruction_priority>.

`function descriptions`
Function descriptions in TypeScript format. A function is a special tool (or a set of \
instructions) that the assistant can call to perform specific actions, computations, or obtain \
data needed to solve the user's task. Each function description contains blocks with the name, \
description, and arguments. Sometimes the description contains separate blocks with return \
parameters and usage examples that illustrate the correct call and arguments.

`function call`
The function that `assistant` calls based on the dialog context, and its arguments. The function \
is invoked in strict accordance with the instructions in the <function_usage> block.

`function result`
The result of the last function call.
</role_description>

<available_modalities>
The assistant can work with the following modalities: text, available functions.
</available_modalities>

<instruction_priority>
If instructions from different roles conflict within the dialog context, observe the following \
priorities:\x20\x20
`developer system` > `system` > `user` > `function descriptions` > `function result` > `user \
memory`
</instruction_priority>

<function_usage>
Basic instructions for working with functions.

Only call those functions that are described in `function descriptions`.

Call available functions when, according to their description, such a call will help provide a \
more complete and/or accurate answer to the user's request. Fill in function arguments using \
information from the dialog context. If a function could help answer the request but a required \
argument is missing from the context, ask the user for the missing data before calling the \
function. If a necessary function is unavailable or an error occurs, briefly inform the user and, \
if possible, suggest an alternative.
</function_usage>

<memory_guidelines>
Rules for using facts in long-term memory:

If there is no message under the `user memory` role in the dialog, this is equivalent to the \
absence of long-term facts about the user in memory. In that case, information about the user is \
limited to the current dialog, and no new facts should be saved.
</memory_guidelines>

<assistant_guidelines>
You are a helpful assistant.

# Instructions
- Strictly follow the instruction priority.
- Maintain a logical chain of reasoning when answering the user's question.
- For complex questions (for example, STEM), try to answer in detail unless the system message or \
dialog context limits the response length.
- Be helpful, truthful, and avoid unsafe or prohibited content in your responses.
- Try to reply in the language in which the user asked their question.
</assistant_guidelines>

A dialog will follow below.
The dialog may include various roles described in the <role_description> block.
Each turn begins with the role name and a special token that marks the end of the role's full \
name, and ends with a special end-of-turn token.
Your task is to continue the dialog from the last specified role in accordance with the dialog \
context."""


@dataclass(frozen=True, slots=True)
class GigaChat3(Family):
    """The GigaChat 3 and 3.1 families."""

    version: Literal["3", "3.1"] = "3.1"
    """Whose text."""

    name = "gigachat3"
    models = ("ai-sage/GigaChat3.1-*",)
    aliases = {
        "gigachat3_1": {},
        "gigachat3_0": {"version": "3"},
        "ai-sage/GigaChat3-*": {"version": "3"},
    }
    signs = ("add_tokens.role_sep", "render_tool_namespace")

    @property
    # The version decides.
    def stop(self) -> tuple[str, ...]:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Texts that end a model's turn; in version 3 a message's end may have a call behind it."""
        if self.version == "3.1":
            return (_END,)
        return (f"{_END}\n\nuser{_SEP}", f"{_END}\n\nfunction result{_SEP}", "</s>")

    @property
    def specials(self) -> frozenset[str]:
        """Marks that are single tokens."""
        return _TURNS.specials | {_CALL} if self.version == "3.1" else _TURNS.specials

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX[self.version]

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        if self.version == "3.1":
            return json_form(self.specials, open=_CALL, close="", before="", parallel=False)
        form = json_form(self.specials, open=_CALL_TURN, close=_END, before="", parallel=False)
        return replace(form, forbidden=(_CALL_TURN, "<s>"))

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        w.put(_TURNS.before_all, "frame")
        _TURNS.begin(w, "developer system", None)
        w.text(_DEVELOPER, "frame")
        _TURNS.finish(w, "system", None)
        if system is not None:
            _TURNS.whole(w, "system", system, 0)
        if conversation.tools:
            _TURNS.begin(w, "function descriptions", None)
            w.text(of_tools(_listing, conversation.tools), "frame")
            _TURNS.finish(w, "system", None)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            message = messages[index]
            if message.role != "assistant":
                _TURNS.whole(w, message.role, message.text, index)
                continue
            _TURNS.begin(w, "assistant", index)
            self._assistant(w, conversation, index)
            _TURNS.finish(w, "assistant", index)
        if generate:
            _TURNS.begin(w, "assistant", None)
        return w.done()

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        message = conversation.messages[index]
        if len(message.tool_calls) > 1:
            raise w.refuse(
                "the family writes one call at a time; split the calls into steps", index
            )
        said = as_said(w, message, index, text=message.text)
        calls: list[str] = []
        for call in said.tool_calls:
            mark = [_CALL] if self.version == "3.1" else [_END, "\n\nfunction call", _SEP, "\n"]
            calls += [*mark, call_json(call)]
        write_answer(w, self.syntax, conversation, said, index, *calls)


_LIMITS = ("format", "maxItems", "maximum", "minItems", "minimum", "pattern")


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as a TypeScript namespace."""
    sections = [_tool(spec.to_openai()["function"]) for spec in tools]
    return "\n".join(["namespace functions {", *sections, "} // namespace functions"]) + "\n\n"


def _tool(function: Mapping[str, Any]) -> str:
    lines = [f"// {line}" for line in _lines(function.get("description"))]
    parameters = cast("Mapping[str, Any]", function.get("parameters") or {})
    takes = f"_: {_type(parameters, '  ')}" if parameters.get("properties") else ""
    returns = cast("Mapping[str, Any]", function.get("return_parameters") or {})
    gives = _type(returns, "  ") if returns.get("properties") else "any"
    return "\n".join([*lines, f"type {function['name']} = ({takes}) => {gives};\n"])


def _lines(text: Any) -> list[str]:
    return [line for line in str(text or "").split("\n") if line.strip()]


def _type(schema: Mapping[str, Any], indent: str = "") -> str:
    """A schema as a TypeScript type, its members indented by `indent`."""
    enum = cast("list[Any]", schema.get("enum") or [])
    match schema.get("type"):
        case "object":
            return _object(schema, indent)
        case "string" if enum:
            return " | ".join(f'"{value}"' for value in enum)
        case "string":
            return "Date" if schema.get("format") in ("date-time", "date") else "string"
        case "number" | "integer":
            return " | ".join(map(str, enum)) if enum else "number"
        case "boolean":
            return "boolean"
        case "array":
            return _type(schema["items"], indent) + "[]" if "items" in schema else "Array<any>"
        case _:
            return "any"


def _object(schema: Mapping[str, Any], indent: str) -> str:
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    required = cast("Sequence[str]", schema.get("required") or ())
    lines: list[str] = []
    for name, member in properties.items():
        lines += [f"{indent}// {line}" for line in _lines(member.get("description"))]
        for key, value in member.items():
            if key in _LIMITS:
                shown = f'"{value}"' if isinstance(value, str) else str(value)
                lines.append(f"{indent}// {key}: {shown}")
        default = member.get("default", member.get("defalut_value"))
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        has_default = "default" in member or "defalut_value" in member
        note = f" // default: {shown}" if has_default else ""
        mark = "" if name in required else "?"
        lines.append(f"{indent}{name}{mark}: {_type(member, indent + '  ')},{note}")
    others = schema.get("additionalProperties")
    if others is True or isinstance(others, Mapping):
        inner = cast("Mapping[str, Any]", {} if others is True else others)
        lines.append(f"{indent}[key: string]: {_type(inner, indent + '  ')}")
    return "\n".join(["{", *lines, indent[:-2] + "}"])


FORMAT = GigaChat3()
