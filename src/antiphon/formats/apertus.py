"""Apertus: a mark at each end of a turn, tools in TypeScript, calls whose key is the name.

    <|assistant_start|>Let me look.<|tools_prefix|>[{"get_weather": {"city": "Lima"}}]
    <|tools_suffix|>[{"celsius": 19}]It is 19 degrees.<|assistant_end|>

(The lines above are one.)  An assistant's turn goes on over calls and their results up to the next
user.  Answers behind results, whose prompt has a mark that is not shown again, are listed in
`Rendered.changed`; so are messages with reasoning, which is left out.  The parser reads reasoning
between ``<|inner_prefix|>`` and ``<|inner_suffix|>``.

Differs from upstream: the last answer's end mark is there; the template writes it before the next
user only.  The date is `date`, not the day of rendering.
Source: ``Apertus-8B-Instruct.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    Writer,
    as_said,
    is_first_result,
    is_last_result,
    of_tools,
    refuse_images,
    refuse_late_systems,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec, dump_json

_CALLS, _END_CALLS = "<|tools_prefix|>", "<|tools_suffix|>"
_THINK, _END_THINK = "<|inner_prefix|>", "<|inner_suffix|>"
_START, _END = "<|assistant_start|>", "<|assistant_end|>"
_MARKS = frozenset(
    {f"<|{role}_{end}|>" for role in ("system", "developer", "user") for end in ("start", "end")}
    | {"<s>", _CALLS, _END_CALLS, _THINK, _END_THINK, _START, _END}
)
_BARE = JsonCalls(name=(), arguments=(), id=(), array=True, bare_note="bare_json")
_READER = replace(_BARE, close=_END_CALLS, next_block=(_CALLS,))
_SYNTAX = Syntax(
    blocks=(Block(_CALLS, _READER, token=True),),
    thinking=(Thinking(_THINK, _END_THINK, after_open="", before_close="", after_close=""),),
    bare=_BARE,
    doubled=(_END_CALLS,),
)
_DEFAULT = (
    "You are Apertus, a helpful assistant created by the SwissAI initiative.\n"
    "Knowledge cutoff: 2024-04\nCurrent date: {date}"
)


@dataclass(frozen=True, slots=True)
class Apertus(Family):
    """The Apertus 2509 family."""

    thinking: bool = False
    """Whether the model is asked to deliberate."""
    date: str = "2025-06-30"
    """Today's date as the default system text says it."""

    name = "apertus"
    models = ("swiss-ai/Apertus-*",)
    aliases = {"apertus2509": {}}
    signs = (_CALLS, "Deliberation: ")
    stop = (_END,)
    prefix_stable = False
    specials = _MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""

        def call(spec: ToolSpec, rules: Rules) -> Node:
            return seq(f"{{{dump_json(spec.name)}: ", arguments_node(spec, rules), "}")

        return CallForm(
            call,
            open=f"{_CALLS}[",
            between=", ",
            close=f"]{_END_CALLS}",
            forbidden=tuple(sorted(_MARKS)),
            thinking=(_THINK, _END_THINK),
            specials=self.specials,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        index = 0 if first else None
        w.put("<s><|system_start|>", "frame")
        if system is None:
            w.text(_DEFAULT.replace("{date}", self.date), "frame")
        w.text(system or "", "given", index)
        w.put("<|system_end|><|developer_start|>", "frame")
        w.text(f"Deliberation: {'enabled' if self.thinking else 'disabled'}\n", "frame")
        if conversation.tools:
            w.text("Tool Capabilities:\n" + of_tools(_listing, conversation.tools), "frame")
        else:
            w.text("Tool Capabilities: disabled", "frame")
        w.put("<|developer_end|>", "frame")
        for index in w.walk(self, messages, first, tools=conversation.tools):
            self._message(w, conversation, index)
        w.put(_START if generate else "", "frame")
        return w.done()

    def _message(self, w: Writer, conversation: Conversation, index: int) -> None:
        messages = conversation.messages
        message = messages[index]
        before = messages[index - 1].role if index else ""
        match message.role:
            case "tool":
                if before not in ("assistant", "tool"):
                    raise w.refuse("a result must follow the call that it answers", index)
                w.text("[" if is_first_result(messages, index) else ", ", "frame", index)
                w.text(message.text, "given", index)
                if is_last_result(messages, index):
                    w.text("]", "frame", index)
            case "assistant":
                if before in ("assistant", "tool"):
                    w.changed.append(index)  # its prompt had the mark
                else:
                    w.mark(_START, "frame", index)
                said = as_said(w, message, index, text=message.text)
                calls: tuple[str, ...] = ()
                if said.tool_calls:
                    objects = [dump_json({c.name: c.arguments}) for c in said.tool_calls]
                    calls = (_CALLS, "[" + ", ".join(objects) + "]", _END_CALLS)
                write_answer(w, _SYNTAX, conversation, said, index, *calls)
                following = messages[index + 1].role if index + 1 < len(messages) else "user"
                if following not in ("assistant", "tool") and not said.tool_calls:
                    w.mark(_END, "written", index)
            case _:
                if before == "tool" or (before == "assistant" and messages[index - 1].tool_calls):
                    w.mark(_END, "frame", index)
                w.mark("<|user_start|>", "frame", index)
                w.text(message.text, "given", index)
                w.mark("<|user_end|>", "frame", index)


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as TypeScript types."""
    return "\n".join(_tool(spec) for spec in tools)


def _tool(spec: ToolSpec) -> str:
    head = f"// {spec.description}\ntype {spec.name} = "
    properties = cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
    required = cast("Sequence[str]", spec.parameters.get("required") or ())
    if not properties:
        return f"{head}() => any;"
    members: list[str] = []
    for name, schema in properties.items():
        comment = f"// {schema['description']}\n" if schema.get("description") else ""
        mark = "" if name in required else "?"
        member = f"{comment}{name}{mark}: {_type(schema)}"
        if "default" in schema:
            default = schema["default"]
            shown = str(default) if schema.get("enum") or schema.get("oneOf") else None
            comma = "" if schema.get("oneOf") and not schema.get("enum") else ", "
            member += f"{comma}// default: {dump_json(default) if shown is None else shown}"
        members.append(member)
    return head + "(_: {\n" + ",\n".join(members) + "\n}) => any;"


_NAMES = {"number": "number", "integer": "number", "boolean": "boolean"}


def _type(schema: Mapping[str, Any]) -> str:
    """A schema as a TypeScript type."""
    kind: Any = schema.get("type")
    null = " | null" if schema.get("nullable") else ""
    if kind == "array":
        return _array(schema) + null
    if isinstance(kind, list) and kind:
        return " | ".join(map(str, cast("list[Any]", kind)))
    if schema.get("oneOf"):
        return _one_of(cast("Sequence[Mapping[str, Any]]", schema["oneOf"]))
    if kind == "string":
        enum = cast("list[Any]", schema.get("enum") or [])
        return '"' + '" | "'.join(map(str, enum)) + '"' if enum else "string" + null
    if kind == "object":
        return _object(schema)
    return _NAMES.get(str(schema.get("type")), "any")


def _array(schema: Mapping[str, Any]) -> str:
    items = cast("Mapping[str, Any]", schema.get("items") or {})
    if not items:
        return "any[]"
    if items.get("type") == "string":
        return "string[]"
    inner = _type(items)
    return "any[]" if inner == "object | object" or len(inner) > 50 else f"{inner}[]"


def _one_of(variants: Sequence[Mapping[str, Any]]) -> str:
    if len(variants) > 1 and any(variant.get("type") == "object" for variant in variants):
        return "any"
    texts: list[str] = []
    for variant in variants:
        text = _type(variant)
        if variant.get("description"):
            text += f"// {variant['description']}"
        if "default" in variant:
            text += f"// default: {dump_json(variant['default'])}"
        texts.append(text)
    return " | ".join(texts)


def _object(schema: Mapping[str, Any]) -> str:
    properties = cast("Mapping[str, Any]", schema.get("properties") or {})
    required = cast("Sequence[str]", schema.get("required") or ())
    if not properties:
        return "object"
    gap = "\n" + " " * 16  # the template's own indentation
    members = (
        f"{name}{'' if name in required else '?'}: {gap}{_type(member)}"
        for name, member in properties.items()
    )
    return "{\n" + ", ".join(members) + "}"


FORMAT = Apertus()
