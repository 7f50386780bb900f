"""All cases of a benchmark against one model.

A step is asked as a run would ask it, and its calls are compared with the right ones; the case's
own
results answer them, so that nothing depends on a live tool.  The first wrong step ends the case.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from antiphon.errors import UsageError
from antiphon.evaluation._accepted import calls_error
from antiphon.evaluation._cases import Case, Outcome, same_call
from antiphon.messages import Completion, Conversation, Message, ToolCall
from antiphon.models import Model, ModelSettings, complete


@dataclass(frozen=True, slots=True)
class Mode:
    """One way to ask the same model."""

    name: str
    """How the table calls it: ``free``, ``grammar``, ``react``."""
    model: Model
    """The model, with its format."""
    settings: ModelSettings
    """How it is sampled."""


class OwnCase(Protocol):
    """A case that judges for itself, for example by the state that its tools are left in."""

    @property
    def id(self) -> str:
        """The case's name."""
        ...

    @property
    def kind(self) -> str:
        """Its kind."""
        ...

    async def judged(self, mode: Mode) -> Outcome:
        """Ask a model, and judge it.

        Raises:
            ModelError: The model cannot be asked.
        """
        ...


async def evaluate(
    cases: Iterable[Case | OwnCase],
    mode: Mode,
    *,
    done: Sequence[Outcome] = (),
    concurrency: int = 1,
) -> AsyncIterator[Outcome]:
    """Judge case after case, or several at once.

    Args:
        cases: What to ask.
        mode: The model and how it is asked.
        done: Outcomes of an earlier, interrupted run; their cases are not asked again.
        concurrency: How many cases are asked at once.

    Yields:
        An outcome for each case that was not done, as they end.

    Raises:
        ModelError: The model cannot be asked.
        UsageError: `concurrency` is not positive.
    """
    if concurrency < 1:
        raise UsageError(f"concurrency must be at least 1, got {concurrency}")
    known = {outcome.case for outcome in done}
    waiting = (case for case in cases if case.id not in known)
    tasks: set[asyncio.Task[Outcome]] = set()
    try:
        while True:
            for case in islice(waiting, concurrency - len(tasks)):
                judged = judge(case, mode) if isinstance(case, Case) else case.judged(mode)
                tasks.add(asyncio.create_task(judged))
            if not tasks:
                return
            ended, tasks = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                yield task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def judge(case: Case, mode: Mode) -> Outcome:
    """Ask one case, step by step.

    Raises:
        ModelError: The model cannot be asked.
    """
    conversation = Conversation(case.messages or (Message.user(case.question),), case.tools)
    began = time.monotonic()
    outcome = Outcome(case.id, case.kind, right=True)
    for number, wanted in enumerate(case.steps or ((),)):
        completion = await complete(mode.model, conversation, mode.settings)
        error = step_error(wanted, completion, case)
        if error:
            wrote = completion.text if completion.text is not None else completion.message.text
            outcome = replace(outcome, right=False, error=error, step=number, wrote=wrote)
            break
        if number < len(case.results):
            conversation = _answered(conversation, completion.message, wanted, case.results[number])
    return replace(outcome, seconds=time.monotonic() - began)


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


def step_error(wanted: Sequence[ToolCall], completion: Completion, case: Case) -> str:
    """The kind of mistake in one step; empty where there is none."""
    message = completion.message
    got = message.tool_calls
    if completion.stop_reason in ("refusal", "content_filter"):
        return "refused"
    if not wanted and not case.accepts and not case.wants_call:
        if got or message.invalid_tool_calls:
            return "needless_call"
        return "" if message.text.strip() else "empty"
    if message.invalid_tool_calls:
        return "invalid_call"
    if not got:
        return "no_call"
    if case.wants_call:
        return ""
    if case.accepts:
        return calls_error(got, case.functions, case.accepts, language=case.language)
    return _exact_error(wanted, got, case)


def _exact_error(wanted: Sequence[ToolCall], got: Sequence[ToolCall], case: Case) -> str:
    if len(got) > len(wanted):
        return "extra_call"
    if len(got) < len(wanted):
        return "missing_call"
    names = {spec.name for spec in case.tools}
    if any(call.name not in names for call in got):
        return "hallucinated_tool"
    if [c.name for c in got] != [c.name for c in wanted]:
        return "wrong_tool"
    for one, other in zip(wanted, got, strict=True):
        if not same_call(one, other, case.tools):
            missing = set(one.arguments) - set(other.arguments)
            extra = set(other.arguments) - set(one.arguments)
            return "missing_argument" if missing else _arguments_error(extra)
    return ""


def _arguments_error(extra: set[str]) -> str:
    return "extra_argument" if extra else "wrong_arguments"
