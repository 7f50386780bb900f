"""ReAct: thoughts, actions and observations as lines of text, inside any family's turns.

    Thought: I should look at the weather.
    Action: get_weather
    Action Input: {"city": "Lima"}
    Observation:{"celsius": 19}
    Final Answer: It is 19 degrees.

The model writes up to ``Observation:`` and stops there; the result follows in the same turn, and
the model goes on behind it.  The prompts differ by family (`react_en`, `react_zh`); the mechanics
are here.  Source: ReAct, arXiv 2210.03629; ms-swift 4.6 ``agent_template/react.py`` for the texts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from antiphon.formats._cursor import Reading
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._render import (
    CHATML,
    Turns,
    Writer,
    check_written,
    inline_reasoning,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Parser, Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Rendered
from antiphon.formats._typing import value_of
from antiphon.formats._values import JSON, PYTHON, Dialect, read_value
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec, dump_json

Arguments = Literal["json", "python"]

ACTION, INPUT, OBSERVATION = "Action:", "Action Input:", "Observation:"
THOUGHT, ANSWER = "Thought:", "Final Answer:"


@dataclass(frozen=True, slots=True)
class ReactCalls:
    """Reads one action: its name on a line, then its input."""

    dialect: Dialect = JSON
    """What arguments look like."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return ("\n" + OBSERVATION, "\n" + ACTION)

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        p.call_begin()
        name = (yield from c.until("\n")).strip()
        p.call_name(name)
        yield from c.space()
        if not (yield from c.take(INPUT)):
            raise c.unexpected(repr(INPUT))
        ch = " "
        while ch and ch in " \t":
            ch = yield from c.peek()
            c.pos += ch in (" ", "\t")
        if ch == "\n" and (yield from c.space()) == "{":
            ch = "{"
        if ch == "{":
            yield from read_value(c, p.call_arguments, p.note, dialect=self.dialect)
        else:
            yield from self._free(p, name)
        p.call_end()

    def _free(self, p: Parser, name: str) -> Reading[None]:
        """An input that is no object: the value of a tool's only parameter."""
        c = p.c
        pieces: list[str] = []
        while True:
            end = c.text.find("\n", c.pos)
            pieces.append(c.text[c.pos : end if end >= 0 else len(c.text)])
            c.pos = end if end >= 0 else len(c.text)
            if end >= 0 or c.closed:
                break
            yield
        value = "".join(pieces).strip()
        spec = p.spec(name)
        keys = list(spec.parameters.get("properties") or {}) if spec else []
        needed = list(spec.parameters.get("required") or keys) if spec else []
        if not value and not needed:
            p.note("missing_arguments")
            p.call_arguments("{}")
            return
        if len(needed) != 1 or not value:
            raise c.malformed(f"expected a JSON object after {INPUT!r}, found {value[:40]!r}")
        p.note("bare_argument")
        p.call_arguments(dump_json({needed[0]: value_of(value, spec, needed[0])}))


SYNTAX: dict[str, Syntax] = {
    arguments: Syntax(
        blocks=(Block(ACTION, ReactCalls(dialect), before="\n", line_start=True),),
        thinking=(
            Thinking(
                THOUGHT,
                ANSWER,
                after_open=" ",
                before_close="\n",
                after_close=" ",
                call_ends_it=True,
            ),
        ),
    )
    for arguments, dialect in (("json", JSON), ("python", PYTHON))
}
"""The tables of ReAct, by the way arguments are written."""


def turns_of(frame: str) -> Turns:
    """The turns of a family.

    Raises:
        UnknownNameError: No family has that name.
    """
    from antiphon.formats._names import get_format

    return CHATML if frame == "chatml" else cast("Turns", cast("Any", get_format(frame)).turns)


def render(
    w: Writer,
    conversation: Conversation,
    *,
    turns: Turns,
    prompt: str,
    arguments: Arguments,
    generate: bool,
) -> Rendered:
    """A conversation in ReAct.

    Args:
        w: An empty writer.
        conversation: What to render.
        turns: The frame.
        prompt: How to use the tools, for the system turn; ``""`` without tools.
        arguments: How arguments are written.
        generate: Whether to end where the model writes next.
    """
    messages = conversation.messages
    refuse_images(w, messages)
    system, first = split_system(conversation)
    w.put(turns.before_all, "frame", None)
    if system or prompt:
        index = 0 if first else None
        turns.begin(w, "system", index)
        w.text(system or "", "given", index)
        w.text(("\n\n" if system and prompt else "") + prompt, "frame", index)
        turns.finish(w, "system", index)
    w.state = False  # whether an assistant's turn is still open
    for index in w.walk((w.family, turns, arguments), messages, first, tools=conversation.tools):
        w.state = _message(w, conversation, index, turns, arguments, is_open=w.state)
    if generate and not w.state:
        turns.begin(w, "assistant", None)
    elif not generate and turns.between and w.pieces and w.pieces[-1].text == turns.between:
        w.pieces.pop()
    return w.done()


