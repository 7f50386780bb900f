"""Seed-OSS: turns between <seed:bos> and <seed:eos>, tools as Python stubs, a tag per argument.

    <seed:bos>assistant
    <seed:think>The user wants the weather.</seed:think>
    Let me look.

    <seed:tool_call>
    <function=get_weather>
    <parameter=city>Lima</parameter>
    </function>
    </seed:tool_call><seed:eos><seed:bos>tool
    19 degrees<seed:eos>

Values that are no strings are written as Python prints them: so does the published template.  Text
and reasoning are trimmed; messages that this changes are listed in `Rendered.changed`.  Reasoning
is shown in every turn.  A `budget` says how many tokens the model may reason.

Differs from upstream: the ``returns`` of a tool are not written; an assistant's message with
neither text nor calls, which the template leaves open, is refused.
Source: Seed-OSS's template as llama.cpp ships it; the ones in other packages have lost their line
feeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._kin import tag_blocks
from antiphon.formats._render import (
    Turns,
    Writer,
    inline_reasoning,
    of_tools,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged, called, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, given
from antiphon.messages import Conversation, ToolSpec

TURNS = Turns(
    open="<seed:bos>{role}\n",
    end="<seed:eos>",
    between="",
    specials=frozenset({"<seed:bos>", "<seed:eos>"}),
)
_TAGS = Tagged(
    open="<seed:tool_call>\n",
    close="</seed:tool_call>",
    call="<function=",
    named=">\n",
    call_close="</function>\n",
    key="<parameter=",
    keyed=">",
    value_close="</parameter>\n",
    python=frozenset({"boolean", "null", "array", "object"}),
)
_SYNTAX = Syntax(
    blocks=(
        Block("<seed:tool_call>", _TAGS, before="\n\n"),
        Block("<function=", _TAGS, before="\n\n", lost=True),
        *tag_blocks(_TAGS),
    ),
    thinking=(
        Thinking("<seed:think>", "</seed:think>", after_open="", before_close="", after_close="\n"),
    ),
    doubled=("</seed:tool_call>",),
)
_IDENTITY = (
    "You are Doubao, a helpful AI assistant. You may call one or more functions to assist with the "
    "user query."
)
_HOW = """工具调用请遵循如下格式:
<seed:tool_call>
<function=example_function_name>
<parameter=example_parameter_1>value_1</parameter>
<parameter=example_parameter_2>This is the value for the second parameter
that can span
multiple lines</parameter>
</function>
</seed:tool_call>
"""
_NO_BUDGET = (
    "You are an intelligent assistant that can answer questions in one step without the need for "
    "reasoning and thinking, that is, your thinking budget is 0. Next, please skip the thinking "
    "process and directly start answering the user's questions.\n"
)
_BUDGET = (
    "You are an intelligent assistant with reflective ability. In the process of thinking and "
    "reasoning, you need to strictly follow the thinking budget, which is {budget}. That is, you "
    "need to complete your thinking within {budget} tokens and start answering the user's "
    "questions. You will reflect on your thinking process every {interval} tokens, stating how "
    "many tokens have been used and how many are left.\n"
)
_INTERVALS = {0: 0, 512: 128, 1024: 256, 2048: 512, 4096: 512, 8192: 1024, 16384: 1024}
_TYPES = {"string": "str", "number": "int", "integer": "int", "boolean": "bool", "array": "list"}


@dataclass(frozen=True, slots=True)
class SeedOss(Family):
    """The Seed-OSS family."""

    budget: int = -1
    """How many tokens the model may reason; 0 for not at all, -1 for as many as it likes."""

    name = "seed_oss"
    models = ("ByteDance-Seed/Seed-OSS-*",)
    signs = ("<seed:tool_call>", "<seed:bos>")
    stop = ("<seed:eos>",)
    turns = TURNS
    specials = TURNS.specials | {
        "<seed:think>", "</seed:think>", "<seed:cot_budget_reflect>", "</seed:cot_budget_reflect>",
        "<seed:tool_call>", "</seed:tool_call>",
    }  # fmt: skip

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return tagged_form(
            _TAGS, self.specials,
            before="\n\n", end=self.stop, thinking=("<seed:think>", "</seed:think>\n"),
        )  # fmt: skip

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        if system is not None or conversation.tools:
            index = 0 if first else None
            TURNS.begin(w, "system", index)
            w.text(_IDENTITY if system is None else system, "given" if first else "frame", index)
            if conversation.tools:
                w.text(of_tools(_tools_text, conversation.tools), "frame", index)
                w.put(_HOW, "frame", index)
            TURNS.finish(w, "system", index)
        if self.budget >= 0:
            self._budget(w)
        for index in w.walk(self, messages, first, tools=conversation.tools, usual=_USUAL):
            if messages[index].role == "assistant":
                _assistant(w, conversation, index)
            else:
                TURNS.whole(w, messages[index].role, messages[index].text, index)
        if not generate:
            return w.done()
        TURNS.begin(w, "assistant", None)
        if self.budget == 0:
            w.put("<seed:think><seed:cot_budget_reflect>", "frame")
            return w.done(start="reasoning")
        return w.done()

    def _budget(self, w: Writer) -> None:
        interval = next((v for k, v in _INTERVALS.items() if self.budget <= k), 1024)
        text = _BUDGET.format(budget=self.budget, interval=interval) if self.budget else _NO_BUDGET
        TURNS.begin(w, "system", None)
        w.text(text, "frame")
        TURNS.finish(w, "system", None)


def _assistant(w: Writer, conversation: Conversation, index: int) -> None:
    given = conversation.messages[index]
    split = inline_reasoning(given, open="<seed:think>", close="</seed:think>")
    message = with_parts(split, reasoning=split.reasoning.strip(), text=split.text.strip())
    if (message.reasoning, message.text) != (given.reasoning, given.text):
        w.changed.append(index)
    if not (message.text or message.tool_calls or message.invalid_tool_calls):
        raise w.refuse("an assistant's message needs text or calls; leave it out", index)
    TURNS.begin(w, "assistant", index)
    since = len(w.pieces)
    if message.reasoning:
        w.put("<seed:think>", "written", index)
        w.text(message.reasoning, "written", index)
        w.put("</seed:think>", "written", index)
        w.text("\n", "written", index)
    w.text(message.text, "written", index)
    write_calls(w, _TAGS, message, index, before="\n\n" if message.text else "")
    check_calls(
        w, _TAGS, _SYNTAX, message, index,
        since=since, tools=conversation.tools,
    )  # fmt: skip
    TURNS.finish(w, "assistant", index)


def _usual(place: Place) -> Usual | None:
    frame = TURNS.frame(place.role, specials=SeedOss.specials)
    match place.kind:
        case "calls":
            return called(frame, _TAGS)
        case "assistant":
            return answered(frame, _SYNTAX, _refused_if_empty)
        case _:
            return given(frame)


_USUAL = Usuals(_usual)


def _refused_if_empty(text: str) -> str:
    return text.strip() or " "


def _tools_text(tools: Sequence[ToolSpec]) -> str:
    return "\n" + "".join(map(_stub, tools))


def _stub(spec: ToolSpec) -> str:
    """One tool as a Python function without a body."""
    properties = cast("Mapping[str, Any]", spec.parameters.get("properties") or {})
    required = cast("Sequence[str]", spec.parameters.get("required") or ())
    types = {name: _type(schema) for name, schema in properties.items()}
    signature = ",".join(f"{name}: {kind}" for name, kind in types.items())
    lines = "".join(
        f"\n    - {name} ({types[name]}) [{'必填' if name in required else '选填'}]: "
        f"{schema.get('description') or ''}"
        for name, schema in properties.items()
    )
    arguments = f"\n    Args:{lines}\n" if lines else "\n\n"
    return (
        f'\nFunction:\ndef {spec.name}({signature}):\n    """\n    {spec.description.strip()}\n'
        f'{arguments}\n    """\n'
    )


def _type(schema: Any) -> str:
    kind: Any = cast("Mapping[str, Any]", schema).get("type")
    return _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"


FORMAT = SeedOss()
