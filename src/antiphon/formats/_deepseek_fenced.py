"""DeepSeek V3 and R1, whose texts differ in little: how a conversation of theirs is written."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from antiphon.formats import _deepseek as ds
from antiphon.formats._render import Writer, check_written, refuse_images
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Parts, Rendered
from antiphon.formats._usual import Place, Usual, Usuals, answered, called, given
from antiphon.messages import Conversation, Message, dump_json

_HOW = (
    "You are a helpful assistant with tool calling capabilities. When a tool call is needed, you "
    "MUST use the following format to issue the call:\n"
    f"{ds.CALLS}{ds.CALL}function{ds.SEP}FUNCTION_NAME\n"
    '```json\n{"param1": "value1", "param2": "value2"}\n'
    f"```{ds.CALL_END}{ds.CALLS_END}\n\n"
)
_TOOLS = (
    "Make sure the JSON is valid.## Tools\n\n### Function\n\n"
    "You have the following functions available:\n\n"
)


def render(
    w: Writer, conversation: Conversation, syntax: Syntax, *, reasons: bool, generate: bool
) -> Rendered:
    """The conversation as text.

    Args:
        w: Takes the pieces.
        conversation: What to write.
        syntax: The family's table.
        reasons: Whether the family reasons: then reasoning of the last message is shown.
        generate: Whether the model writes next.
    """
    messages = conversation.messages
    refuse_images(w, messages)
    w.mark(ds.BOS, "frame")
    system = ds.write_system(w, messages)
    if conversation.tools:
        w.text("\n\n" if any(text for text, _ in system) else "", "frame")
        w.put(_HOW, "frame")
        listing = "".join(
            f"\n```json\n{dump_json(t.to_openai())}\n```\n" for t in conversation.tools
        )
        w.text(_TOOLS + listing, "frame")
    known = w.family, reasons
    usual = _usuals(syntax)
    for index in w.walk(known, messages, tools=conversation.tools, usual=usual):
        message = messages[index]
        before = ds.role_before(messages, index)
        match message.role:
            case "system":
                continue
            case "user":
                follows = index + 1 < len(messages) or generate or not reasons
                w.around(ds.ASKED if follows else ds.QUESTION, message.text, index)
            case "tool":
                if _is_first_output(messages, index):
                    w.mark(ds.OUTPUTS, "frame", index)
                else:
                    w.text("\n", "frame", index)
                ds.write_result(w, message, index)
            case "assistant":
                if before == "tool":
                    w.mark(ds.OUTPUTS_END, "frame", index)
                _assistant(w, conversation, index, syntax, opens=before == "user", reasons=reasons)
    before = ds.role_before(messages, len(messages))
    if before == "tool":
        w.mark(ds.OUTPUTS_END, "frame")
    elif generate and before != "user":
        w.mark(ds.ASSISTANT, "frame")
    return w.done()


def _assistant(
    w: Writer, conversation: Conversation, index: int, syntax: Syntax, *, opens: bool, reasons: bool
) -> None:
    last = index + 1 == len(conversation.messages)
    message: Message = conversation.messages[index]
    message = ds.as_shown(w, message, index, keep=opens and last and reasons)
    since = len(w.pieces)
    if message.reasoning:
        w.put("<think>\n", "written", index)
        w.text(message.reasoning + "\n", "written", index)
        w.put("</think>\n\n", "written", index)
    w.text(message.text, "written", index)
    ds.write_calls(w, message, index, ds.fenced_text, between="\n")
    check_written(w, syntax, message, index, since=since, tools=conversation.tools)
    w.mark(ds.EOS, "written", index)


def _is_first_output(messages: Sequence[Message], index: int) -> bool:
    """Whether no result stands between a result and the last calls."""
    for i in range(index - 1, -1, -1):
        if messages[i].role == "tool" or messages[i].tool_calls:
            return messages[i].role != "tool"
    return True


@cache
def _usuals(syntax: Syntax) -> Usuals:
    def usual(place: Place) -> Usual | None:
        before, kind, after, _ = place
        ends: Parts = ((ds.OUTPUTS_END, "frame"),) if before == "tool" else ()
        match kind:
            case "user" if after:
                return given(ds.ASKED)
            case _ if before == "system":
                return None
            case "tool" if before in ("calls", "tool"):
                lead = ds.OUTPUTS if before == "calls" else "\n"
                return given(replace(ds.RESULT, before=((lead, "frame"), *ds.RESULT.before)))
            case "assistant":
                return answered(replace(ds.ANSWER, before=ends), syntax)
            case "calls":
                frame = ds.call_around(ends, "function")
                return called(frame, lambda name: f"{name}\n```json\n", "\n```")
            case _:
                return None

    return Usuals(usual)