def _message(
    w: Writer,
    conversation: Conversation,
    index: int,
    turns: Turns,
    arguments: Arguments,
    *,
    is_open: bool,
) -> bool:
    """One message; whether an assistant's turn is still open behind it."""
    messages = conversation.messages
    message = messages[index]
    if message.role == "tool":
        if not is_open:
            raise w.refuse("a result stands behind the call that it answers; there is none", index)
        if messages[index - 1].role == "tool":
            w.text(OBSERVATION, "frame", index)
        w.text(message.text, "given", index)
        w.text("" if message.text.endswith("\n") else "\n", "frame", index)
        return True
    if message.role != "assistant":
        if is_open:
            w.put(turns.end, "frame", index)
            w.text(turns.between, "frame", index)
        turns.whole(w, message.role, message.text, index)
        return False
    if not is_open:
        turns.begin(w, "assistant", index)
    _assistant(w, conversation, index, arguments)
    if message.tool_calls or message.invalid_tool_calls:
        w.text(OBSERVATION, "written", index)
        return True
    turns.finish(w, "assistant", index)
    return False


def _assistant(w: Writer, conversation: Conversation, index: int, arguments: Arguments) -> None:
    message = _as_written(w, conversation.messages[index], index)
    since = len(w.pieces)
    acts = message.tool_calls or message.invalid_tool_calls
    if message.reasoning:
        w.text(f"{THOUGHT} {message.reasoning}", "written", index)
        w.text("\n" if message.text or acts else "", "written", index)
        w.text(f"{ANSWER} " if message.text else "", "written", index)
    w.text(message.text, "written", index)
    if acts and message.text:
        w.text("\n", "written", index)
    for call in message.tool_calls:
        w.text(_call_text(call, arguments), "written", index)
    for call in message.invalid_tool_calls:
        w.text(call.raw.rstrip("\n") + "\n", "written", index)
    doubtful = any(mark in message.text for mark in (OBSERVATION, INPUT))
    check_written(
        w, SYNTAX[arguments], message, index,
        since=since, tools=conversation.tools, doubtful=doubtful,
    )  # fmt: skip


def _as_written(w: Writer, message: Message, index: int) -> Message:
    """A message as ReAct can write it: before an action there is one thought, or plain text."""
    split = inline_reasoning(message)
    reasoning, text = split.reasoning.strip("\n"), split.text
    if reasoning and text and (split.tool_calls or split.invalid_tool_calls):
        reasoning, text = f"{reasoning}\n{text}".rstrip("\n"), ""
    if (reasoning, text) != (split.reasoning, split.text):
        w.changed.append(index)
    return with_parts(split, reasoning=reasoning, text=text)


def _call_text(call: ToolCall, arguments: Arguments) -> str:
    text = repr(call.arguments) if arguments == "python" else dump_json(call.arguments)
    return f"{ACTION} {call.name}\n{INPUT} {text}\n"


def call_form(specials: frozenset[str]) -> CallForm:
    """How calls stand in the text, for the grammar."""

    def call(spec: ToolSpec, rules: Rules) -> Node:
        return seq(f"{ACTION} {spec.name}\n{INPUT} ", arguments_node(spec, rules), "\n")

    return CallForm(
        call,
        close=OBSERVATION,
        before="\n",
        forbidden=(ACTION, INPUT, OBSERVATION, THOUGHT, ANSWER, *sorted(specials)),
        thinking=(f"{THOUGHT} ", "\n"),
        specials=specials,
        answer=(f"{ANSWER} ",),
    )


def names_of(tools: Sequence[ToolSpec]) -> str:
    """The names of tools as ReAct prompts list them."""
    return ",".join(spec.name for spec in tools)


def parameters_json(spec: ToolSpec) -> str:
    """The parameters of a tool as they came."""
    return json.dumps(spec.to_openai()["function"].get("parameters", {}), ensure_ascii=False)
