"""Solar Open: a turn is reasoning, text or calls, each in a message of its own; calls have ids.

    <|begin|>assistant<|think|>The user wants the weather.<|end|><|begin|>assistant<|tool_calls|>
    <|tool_call:begin|>a1b2c3d4e5<|tool_call:name|>get_weather<|tool_call:args|>{"city": "Lima"}
    <|tool_call:end|><|calls|><|begin|>tool<|tool_response|><|tool_response:begin|>a1b2c3d4e5
    <|tool_response:name|>get_weather<|tool_response:result|>19<|tool_response:end|><|end|>

(All in one line.)  System messages are joined in front, wherever they stood, behind what the
provider says by itself.  Reasoning is shown again only behind the last user message (`preserve`
shows it always).  With a low `effort` the prompt holds an empty block of reasoning, which earlier
messages do not show again.  Messages that are not written as they once were are listed in
`Rendered.changed`.

A model ends its reasoning and its answer with the same mark, ``<|end|>``, so that a runtime cannot
stop there; it stops at ``<|calls|>`` and at the end of the text.

Differs from upstream: the date is `date`, not the day of rendering; a call without an id is given
one that counts; text beside calls, which the template drops, is a message of its own before them.
Source: ``upstage-Solar-Open-100B.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from antiphon.formats._cursor import Reading
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Chars, Node, Rep, Rules, seq
from antiphon.formats._readers import (
    Section,
    close_call,
    read_arguments,
    read_head,
    take_doubled,
)
from antiphon.formats._render import (
    Writer,
    check_written,
    inline_reasoning,
    is_first_result,
    is_last_result,
    last_user,
    moved_up,
    of_tools,
    refuse_images,
    with_parts,
)
from antiphon.formats._scan import Block, Parser, Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

Effort = Literal["high", "low"]

_BEGIN, _END, _CONTENT, _THINK = "<|begin|>", "<|end|>", "<|content|>", "<|think|>"
_CALLS, _CALLS_END = "<|tool_calls|>", "<|calls|>"
_CALL, _NAME, _ARGS, _CALL_END = (
    "<|tool_call:begin|>", "<|tool_call:name|>", "<|tool_call:args|>", "<|tool_call:end|>",
)  # fmt: skip
_RESULT, _RESULT_NAME, _RESULT_TEXT, _RESULT_END = (
    "<|tool_response:begin|>", "<|tool_response:name|>", "<|tool_response:result|>",
    "<|tool_response:end|>",
)  # fmt: skip
_AGAIN = f"{_BEGIN}assistant"
_MARKS = frozenset(
    {
        *(_BEGIN, _END, _CONTENT, _THINK, _CALLS, _CALLS_END, _CALL, _NAME, _ARGS, _CALL_END),
        *(_RESULT, _RESULT_NAME, _RESULT_TEXT, _RESULT_END, "<|tool_response|>"),
        *("<|tools:begin|>", "<|tools:end|>", "<|tool:begin|>", "<|tool:end|>"),
        "<|tool_response:id|>",
    }
)


@dataclass(frozen=True, slots=True)
class IdNameJson:
    """Reads a call: its id, its name and its arguments between marks."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return (_CALL_END, _CALL, _CALLS_END)

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        if not p.call_in_progress:
            p.call_begin()
        yield from take_doubled(p, opened_by)
        id = (yield from read_head(p, (_NAME,), before=(_ARGS, *self.resync))).strip()
        yield from c.take(_NAME)
        name = (yield from c.until(_ARGS, before=self.resync)).strip()
        p.call_name(name, id=id, quoted=False)
        yield from read_arguments(p, end=_CALL_END)
        yield from close_call(p, _CALL_END, others=(_CALL, _CALLS_END))
        p.call_end()


