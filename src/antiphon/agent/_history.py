"""Given messages made fit for the strictest server: each call has one answer, right after it.

Histories come from files, from other programs and from runs that were killed.  Calls without an
answer are answered as interrupted, missing and repeated ids are replaced, and answers that belong
to no call become what a user says, so that nothing is lost.
"""

from collections.abc import Iterable
from dataclasses import replace

from antiphon.agent._calls import INTERRUPTED, Ids, n_calls, unanswered, with_own_ids
from antiphon.agent._record import Record, open_step
from antiphon.events import Trajectory
from antiphon.messages import Message, TextPart


def mend(messages: Iterable[Message], ids: Ids) -> list[Message]:
    """The messages, each call followed by its one answer.

    Args:
        messages: What was said before, in order.
        ids: Where call ids are taken from.
    """
    mended: list[Message] = []
    asked: Message | None = None
    given: Message | None = None
    answers: list[Message] = []
    for message in messages:
        if message.role == "tool" and given is not None:
            answers.append(message)
            continue
        if given is not None and asked is not None:
            mended += _answered(given, asked, answers)
            given = asked = None
        answers = []
        if message.role == "assistant" and n_calls(message):
            given, asked = message, with_own_ids(message, ids)
            mended.append(asked)
        else:
            mended.append(_orphan(message) if message.role == "tool" else message)
    if given is not None and asked is not None:
        mended += _answered(given, asked, answers)
    return mended


def closed(trajectory: Trajectory) -> tuple[Message, ...]:
    """What a run said, for a run after it; `mend` answers what a broken-off one left open."""
    messages = Record.of(trajectory).messages
    unfinished = open_step(trajectory)
    if unfinished is not None:
        results = trajectory.steps[unfinished].results
        messages += [Message.from_result(result) for result in results]
    return tuple(messages)


def _answered(given: Message, asked: Message, answers: list[Message]) -> list[Message]:
    """One answer a call, in the calls' order, under the calls' own ids."""
    left = list(answers)
    mended: list[Message] = []
    old = (*given.tool_calls, *given.invalid_tool_calls)
    new = (*asked.tool_calls, *asked.invalid_tool_calls)
    for was, now in zip(old, new, strict=True):
        answer = next((a for a in left if a.tool_call_id == was.id), None)
        if answer is None:
            mended.append(Message.from_result(unanswered(now, INTERRUPTED)))
            continue
        left.remove(answer)
        changed = answer.tool_call_id != now.id or not answer.name
        mended.append(
            replace(answer, tool_call_id=now.id, name=answer.name or now.name)
            if changed
            else answer
        )
    return mended + [_orphan(answer) for answer in left]


def _orphan(message: Message) -> Message:
    """A tool's answer that belongs to no call, as something that a user tells."""
    parts = (TextPart(f"[answer of tool {message.name or 'unknown'}]\n"), *message.parts)
    return Message("user", parts, metadata={"was": "tool"})
