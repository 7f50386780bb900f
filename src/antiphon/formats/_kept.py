"""A family whose history stays as it was written: ``history="keep"``.

Some families write a message otherwise once more follows: reasoning is dropped, an empty block
goes.  Then a conversation is served as several texts that do not continue each other, and trained
as several examples.  Kept, every message stands in all later prompts as it did when it was the
last, so that one text holds the whole conversation, and a server's cache too.

A model that is trained so must be served so: this format does, and `keep_history` gives the
family's own chat template the same behaviour, for servers that run it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from antiphon.errors import RenderError, UsageError
from antiphon.formats._grammar import Grammar
from antiphon.formats._types import Format, Piece, Rendered, Start, StreamParser, ToolChoice
from antiphon.messages import Conversation, JsonObject, Message, ToolCall, ToolSpec


@dataclass(frozen=True, slots=True)
class Kept:
    """Another format with its history kept."""

    of: Format
    """The format that says how each message is written."""

    prefix_stable = True

    @property
    def name(self) -> str:
        """The family's name."""
        return self.of.name

    @property
    def stop(self) -> tuple[str, ...]:
        """Texts that end a model's turn. See `Format.stop`."""
        return self.of.stop

    def render(self, conversation: Conversation, *, generate: bool = False) -> Rendered:
        """The conversation as text. See `Format.render`."""
        whole = self.of.render(conversation, generate=generate)
        changed = {i for i in whole.changed if conversation.messages[i].role == "assistant"}
        pieces: list[Piece] = []
        for index, group in groupby(whole.pieces, key=lambda piece: piece.message):
            if index is None or index not in changed:
                pieces += group
                continue
            upto = replace(conversation, messages=conversation.messages[: index + 1])
            own = [piece for piece in self.of.render(upto).pieces if piece.message == index]
            shown = list(group)
            if own[-1].text not in self.stop and shown[-1].text in self.stop:
                own.append(shown[-1])  # the next turn's mark, which ends this one
            pieces += own
        return Rendered(tuple(pieces), start=whole.start)

    def parser(
        self, *, tools: Sequence[ToolSpec] = (), start: Start = "content", strict: bool = False
    ) -> StreamParser:
        """A parser for one assistant message. See `Format.parser`."""
        return self.of.parser(tools=tools, start=start, strict=strict)

    def parse(
        self,
        text: str,
        *,
        tools: Sequence[ToolSpec] = (),
        start: Start = "content",
        strict: bool = False,
    ) -> Message:
        """Read one whole assistant message. See `Format.parse`."""
        return self.of.parse(text, tools=tools, start=start, strict=strict)

    def grammar(
        self,
        tools: Sequence[ToolSpec],
        *,
        choice: ToolChoice = "auto",
        parallel: bool = True,
        start: Start = "content",
        answer: "JsonObject | str | None" = None,
    ) -> Grammar:
        """What constrained decoding may write. See `Format.grammar`."""
        return self.of.grammar(tools, choice=choice, parallel=parallel, start=start, answer=answer)

    def __getattr__(self, name: str) -> Any:
        if name == "of" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.of, name)


def kept(format: Format) -> Kept:
    """A format with its history kept.

    Raises:
        UsageError: The family's prompts do not go on from what was written, kept or not.
    """
    made = Kept(format)
    refused = 0
    for reasoning in ("Look.", ""):
        try:
            if _goes_on(made, reasoning):
                return made
        except RenderError:  # a family without reasoning, or with nothing else
            refused += 1
    if refused == 2:
        return made
    raise UsageError(
        f"format {format.name!r} cannot keep its history: its prompts do not go on from what was "
        "written; leave history out"
    )


