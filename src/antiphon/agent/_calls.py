"""The calls of one reply: each gets an id of its own, and each an answer.

What the model reads where a call was not executed is written here.  Executing is the work of
`Tool.call`; when, and which together, is the loop's.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from antiphon.messages import InvalidToolCall, Message, ToolCall, ToolResult, dump_json

_MAX_QUOTED_CHARS = 200
_CALL_MARKUP = re.compile(
    r"<tool_call>|<function=|\[TOOL_CALLS\]|<\|python_tag\|>|tool▁calls▁begin"
)


class Ids:
    """Hands out ids that no other call of the run has."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._n = 0

    def own(self, id: str) -> str:
        """The id itself where it is the first of its name, else a new one."""
        while not id or id in self._taken:
            self._n += 1
            id = f"call_{self._n}"
        self._taken.add(id)
        return id


def with_own_ids(message: Message, ids: Ids) -> Message:
    """The message with missing and repeated call ids replaced."""
    calls = tuple(_with_id(call, ids.own(call.id)) for call in message.tool_calls)
    invalid = tuple(_invalid_with_id(c, ids.own(c.id)) for c in message.invalid_tool_calls)
    if calls == message.tool_calls and invalid == message.invalid_tool_calls:
        return message
    return replace(message, tool_calls=calls, invalid_tool_calls=invalid)


def _with_id(call: ToolCall, id: str) -> ToolCall:
    return call if call.id == id else replace(call, id=id)


def _invalid_with_id(call: InvalidToolCall, id: str) -> InvalidToolCall:
    return call if call.id == id else replace(call, id=id)


def call_ids(messages: Iterable[Message]) -> Iterable[str]:
    """The ids of all calls in messages."""
    for message in messages:
        yield from (call.id for call in message.tool_calls)
        yield from (call.id for call in message.invalid_tool_calls)


def n_calls(message: Message) -> int:
    """How many answers a message waits for."""
    return len(message.tool_calls) + len(message.invalid_tool_calls)


def invalid_result(call: InvalidToolCall) -> ToolResult:
    """The answer to text that meant to be a call."""
    name = f" to {call.name!r}" if call.name else ""
    return ToolResult(
        call.id,
        call.name,
        f"The call{name} was not executed: {call.reason}. You wrote: {_quote(call.raw)}. "
        "Write the whole call again.",
        is_error=True,
    )


def refused_results(message: Message, why: str) -> list[ToolResult]:
    """The same answer to every call of a message: not executed, and why."""
    calls: Sequence[ToolCall | InvalidToolCall] = (
        *message.tool_calls,
        *message.invalid_tool_calls,
    )
    return [
        ToolResult(call.id, call.name, f"This call was not executed: {why}.", is_error=True)
        for call in calls
    ]


def has_written_call(text: str, names: Iterable[str]) -> bool:
    """Whether a text holds a family's markup of a call, followed by the name of a tool on offer."""
    found = _CALL_MARKUP.search(text)
    return found is not None and any(name in text[found.end() :] for name in names)


def cut_reason(n_tokens: int) -> str:
    """Why calls of a reply that ended at the output limit are not executed."""
    after = f" after {n_tokens} tokens" if n_tokens else ""
    return (
        f"your reply was cut off by the output token limit (length){after}, so its calls may be "
        "incomplete; write a shorter reply with the whole call"
    )


UNKNOWN_OUTCOME = (
    "The run was interrupted while this call was under way. Its outcome is unknown: it may or may "
    "not have taken effect. Check before you repeat it."
)
"""What the model reads of a call that a dead process had begun."""

INTERRUPTED = "This call was interrupted before it had an answer."
"""What the model reads of a call that an earlier run left open."""

CANCELLED = "This call was cancelled before it had an answer."
"""What the model reads of a call whose run was cancelled or out of time."""


class Repeats:
    """Counts how often in a row the same call had the same result.

    Other arguments or another result begin anew: a tool that is asked again and again and answers
    differently is making progress.
    """

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        """Set up.

        Args:
            messages: What was said so far, for a run that goes on.
        """
        self.n = 0
        self._last = ""
        open_calls: dict[str, ToolCall] = {}
        for message in messages:
            open_calls |= {call.id: call for call in message.tool_calls}
            if message.role == "tool" and message.tool_call_id in open_calls:
                self.count(open_calls[message.tool_call_id], message.text)

    def count(self, call: ToolCall, text: str) -> int:
        """Take in a call and what came of it; how often that has been so in a row."""
        now = dump_json([call.name, call.arguments, text])
        self.n = self.n + 1 if now == self._last else 1
        self._last = now
        return self.n


def repeated_note(call: ToolCall, n: int) -> str:
    """What the model is told when it repeats itself."""
    return (
        f"You have called {call.name} with the same arguments {n} times in a row, and the result "
        "was the same each time. Calling it again will not change it: do something else, or answer "
        "with what you have."
    )


def late_handoff(result: ToolResult) -> ToolResult:
    """The answer to a second handoff of one reply."""
    return ToolResult(
        result.call_id,
        result.name,
        "Not handed over: another agent had already taken over in this reply.",
        is_error=True,
    )


def unanswered(call: ToolCall | InvalidToolCall, text: str) -> ToolResult:
    """The answer to a call that has none."""
    return ToolResult(call.id, call.name, text, is_error=True)


def _quote(text: str) -> str:
    if len(text) <= _MAX_QUOTED_CHARS:
        return text
    half = _MAX_QUOTED_CHARS // 2
    return f"{text[:half]} [...] {text[-half:]}"
