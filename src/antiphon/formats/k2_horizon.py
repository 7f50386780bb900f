"""K2 Horizon: marks of its own for everything, tools told in Markdown, a tag per argument.

    <|ifm|im_start|>assistant
    <ifm|think>
    The user wants the weather.</ifm|think>Let me look.<ifm|tool_calls>
    <ifm|tool_call>get_weather
    <ifm|arg_key>city</ifm|arg_key>
    <ifm|arg_value>Lima</ifm|arg_value>
    </ifm|tool_call>
    </ifm|tool_calls><|ifm|im_end|><|ifm|im_start|>tool
    19 degrees<|ifm|im_end|>

Reasoning is shown in every turn, in a block that is there even where it is empty and whose name
says how hard the model is asked to reason (`effort`).  `calls` are written as tags or as JSON; the
third way of the template, tags with a type each, is not written here.

Second-hand: the text is that of a public engine's port of the template in C
(``harness/chat_template.c``), whose tests compare it byte for byte with what transformers renders
from the model's repository, which was not at hand.  Everything is one block of calls behind the
text, as vLLM's and SGLang's parsers read it, too.
"""

from dataclasses import dataclass
from functools import cache
from typing import Literal

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._k2_tools import listing, listing_json
from antiphon.formats._readers import JsonCalls, Section
from antiphon.formats._render import (
    Turns,
    Writer,
    call_json,
    of_tools,
    on_own_line,
    refuse_images,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._tagged import Tagged, check_calls, write_calls
from antiphon.formats._tagged_grammar import tagged_form
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, ToolCall

TURNS = Turns(
    open="<|ifm|im_start|>{role}\n",
    end="<|ifm|im_end|>",
    between="",
    before_all="<|ifm|begin_of_text|>",
    specials=frozenset({"<|ifm|begin_of_text|>", "<|ifm|im_start|>", "<|ifm|im_end|>"}),
)
_CALLS, _CALLS_END = "<ifm|tool_calls>", "</ifm|tool_calls>"
_CALL, _CALL_END = "<ifm|tool_call>", "</ifm|tool_call>"
_EFFORTS = {"high": "ifm|think", "medium": "ifm|think_fast", "low": "ifm|think_faster"}
_TAGS = Tagged(
    open=f"{_CALLS}\n",
    close=_CALLS_END,
    several=True,
    call=_CALL,
    named="\n",
    call_close=f"{_CALL_END}\n",
    key="<ifm|arg_key>",
    keyed="</ifm|arg_key>\n",
    value="<ifm|arg_value>",
    value_close="</ifm|arg_value>\n",
)
_INTRO = """\
# Tools
You may call one or more tools to assist with the user query.

Available tools are:

"""
_HOW = f"""


When calling tools, you MUST follow the tool-call format below:

Wrap all tool calls in a single {_CALLS}{_CALLS_END} block. For each call, """
_AS_TAGS = f"""\
write the function name at the start of {_CALL}, followed by paired <ifm|arg_key> and \
<ifm|arg_value> tags for each argument:

{_CALLS}
{_CALL}$FUNCTION_NAME
<ifm|arg_key>$PARAMETER_NAME</ifm|arg_key>
<ifm|arg_value>$PARAMETER_VALUE</ifm|arg_value>
...
{_CALL_END}
{_CALLS_END}

String and scalar parameters should be written as plain text. Array and object parameters should \
be written as JSON literals."""
_AS_JSON = f"""\
emit one JSON object with the function name and arguments on the same line inside \
{_CALL}{_CALL_END} tags:

{_CALLS}
{_CALL}{{"name": <function-name>, "arguments": <args-json-object>}}{_CALL_END}
{_CALLS_END}"""


@cache
def _syntax(effort: str, calls: str) -> Syntax:
    """The table for an effort, whose block comes first, and a way to write calls."""
    names = sorted(_EFFORTS.values(), key=lambda name: name != _EFFORTS[effort])
    thinking = tuple(
        Thinking(f"<{name}>", f"</{name}>", after_open="\n", before_close="", after_close="")
        for name in names
    )
    if calls == "xml":
        return Syntax(
            blocks=(Block(_CALLS, _TAGS), Block(_CALL, _TAGS, lost=True)),
            thinking=thinking,
            doubled=(_CALLS_END,),
        )
    reader = JsonCalls(_CALL_END, next_block=(_CALL,))
    return Syntax(
        blocks=(
            Block(_CALL, reader, before="\n"),
            Block(_CALLS, Section(_CALL, _CALLS_END, reader)),
        ),
        thinking=thinking,
        doubled=(_CALL_END,),
        ignored=(_CALLS_END,),
    )


@dataclass(frozen=True, slots=True)
class K2Horizon(Family):
    """The K2 Horizon family."""

    effort: Literal["high", "medium", "low"] = "high"
    """How hard the model is asked to reason."""
    calls: Literal["xml", "json"] = "xml"
    """How calls are written."""
    tools: Literal["markdown", "json"] = "markdown"
    """How tools are shown."""

    name = "k2_horizon"
    models = ("LLM360/K2-Horizon*", "IFM/K2-Horizon*")
    aliases = {"k2_v3": {}}
    signs = ("<ifm|tool_calls>", "<ifm|think")
    stop = ("<|ifm|im_end|>",)
    turns = TURNS
    specials = TURNS.specials | {
        mark
        for name in (
            *_EFFORTS.values(), "ifm|tools", "ifm|tool_calls", "ifm|tool_call", "ifm|arg_key",
            "ifm|arg_type", "ifm|arg_value",
        )
        for mark in (f"<{name}>", f"</{name}>")
    }  # fmt: skip

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _syntax(self.effort, self.calls)

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        name = _EFFORTS[self.effort]
        thinking = (f"<{name}>\n", f"</{name}>")
        if self.calls == "xml":
            return tagged_form(_TAGS, self.specials, before="", end=self.stop, thinking=thinking)
        return json_form(
            self.specials,
            around=(f"{_CALLS}\n", f"\n{_CALLS_END}"),
            open=_CALL,
            close=_CALL_END,
            before="",
            forbidden=(_CALL, _CALLS_END),
            thinking=thinking,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        w.put(TURNS.before_all, "frame")
        self._system(w, conversation)
        first = split_system(conversation)[1]
        for index in w.walk(self, messages, first, tools=conversation.tools):
            if messages[index].role == "assistant":
                self._assistant(w, conversation, index)
            else:
                TURNS.whole(w, messages[index].role, messages[index].text, index)
        if not generate:
            return w.done()
        TURNS.begin(w, "assistant", None)
        w.put(f"<{_EFFORTS[self.effort]}>\n", "frame")
        return w.done(start="reasoning")

    def _system(self, w: Writer, conversation: Conversation) -> None:
        system, first = split_system(conversation)
        index = 0 if first else None
        if conversation.tools:
            TURNS.begin(w, "system", index)
            w.text(_INTRO, "frame", index)
            show = listing if self.tools == "markdown" else listing_json
            w.text(of_tools(show, conversation.tools), "frame", index)
            w.put(_HOW + (_AS_TAGS if self.calls == "xml" else _AS_JSON), "frame", index)
            w.text("\n\n" if system else "", "frame", index)
        elif system is not None:
            TURNS.begin(w, "system", index)
        else:
            return
        w.text(system or "", "given", index)
        TURNS.finish(w, "system", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int) -> None:
        given = conversation.messages[index]
        message = on_own_line(given)
        if message is not given:
            w.changed.append(index)
        name = _EFFORTS[self.effort]
        TURNS.begin(w, "assistant", index)
        since = len(w.pieces)
        w.put(f"<{name}>\n", "frame", index)
        w.text(message.reasoning, "written", index)
        w.put(f"</{name}>", "written", index)
        if self.calls == "xml":
            w.text(message.text, "written", index)
            write_calls(w, _TAGS, message, index, before="")
            check_calls(
                w, _TAGS, self.syntax, message, index,
                since=since, tools=conversation.tools, start="reasoning",
            )  # fmt: skip
        else:
            parts = [part for call in message.tool_calls for part in _json_parts(call)]
            rest = (_CALLS, *parts, "\n", _CALLS_END) if parts else ()
            write_answer(
                w, self.syntax, conversation, message, index, *rest, since=since, start="reasoning"
            )
        TURNS.finish(w, "assistant", index)


def _json_parts(call: ToolCall) -> tuple[str, ...]:
    return "\n", _CALL, call_json(call), _CALL_END


FORMAT = K2Horizon()