def _goes_on(format: Kept, reasoning: str) -> bool:
    """Whether each prompt goes on from the one before it and what was written then."""
    call = ToolCall("find", {"n": 1}, "c0")
    turn = (
        Message.user("Where?"),
        Message.assistant(reasoning=reasoning, tool_calls=[call]),
        Message.tool("there", call_id=call.id, name="find"),
        Message.assistant("There.", reasoning=reasoning),
    )
    messages = (*turn, Message.user("Thanks."), Message.assistant("Well.", reasoning=reasoning))
    whole = Conversation(messages, (ToolSpec("find"),))
    said = ""
    for i, message in enumerate(messages):
        if message.role != "assistant":
            continue
        prompt = format.render(replace(whole, messages=messages[:i]), generate=True).text
        if not prompt.startswith(said):
            return False
        pieces = format.render(replace(whole, messages=messages[: i + 1])).pieces
        own = [piece.text for piece in pieces if piece.message == i and piece.author == "written"]
        said = prompt + "".join(own[:-1] if own and own[-1] in format.stop else own)
    return True


if TYPE_CHECKING:
    _fits: type[Format] = Kept


# ---- the family's own template ----------------------------------------------------------------

# The template becomes a macro.  A message's text as the last one is what the template writes of the
# conversation up to it, without the prompt before it; what stands behind it is what the template
# writes behind a stand-in for it.  Only texts are put together: no family is known.
_WRAPPER = """\
{%- macro served(messages, add_generation_prompt) -%}
%TEMPLATE%
{%- endmacro -%}
{%- set ahead = add_generation_prompt | default(false) -%}
{%- set kept = namespace(text='', last=none) -%}
{%- macro behind(n, ahead) -%}
{%- set stand_in = [{'role': 'assistant', 'content': '\U0010fffd'}] -%}
{%- set shown = messages[:kept.last] + stand_in + messages[kept.last + 1:n] -%}
{{- served(shown, ahead).split('\U0010fffd')[-1] -}}
{%- endmacro -%}
{%- for message in messages if message.role == 'assistant' -%}
{%- set i = namespace(at=-1) -%}
{%- for other in messages -%}
{%- if other is sameas message -%}{%- set i.at = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- set prompt = served(messages[:i.at], true) -%}
{%- set whole = served(messages[:i.at + 1], false) -%}
{%- if not whole.startswith(prompt) -%}
{{- raise_exception('history: keep needs every answer to stand behind its prompt') -}}
{%- endif -%}
{%- if kept.last is none -%}{%- set kept.text = prompt -%}
{%- else -%}{%- set kept.text = kept.text + behind(i.at, true) -%}{%- endif -%}
{%- set kept.last = i.at -%}
{%- set end = behind(i.at + 1, false) -%}
{%- set own = whole[prompt | length:] -%}
{%- set kept.text = kept.text + own[:(own | length) - (end | length)] -%}
{%- endfor -%}
{%- if kept.last is none -%}{{- served(messages, ahead) -}}
{%- else -%}{{- kept.text + behind(messages | length, ahead) -}}{%- endif -%}
"""


_HEAD, _TAIL = _WRAPPER.split("%TEMPLATE%")


def keep_history(template: str) -> str:
    """A chat template that writes what the given one does, its history kept.

    Args:
        template: The family's own; one whose history is kept already stays as it is.
    """
    is_kept = without_keeping(template) is not None
    return template if is_kept else _HEAD + template.removesuffix("\n") + _TAIL


def without_keeping(template: str) -> str | None:
    """The family's own template inside one that keeps history; ``None`` where it is none."""
    if template.startswith(_HEAD) and template.rstrip("\n").endswith(_TAIL.rstrip("\n")):
        return template[len(_HEAD) : template.rindex(_TAIL.rstrip("\n"))]
    return None


def keep_history_in(directory: Path) -> bool:
    """Put the kept template in the place of a tokenizer directory's own.

    Args:
        directory: Holds ``chat_template.jinja``, or ``tokenizer_config.json`` with the template.

    Returns:
        Whether there was a template.
    """
    file, config = directory / "chat_template.jinja", directory / "tokenizer_config.json"
    if file.is_file():
        file.write_text(keep_history(file.read_text("utf-8")), "utf-8")
        return True
    settings: Any = json.loads(config.read_text("utf-8")) if config.is_file() else {}
    if not isinstance(settings.get("chat_template"), str):
        return False
    settings["chat_template"] = keep_history(settings["chat_template"])
    config.write_text(json.dumps(settings, ensure_ascii=False, indent=2) + "\n", "utf-8")
    return True
