"""What Qwen2.5, Qwen3 and their kin share: ChatML, tools as JSON lines, Hermes calls, results in a
user turn."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from antiphon.formats._kin import TAGS, json_blocks
from antiphon.formats._readers import JsonCalls
from antiphon.formats._render import (
    CHATML,
    Turns,
    Writer,
    call_json,
    inline_reasoning,
    invalid_text,
    is_first_result,
    is_last_result,
    of_tools,
    spec_json,
    with_parts,
)
from antiphon.formats._scan import Block, Syntax, Thinking
from antiphon.formats._usual import Place, Usual, answered, called, given, json_head
from antiphon.messages import (
    AudioPart,
    ImagePart,
    Message,
    TextPart,
    ThinkingPart,
    ToolSpec,
    VideoPart,
)

CALL_MARKS = frozenset({"<tool_call>", "</tool_call>"})
RESULT_MARKS = frozenset({"<tool_response>", "</tool_response>"})
THINK_MARKS = frozenset({"<think>", "</think>"})

Marks: TypeAlias = "Mapping[type, tuple[str, str, str]]"
"""For each kind of part that a model can be shown, the marks around and in its place."""

_SEEN: Marks = {
    ImagePart: ("<|vision_start|>", "<|image_pad|>", "<|vision_end|>"),
    VideoPart: ("<|vision_start|>", "<|video_pad|>", "<|vision_end|>"),
}
_HEARD = ("<|audio_bos|>", "<|AUDIO|>", "<|audio_eos|>")
MEDIA: Mapping[str, Marks] = {
    "": {},
    "vision": _SEEN,
    "audio": {AudioPart: _HEARD},
    "omni": {
        ImagePart: ("<|vision_bos|>", "<|IMAGE|>", "<|vision_eos|>"),
        AudioPart: _HEARD,
        VideoPart: ("<|vision_bos|>", "<|VIDEO|>", "<|vision_eos|>"),
    },
}
"""How the kin writes media: Qwen2-VL and all later ones, Qwen2-Audio, Qwen2.5-Omni."""
VISION_MARKS = frozenset(mark for marks in _SEEN.values() for mark in marks)
MEDIA_MARKS = frozenset(
    mark for kinds in MEDIA.values() for marks in kinds.values() for mark in marks
)

SYNTAX = Syntax(
    blocks=(
        Block(
            "<tool_call>",
            JsonCalls("</tool_call>", next_block=("<tool_call>",), tagged=TAGS),
            before="\n",
        ),
        *json_blocks("<tool_call>"),
    ),
    thinking=(Thinking(),),
    bare=JsonCalls(bare_note="bare_json"),
    doubled=("</tool_call>",),
)


def tools_text(tools: Sequence[ToolSpec]) -> str:
    """The tools, and how to call them."""
    lines = "".join("\n" + spec_json(spec) for spec in tools)
    return (
        "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
        "You are provided with function signatures within <tools></tools> XML tags:\n"
        f"<tools>{lines}\n</tools>\n\n"
        "For each function call, return a json object with function name and arguments within "
        "<tool_call></tool_call> XML tags:\n<tool_call>\n"
        '{"name": <function-name>, "arguments": <args-json-object>}\n</tool_call>'
    )


def write_tools(w: Writer, tools: Sequence[ToolSpec], index: int | None) -> None:
    """The tools in the system turn: what a tool says of itself is data, the marks are the
    family's."""
    head, _, tail = of_tools(tools_text, tools).partition("<tools></tools> XML tags:\n")
    w.text(head + "<tools></tools> XML tags:\n", "frame", index)
    listing, _, instruction = tail.rpartition("\n</tools>\n\n")
    w.text(listing + "\n</tools>\n\n", "frame", index)
    w.put(instruction, "frame", index)


def write_calls(w: Writer, message: Message, index: int, *, after_text: bool) -> None:
    """The calls of an assistant message, one block each."""
    for i, call in enumerate(message.tool_calls):
        if i or after_text:
            w.text("\n", "written", index)
        w.put("<tool_call>", "written", index)
        w.text(f"\n{call_json(call)}\n", "written", index)
        w.put("</tool_call>", "written", index)
    if message.invalid_tool_calls:
        if message.tool_calls or after_text:
            w.text("\n", "written", index)
        w.put(invalid_text(message), "written", index)


def usual(
    place: Place,
    syntax: Syntax = SYNTAX,
    *,
    specials: frozenset[str],
    turns: Turns = CHATML,
    result: tuple[str, str] = ("<tool_response>\n", "\n</tool_response>"),
    change: Callable[[str], str] | None = None,
    changes: bool = False,
) -> Usual | None:
    """How messages of a place are written as most are; see `_usual.py`.

    Args:
        place: Where they stand.
        syntax: The family's table.
        specials: The family's marks.
        turns: Its turns.
        result: What stands around a tool's result.
        change: What it makes of an answer's text.
        changes: Whether a model's messages differ from when they were written.
    """
    match place.kind:
        case "assistant":
            frame = turns.frame("assistant", specials=specials)
            return answered(frame, syntax, change, changes=changes)
        case "calls":
            frame = turns.frame("assistant", "<tool_call>", "</tool_call>", specials=specials)
            return called(frame, json_head("\n"), "}\n", changes=changes)
        case "tool":
            if "tool" in (place.before, place.after):
                return None
            return given(turns.frame("user", *result, specials=specials))
        case role:
            return given(turns.frame(role, specials=specials))


def as_written(w: Writer, message: Message, index: int) -> Message:
    """A message as the family can write it: reasoning apart from the text, line feeds trimmed."""
    split = inline_reasoning(message)
    reasoning = split.reasoning.strip("\n")
    text = split.text.lstrip("\n") if reasoning else split.text
    if reasoning != split.reasoning or text != split.text:
        w.changed.append(index)
    return with_parts(split, reasoning=reasoning, text=text)


def write_result(
    w: Writer,
    messages: Sequence[Message],
    index: int,
    *,
    turns: Turns = CHATML,
    media: Marks = _SEEN,
) -> None:
    """One tool result; a run of them is one user turn."""
    if is_first_result(messages, index):
        turns.begin(w, "user", index)
    else:
        w.text("\n", "frame", index)
    w.put("<tool_response>\n", "frame", index)
    write_content(w, messages, index, media)
    w.put("\n</tool_response>", "frame", index)
    if is_last_result(messages, index):
        turns.finish(w, "user", index)


def write_content(w: Writer, messages: Sequence[Message], index: int, media: Marks = _SEEN) -> None:
    """Text and media of a user or tool message, in order.

    What hears and does not see (Qwen2-Audio) has its sounds counted over the conversation, each on
    a line of its own.
    """
    message = messages[index]
    if not message.media:
        w.text(message.text, "given", index)
        return
    counts = ImagePart not in media
    n_before = sum(len(earlier.media) for earlier in messages[:index]) if counts else 0
    for part in message.parts:
        if isinstance(part, TextPart):
            w.text(part.text, "given", index)
            continue
        if isinstance(part, ThinkingPart):
            continue
        if counts:
            n_before += 1
            w.text(f"Audio {n_before}: ", "frame", index)
        for mark in media[type(part)]:
            w.mark(mark, "given", index)
        w.text("\n" if counts else "", "frame", index)
