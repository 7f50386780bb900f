"""ReAct: thoughts, actions and observations as lines of text, inside any family's turns.

    Thought: I should look at the weather.
    Action: get_weather
    Action Input: {"city": "Lima"}
    Observation:{"celsius": 19}
    Final Answer: It is 19 degrees.

The model writes up to ``Observation:`` and stops there; the result follows in the same turn, and
the model goes on behind it.  The words and the prompts differ by family (`react_en`, `react_zh`,
`react_grpo`, `toolbench`, `qwen_en` and its like); the mechanics are here.  Where a message has
reasoning, text and calls, the text joins the reasoning and the message is listed in
`Rendered.changed`.

Differs from upstream, in all of them: arguments are JSON (``arguments="python"`` writes upstream's
Python literals), the system's own text is kept, and text before an action stands on a line of its
own.
Source: ReAct, arXiv 2210.03629; ms-swift 4.6 ``agent_template/`` for the texts.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, cast

from antiphon.formats._cursor import Reading
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._render import (
    CHATML,
    Turns,
    Writer,
    check_written,
    inline_reasoning,
    of_tools,
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


@dataclass(frozen=True, slots=True)
class Words:
    """What a family calls the parts of a turn."""

    action: str = "Action:"
    """Stands before a tool's name."""
    input: str = "Action Input:"
    """Stands before its arguments."""
    observation: str = "Observation:"
    """Stands before a result."""
    thought: tuple[str, str, str] | None = ("Thought: ", "\n", "Final Answer: ")
    """What stands before and behind reasoning, and before an answer that it led to; `None` where
    the family does not reason."""
    dropped: tuple[str, ...] = ()
    """Words before an answer that some models write and that are left out of it."""


REACT = Words()


@dataclass(frozen=True, slots=True)
class ReactCalls:
    """Reads one action: its name on a line, then its input."""

    words: Words = REACT
    """What the family calls the parts."""
    dialect: Dialect = JSON
    """What arguments look like."""

    @property
    def resync(self) -> tuple[str, ...]:
        """See `Reader.resync`."""
        return ("\n" + self.words.observation, "\n" + self.words.action)

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        c = p.c
        p.call_begin()
        name = (yield from self._line(p)).strip()
        p.call_name(name)
        yield from c.space()
        if not (yield from c.take(self.words.input)):
            if not self._needs_none(p, name):
                raise c.unexpected(repr(self.words.input))
            self._without(p)
            p.call_end()
            return
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
        value = (yield from self._line(p)).strip()
        spec = p.spec(name)
        keys = list(spec.parameters.get("properties") or {}) if spec else []
        needed = list(spec.parameters.get("required") or keys) if spec else []
        if not value and self._needs_none(p, name):
            self._without(p)
            return
        if len(needed) != 1 or not value:
            raise c.malformed(
                f"expected a JSON object after {self.words.input!r}, found {value[:40]!r}"
            )
        p.note("bare_argument")
        p.call_arguments(dump_json({needed[0]: value_of(value, spec, needed[0])}))

    def _line(self, p: Parser) -> Reading[str]:
        """What is left of a line, or of the text."""
        c = p.c
        pieces: list[str] = []
        while True:
            end = c.text.find("\n", c.pos)
            pieces.append(c.text[c.pos : end if end >= 0 else len(c.text)])
            c.pos = end if end >= 0 else len(c.text)
            if end >= 0 or c.closed:
                return "".join(pieces)
            yield

    def _needs_none(self, p: Parser, name: str) -> bool:
        """Whether a tool can be called without arguments."""
        spec = p.spec(name)
        return spec is not None and not spec.parameters.get("required")

    def _without(self, p: Parser) -> None:
        """A call whose input the model left out."""
        p.note("missing_arguments")
        p.call_arguments("{}")


@cache
def syntax_of(words: Words, arguments: Arguments) -> Syntax:
    """The table of a family, by the way arguments are written."""
    thinking: tuple[Thinking, ...] = ()
    if words.thought is not None:
        opening, closing, answer = words.thought
        close = (closing + answer).strip()
        thinking = (
            Thinking(
                opening.rstrip(" "),
                close,
                after_open=opening[len(opening.rstrip(" ")) :],
                before_close=closing if closing.isspace() else "",
                after_close=(closing + answer)[len((closing + answer).rstrip()) :],
                call_ends_it=closing.isspace(),
            ),
        )
    calls = ReactCalls(words, PYTHON if arguments == "python" else JSON)
    return Syntax(
        blocks=(Block(words.action, calls, before="\n", line_start=True),),
        thinking=thinking,
        ignored=words.dropped,
    )


@dataclass(frozen=True, slots=True)
class React(Family):
    """A family that acts in lines of text; each says its `name`, its `words` and its `prompt`."""

    frame: str = "chatml"
    """The family whose turns are used."""
    arguments: Arguments = "json"
    """How arguments are written."""
    stop: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """Texts that end a model's turn."""

    words = REACT

    def __post_init__(self) -> None:
        end = turns_of(self.frame).end
        object.__setattr__(self, "stop", ("\n" + self.words.observation, end))

    def prompt(self, tools: Sequence[ToolSpec]) -> str:
        """How to use the tools, for the system turn."""
        raise NotImplementedError(f"{type(self).__name__} has no prompt")

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return syntax_of(self.words, self.arguments)

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return call_form(self.words, turns_of(self.frame).specials)

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, turns_of(self.frame).specials)
        return render(w, self, conversation, generate=generate)


