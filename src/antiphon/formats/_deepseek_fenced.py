"""DeepSeek V3 and R1, whose texts differ in little: how a conversation of theirs is written."""

from antiphon.formats import _deepseek as ds
from antiphon.formats._render import Writer, check_written, plain_text, refuse_images
from antiphon.formats._scan import Syntax
from antiphon.formats._types import Rendered
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
    w.state = "", True
    for index in w.walk((w.family, reasons), messages, tools=conversation.tools):
        message = messages[index]
        before, first_output = w.state
        match message.role:
            case "system":
                continue
            case "user":
                follows = index + 1 < len(messages) or generate or not reasons
                w.around(ds.ASKED if follows else ds.QUESTION, message.text, index)
            case "tool":
                if first_output:
                    w.mark(ds.OUTPUTS, "frame", index)
                w.text("" if first_output else "\n", "frame", index)
                ds.write_result(w, message, index)
                first_output = False
            case "assistant":
                if before == "tool":
                    w.mark(ds.OUTPUTS_END, "frame", index)
                first_output = first_output or bool(message.tool_calls)
                _assistant(w, conversation, index, syntax, opens=before == "user", reasons=reasons)
        w.state = message.role, first_output
    before = w.state[0]
    if before == "tool":
        w.mark(ds.OUTPUTS_END, "frame")
    elif generate and before != "user":
        w.mark(ds.ASSISTANT, "frame")
    return w.done()


def _assistant(
    w: Writer, conversation: Conversation, index: int, syntax: Syntax, *, opens: bool, reasons: bool
) -> None:
    text = plain_text(syntax, conversation.messages[index])
    if text is not None:
        w.around(ds.ANSWER, text, index)
        return
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
