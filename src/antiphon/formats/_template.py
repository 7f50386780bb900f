"""A model's own chat template as a Format: rendered as transformers renders it, its authors found.

The template is run twice, on the conversation and on one in which every text is a stand-in; where
the stand-ins come out is where people, tools and the model speak, and what is left is the family's
frame.  Where the model begins to write is where the template's own generation prompt ends.  Both
are checked on the conversation at hand: a template that changes a text beyond trimming and quoting
it, leaves one out, or writes a call that is not read back as it was, is refused with the reason.

Which parser reads what the model writes is found by trying: the table of the known family that
reads the template's own answers back exactly (`_template_reader.py`).  Reasoning that stands inside
a text is taken apart first.

A template is run once more for each of the model's messages, on what came before it: in a long
conversation on the turn before it, which is checked against all that came before at some of them.
What was found is remembered: a conversation that grows runs the template on the whole twice, and on
what came before the new part.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Any, TypeAlias

from antiphon.errors import RenderError, UsageError, clip
from antiphon.formats import _jinja as jinja
from antiphon.formats._family import Family
from antiphon.formats._grammar import CallForm
from antiphon.formats._render import MEDIA_WORDS, inline_reasoning
from antiphon.formats._scan import Parser, Syntax
from antiphon.formats._template_reader import Reading, reading_of
from antiphon.formats._template_rows import Rows, Unwritten
from antiphon.formats._template_spans import Span, find_spans
from antiphon.formats._types import Rendered, Start
from antiphon.messages import Conversation, Message

Option: TypeAlias = "bool | int | float | str"


@dataclass(frozen=True, slots=True)
class TemplateFormat(Family):
    """A chat template of no known family."""

    template: str = field(repr=False)
    """The template's text."""
    source: str = ""
    """The directory that it came from, by which it is found again."""
    tokens: tuple[tuple[str, str], ...] = ()
    """What the tokenizer calls its special tokens: ``bos_token`` and its like, with their texts."""
    marks: frozenset[str] = field(default=frozenset(), repr=False)
    """Texts that are single tokens of the vocabulary."""
    control: frozenset[str] = field(default=frozenset(), repr=False)
    """Those of them that are control tokens, of which one ends the model's turn."""
    thinking: bool | None = None
    """Whether the model is asked to reason, for templates that ask; theirs to say where `None`."""
    today: str = ""
    """The day that the template is told, as ``2025-06-30``; the day of rendering where empty."""
    options: Mapping[str, Option] | tuple[tuple[str, Option], ...] = ()
    """More variables of the template."""

    name = "template"

    def __post_init__(self) -> None:
        if isinstance(self.options, Mapping):
            object.__setattr__(self, "options", tuple(self.options.items()))

    @property
    def specials(self) -> frozenset[str]:
        """Marks that are single tokens of the vocabulary."""
        return self.marks

    @property
    def eos(self) -> str:
        """The token that the vocabulary says ends a text; ``""`` where it says none."""
        return dict(self.tokens).get("eos_token", "")

    @property
    def context(self) -> dict[str, Any]:
        """The template's variables besides the conversation."""
        asked = {} if self.thinking is None else dict.fromkeys(_THINKING, self.thinking)
        return dict(self.tokens) | asked | dict(self.options)

    @property
    def stop(self) -> tuple[str, ...]:  # type: ignore[override]  # found in the template
        """Texts that end a model's turn; a runtime stops there and leaves them out."""
        return _knowledge(self).ends

    @property
    def prefix_stable(self) -> bool:  # type: ignore[override]  # found in the template
        """Whether a longer conversation extends the text of a shorter one."""
        return _knowledge(self).prefix_stable

    @property
    def reads_like(self) -> str:
        """The family whose parser reads what the template writes; ``""`` where none reads calls."""
        return _knowledge(self).family

    @property
    def summary(self) -> str:
        """What is known of the template, in a line."""
        known = _knowledge(self)
        calls = f"calls as {known.family} writes them" if known.family else "no calls"
        grammar = ", a grammar" if known.call_form else ""
        return f"{self.source}: its own chat template, {calls}{grammar}"

    @property
    def syntax(self) -> Syntax:
        """The table that the parser runs on."""
        return _knowledge(self).syntax

    @property
    def call_form(self) -> CallForm:
        """How calls stand in the text, for the grammar.

        Raises:
            UsageError: No known family writes calls as the template does.
        """
        form = _knowledge(self).call_form
        if form is None:
            raise UsageError(
                "this chat template has no grammar: no known family writes calls as it does; "
                "decode without one, or name a family"
            )
        return form

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        known = _knowledge(self)
        _refuse_calls(known, conversation)
        conversation = _apart(conversation)
        rows = Rows(conversation, known.spelling, self.marks)
        try:
            _refuse_unshown(self, conversation, rows)
            spans = find_spans(
                self,
                rows,
                known.ends,
                stable=known.prefix_stable,
                generate=generate,
                block=known.block,
            )
        except Unwritten as error:
            raise RenderError(str(error), format=self.name, index=error.index) from error
        changed = list(spans.changed)
        for span in spans.written:
            if not _is_read_back(known, conversation, span):
                changed.append(span.message)
            if not span.as_prompted and not _is_of_other_mode(known, conversation, span):
                changed.append(span.message)
        start: Start = "content"
        if generate and _opens(known.syntax, "".join(p.text for p in spans.pieces[-3:])):
            start = "reasoning"
        return Rendered(spans.pieces, start, tuple(sorted(set(changed))))

    def plain_text(self, conversation: Conversation, *, generate: bool = False) -> str | None:
        """The template's text of a conversation, whoever wrote it; `None` where it refuses."""
        known = _knowledge(self)
        rows = Rows(_apart(conversation), known.spelling, self.marks)
        try:
            return self.text(rows.real(), generate=generate)
        except Unwritten:
            return None

    def text(self, rows: str, *, generate: bool) -> str:
        """The template's text of rows. See `Source.text`."""
        return _run(self, rows, generate)


