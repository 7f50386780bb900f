"""Mistral Small 3.2 and its kin (tokenizers v11 and v13): a mark, a name and JSON arguments a call.

    [INST]Weather in Lima?[/INST][TOOL_CALLS]get_weather[CALL_ID]call00000[ARGS]{"city": "Lima"}</s>
    [TOOL_RESULTS]call00000[TOOL_CONTENT]{"celsius": 19}[/TOOL_RESULTS]It is 19 degrees.</s>

(The lines above are broken for reading.)  Ids are nine letters or digits; calls without one are
numbered.  Tools stand before the last user message.  Text beside calls is left out, reasoning is
too; such messages are listed in `Rendered.changed`.  The parser also reads ``name{...}`` (v11) and
``name[ARGS]{...}`` (v13).

Differs from upstream: the date in the default system text is `date`, not the day of rendering.
Source: ``Mistral-Small-3.2-24B-Instruct-2506.jinja`` in the source of llama-cpp-python 0.3.36.
"""

from dataclasses import dataclass

from antiphon.formats import _mistral as mistral
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, Chars, Node, Rep, Rules, seq
from antiphon.formats._readers import NamedJson
from antiphon.formats._render import Writer, check_written, last_user, refuse_images, with_parts
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._schema_grammar import arguments_node
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

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


def _name_and_id(head: str) -> tuple[str, str]:
    """What stands before the arguments, taken apart."""
    name, _, id = head.removesuffix("[ARGS]").partition("[CALL_ID]")
    return name.strip(), id.strip()


_SYNTAX = Syntax(
    blocks=(
        Block("[TOOL_CALLS]", NamedJson("{", name=_name_and_id, next_block=("[TOOL_CALLS]",))),
    ),
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


@dataclass(frozen=True, slots=True)
class MistralV13(Family):
    """The Mistral families with a mark for each call."""

    date: str = "2025-06-30"
    """Today's date as the default system text says it."""
    default_system: str | None = None
    """The system text where a conversation has none; ``None`` for the family's own, which names the
    date; ``""`` for none."""

    name = "mistral_v13"
    models = ("mistralai/Mistral-Small-3.2-*",)
    aliases = {"mistral_args": {}, "mistral_v11": {}, "mistral_small_3_2": {}}
    signs = ("[SYSTEM_PROMPT]", "[CALL_ID]", "[ARGS]")
    stop = ("</s>",)
    prefix_stable = False
    specials = _MARKS

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        alphanumeric = Chars((("0", "9"), ("A", "Z"), ("a", "z")))

        def call(spec: ToolSpec, rules: Rules) -> Node:
            head = f"[TOOL_CALLS]{spec.name}[CALL_ID]"
            return seq(head, Rep(alphanumeric, 9, 9), "[ARGS]", arguments_node(spec, rules))

        return CallForm(
            call,
            forbidden=("[TOOL_CALLS]", "[INST]", "[TOOL_RESULTS]", "</s>"),
            specials=self.specials,
            text_before=False,
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        refuse_images(w, conversation.messages)
        messages = mistral.with_ids(w, conversation)
        last = last_user(messages)
        w.mark("<s>", "frame")
        default = self.default_system
        if default is None:
            default = _DEFAULT_SYSTEM.replace("{date}", self.date)
        if default and (not messages or messages[0].role != "system"):
            w.mark("[SYSTEM_PROMPT]", "frame")
            w.text(default, "frame")
            w.mark("[/SYSTEM_PROMPT]", "frame")
        for index in w.walk(self, conversation.messages, tools=conversation.tools, shown_from=last):
            message = messages[index]
            match message.role:
                case "system":
                    w.mark("[SYSTEM_PROMPT]", "frame", index)
                    w.text(message.text, "given", index)
                    w.mark("[/SYSTEM_PROMPT]", "frame", index)
                case "user":
                    self._user(w, conversation, message, index, is_last=index == last)
                case "tool":
                    w.mark("[TOOL_RESULTS]", "frame", index)
                    w.text(message.tool_call_id, "frame", index)
                    w.mark("[TOOL_CONTENT]", "frame", index)
                    w.text(message.text, "given", index)
                    w.mark("[/TOOL_RESULTS]", "frame", index)
                case "assistant":
                    self._assistant(w, conversation, message, index)
        return w.done()

    def _user(
        self, w: Writer, conversation: Conversation, message: Message, index: int, *, is_last: bool
    ) -> None:
        if is_last and conversation.tools:
            specs = [
                spec.to_openai() if spec.wrapped else spec.to_openai()["function"]
                for spec in conversation.tools
            ]
            w.mark("[AVAILABLE_TOOLS]", "frame", index)
            w.text(dump_json(specs), "frame", index)
            w.mark("[/AVAILABLE_TOOLS]", "frame", index)
        w.mark("[INST]", "frame", index)
        w.text(message.text, "given", index)
        w.mark("[/INST]", "frame", index)

    def _assistant(self, w: Writer, conversation: Conversation, given: Message, index: int) -> None:
        text = "" if given.tool_calls else given.text
        if given.reasoning or text != given.text:
            w.changed.append(index)
        message = with_parts(given, reasoning="", text=text)
        since = len(w.pieces)
        w.text(text, "written", index)
        for call in message.tool_calls:
            w.mark("[TOOL_CALLS]", "written", index)
            w.text(call.name, "written", index)
            w.mark("[CALL_ID]", "written", index)
            w.text(call.id, "written", index)
            w.mark("[ARGS]", "written", index)
            w.text(dump_json(call.arguments), "written", index)
        for call in message.invalid_tool_calls:
            w.put(call.raw, "written", index)
        check_written(w, self.syntax, message, index, since=since, tools=conversation.tools)
        w.mark("</s>", "written", index)


FORMAT = MistralV13()