_SYNTAX = Syntax(
    blocks=(
        Block(_CALL, IdNameJson(), token=True),
        Block(_CALLS, Section(_CALL, _CALLS_END, IdNameJson()), token=True),
    ),
    thinking=(Thinking(_THINK, _END, after_open="", before_close="", after_close=""),),
    doubled=(_CALL_END,),
    ignored=(_AGAIN, _CONTENT, _END, _CALLS_END),
)
_IDENTITY = (
    "## Provider System Prompt\n\nYou are Solar Open 100B, a large language model trained by "
    "Upstage AI, a Korean startup. Your knowledge cutoff is 2025-07. The current date is {date}."
)
_HEAD = (
    "## Tools\n\n### Tool Call Instruction\nYou may invoke one or more tools to assist with the "
    "user's query. Available tools are provided in JSON Schema format: <|tools:begin|>"
    "<|tool:begin|><tools-json-object><|tool:end|>...<|tools:end|>\n\n### Available Tools\n"
    "<|tools:begin|>"
)
_HOW = (
    "<|tools:end|>\n\n### Tool Call Format\nFor each tool call, return a JSON object with the "
    f"following structure, enclosed within {_CALL} and {_CALL_END} tags: \n{_CALL}<tool-call-id>"
    f"{_NAME}<tool-name>{_ARGS}<args-json-object>{_CALL_END}\n- The <tool-call-id> must be a "
    "randomly generated string consisting of 10 lowercase letters (a-z) and/or digits (0-9) (e.g., "
    "a1b2c3d4e5)\n\n### Tool Response Format\nEach tool is responded by `tool` with the following "
    f"structure:\n<|tool_response:id|><tool-call-id>{_RESULT_NAME}<tool-name>{_RESULT_TEXT}"
    f"<results>{_RESULT_END}\n- Ensure the <tool-call-id> matches the corresponding tool call"
)


@dataclass(frozen=True, slots=True)
class SolarOpen(Family):
    """The Solar Open family."""

    effort: Effort = "high"
    """How much the model is asked to reason."""
    preserve: bool = False
    """Whether reasoning of earlier turns is shown again."""
    default_system: bool = True
    """Whether the provider's own system text is written."""
    date: str = "2025-06-30"
    """Today's date as the provider's system text says it."""

    name = "solar_open"
    models = ("upstage/Solar-Open-*",)
    signs = ("<|tool_call:args|>", "Solar Open")
    stop = (_CALLS_END, "<|endoftext|>")
    specials = _MARKS

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]  # depends on a variant
        """Whether a longer conversation extends the text of a shorter one."""
        return self.preserve

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""

        def call(spec: ToolSpec, rules: Rules) -> Node:
            id = Rep(Chars((("a", "z"), ("0", "9"))), 1, 32)
            head = seq(_CALL, id, f"{_NAME}{spec.name}{_ARGS}")
            return seq(head, arguments_node(spec, rules), _CALL_END)

        return CallForm(
            call,
            open=_CALLS,
            lead=_CONTENT,
            tail=_END,
            before=f"{_END}{_AGAIN}",
            forbidden=tuple(sorted(_MARKS)),
            thinking=(_THINK, f"{_END}{_AGAIN}"),
            specials=_MARKS,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages, tools = conversation.messages, conversation.tools
        refuse_images(w, messages)
        self._system(w, conversation)
        last = -1 if self.preserve else last_user(messages)
        w.state = ((), 0)  # the ids and names of the calls so far, and how many there are
        for index in w.walk(self, messages, tools=tools, shown_from=last):
            message = messages[index]
            match message.role:
                case "user":
                    w.put(f"{_BEGIN}user{_CONTENT}", "frame", index)
                    w.text(message.text, "given", index)
                    w.put(_END, "frame", index)
                case "tool":
                    _result(w, messages, index)
                case "assistant":
                    self._assistant(w, conversation, index, shows=index > last)
                case "system":
                    pass
        if generate:
            w.put(f"{_AGAIN}{_THINK}{_END}" if self.effort == "low" else "", "frame")
            w.put(_AGAIN, "frame")
        return w.done()

    def _system(self, w: Writer, conversation: Conversation) -> None:
        """The provider's text, all system messages, wherever they stood, and the tools."""
        said = [(i, m.text) for i, m in enumerate(conversation.messages) if m.role == "system"]
        if not (said or self.default_system or conversation.tools):
            return
        w.put(f"{_BEGIN}system{_CONTENT}", "frame")
        gap = ""
        if self.default_system:
            w.text(_IDENTITY.replace("{date}", self.date), "frame")
            gap = "\n\n"
        if said:
            w.text(f"{gap}## System Prompt", "frame")
            gap = "\n\n"
        for n, (index, text) in enumerate(said):
            w.text("\n\n", "frame", index)
            w.text(text, "given", index)
            moved_up(w, index, n)
        if conversation.tools:
            w.text(gap, "frame")
            w.put(_HEAD, "frame")
            for spec in conversation.tools:
                w.mark("<|tool:begin|>", "frame")
                w.text(of_tools(_tool_text, (spec,)), "frame")
                w.mark("<|tool:end|>", "frame")
            w.put(_HOW, "frame")
        w.put(_END, "frame")

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shows: bool) -> None:
        given = conversation.messages[index]
        message = inline_reasoning(given)
        if message.reasoning and not shows:
            message = with_parts(message, reasoning="", text=message.text)
        if message is not given or self.effort == "low":
            w.changed.append(index)
        acts = message.tool_calls or message.invalid_tool_calls
        w.put(_AGAIN, "frame", index)
        since = len(w.pieces)
        if message.reasoning:
            w.mark(_THINK, "written", index)
            w.text(message.reasoning, "written", index)
            w.put(_END + _AGAIN, "written", index)
        if message.text or not acts:
            w.mark(_CONTENT, "written", index)
            w.text(message.text, "written", index)
            w.put(_END + _AGAIN if acts else "", "written", index)
        if acts:
            w.mark(_CALLS, "written", index)
            _write_calls(w, message, index)
        odd = next((call.id for call in message.tool_calls if "<|" in call.id), "")
        check_written(
            w, _SYNTAX, message, index,
            since=since, tools=conversation.tools, doubtful=bool(odd),
            problem=f"the call id {odd[:40]!r} would be read as markup; rename it" if odd else "",
        )  # fmt: skip
        w.mark(_CALLS_END if acts else _END, "written", index)


