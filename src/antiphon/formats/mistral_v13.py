"""Mistral Small 3.2 and its kin (tokenizers v11 and v13): a mark, a name and JSON arguments a call.

    [INST]Weather in Lima?[/INST][TOOL_CALLS]get_weather[CALL_ID]call00000[ARGS]{"city": "Lima"}</s>
    [TOOL_RESULTS]call00000[TOOL_CONTENT]{"celsius": 19}[/TOOL_RESULTS]It is 19 degrees.</s>

(The lines above are broken for reading.)  Ids are nine letters or digits; calls without one are
numbered.  Tools stand before the last user message.  Text beside calls is left out, reasoning is
too; such messages are listed in `Rendered.changed`.  The parser also reads ``name{...}``.

Version ``v13`` (Magistral 2509) lists the tools before the first user message, writes no ids,
keeps text beside calls and reasoning, and has no system text of its own:

    [THINK]The weather, then.[/THINK]I look.[TOOL_CALLS]get_weather[ARGS]{"city": "Lima"}</s>
    [TOOL_RESULTS]{"celsius": 19}[/TOOL_RESULTS]It is 19 degrees.</s>

Differs from upstream: the date in the default system text is `date`, not the day of rendering.
Source: ``Mistral-Small-3.2-24B-Instruct-2506.jinja`` in the source of llama-cpp-python 0.3.36;
for v13, the tokenizers of mistral-common 1.13 (the text of tokens, our own conversations compared;
they refuse an answer without text or calls, which is written empty here).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from antiphon.formats import _mistral as mistral
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Chars, Node, Rep, Rules, seq
from antiphon.formats._render import (
    Writer,
    check_written,
    inline_reasoning,
    last_user,
    refuse_images,
    with_parts,
)
from antiphon.formats._scan import Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Around, Filled, Form, Rendered
from antiphon.formats._usual import (
    Place,
    Usual,
    Usuals,
    answered,
    counted_call,
    counted_result,
    given,
)
from antiphon.messages import Conversation, Message, ToolCall, ToolSpec, dump_json

_DEFAULT_SYSTEM = (
    "You are Mistral Small 3, a Large Language Model (LLM) created by Mistral AI, a French "
    "startup headquartered in Paris.\n"
    "Your knowledge base was last updated on 2023-10-01. The current date is {date}.\n"
    "\n"
    "When you're not sure about some information or when the user's request requires "
    "up-to-date or specific data, you must use the available tools to fetch the "
    "information. Do not hesitate to use tools whenever they can provide a more accurate "
    "or complete response. If no relevant tools are available, then clearly state that you "
    "don't have the information and avoid making up anything.\n"
    "\n"
    "If the user's question is not clear, ambiguous, or does not provide enough context "
    "for you to accurately answer the question, you do not try to answer it right away and "
    'you rather ask the user to clarify their request (e.g. "What are some good '
    'restaurants around me?" => "Where are you?" or "When is the next flight to Tokyo" => '
    '"Where do you travel from?").\n'
    "You are always very attentive to dates, and when asked about information at specific "
    "dates, you discard information that is at another date.\n"
    "You follow these instructions in all languages, and always respond to the user in the "
    "language they use or request.\n"
    "Next sections describe the capabilities that you have.\n"
    "\n"
    "# WEB BROWSING INSTRUCTIONS\n"
    "\n"
    "You cannot perform any web search or access internet to open URLs, links etc. If it "
    "seems like the user is expecting you to do so, you clarify the situation and ask the "
    "user to copy paste the text directly in the chat.\n"
    "\n"
    "# MULTI-MODAL INSTRUCTIONS\n"
    "\n"
    "You have the ability to read images, but you cannot generate images. You also cannot "
    "transcribe audio files or videos.\n"
    "You cannot read nor transcribe audio files or videos.\n"
    "\n"
    "# TOOL CALLING INSTRUCTIONS\n"
    "\n"
    "You may have access to tools that you can use to fetch information or perform "
    "actions. You must use these tools in the following situations:\n"
    "\n"
    "1. When the request requires up-to-date information.\n"
    "2. When the request requires specific data that you do not have in your knowledge "
    "base.\n"
    "3. When the request involves actions that you cannot perform without tools.\n"
    "\n"
    "Always prioritize using tools to provide the most accurate and helpful response. If "
    "tools are not available, inform the user that you cannot perform the requested action "
    "at the moment."
)


_SYNTAX = mistral.syntax(
    listed=False,
    thinking=(
        Thinking("[THINK]", "[/THINK]", after_open="", before_close="", after_close=""),
        Thinking(),
    ),
)
_MARKS = mistral.MARKS | {
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[CALL_ID]",
    "[ARGS]",
    "[TOOL_CONTENT]",
}
_V13_MARKS = _MARKS | {"[THINK]", "[/THINK]"}
_QUESTION = Around((("[INST]", "frame"),), "given", (("[/INST]", "frame"),), _MARKS)
_ANSWER = Around((), "written", (("</s>", "written"),), _MARKS)
_CALL = Around((("[TOOL_CALLS]", "written"),), "written", (("</s>", "written"),), _MARKS)
_RESULT = Around((("[TOOL_RESULTS]", "frame"),), "given", (("[/TOOL_RESULTS]", "frame"),), _MARKS)
_CALL_FORM = Form(_CALL, ((), (("[CALL_ID]", True),), (("[ARGS]", True),), ()))
_V13_CALL_FORM = Form(_CALL, ((), (("[ARGS]", True),), ()))
_RESULT_FORM = Form(
    replace(_RESULT, author="frame"), ((), (("[TOOL_CONTENT]", True),), ()), ("frame", "given")
)


@dataclass(frozen=True, slots=True)
class MistralV13(Family):
    """The Mistral families with a mark for each call."""

    date: str = "2025-06-30"
    """Today's date as the default system text says it."""
    default_system: str | None = None
    """The system text where a conversation has none; ``None`` for the family's own, which names the
    date; ``""`` for none."""
    version: Literal["v11", "v13"] = "v11"
    """Whose text: ``v13`` writes no ids."""

    name = "mistral_v13"
    models = ("mistralai/Mistral-Small-3.2-*",)
    aliases = {
        "mistral_args": {},
        "mistral_v11": {},
        "mistral_small_3_2": {},
        "magistral": {"version": "v13"},
        "mistralai/Magistral-Small-2509*": {"version": "v13"},
    }
    signs = ("[SYSTEM_PROMPT]", "[CALL_ID]", "[ARGS]")
    stop = ("</s>",)

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]  # a variant of the class's constant
        """Whether a longer conversation extends the text of a shorter one."""
        return self._is_v13

    @property
    def specials(self) -> frozenset[str]:
        """Marks that are single tokens."""
        return _V13_MARKS if self._is_v13 else _MARKS

    @property
    def _is_v13(self) -> bool:
        return self.version == "v13"

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        alphanumeric = Chars((("0", "9"), ("A", "Z"), ("a", "z")))

        def call(spec: ToolSpec, rules: Rules) -> Node:
            if self._is_v13:
                return seq(f"[TOOL_CALLS]{spec.name}[ARGS]", arguments_node(spec, rules))
            head = f"[TOOL_CALLS]{spec.name}[CALL_ID]"
            return seq(head, Rep(alphanumeric, 9, 9), "[ARGS]", arguments_node(spec, rules))

        return CallForm(
            call,
            forbidden=("[TOOL_CALLS]", "[INST]", "[TOOL_RESULTS]", "</s>"),
            specials=self.specials,
            text_before=self._is_v13,
            thinking=("[THINK]", "[/THINK]") if self._is_v13 else None,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        refuse_images(w, conversation.messages)
        messages = conversation.messages
        ids = mistral.counted_ids(w, conversation, interrupts=self._is_v13)
        first = next((i for i, m in enumerate(messages) if m.role == "user"), -1)
        listed = first if self._is_v13 else last_user(messages)
        w.mark("<s>", "frame")
        default = self.default_system
        if default is None and not self._is_v13:
            default = _DEFAULT_SYSTEM.replace("{date}", self.date)
        if default and (not messages or messages[0].role != "system"):
            w.mark("[SYSTEM_PROMPT]", "frame")
            w.text(default, "frame")
            w.mark("[/SYSTEM_PROMPT]", "frame")
        walk = w.walk(
            self, messages, tools=conversation.tools,
            shown_from=listed + self._is_v13, usual=_usuals(self), ids=ids,
        )  # fmt: skip
        for index in walk:
            message = messages[index]
            match message.role:
                case "system":
                    w.mark("[SYSTEM_PROMPT]", "frame", index)
                    w.text(message.text, "given", index)
                    w.mark("[/SYSTEM_PROMPT]", "frame", index)
                case "user":
                    self._user(w, conversation, message, index, lists=index == listed)
                case "tool":
                    w.mark("[TOOL_RESULTS]", "frame", index)
                    if not self._is_v13:
                        w.text(ids[index][0], "frame", index)
                        w.mark("[TOOL_CONTENT]", "frame", index)
                    w.text(message.text, "given", index)
                    w.mark("[/TOOL_RESULTS]", "frame", index)
                case "assistant":
                    self._assistant(w, conversation, index, ids[index])
        return w.done()

    def usual(self, place: Place) -> Usual | None:
        """How messages are written as most are; see `_usual.py`.

        Reasoning is shown the same everywhere: what `shown_from` tells is where no tools are
        listed any more (``v13``), or not yet.
        """
        match place.kind:
            case "user" if place.is_shown == self._is_v13:
                return given(_QUESTION)
            case "tool" if self._is_v13:
                return given(_RESULT)
            case "tool":
                return counted_result(_RESULT_FORM, lambda text, id: (id, text))
            case "calls":
                return counted_call(self._call)
            case "assistant":
                return answered(_ANSWER, _SYNTAX, _without_end if self._is_v13 else None)
            case _:
                return None

    def _call(self, call: ToolCall, id: str) -> tuple[str, Filled]:
        arguments = dump_json(call.arguments)
        if self._is_v13:
            return _V13_CALL_FORM.filled((call.name, arguments))
        return _CALL_FORM.filled((call.name, id, arguments))

    def _user(
        self, w: Writer, conversation: Conversation, message: Message, index: int, *, lists: bool
    ) -> None:
        if lists and conversation.tools:
            specs = [
                spec.to_openai() if spec.wrapped else spec.to_openai()["function"]
                for spec in conversation.tools
            ]
            w.mark("[AVAILABLE_TOOLS]", "frame", index)
            w.text(dump_json(specs), "frame", index)
            w.mark("[/AVAILABLE_TOOLS]", "frame", index)
        w.around(_QUESTION, message.text, index)

    def _assistant(
        self, w: Writer, conversation: Conversation, index: int, ids: Sequence[str]
    ) -> None:
        whole = conversation.messages[index]
        if self._is_v13:
            whole = inline_reasoning(whole)
        text = "" if whole.tool_calls and not self._is_v13 else whole.text
        reasoning = whole.reasoning if self._is_v13 else ""
        if not reasoning and self._is_v13:
            text = _without_end(text)
        if reasoning != whole.reasoning or text != whole.text:
            w.changed.append(index)
        message = with_parts(whole, reasoning=reasoning, text=text)
        since = len(w.pieces)
        if reasoning:
            w.mark("[THINK]", "written", index)
            w.text(reasoning, "written", index)
            w.mark("[/THINK]", "written", index)
        w.text(text, "written", index)
        for call, id in zip(message.tool_calls, ids, strict=True):
            w.mark("[TOOL_CALLS]", "written", index)
            w.text(call.name, "written", index)
            if not self._is_v13:
                w.mark("[CALL_ID]", "written", index)
                w.text(id, "written", index)
            w.mark("[ARGS]", "written", index)
            w.text(dump_json(call.arguments), "written", index)
        for call in message.invalid_tool_calls:
            w.put(call.raw, "written", index)
        check_written(w, self.syntax, message, index, since=since, tools=conversation.tools)
        w.mark("</s>", "written", index)


def _without_end(text: str) -> str:
    """A text without the spaces at its end, as v13 writes it."""
    return text.rstrip(" ")


@cache
def _usuals(family: MistralV13) -> Usuals:
    return Usuals(family.usual)


FORMAT = MistralV13()
