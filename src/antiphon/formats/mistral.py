"""Mistral 7B v0.3, Nemo and their kin (tokenizers v1 to v7): calls as one JSON array with ids.

    [INST] Weather in Lima?[/INST][TOOL_CALLS] [{"name": "get_weather", "arguments": {"city":
    "Lima"}, "id": "call00000"}]</s>[TOOL_RESULTS] {"content": {"celsius": 19}, "call_id":
    "call00000"} [/TOOL_RESULTS] It is 19 degrees.</s>

(The lines above are broken for reading.)  Ids are nine letters or digits; calls without one are
numbered.  Tools stand before the last user message, and the system text inside it, but only as long
as that message is the last one.  Text beside calls is left out, reasoning is too; such messages are
listed in `Rendered.changed`.

Version ``v7`` (``v7_tekken`` without spaces behind marks) writes system text and results so, and
keeps text beside calls:

    <s>[SYSTEM_PROMPT] Be short.[/SYSTEM_PROMPT][INST] Weather in Lima?[/INST] I look.[TOOL_CALLS]
    [{...}]</s>[TOOL_RESULTS] call00000[TOOL_CONTENT] {"celsius": 19}[/TOOL_RESULTS]

Differs from upstream: strings in a tool's top level are escaped as JSON.
Source: mistral-instruct-v0.3 as xinference 4.1 ships it;
``mistralai-Mistral-Nemo-Instruct-2407.jinja`` in the source of llama-cpp-python 0.3.36, which
Mistral Large 2407's template, as xinference ships it, writes too; for v7, the tokenizers
of mistral-common 1.13 (the text of tokens, our own conversations compared; they refuse an answer
without text or calls, which is written empty here).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from operator import not_
from typing import Literal

from antiphon.formats import _mistral as mistral
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Chars, Node, Rep, Rules, seq
from antiphon.formats._render import (
    Writer,
    check_written,
    last_user,
    refuse_images,
    with_parts,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Around, Author, Form, Rendered
from antiphon.formats._usual import (
    Place,
    Usual,
    Usuals,
    answered,
    counted_call,
    counted_result,
    given,
)
from antiphon.messages import Conversation, ToolCall, ToolSpec, dump_json, quoted_json

Version = Literal["v0.3", "nemo", "v7", "v7_tekken"]

_V7_MARKS = mistral.MARKS | {"[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"}
_SYNTAX = {
    version: mistral.syntax(listed=True, lead=lead)
    for version, lead in (("v0.3", " "), ("nemo", ""), ("v7", " "), ("v7_tekken", ""))
}


@dataclass(frozen=True, slots=True)
class Mistral(Family):
    """The Mistral families with calls in one array."""

    version: Version = "v0.3"
    """Whose text: ``nemo`` and ``v7_tekken`` write no space behind marks."""

    name = "mistral"
    models = ("mistralai/Mistral-7B-Instruct-v0.3",)
    aliases = {
        "mistral_json": {},
        "mistral_v3": {},
        "mistral_2501": {},
        "mistral_nemo": {"version": "nemo"},
        "mistral_v7": {"version": "v7"},
        "mistral_v7_tekken": {"version": "v7_tekken"},
        "mistralai/Mistral-Nemo-*": {"version": "nemo"},
        "mistralai/Mistral-Large-Instruct-2407*": {"version": "nemo"},
        "mistralai/Mistral-Large-Instruct-2411*": {"version": "v7"},
        "mistralai/Mistral-Small-24B-Instruct-2501*": {"version": "v7_tekken"},
        "mistralai/Mistral-Small-3.1-*": {"version": "v7_tekken"},
    }
    signs = ("[AVAILABLE_TOOLS]", "[TOOL_CALLS]", "out[:-1]")
    stop = ("</s>",)
    prefix_stable = False

    @property
    def specials(self) -> frozenset[str]:
        """Marks that are single tokens."""
        return _V7_MARKS if self._is_v7 else mistral.MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX[self.version]

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        alphanumeric = Chars((("0", "9"), ("A", "Z"), ("a", "z")))

        def call(spec: ToolSpec, rules: Rules) -> Node:
            head = f'{{"name": {dump_json(spec.name)}, "arguments": '
            id = Rep(alphanumeric, 9, 9)
            return seq(head, arguments_node(spec, rules), ', "id": "', id, '"}')

        return CallForm(
            call,
            open=f"[TOOL_CALLS]{self._space}[",
            between=", ",
            close="]",
            forbidden=("[TOOL_CALLS]", "[INST]", "[TOOL_RESULTS]", "</s>"),
            specials=self.specials,
            text_before=self._is_v7,
        )

    @property
    def _space(self) -> str:
        return " " if self.version in ("v0.3", "v7") else ""

    @property
    def _is_v7(self) -> bool:
        return self.version in ("v7", "v7_tekken")

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        refuse_images(w, conversation.messages)
        messages = conversation.messages
        ids = mistral.counted_ids(w, conversation, interrupts=self._is_v7)
        last = last_user(messages)
        w.mark("<s>", "frame")
        if last != len(messages) - 1 and not self._is_v7:
            w.changed += [0] if messages and messages[0].role == "system" else []
        walk = w.walk(
            self, messages, tools=conversation.tools, shown_from=last, usual=_usuals(self), ids=ids
        )
        for index in walk:
            message = messages[index]
            match message.role:
                case "system" if self._is_v7:
                    w.mark("[SYSTEM_PROMPT]", "frame", index)
                    w.text(self._space if message.text else "", "frame", index)
                    w.text(message.text, "given", index)
                    w.mark("[/SYSTEM_PROMPT]", "frame", index)
                case "system":
                    pass
                case "user":
                    self._user(w, conversation, index, is_last=index == last)
                case "tool" if self._is_v7:
                    w.mark("[TOOL_RESULTS]", "frame", index)
                    w.text(f"{self._space}{ids[index][0]}", "frame", index)
                    w.mark("[TOOL_CONTENT]", "frame", index)
                    w.text(self._space if message.text else "", "frame", index)
                    w.text(message.text, "given", index)
                    w.mark("[/TOOL_RESULTS]", "frame", index)
                case "tool":
                    w.mark("[TOOL_RESULTS]", "frame", index)
                    w.text(f'{self._space}{{"content": ', "frame", index)
                    w.text(message.text, "given", index)
                    w.text(_answering(ids[index][0]), "frame", index)
                    w.mark("[/TOOL_RESULTS]", "frame", index)
                case "assistant":
                    self._assistant(w, conversation, index, ids[index])
        return w.done()

    def usual(self, place: Place) -> Usual | None:
        """How messages are written as most are; see `_usual.py`."""
        space = self._space
        match place.kind:
            case "user" if not place.is_shown:
                return given(_question(space), unless=not_)
            case "tool" if self._is_v7:
                return counted_result(_v7_result(space), lambda text, id: (space + id, text))
            case "tool":
                return counted_result(_result(space), lambda text, id: (text, _answering(id)))
            case "calls":
                return counted_call(
                    lambda call, id: (f"[TOOL_CALLS]{space}[{_call_json(call, id)}]</s>", _CALLS)
                )
            case "assistant":
                return answered(_ANSWER, self.syntax, trims=True, lead=space)
            case _:
                return None

    def _user(self, w: Writer, conversation: Conversation, index: int, *, is_last: bool) -> None:
        messages = conversation.messages
        if is_last and conversation.tools:
            listing = ", ".join(map(mistral.tool_json, conversation.tools))
            w.mark("[AVAILABLE_TOOLS]", "frame", index)
            w.text(f"{self._space}[{listing}]", "frame", index)
            w.mark("[/AVAILABLE_TOOLS]", "frame", index)
        if self._is_v7 or index != len(messages) - 1 or messages[0].role != "system":
            says = messages[index].text or not self._is_v7
            w.around(_question(self._space if says else ""), messages[index].text, index)
            return
        w.mark("[INST]", "frame", index)
        w.text(self._space, "frame", index)
        w.text(messages[0].text, "given", 0)
        w.text("\n\n", "frame", index)
        w.text(messages[index].text, "given", index)
        w.mark("[/INST]", "frame", index)

    def _assistant(
        self, w: Writer, conversation: Conversation, index: int, ids: Sequence[str]
    ) -> None:
        whole = conversation.messages[index]
        text = "" if whole.tool_calls and not self._is_v7 else whole.text
        if self._is_v7:
            text = text.rstrip(" ")
        elif self.version == "v0.3":
            text = text.strip()
        if whole.reasoning or text != whole.text:
            w.changed.append(index)
        message = with_parts(whole, reasoning="", text=text)
        since = len(w.pieces)
        if message.tool_calls:
            w.text(f"{self._space}{text}" if text else "", "written", index)
            calls = ", ".join(map(_call_json, message.tool_calls, ids))
            w.mark("[TOOL_CALLS]", "written", index)
            w.text(f"{self._space}[{calls}]", "written", index)
        elif message.invalid_tool_calls:
            for call in message.invalid_tool_calls:
                w.put(call.raw, "written", index)
        else:
            w.text(f"{self._space}{text}" if text or not self._is_v7 else "", "written", index)
        check_written(w, self.syntax, message, index, since=since, tools=conversation.tools)
        w.mark("</s>", "written", index)


_ANSWER = Around((), "written", (("</s>", "written"),), mistral.MARKS)
_CALLS = Around((("[TOOL_CALLS]", "written"),), "written", (("</s>", "written"),), mistral.MARKS)


@cache
def _usuals(family: Mistral) -> Usuals:
    return Usuals(family.usual)


def _result(space: str) -> Form:
    before: tuple[tuple[str, Author], ...] = (
        ("[TOOL_RESULTS]", "frame"), (space + '{"content": ', "frame"),
    )  # fmt: skip
    around = Around(before, "frame", (("[/TOOL_RESULTS]", "frame"),), mistral.MARKS)
    return Form(around, ((), (), ()), ("given", "frame"))


def _v7_result(space: str) -> Form:
    around = Around(
        (("[TOOL_RESULTS]", "frame"),), "frame", (("[/TOOL_RESULTS]", "frame"),), _V7_MARKS
    )
    own = ((), (("[TOOL_CONTENT]", True), (space, False)), ())
    return Form(around, own, ("frame", "given"))


def _answering(id: str) -> str:
    return f', "call_id": "{id}"}}'


@cache
def _question(space: str) -> Around:
    before: tuple[tuple[str, Author], ...] = (("[INST]", "frame"), (space, "frame"))
    return Around(before, "given", (("[/INST]", "frame"),), mistral.MARKS)


def _call_json(call: ToolCall, id: str) -> str:
    name, arguments = quoted_json(call.name), dump_json(call.arguments)
    return f'{{"name": {name}, "arguments": {arguments}, "id": "{id}"}}'


FORMAT = Mistral()
