"""Structure and format: what can be seen without running anything."""

from collections.abc import Iterator

from antiphon.datasets import Checker
from antiphon.errors import UsageError
from antiphon.events import Step
from antiphon.formats import read_format
from antiphon.messages import Message
from antiphon.verification._verdict import Sample, Verdict, passed

LAYER = "format"
_OF_ONE_MESSAGE = {"unknown_tool", "arguments"}
"""Faults of a call that a later one can mend: the message is wrong, the row need not be."""


def check_format(sample: Sample) -> Iterator[Verdict]:
    """Roles, ids and answers in order; every call readable, known, and as its schema says."""
    yield from _run(sample)
    found = [f for f in Checker().check(sample.row) if f.level == "error"]
    for finding in found:
        place = finding.message if finding.code in _OF_ONE_MESSAGE else None
        yield Verdict(LAYER, finding.code, "fail", finding.text, place)
    if not found:
        yield passed(LAYER, "structure")
    for index, message in enumerate(sample.conversation.messages):
        for invalid in message.invalid_tool_calls:
            reason = f"a call that cannot be read: {invalid.reason}"
            yield Verdict(LAYER, "invalid_call", "fail", reason, index)
    yield from _texts(sample)


def _run(sample: Sample) -> Iterator[Verdict]:
    run = sample.trajectory
    if run is None:
        return
    if run.stop_reason in ("answer", "stopped_by_tool"):
        yield passed(LAYER, "ended")
    else:
        reason = f"the run ended with {run.stop_reason}{': ' * bool(run.error)}{run.error}"
        yield Verdict(LAYER, "ended", "fail", reason)


def _texts(sample: Sample) -> Iterator[Verdict]:
    """Whether what a model wrote is read again as the message that is recorded."""
    steps = sample.trajectory.steps if sample.trajectory else ()
    n_checked = n_wrong = 0
    for number, step in enumerate(steps):
        readings = list(_readings(sample, step))
        if not readings:
            continue
        n_checked += 1
        if _said(step.completion.message) not in map(_said, readings):
            reason = f"the text of step {number} is read otherwise than it was recorded"
            n_wrong += 1
            yield Verdict(LAYER, "parse", "fail", reason)
    if n_checked and not n_wrong:
        yield passed(LAYER, "parse")


def _readings(sample: Sample, step: Step) -> Iterator[Message]:
    """What the format reads from a step's text, as an answer or as one whose reasoning the prompt
    had opened; nothing where that is not known."""
    completion = step.completion
    if completion.text is None or not completion.format or completion.prompt is None:
        return
    if completion.stop_reason in ("length", "cancelled", "error"):
        return
    try:
        format = read_format(completion.format)
    except UsageError:  # a family of a later version, or a template that is not here
        return
    known = {spec.name: spec for spec in sample.conversation.tools}
    tools = tuple(known[name] for name in step.tools if name in known)
    for start in ("content", "reasoning"):
        yield format.parse(completion.text, tools=tools, start=start)


def _said(message: Message) -> object:
    """What a message says, without the ids that its calls were given later."""
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    return message.parts, calls, [call.raw for call in message.invalid_tool_calls]