def _refuse_unshown(fmt: TemplateFormat, conversation: Conversation, rows: Rows) -> None:
    """Refuse media that the template leaves out: shown twice, they make no other text.

    Raises:
        Unwritten: It leaves some out, or refuses the conversation.
    """
    shown = {
        (type(part), m.role): i for i, m in enumerate(conversation.messages) for part in m.media
    }
    for (kind, role), index in shown.items():
        twice = replace(
            conversation,
            messages=tuple(_twice(m, kind) if m.role == role else m for m in conversation.messages),
        )
        again = Rows(twice, _knowledge(fmt).spelling, fmt.marks)
        if fmt.text(again.real(), generate=False) == fmt.text(rows.real(), generate=False):
            raise Unwritten(f"the chat template leaves out {MEDIA_WORDS[kind]}", index)


def _twice(message: Message, kind: type) -> Message:
    parts = [(part, part) if isinstance(part, kind) else (part,) for part in message.parts]
    return replace(message, parts=tuple(chain.from_iterable(parts)))


def _apart(conversation: Conversation) -> Conversation:
    """A conversation with reasoning that stands inside the model's texts apart from them."""
    messages = tuple(
        inline_reasoning(m) if m.role == "assistant" else m for m in conversation.messages
    )
    return replace(conversation, messages=messages)


_THINKING = ("enable_thinking", "thinking")


@lru_cache(maxsize=64)
def _run(format: TemplateFormat, rows: str, generate: bool) -> str:
    given = json.loads(rows)
    try:
        return jinja.render(
            format.template,
            {**format.context, **given, "documents": None, "add_generation_prompt": generate},
            today=format.today,
        )
    except jinja.Refused as error:
        raise Unwritten(f"the chat template refuses it: {clip(str(error))}") from error


@lru_cache(maxsize=32)
def _knowledge(format: TemplateFormat) -> Reading:
    """What probing the template tells, once for each."""
    return reading_of(format)


def _refuse_calls(known: Reading, conversation: Conversation) -> None:
    if known.family:
        return
    for index, message in enumerate(conversation.messages):
        if message.tool_calls:
            raise RenderError(known.why_no_calls, format=TemplateFormat.name, index=index)


def _opens(syntax: Syntax, prompt: str) -> bool:
    """Whether a prompt has opened the model's reasoning."""
    return any(prompt.rstrip().endswith(thinking.open.strip()) for thinking in syntax.thinking)


def _is_of_other_mode(known: Reading, conversation: Conversation, span: Span) -> bool:
    """Whether a message has reasoning where the prompt closed it, or none where it opened it.

    No model answers such a prompt so: the message is of the template's other mode, in which it
    stands as it was written.
    """
    if not conversation.messages[span.message].reasoning:
        return _opens(known.syntax, span.prompt)
    prompt = span.prompt.rstrip()
    return any(prompt.endswith(thinking.close.strip()) for thinking in known.syntax.thinking)


def _is_read_back(known: Reading, conversation: Conversation, span: Span) -> bool:
    """Whether a message is read back exactly, not only but for white space at its ends.

    Raises:
        RenderError: It is read back as something else.
    """
    message = conversation.messages[span.message]
    if message.invalid_tool_calls:
        return True
    start: Start = "reasoning" if _opens(known.syntax, span.before) else "content"
    parser = Parser(known.syntax, tools=conversation.tools, start=start)
    parser.feed(span.text)
    parser.finish()
    back = parser.message
    same_calls = [(c.name, c.arguments) for c in back.tool_calls] == [
        (c.name, c.arguments) for c in message.tool_calls
    ]
    if back.invalid_tool_calls or not same_calls or _bare(back.text) != _bare(message.text):
        raise RenderError(
            "what the template writes of it is read back as something else; take marks out of its "
            "text, or name a family that can write it",
            format=TemplateFormat.name,
            index=span.message,
        )
    return (back.text, back.reasoning) == (message.text, message.reasoning)


def _bare(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
