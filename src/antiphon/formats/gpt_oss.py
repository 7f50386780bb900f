"""gpt-oss: Harmony messages, each with a header that says its channel and to whom it goes.

    <|start|>assistant<|channel|>analysis<|message|>They ask for the weather.<|end|>
    <|start|>assistant to=functions.get_weather<|channel|>commentary json<|message|>{"city": "Lima"}
    <|call|><|start|>functions.get_weather to=assistant<|channel|>commentary<|message|>"19"<|end|>
    <|start|>assistant<|channel|>final<|message|>It is 19 degrees.<|return|>

(without these line feeds).  Reasoning of a turn is shown until the turn's answer is there, and
then left out; the last answer shows its own.  The family calls one tool at a time: parallel calls
are refused.  Results are JSON strings.

Differs from upstream: text before a call is a message of the commentary channel, as the family's
guide has it; the template makes it reasoning.  Of several calls the template writes the first.
Source: ``gptoss.jinja`` as trl 1.16 ships it.
"""

from dataclasses import dataclass
from typing import Literal

from antiphon.formats._channels import (
    CALL,
    CHANNEL,
    CONSTRAIN,
    END,
    MESSAGE,
    RETURN,
    START,
    ChannelMessages,
)
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Node, Rules, seq
from antiphon.formats._harmony_tools import namespace
from antiphon.formats._render import (
    Writer,
    check_written,
    inline_reasoning,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

Effort = Literal["low", "medium", "high"]

_AGAIN = f"{END}{START}assistant"
_ANALYSIS = f"{CHANNEL}analysis{MESSAGE}"
_COMMENTARY = f"{CHANNEL}commentary{MESSAGE}"
_FINAL = f"{CHANNEL}final{MESSAGE}"
_SPECIALS = frozenset({START, CHANNEL, CONSTRAIN, MESSAGE, END, CALL, RETURN})
_READER = ChannelMessages()
_SYNTAX = Syntax(
    blocks=tuple(Block(mark, _READER) for mark in (START, CHANNEL, MESSAGE)),
    ignored=(END, CALL, RETURN),
    first=_READER,
)


def _to(name: str) -> str:
    return f" to=functions.{name}{CHANNEL}commentary json{MESSAGE}"


@dataclass(frozen=True, slots=True)
class GptOss(Family):
    """The gpt-oss family."""

    effort: Effort = "medium"
    """How much the model is asked to reason."""
    date: str = "2025-06-30"
    """Today's date as the system message says it."""
    identity: str = "You are ChatGPT, a large language model trained by OpenAI."
    """The first line of the system message."""

    name = "gpt_oss"
    models = ("openai/gpt-oss-*",)
    aliases = {"harmony": {}, "openai": {}, "gptoss": {}}
    signs = ("<|channel|>", "render_typescript_type")
    stop = (RETURN, CALL)
    prefix_stable = False
    specials = _SPECIALS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""

        def call(spec: ToolSpec, rules: Rules) -> Node:
            return seq(_to(spec.name), arguments_node(spec, rules))

        return CallForm(
            call,
            before=_AGAIN,
            lead=_FINAL,
            preface=_COMMENTARY,
            forbidden=tuple(sorted(_SPECIALS)),
            thinking=(_ANALYSIS, _AGAIN),
            specials=_SPECIALS,
            parallel=False,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        self._system(w, conversation, system or "", 0 if first else None)
        answers = [i for i, m in enumerate(messages) if m.role == "assistant" and not m.tool_calls]
        last = max(answers, default=-1)
        w.state = ""  # the tool that was called last
        for index in w.walk(self, messages, first, tools=conversation.tools, shown_from=last):
            message = messages[index]
            match message.role:
                case "system":
                    raise w.refuse(
                        "a system message must come first; join system messages into one", index
                    )
                case "user":
                    w.put(f"{START}user{MESSAGE}", "frame", index)
                    w.text(message.text, "given", index)
                    w.mark(END, "frame", index)
                case "tool":
                    _result(w, conversation, index)
                case "assistant":
                    final = index + 1 == len(messages) and not generate
                    shown = final or (bool(message.tool_calls) and index > last)
                    self._assistant(w, conversation, index, shown=shown, final=final)
                    w.state = message.tool_calls[0].name if message.tool_calls else ""
        if generate:
            w.put(f"{START}assistant", "frame")
        return w.done()

    def _system(
        self, w: Writer, conversation: Conversation, system: str, index: int | None
    ) -> None:
        w.put(f"{START}system{MESSAGE}", "frame")
        w.text(
            f"{self.identity}\nKnowledge cutoff: 2024-06\nCurrent date: {self.date}\n\n"
            f"Reasoning: {self.effort}\n\n# Valid channels: analysis, commentary, final. "
            "Channel must be included for every message.",
            "frame",
        )
        if conversation.tools:
            w.text(
                "\nCalls to these tools must go to the commentary channel: 'functions'.", "frame"
            )
        w.mark(END, "frame")
        if not system and not conversation.tools:
            return
        w.put(f"{START}developer{MESSAGE}", "frame", index)
        if system:
            w.text("# Instructions\n\n", "frame", index)
            w.text(system, "given", index)
            w.text("\n\n", "frame", index)
        if conversation.tools:
            w.text("# Tools\n\n" + namespace(conversation.tools), "frame", index)
        w.mark(END, "frame", index)

    def _assistant(
        self, w: Writer, conversation: Conversation, index: int, *, shown: bool, final: bool
    ) -> None:
        message = inline_reasoning(conversation.messages[index])
        if len(message.tool_calls) > 1:
            raise w.refuse(
                "the family writes one call at a time; split the calls into steps", index
            )
        if message.reasoning and not shown:
            w.changed.append(index)
            message = with_parts(message, reasoning="", text=message.text)
        w.put(f"{START}assistant", "frame", index)
        since = len(w.pieces)
        if message.reasoning:
            w.put(_ANALYSIS, "written", index)
            w.text(message.reasoning, "written", index)
            w.put(_AGAIN, "written", index)
        calls = bool(message.tool_calls or message.invalid_tool_calls)
        if calls and message.text:
            w.put(_COMMENTARY, "written", index)
            w.text(message.text, "written", index)
            w.put(_AGAIN, "written", index)
        elif not calls:
            w.put(_FINAL, "written", index)
            w.text(message.text, "written", index)
        for call in message.tool_calls:
            head, *marks = _to(call.name).partition(CHANNEL)
            w.text(head, "written", index)
            w.put("".join(marks), "written", index)
            w.text(dump_json(call.arguments), "written", index)
        for call in message.invalid_tool_calls:
            w.put(call.raw.removesuffix(CALL), "written", index)
        check_written(w, _SYNTAX, message, index, since=since, tools=conversation.tools)
        if calls:
            w.mark(CALL, "written", index)
        elif final:
            w.mark(RETURN, "written", index)
        else:
            w.changed.append(index)
            w.mark(END, "frame", index)


def _result(w: Writer, conversation: Conversation, index: int) -> None:
    """A result under the name of the tool that was called last."""
    name: str = w.state
    if not name:
        raise w.refuse("a result must follow a call; add the call or drop the result", index)
    message: Message = conversation.messages[index]
    w.put(START, "frame", index)
    w.text(f"functions.{name} to=assistant", "frame", index)
    w.put(_COMMENTARY, "frame", index)
    w.text(dump_json(message.text), "given", index)
    w.mark(END, "frame", index)


FORMAT = GptOss()
