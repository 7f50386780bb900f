"""What the Mistral families share: turns in [INST], ids of nine letters or digits, no headers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from antiphon.formats._cursor import Reading
from antiphon.formats._readers import JsonCalls, NamedJson, take_doubled
from antiphon.formats._render import Writer
from antiphon.formats._scan import Block, Parser, Syntax, Thinking, Unmarked
from antiphon.messages import Conversation, Message, ToolSpec, dump_json

MARKS = frozenset(
    {
        "<s>",
        "</s>",
        "[INST]",
        "[/INST]",
        "[AVAILABLE_TOOLS]",
        "[/AVAILABLE_TOOLS]",
        "[TOOL_CALLS]",
        "[TOOL_RESULTS]",
        "[/TOOL_RESULTS]",
    }
)
CALLS = "[TOOL_CALLS]"


def _name_and_id(head: str) -> tuple[str, str]:
    """What stands before the arguments, taken apart."""
    name, _, id = head.partition("[CALL_ID]")
    return name.strip(), id.strip()


NAMED = NamedJson("[ARGS]", name=_name_and_id, next_block=(CALLS,), direct=True)
_OTHER = replace(NAMED, slip="other_version")
LISTED = JsonCalls(array=True, next_block=(CALLS,))


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls in one array, or each behind its name; either is read in place of the other, with a
    note."""

    listed: bool
    """Whether the family writes an array."""
    resync: tuple[str, ...] = (CALLS,)
    """See `Reader.resync`."""

    def read(self, p: Parser, opened_by: str) -> Reading[None]:
        """See `Reader.read`."""
        p.call_begin()
        yield from take_doubled(p, opened_by)
        if (yield from p.c.space()) in ("[", "{"):
            p.note_if("" if self.listed else "other_version")
            yield from LISTED.read(p, "")
        else:
            yield from (_OTHER if self.listed else NAMED).read(p, "")


def syntax(*, listed: bool, thinking: tuple[Thinking, ...] = (), lead: str = "") -> Syntax:
    """The table of a family.

    Args:
        listed: Whether it writes its calls in one array.
        thinking: How it writes reasoning.
        lead: See `Syntax.lead`.
    """
    return Syntax(
        blocks=(Block(CALLS, Calls(listed)),),
        thinking=thinking,
        bare=JsonCalls(bare_note="bare_json", array=True),
        unmarked=Unmarked(NAMED, ("[ARGS]", "[CALL_ID]")),
        lead=lead,
    )


_ID = re.compile(r"[a-zA-Z0-9]{9}")


def counted_ids(
    w: Writer, conversation: Conversation, *, interrupts: bool = False
) -> list[Sequence[str]]:
    """The ids of each message's calls, or the one that it answers; calls without one are numbered
    in order.

    Args:
        interrupts: Whether a user may speak behind a result.

    Raises:
        RenderError: An id is not nine letters or digits, or roles do not take turns.
    """
    found: list[Sequence[str]] = []
    waiting: list[str] = []
    n_calls = 0
    for index, message in enumerate(conversation.messages):
        ids: Sequence[str] = ()
        if message.role == "assistant":
            calls = message.tool_calls
            ids = [call.id or f"call{n:05}" for n, call in enumerate(calls, n_calls)]
            n_calls += len(calls)
            waiting = [*ids]
        elif message.role == "tool":
            following = waiting.pop(0) if waiting else ""
            ids = (message.tool_call_id or following,)
        for id in ids:
            if not _ID.fullmatch(id):
                raise w.refuse(f"call id {id!r} is not nine letters or digits; rename it", index)
        found.append(ids)
    _check_turns(w, conversation.messages, interrupts)
    return found


def _check_turns(w: Writer, messages: Sequence[Message], interrupts: bool) -> None:
    wanted = "user"
    for index, message in enumerate(messages):
        if interrupts and message.role == "user" and index and messages[index - 1].role == "tool":
            wanted = "user"
        if message.role == "tool" or message.tool_calls or (message.role == "system" and not index):
            continue
        if message.role == "system":
            raise w.refuse("a system message must come first; join system messages into one", index)
        if message.role != wanted:
            raise w.refuse(
                f"roles must take turns; expected {wanted!r}, got {message.role!r}", index
            )
        wanted = "assistant" if wanted == "user" else "user"


def tool_json(spec: ToolSpec) -> str:
    """A tool as the family lists it: always wrapped."""
    function = {k: v for k, v in spec.to_openai()["function"].items() if k != "return"}
    return dump_json({"type": "function", "function": function})