def turns_of(frame: str) -> Turns:
    """The turns of a family.

    Raises:
        UnknownNameError: No family has that name.
    """
    from antiphon.formats._names import get_format

    return CHATML if frame == "chatml" else cast("Turns", cast("Any", get_format(frame)).turns)


def render(w: Writer, family: React, conversation: Conversation, *, generate: bool) -> Rendered:
    """A conversation in ReAct.

    Args:
        w: An empty writer.
        family: Whose words, prompt and turns.
        conversation: What to render.
        generate: Whether to end where the model writes next.
    """
    turns = turns_of(family.frame)
    prompt = of_tools(family.prompt, conversation.tools) if conversation.tools else ""
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
    for index in w.walk(family, messages, first, tools=conversation.tools):
        w.state = _message(w, family, conversation, index, is_open=w.state)
    if generate and not w.state:
        turns.begin(w, "assistant", None)
    elif not generate and turns.between:
        w.take_back(turns.between)
    return w.done()


def _message(
    w: Writer, family: React, conversation: Conversation, index: int, *, is_open: bool
) -> bool:
    """One message; whether an assistant's turn is still open behind it."""
    turns, observation = turns_of(family.frame), family.words.observation
    messages = conversation.messages
    message = messages[index]
    if message.role == "tool":
        if not is_open:
            raise w.refuse("a result stands behind the call that it answers; there is none", index)
        if messages[index - 1].role == "tool":
            w.text(observation, "frame", index)
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
    _assistant(w, family, conversation, index)
    if message.tool_calls or message.invalid_tool_calls:
        w.text(observation, "written", index)
        return True
    turns.finish(w, "assistant", index)
    return False


def _assistant(w: Writer, family: React, conversation: Conversation, index: int) -> None:
    words = family.words
    message = _as_written(w, family, conversation.messages[index], index)
    since = len(w.pieces)
    acts = message.tool_calls or message.invalid_tool_calls
    if message.reasoning and words.thought is not None:
        opening, closing, answer = words.thought
        if closing.isspace() and not (message.text or acts):
            closing = ""
        w.text(f"{opening}{message.reasoning}{closing}", "written", index)
        w.text(answer if message.text else "", "written", index)
    w.text(message.text, "written", index)
    if acts and message.text:
        w.text("\n", "written", index)
    for call in message.tool_calls:
        w.text(_call_text(call, words, family.arguments), "written", index)
    for call in message.invalid_tool_calls:
        w.text(call.raw.rstrip("\n") + "\n", "written", index)
    doubtful = any(mark in message.text for mark in (words.observation, words.input))
    check_written(
        w, family.syntax, message, index,
        since=since, tools=conversation.tools, doubtful=doubtful,
    )  # fmt: skip


def _as_written(w: Writer, family: React, message: Message, index: int) -> Message:
    """A message as the family can write it: before an action there is one thought, or plain
    text."""
    split = inline_reasoning(message)
    reasoning, text = split.reasoning.strip("\n"), split.text
    if family.words.thought is None:
        reasoning = ""
    elif reasoning and text and (split.tool_calls or split.invalid_tool_calls):
        reasoning, text = f"{reasoning}\n{text}".rstrip("\n"), ""
    if (reasoning, text) != (split.reasoning, split.text):
        w.changed.append(index)
    return with_parts(split, reasoning=reasoning, text=text)


def _call_text(call: ToolCall, words: Words, arguments: Arguments) -> str:
    text = repr(call.arguments) if arguments == "python" else dump_json(call.arguments)
    return f"{words.action} {call.name}\n{words.input} {text}\n"


def call_form(words: Words, specials: frozenset[str]) -> CallForm:
    """How calls stand in the text, for the grammar."""

    def call(spec: ToolSpec, rules: Rules) -> Node:
        head = f"{words.action} {spec.name}\n{words.input} "
        return seq(head, arguments_node(spec, rules), "\n")

    opening, closing, answer = words.thought or ("", "", "")
    marks = (opening, closing, answer, words.action, words.input, words.observation)
    return CallForm(
        call,
        close=words.observation,
        before="\n",
        forbidden=(*dict.fromkeys(m.strip() for m in marks if m.strip()), *sorted(specials)),
        thinking=(opening, closing) if words.thought else None,
        specials=specials,
        answer=(answer,) if words.thought else (),
    )


def names_of(tools: Sequence[ToolSpec]) -> str:
    """The names of tools as ReAct prompts list them."""
    return ",".join(spec.name for spec in tools)


def parameters_json(spec: ToolSpec) -> str:
    """The parameters of a tool as they came."""
    return json.dumps(spec.to_openai()["function"].get("parameters", {}), ensure_ascii=False)


def listing_en(tools: Sequence[ToolSpec]) -> str:
    """The tools as ReAct's English prompts list them."""
    return "\n\n".join(
        f"{spec.name}: Call this tool to interact with the {spec.name} API. What is the "
        f"{spec.name} API useful for? {spec.description} Parameters: "
        f"{parameters_json(spec)} Format the arguments as a JSON object."
        for spec in tools
    )
