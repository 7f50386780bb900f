"""How DeepSeek-V4 and V4.1 frame turns: results are a user's, and a header follows each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from antiphon.formats import _dsml as dsml
from antiphon.formats._render import (
    Writer,
    inline_reasoning,
    refuse_images,
    split_system,
    with_parts,
)
from antiphon.formats._scan import Syntax
from antiphon.formats._tagged import Tagged, check_calls, write_calls
from antiphon.formats._types import Rendered
from antiphon.messages import Conversation, Message


@dataclass(frozen=True, slots=True)
class DsmlTurns:
    """What differs between the families."""

    name: str
    """The family's name."""
    specials: frozenset[str]
    """Marks that are single tokens."""
    tags: Tagged
    """The tags of calls."""
    syntax: Syntax
    """The table that the parser runs on."""
    thinking: bool
    """Whether the model is asked to reason."""
    head: str = ""
    """What stands before everything else."""
    system: str = ""
    """The mark of a system message."""


def render(turns: DsmlTurns, conversation: Conversation, *, generate: bool) -> Rendered:
    """A conversation in one of the families."""
    w = Writer(turns.name, turns.specials)
    messages = dsml.in_call_order(conversation.messages)
    conversation = replace(conversation, messages=messages)
    refuse_images(w, messages)
    w.put("<｜begin▁of▁sentence｜>", "frame")
    system, first = split_system(conversation)
    if turns.head or system is not None or conversation.tools:
        w.put(turns.system + turns.head, "frame", 0 if first else None)
    w.text(system or "", "given", 0)
    if conversation.tools:
        w.put("\n\n" + dsml.tools_text(turns.tags, ()).partition("### Available")[0], "frame")
        text = dsml.tools_text(turns.tags, conversation.tools)
        w.text("### Available" + text.partition("### Available")[2], "frame")
    last_ask = max((i for i in range(len(messages)) if _asks(messages, i, turns)), default=-1)
    for index in w.walk(turns, messages, first, tools=conversation.tools, shown_from=last_ask):
        message = messages[index]
        if message.role == "assistant":
            _assistant(w, turns, conversation, index, last_ask=last_ask)
        elif message.role == "system":
            if not turns.system:
                raise w.refuse(
                    "a system message must come first; join system messages into one", index
                )
            w.put(turns.system, "frame", index)
            w.text(message.text, "given", index)
        else:
            joins = index > first and messages[index - 1].role in ("user", "tool")
            w.put("\n\n" if joins else "<｜User｜>", "frame", index)
            is_result = message.role == "tool"
            w.text("<tool_result>" if is_result else "", "frame", index)
            w.text(message.text, "given", index)
            w.text("</tool_result>" if is_result else "", "frame", index)
    if not generate:
        return w.done()
    asked = not messages or messages[-1].role in ("user", "tool") or bool(turns.system)
    if asked:
        w.put("<｜Assistant｜>", "frame")
        w.put("<think>" if turns.thinking else "</think>", "frame")
    return w.done(start="reasoning" if asked and turns.thinking else "content")


def _asks(messages: Sequence[Message], index: int, turns: DsmlTurns) -> bool:
    """Whether a message is one that a turn of the model follows."""
    role = messages[index].role
    return role in ("user", "tool") or (role == "system" and bool(turns.system) and index > 0)


def _assistant(
    w: Writer, turns: DsmlTurns, conversation: Conversation, index: int, *, last_ask: int
) -> None:
    messages = conversation.messages
    message = inline_reasoning(messages[index])
    shows = turns.thinking and (bool(conversation.tools) or index > last_ask)
    follows = index > 0 and _asks(messages, index - 1, turns)
    if message.reasoning and not shows:
        w.changed.append(index)
        message = with_parts(message, reasoning="", text=message.text)
    if turns.thinking and not shows:
        w.changed.append(index)
    if follows:
        w.put("<｜Assistant｜>", "frame", index)
        w.put("<think>" if shows else "</think>", "frame", index)
    since = len(w.pieces)
    if shows:
        w.text(message.reasoning, "written", index)
        w.put("</think>", "written", index)
    w.text(message.text, "written", index)
    write_calls(w, turns.tags, message, index, before="\n\n")
    check_calls(
        w, turns.tags, turns.syntax, message, index,
        since=since, tools=conversation.tools,
        start="reasoning" if shows and follows else "content",
    )  # fmt: skip
    w.put(dsml.END, "written", index)
