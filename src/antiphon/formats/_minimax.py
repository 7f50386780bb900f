"""What the MiniMax families share: turns, tools as JSON in tags, and results."""

from collections.abc import Sequence

from antiphon.formats._render import Turns, Writer, is_first_result, is_last_result
from antiphon.formats._usual import Place, Usual, given
from antiphon.messages import ImagePart, Message, TextPart, ToolSpec, dump_json

TURNS = Turns(
    open="]~b]{role}\n",
    end="[e~[",
    between="\n",
    before_all="]~!b[",
    specials=frozenset({"]~!b[", "]~b]", "[e~["}),
    roles=(("assistant", "ai"),),
)


def write_system(
    w: Writer,
    turns: Turns,
    role: str,
    system: str | None,
    identity: str,
    tools: Sequence[ToolSpec],
    how: str,
    *,
    index: int | None,
) -> None:
    """The turn that says who the model is and which tools there are.

    Args:
        w: What is written.
        turns: The family's turns.
        role: The role of the turn.
        system: What the conversation says.
        identity: What is said where it says nothing.
        tools: The tools.
        how: How to call them.
        index: The position of the system message.
    """
    turns.begin(w, role, index)
    w.text(system or identity, "given" if system else "frame", index)
    if tools:
        lines = "".join(
            f"<tool>{dump_json(spec.to_openai()['function'])}</tool>\n" for spec in tools
        )
        w.text(
            "\n\n# Tools\nYou may call one or more tools to assist with the user query.\n"
            f"Here are the tools available in JSONSchema format:\n\n<tools>\n{lines}</tools>\n\n",
            "frame",
            index,
        )
        w.put(how, "frame", index)
    turns.finish(w, role, index)


def write_given(w: Writer, turns: Turns, messages: Sequence[Message], index: int) -> None:
    """A user message or a tool result; a run of results is one turn.

    Raises:
        RenderError: A system message does not come first, or a result answers no call.
    """
    message = messages[index]
    if message.role == "system":
        raise w.refuse("a system message must come first; join system messages into one", index)
    if message.role == "user":
        turns.begin(w, "user", index)
        write_content(w, message, index)
        turns.finish(w, "user", index)
        return
    if not _answers(messages, index):
        raise w.refuse("a result stands behind the call that it answers; there is none", index)
    if is_first_result(messages, index):
        turns.begin(w, "tool", index)
    else:
        w.text("\n", "frame", index)
    w.text("<response>", "frame", index)
    write_content(w, message, index)
    w.text("</response>", "frame", index)
    if is_last_result(messages, index):
        turns.finish(w, "tool", index)


def usual(place: Place, turns: Turns, specials: frozenset[str]) -> Usual | None:
    """How a user message or the only result of a call is written as most are; see `_usual.py`."""
    if place.kind == "user":
        return given(turns.frame("user", specials=specials))
    if place.kind == "tool" and place.before == "calls" and place.after != "tool":
        return given(turns.frame("tool", "<response>", "</response>", specials=specials))
    return None


def _answers(messages: Sequence[Message], index: int) -> bool:
    """Whether the last that a model said before a result is a call."""
    for i in range(index - 1, -1, -1):
        if messages[i].role == "assistant":
            return bool(messages[i].tool_calls or messages[i].invalid_tool_calls)
    return False


def write_content(w: Writer, message: Message, index: int) -> None:
    """Text and images, in order."""
    for part in message.parts:
        if isinstance(part, TextPart):
            w.text(part.text, "given", index)
        elif isinstance(part, ImagePart):
            w.mark("]<]image[>[", "given", index)