def _write_calls(w: Writer, message: Message, index: int) -> None:
    known, n = w.state
    calls: list[tuple[str, str]] = []
    for call in message.tool_calls:
        n += 1
        id = call.id or f"call{n:06}"
        calls.append((id, call.name))
        parts = ((_CALL, id), (_NAME, call.name), (_ARGS, dump_json(call.arguments)))
        for mark, text in parts:
            w.mark(mark, "written", index)
            w.text(text, "written", index)
        w.mark(_CALL_END, "written", index)
    for call in message.invalid_tool_calls:
        w.put(call.raw, "written", index)
    w.state = ((*known, *calls), n)


def _result(w: Writer, messages: Sequence[Message], index: int) -> None:
    """One tool result; a run of them is one turn."""
    message = messages[index]
    calls: tuple[tuple[str, str], ...] = w.state[0]
    place = index
    while place and messages[place - 1].role == "tool":
        place -= 1
    turn = messages[place - 1].tool_calls if place else ()
    in_order = calls[len(calls) - len(turn) :][index - place : index - place + 1] if turn else ()
    id = message.tool_call_id or (in_order[0][0] if in_order else "")
    name = next((name for known, name in calls if known == id), "")
    if not id:
        raise w.refuse("a result names the call that it answers by its id; there is none", index)
    if is_first_result(messages, index):
        w.put(f"{_BEGIN}tool<|tool_response|>", "frame", index)
    for mark, text in ((_RESULT, id), (_RESULT_NAME, name), (_RESULT_TEXT, "")):
        w.mark(mark, "frame", index)
        w.text(text, "frame", index)
    w.text(message.text, "given", index)
    w.mark(_RESULT_END, "frame", index)
    if is_last_result(messages, index):
        w.mark(_END, "frame", index)


def _tool_text(tools: Sequence[ToolSpec]) -> str:
    return dump_json(tools[0].to_openai()["function"])


FORMAT = SolarOpen()
