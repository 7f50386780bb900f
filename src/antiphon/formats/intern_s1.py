"""Intern-S1: InternLM2's marks in ChatML turns, tools in the system turn, reasoning in <think>.

    <|im_start|>assistant
    <think>
    The user wants the weather.
    </think>
    <|action_start|><|plugin|>
    {"name": "get_weather", "parameters": {"city": "Lima"}}
    <|action_end|><|im_end|>
    <|im_start|>environment name=<|plugin|>
    {"celsius": 19}<|im_end|>

Reasoning is shown again only behind the last user turn, where every answer has a block, if an empty
one; messages that are shown otherwise than they were written are listed in `Rendered.changed`.

Differs from upstream: nothing; images are not rendered.
Source: ``agent/chat_templates/chat_template_intern-s1.jinja`` of
DragonDescentZerotsu/Intern-S1-recipe, without the sentence that its owner added to the instructions
(``InternS1Protocol`` of OpenRLHF has them without it).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm, json_form
from antiphon.formats._render import (
    Turns,
    Writer,
    as_said,
    call_json,
    inline_reasoning,
    of_tools,
    refuse_images,
    refuse_late_systems,
    spec_value,
    split_system,
    write_answer,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
from antiphon.formats.internlm2 import ACTION, END, PLUGIN, SYNTAX
from antiphon.messages import Conversation, ToolSpec, indented_json

_TURNS = Turns(
    specials=frozenset({"<|im_start|>", "<|im_end|>", ACTION, PLUGIN, END}),
    roles=(("tool", f"environment name={PLUGIN}"),),
)
_REASON = (
    "You are an expert reasoner with extensive experience in all areas. You approach problems "
    "through systematic thinking and rigorous reasoning. Your response should reflect deep "
    "understanding and precise logical thinking, making your solution path and reasoning clear to "
    "others. Please put your thinking process within <think>...</think> tags."
)
_HOW = """\
Your response should consist of a reasoning step (**thought**) followed immediately by a function \
call in valid JSON format. Wrap each function call using the `<|action_start|><|plugin|>` and \
`<|action_end|>` tags.

**Format example:**

```
(Your thought goes here...)

<|action_start|><|plugin|>
{
    "name": "tool_name",
    "parameters": {
        "parameter1": "value1",
        "parameter2": "value2"
    }
}
<|action_end|>
```

# External Tools
You have access to these tools:
"""


@dataclass(frozen=True, slots=True)
class InternS1(Family):
    """The Intern-S1 family."""

    thinking: bool = True
    """Whether the model reasons."""

    name = "intern_s1"
    models = ("internlm/Intern-S1*",)
    aliases = {"interns1": {}}
    signs = ("default_thinking_sys", ACTION)
    stop = ("<|im_end|>",)
    prefix_stable = False
    turns = _TURNS
    specials = _TURNS.specials | {"<think>", "</think>"}

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return SYNTAX

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar."""
        return json_form(
            self.specials,
            open=f"{ACTION}{PLUGIN}\n",
            close=f"\n{END}",
            before="",
            arguments="parameters",
            thinking=("<think>\n", "\n</think>\n"),
        )

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        w = Writer(self.name, self.specials)
        messages = conversation.messages
        refuse_images(w, messages)
        system, first = split_system(conversation)
        refuse_late_systems(w, messages, first)
        self._system(w, conversation, system)
        queries = [i for i, message in enumerate(messages) if message.role == "user"]
        shown_from = queries[-1] + 1 if queries else len(messages)
        walk = w.walk(self, messages, first, tools=conversation.tools, shown_from=shown_from)
        for index in walk:
            message = messages[index]
            _TURNS.begin(w, message.role, index)
            if message.role == "assistant":
                self._assistant(w, conversation, index, shows=index >= shown_from)
            else:
                w.text(message.text.lstrip("\n"), "given", index)
            _TURNS.finish(w, message.role, index)
        if not generate:
            return w.done()
        _TURNS.begin(w, "assistant", None)
        w.put("<think>" if self.thinking else "", "frame")
        return w.done(start="reasoning" if self.thinking else "content")

    def _system(self, w: Writer, conversation: Conversation, system: str | None) -> None:
        index = None if system is None else 0
        text = (_REASON if self.thinking else "") if system is None else system.strip("\n")
        if not text and not conversation.tools:
            return
        _TURNS.begin(w, f"system name={PLUGIN}" if conversation.tools else "system", index)
        w.text(text, "frame" if system is None else "given", index)
        if conversation.tools:
            w.text("\n\n" if text else "", "frame", index)
            w.put(_HOW, "frame", index)
            w.text(of_tools(_listing, conversation.tools), "frame", index)
        _TURNS.finish(w, "system", index)

    def _assistant(self, w: Writer, conversation: Conversation, index: int, *, shows: bool) -> None:
        given = inline_reasoning(conversation.messages[index])
        reasoning = given.reasoning.strip("\n") if shows else ""
        said = as_said(w, given, index, text=given.text.lstrip("\n"), reasoning=reasoning)
        since = len(w.pieces)
        if shows:
            w.put("<think>", "frame" if self.thinking else "written", index)
            w.text(f"\n{reasoning}\n", "written", index)
            w.put("</think>\n", "written", index)
        else:
            w.changed.append(index)  # as the last message it had a block, if an empty one
        calls: list[str] = []
        for call in said.tool_calls:
            object = f"\n{call_json(call, arguments='parameters')}\n"
            calls += ["\n" if calls else "", ACTION, PLUGIN, object, END]
        start = "reasoning" if shows and self.thinking else "content"
        write_answer(w, SYNTAX, conversation, said, index, *calls, since=since, start=start)


def _listing(tools: Sequence[ToolSpec]) -> str:
    """The tools as one indented list."""
    return indented_json([spec_value(spec) for spec in tools], 2)


FORMAT = InternS1()
