"""PLaMo 3: turns of a role, a mark and a text; calls as a name and JSON between nested marks.

    assistant<|plamo:msg|>Let me look.<|plamo:begin_tool_requests:plamo|>
    <|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>get_weather
    <|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json
    <|plamo:msg|>{"city": "Lima"}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>
    <|plamo:end_tool_requests:plamo|><|plamo:tag|>

(All in one line.)  The nested marks are several tokens each: ``<|plamo:begin_``, a name, and
``:plamo|>``.  Reasoning stands in every message, between ``begin_think`` and ``end_think``.

Second-hand: calls and reasoning are those of vLLM's parser and its tests, which name the tokens;
the turns are those of the chat template of the family's base models, as public experiments with
them describe it.  How tools are listed and results are shown is in no public source that was at
hand: the words around the tools are ours, and a result is a turn of the role ``tool``.
"""

from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._listed import listed
from antiphon.formats._readers import NamedJson, Section
from antiphon.formats._render import (
    Turns,
    Writer,
    check_written,
    inline_reasoning,
    invalid_text,
    of_tools,
    refuse_images,
    split_system,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolSpec, dump_json


def _marks(name: str) -> tuple[str, str]:
    return f"<|plamo:begin_{name}:plamo|>", f"<|plamo:end_{name}:plamo|>"


_CALLS, _CALLS_END = _marks("tool_requests")
_CALL, _CALL_END = _marks("tool_request")
_NAME, _NAME_END = _marks("tool_name")
_ARGS, _ARGS_END = _marks("tool_arguments")
_THINK, _THINK_END = _marks("think")
_MSG, _TAG = "<|plamo:msg|>", "<|plamo:tag|>"
TURNS = Turns(
    open=f"{{role}}{_MSG}",
    end=_TAG,
    between="",
    before_all=f"<|plamo:bos|>{_TAG}",
    specials=frozenset({"<|plamo:bos|>", _MSG, _TAG}),
)
_OPENS = f"{_CALL}{_NAME}"
_HEAD = f"{_NAME_END}{_ARGS}<|plamo:constrain|>json{_MSG}"
_CLOSES = f"{_ARGS_END}{_CALL_END}"


def _name(text: str) -> tuple[str, str]:
    """The name before the marks that end it."""
    return text.partition(_NAME_END)[0].strip(), ""


_READER = NamedJson(_MSG, _CLOSES, _name, (_OPENS, _CALLS_END))
_SYNTAX = Syntax(
    blocks=(
        Block(_OPENS, _READER, token=True),
        Block(_CALLS, Section(_OPENS, _CALLS_END, _READER), token=True),
    ),
    thinking=(Thinking(_THINK, _THINK_END, after_open="", before_close="", after_close=""),),
    doubled=(_CLOSES, _CALL_END),
    ignored=(_CALLS_END,),
)
_EXAMPLE = f'{_CALLS}{_OPENS}example_tool{_HEAD}{{"key": "value"}}{_CLOSES}{_CALLS_END}'


@dataclass(frozen=True, slots=True)
class Plamo3(Family):
    """The PLaMo 3 family."""

    name = "plamo3"
    models = ("pfnet/plamo-3-*",)
    signs = ("plamo:begin_tool_request", _MSG)
    stop = (_TAG,)
    turns = TURNS
    specials = TURNS.specials | {
        "<|plamo:begin_", "<|plamo:end_", ":plamo|>", "<|plamo:constrain|>",
    }  # fmt: skip

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""

        def call(spec: ToolSpec, rules: Rules) -> Node:
            return seq(f"{_OPENS}{spec.name}{_HEAD}", arguments_node(spec, rules), _CLOSES)

        return CallForm(
            call,
            open=_CALLS,
            close=_CALLS_END,
            forbidden=(_CALLS, _CALLS_END, _OPENS, _TAG),
            thinking=(_THINK, _THINK_END),
            specials=self.specials,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        index = 0 if first else None
        w.put(TURNS.before_all, "frame")
        if system is not None or conversation.tools:
            TURNS.begin(w, "system", index)
            w.text(system or "", "given", index)
            w.text("\n\n" if system and conversation.tools else "", "frame", index)
            if conversation.tools:
                w.text(of_tools(listed, conversation.tools), "frame", index)
                w.put(_EXAMPLE, "frame", index)
            TURNS.finish(w, "system", index)
        for index in w.walk(self, messages, first, tools=conversation.tools):
            if messages[index].role == "assistant":
                _assistant(w, conversation, index)
            else:
                TURNS.whole(w, messages[index].role, messages[index].text, index)
        if generate:
            TURNS.begin(w, "assistant", None)
        return w.done()


def _assistant(w: Writer, conversation: Conversation, index: int) -> None:
    given = conversation.messages[index]
    message = inline_reasoning(given)
    if message is not given:
        w.changed.append(index)
    TURNS.begin(w, "assistant", index)
    since = len(w.pieces)
    if message.reasoning:
        w.put(_THINK, "written", index)
        w.text(message.reasoning, "written", index)
        w.put(_THINK_END, "written", index)
    w.text(message.text, "written", index)
    w.put(_CALLS if message.tool_calls else "", "written", index)
    for call in message.tool_calls:
        w.put(_OPENS, "written", index)
        w.text(call.name, "written", index)
        w.put(_HEAD, "written", index)
        w.text(dump_json(call.arguments), "written", index)
        w.put(_CLOSES, "written", index)
    w.put(_CALLS_END if message.tool_calls else "", "written", index)
    w.put(invalid_text(message), "written", index)
    check_written(w, _SYNTAX, message, index, since=since, tools=conversation.tools)
    TURNS.finish(w, "assistant", index)


FORMAT = Plamo3()
