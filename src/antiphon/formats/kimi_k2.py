"""Kimi K2, K2 Thinking and K2.5: each call under an id that counts over the whole conversation.

    <|im_assistant|>assistant<|im_middle|><think>The weather.</think>Let me look.
    <|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0
    <|tool_call_argument_begin|>{"city": "Lima"}<|tool_call_end|>
    <|tool_calls_section_end|><|im_end|>

(without the line feeds between the marks).  The name is cut out of ``functions.NAME:INDEX``; a
call whose id has that form already keeps it.  `instruct` does not reason; `thinking` opens its
reasoning itself; `k2_5` has it opened, or closed at once, by the prompt.  Reasoning is shown again
only behind the last answer without calls (``thinking``: behind the first one, as its template has
it).  K2.5 is shown its tools as TypeScript, the others as JSON.

Differs from upstream: the last message shows its reasoning as it was written, though it is the last
answer; and a result's header says ``tool`` and an assistant's ``assistant``, whatever the message's
name is, as the prompt does.
Source: ``Kimi-K2-Instruct.jinja`` and ``Kimi-K2-Thinking.jinja`` as llama-cpp-python 0.3.36 ships
them, Kimi-K2.5 as xinference 4.1 ships it.  The first template of K2, which writes a backslash and
an n into results, is left out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Chars, Node, Rep, Rules, seq
from antiphon.formats._kimi_tools import tools_text
from antiphon.formats._readers import NamedJson, Section
from antiphon.formats._render import (
    Writer,
    check_written,
    inline_reasoning,
    of_tools,
    refuse_media,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Around, Author, Form, Parts, Rendered
from antiphon.formats._usual import (
    Place,
    Usual,
    Usuals,
    answered,
    counted_call,
    counted_result,
    given,
)
from antiphon.messages import Conversation, ImagePart, Message, TextPart, ToolSpec, dump_json

Edition = Literal["instruct", "thinking", "k2_5"]

_CALLS, _CALLS_END = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
_CALL, _ARGS, _CALL_END = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
_IDENTITY = "You are Kimi, an AI assistant created by Moonshot AI."
_ID = re.compile(r"(?:functions\.)?(.*?)(?::[0-9]+)?", re.DOTALL)


def _name(text: str) -> tuple[str, str]:
    """The name in an id.

    >>> _name("functions.get_weather:0"), _name("0")
    (('get_weather', 'functions.get_weather:0'), ('', '0'))
    """
    id = text.strip()
    found = _ID.fullmatch(id)
    assert found is not None, "the pattern matches any text"
    return "" if found[1].isdigit() else found[1], id


_AROUND = (r"(?:call[-_:])?(?:functions?[._:]?)?", r"(?:[_.:-]?[0-9]+)?")
_NAMELESS = re.compile(
    r"(?:functions?[._:]?)?[:._-]?[0-9]*"
    r"|(?:call|tool_call|toolu|chatcmpl-tool)[-_:.]?(?:[0-9]+|(?=[\w-]*[0-9])[A-Za-z0-9-]{8,})"
)
_READER = NamedJson(
    _ARGS, _CALL_END, _name, (_CALL, _CALLS_END), around=_AROUND, nameless=_NAMELESS
)
_SECTION = Section(_CALL, _CALLS_END, _READER)
_SINGULAR = ("<|tool_call_section_begin|>", "<|tool_call_section_end|>")
_SYNTAX = Syntax(
    blocks=(
        Block(_CALL, _READER, token=True),
        Block(_CALLS, _SECTION, token=True),
        Block(_SINGULAR[0], _SECTION, slip="misspelt_tag"),
    ),
    thinking=(Thinking(after_open="", before_close="", after_close=""),),
    doubled=(_CALL_END, _SINGULAR[1]),
    ignored=(_CALLS_END,),
)


def _ids(messages: Sequence[Message]) -> list[list[str]]:
    """For each message, the ids of its calls as they are counted, or the id that it answers: by
    its own, else in order."""
    n, found = 0, list[list[str]]()
    shown: dict[str, str] = {}
    waiting: dict[str, None] = {}
    for message in messages:
        ids: list[str] = []
        for call in message.tool_calls:
            head, _, number = call.id.rpartition(":")
            own = head == f"functions.{call.name}" and number.isascii() and number.isdecimal()
            ids.append(call.id if own else f"functions.{call.name}:{n}")
            n += 1
            waiting[ids[-1]] = None
            if call.id:
                shown[call.id] = ids[-1]
        if message.role == "tool":
            id = shown.get(message.tool_call_id, "")
            if not id and waiting:
                id = next(iter(waiting))
            waiting.pop(id, None)
            ids.append(id or f"functions.{message.name or 'unknown'}:{n}")
        found.append(ids)
    return found


@dataclass(frozen=True, slots=True)
class KimiK2(Family):
    """The Kimi K2 family."""

    edition: Edition = "k2_5"
    """Which of the family's texts: ``instruct`` (0905), ``thinking``, ``k2_5`` (K2.5 to K2.7)."""
    thinking: bool = True
    """Whether K2.5 is asked to reason."""

    name = "kimi_k2"
    models = ("moonshotai/Kimi-K2*",)
    aliases = {
        "kimi_k25": {"edition": "k2_5"},
        "kimi_k2_5": {"edition": "k2_5"},
        "kimi_k2_instruct": {"edition": "instruct"},
        "kimi_k2_thinking": {"edition": "thinking"},
        "moonshotai/Kimi-K2-Instruct*": {"edition": "instruct"},
        "moonshotai/Kimi-K2-Thinking*": {"edition": "thinking"},
    }
    signs = ("<|im_middle|>", "<|tool_call_argument_begin|>")
    stop = ("<|im_end|>",)
    prefix_stable = False
    specials = frozenset(
        {
            *(_CALLS, _CALLS_END, _CALL, _ARGS, _CALL_END, "<think>", "</think>", "<|im_end|>"),
            *("<|im_system|>", "<|im_user|>", "<|im_assistant|>", "<|im_middle|>"),
            *("<|media_begin|>", "<|media_content|>", "<|media_pad|>", "<|media_end|>"),
        }
    )

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return CallForm(
            _call_node,
            open=_CALLS,
            close=_CALLS_END,
            forbidden=(_CALLS, _CALLS_END, _CALL, _CALL_END, "<|im_end|>", "</think>"),
            thinking=None if self.edition == "instruct" else ("<think>", "</think>"),
            specials=self.specials,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        shows = (ImagePart,) if self.edition == "k2_5" else ()
        refuse_media(w, messages, shows=shows, by=("system", "user", "tool"))
        self._system(w, conversation)
        ids = _ids(messages)
        shown_from = self._shown_from(messages)
        walk = w.walk(
            self, messages, tools=conversation.tools,
            shown_from=shown_from, usual=_usuals(self), ids=ids,
        )  # fmt: skip
        for index in walk:
            message = messages[index]
            _open(w, message.role, index)
            if message.role == "assistant":
                self._assistant(w, conversation, index, ids[index], shown=index >= shown_from)
                w.mark("<|im_end|>", "written", index)
                continue
            if message.role == "tool":
                w.text(_answering(ids[index][0]), "frame", index)
            _content(w, message, index)
            w.mark("<|im_end|>", "frame", index)
        if not generate:
            return w.done()
        _open(w, "assistant", None)
        if self.edition == "k2_5":
            w.put("<think>" if self.thinking else "<think></think>", "frame")
            return w.done(start="reasoning" if self.thinking else "content")
        return w.done()

    def _system(self, w: Writer, conversation: Conversation) -> None:
        if conversation.tools:
            w.put("<|im_system|>tool_declare<|im_middle|>", "frame")
            w.text(self._listing(conversation.tools), "frame")
            w.mark("<|im_end|>", "frame")
        messages = conversation.messages
        if self.edition != "k2_5" and (not messages or messages[0].role != "system"):
            w.put(f"<|im_system|>system<|im_middle|>{_IDENTITY}<|im_end|>", "frame")
            w.text("\n" if self.edition == "instruct" else "", "frame")

    def _listing(self, tools: Sequence[ToolSpec]) -> str:
        if self.edition == "k2_5":
            return of_tools(tools_text, tools)
        return dump_json([tool.to_openai() for tool in tools])

    def _shown_from(self, messages: Sequence[Message]) -> int:
        """Where reasoning begins to be shown."""
        answers = [i for i, m in enumerate(messages) if m.role == "assistant" and not m.tool_calls]
        if not answers:
            return 0
        return 1 + (answers[0] if self.edition == "thinking" else answers[-1])

    @property
    def _reasons(self) -> bool:
        return self.edition == "thinking" or (self.edition == "k2_5" and self.thinking)

    def usual(self, place: Place) -> Usual | None:
        """How messages are written as most are; see `_usual.py`."""
        opens: Parts = ((_opens(place.role), "frame"),)
        closes: Parts = (("<|im_end|>", "frame"),)
        match place.kind:
            case "calls" | "assistant":
                shown = self._reasons and (place.is_shown or not place.after)
                # as the last message it had a block to reason in, if an empty one
                changes = self._reasons and not shown
                before = (*opens, *self._unreasoned(shown=shown))
                frame = Around(before, "written", (("<|im_end|>", "written"),), self.specials)
                if place.kind == "assistant":
                    return answered(frame, _SYNTAX, changes=changes)
                form = Form(frame, _CALL_PARTS)
                return counted_call(
                    lambda call, id: form.filled((id, dump_json(call.arguments))), changes=changes
                )
            case "tool":
                form = Form(
                    Around(opens, "frame", closes, self.specials), ((), (), ()), ("frame", "given")
                )
                return counted_result(form, lambda text, id: (_answering(id), text))
            case _:
                return given(Around(opens, "given", closes, self.specials))

    def _unreasoned(self, *, shown: bool) -> Parts:
        """The block of a message without reasoning."""
        if not shown:
            return () if self.edition == "instruct" else (("<think></think>", "frame"),)
        opens: Author = "frame" if self.edition == "k2_5" else "written"
        return ("<think>", opens), ("</think>", "written")

    def _assistant(
        self, w: Writer, conversation: Conversation, index: int, ids: list[str], *, shown: bool
    ) -> None:
        message = inline_reasoning(conversation.messages[index])
        reasons = self._reasons
        shown = reasons and (shown or index + 1 == len(conversation.messages))
        if not shown and (message.reasoning or reasons):
            w.changed.append(index)  # as the last message it had a block, if an empty one
            message = with_parts(message, reasoning="", text=message.text)
        by_prompt = self.edition == "k2_5"
        since = len(w.pieces)
        if shown:
            w.mark("<think>", "frame" if by_prompt else "written", index)
            w.text(message.reasoning, "written", index)
            w.mark("</think>", "written", index)
        elif self.edition != "instruct":
            w.put("<think></think>", "frame", index)
        w.text(message.text, "written", index)
        _write_calls(w, message, index, ids)
        check_written(
            w, _SYNTAX, message, index, since=since, tools=conversation.tools,
            start="reasoning" if shown and by_prompt else "content",
        )  # fmt: skip


@cache
def _usuals(family: KimiK2) -> Usuals:
    return Usuals(family.usual)


def _call_node(spec: ToolSpec, rules: Rules) -> Node:
    number = rules.add("index", Rep(Chars((("0", "9"),)), 1, 6))
    return seq(
        f"{_CALL}functions.{spec.name}:", number, _ARGS, arguments_node(spec, rules), _CALL_END
    )


def _open(w: Writer, role: str, index: int | None) -> None:
    w.put(_opens(role), "frame", index)


@cache
def _opens(role: str) -> str:
    mark = {"user": "<|im_user|>", "assistant": "<|im_assistant|>"}.get(role, "<|im_system|>")
    return f"{mark}{role}<|im_middle|>"


def _answering(id: str) -> str:
    return f"## Return of {id}\n"


def _content(w: Writer, message: Message, index: int) -> None:
    if not message.images:
        w.text(message.text, "given", index)
        return
    for part in message.parts:
        if isinstance(part, TextPart):
            w.text(part.text, "given", index)
        elif isinstance(part, ImagePart):
            w.put(
                "<|media_begin|>image<|media_content|><|media_pad|><|media_end|>\n", "given", index
            )


_CALL_PARTS = (
    ((_CALLS, True), (_CALL, True)),
    ((_ARGS, True),),
    ((_CALL_END, True), (_CALLS_END, True)),
)
"""What stands around the id and the arguments of a message's only call."""


def _write_calls(w: Writer, message: Message, index: int, ids: list[str]) -> None:
    if not message.tool_calls and not message.invalid_tool_calls:
        return
    w.mark(_CALLS, "written", index)
    for call, id in zip(message.tool_calls, ids, strict=True):
        w.mark(_CALL, "written", index)
        w.text(id, "written", index)
        w.mark(_ARGS, "written", index)
        w.text(dump_json(call.arguments), "written", index)
        w.mark(_CALL_END, "written", index)
    for call in message.invalid_tool_calls:
        w.put(call.raw, "written", index)
    w.mark(_CALLS_END, "written", index)


FORMAT = KimiK2()
