"""A whole message as the deltas that would have brought it, for models that have it all at once.

It knows no model and no wire format.
"""

from collections.abc import Iterator

from antiphon.messages import (
    Delta,
    Message,
    StopReason,
    TextDelta,
    TextPart,
    ThinkingDelta,
    ThinkingPart,
    ToolCallDelta,
    dump_json,
)


def cut(text: str, n_chars: int) -> Iterator[str]:
    """Pieces of at most `n_chars` characters; joined they are the text.

    >>> list(cut("abcde", 2))
    ['ab', 'cd', 'e']
    """
    for start in range(0, len(text), n_chars):
        yield text[start : start + n_chars]


def deltas_of(message: Message, n_chars: int = 16) -> Iterator[Delta]:
    """The deltas of a finished message: parts in order, then calls.

    Args:
        message: What was answered.
        n_chars: The longest text of one delta, in characters.
    """
    for part in message.parts:
        if isinstance(part, TextPart):
            yield from (TextDelta(piece) for piece in cut(part.text, n_chars))
        elif isinstance(part, ThinkingPart):
            yield from (ThinkingDelta(piece) for piece in cut(part.text, n_chars))
    for index, call in enumerate(message.tool_calls):
        yield ToolCallDelta(index, name=call.name, id=call.id)
        for piece in cut(dump_json(call.arguments), n_chars):
            yield ToolCallDelta(index, arguments=piece)


def natural_stop(message: Message) -> StopReason:
    """Why a model that was not cut stopped: for its calls, or at the end of its answer."""
    return "tool_calls" if message.tool_calls or message.invalid_tool_calls else "stop"
