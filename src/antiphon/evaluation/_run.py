"""All cases of a benchmark against one model.

A step is asked as a run would ask it, and its calls are compared with the right ones; the case's
own
results answer them, so that nothing depends on a live tool.  The first wrong step ends the case.
"""

import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace

from antiphon.errors import ModelResponseError
from antiphon.evaluation._cases import Case, Outcome, same_call
from antiphon.messages import Completion, Conversation, Message, ToolCall
from antiphon.models import Model, ModelSettings


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to ask the same model."""

    name: str
    """How the table calls it: ``free``, ``grammar``, ``react``."""
    model: Model
    """The model, with its format."""
    settings: ModelSettings
    """How it is sampled."""


async def evaluate(
    cases: Iterable[Case], mode: Mode, *, done: Sequence[Outcome] = ()
) -> AsyncIterator[Outcome]:
    """Judge case after case.

    Args:
        cases: What to ask.
        mode: The model and how it is asked.
        done: Outcomes of an earlier, interrupted run; their cases are not asked again.

    Yields:
        An outcome for each case that was not done.

    Raises:
        ModelError: The model cannot be asked.
    """
    known = {outcome.case for outcome in done}
    for case in cases:
        if case.id not in known:
            yield await judge(case, mode)


async def judge(case: Case, mode: Mode) -> Outcome:
    """Ask one case, step by step.

    Raises:
        ModelError: The model cannot be asked.
    """
    conversation = Conversation((Message.user(case.question),), case.tools)
    began = time.monotonic()
    outcome = Outcome(case.id, case.kind, right=True)
    for number, wanted in enumerate(case.steps or ((),)):
        completion = await _complete(mode, conversation)
        error = _error(wanted, completion.message, case)
        if error:
            wrote = completion.text if completion.text is not None else completion.message.text
            outcome = replace(outcome, right=False, error=error, step=number, wrote=wrote)
            break
        if number < len(case.results):
            conversation = _answered(conversation, completion.message, wanted, case.results[number])
    return replace(outcome, seconds=time.monotonic() - began)


async def _complete(mode: Mode, conversation: Conversation) -> Completion:
    async for output in mode.model.stream(conversation, mode.settings):
        if isinstance(output, Completion):
            return output
    raise ModelResponseError(f"model {mode.model.spec!r} ended its stream without a completion")


def _answered(
    conversation: Conversation, message: Message, wanted: Sequence[ToolCall], results: Sequence[str]
) -> Conversation:
    """The conversation with the model's own calls and the case's results."""
    calls = tuple(
        replace(call, id=call.id or f"call_{len(conversation.messages)}_{i}")
        for i, call in enumerate(message.tool_calls)
    )
    answers = [
        Message.tool(text, call_id=call.id, name=call.name)
        for call, text in zip(calls, results, strict=True)
    ]
    return conversation.append(replace(message, tool_calls=calls), *answers)


def _error(wanted: Sequence[ToolCall], message: Message, case: Case) -> str:
    """The kind of mistake in one step; empty where there is none."""
    got = message.tool_calls
    if not wanted:
        if got or message.invalid_tool_calls:
            return "needless_call"
        return "" if message.text.strip() else "empty"
    if message.invalid_tool_calls:
        return "invalid_call"
    if not got:
        return "no_call"
    if len(got) > len(wanted):
        return "extra_call"
    if [c.name for c in got] != [c.name for c in wanted]:
        return "wrong_tool"
    pairs = zip(wanted, got, strict=True)
    return "" if all(same_call(w, g, case.tools) for w, g in pairs) else "wrong_arguments"
