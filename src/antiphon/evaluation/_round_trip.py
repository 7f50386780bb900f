"""The round trip: right calls, written by a family's format and read back, are still right.

No model is asked: what is measured is ours.  A family that cannot express a case refuses it by
name, which is no fault and is counted apart.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from antiphon.errors import RenderError
from antiphon.evaluation._accepted import first_answer
from antiphon.evaluation._cases import Case, Outcome
from antiphon.evaluation._run import step_error
from antiphon.formats import Format
from antiphon.messages import Completion, Conversation, Message, ToolCall

CANNOT = "cannot_express"
"""The error of a case that a family refuses to write."""


def right_calls(case: Case) -> tuple[tuple[ToolCall, ...], ...]:
    """The right calls of each step; of accepted ones, the first of each."""
    if not case.accepts:
        return case.steps
    documents = {str(f["name"]): f for f in case.functions}
    return (tuple(first_answer(a, documents[next(iter(a))], case.language) for a in case.accepts),)


def round_trip(cases: Iterable[Case], format: Format) -> Iterator[Outcome]:
    """An outcome for each case that has right calls.

    Args:
        cases: The cases.
        format: The family.
    """
    for case in cases:
        steps = right_calls(case)
        if steps:
            yield _one(case, steps, format)


def _one(case: Case, steps: tuple[tuple[ToolCall, ...], ...], format: Format) -> Outcome:
    conversation = Conversation(case.messages or (Message.user(case.question),), case.tools)
    for number, calls in enumerate(steps):
        calls = tuple(replace(c, id=f"call{number:02d}{n:03d}") for n, c in enumerate(calls))
        answer = Message.assistant(tool_calls=calls)
        try:
            text, read, changed = _read_back(conversation, answer, format)
        except RenderError as error:
            return Outcome(
                case.id, case.kind, right=False, error=CANNOT, step=number, wrote=str(error)
            )
        wrong = step_error(calls, Completion(read, "tool_calls"), case)
        repaired = any(call.repairs for call in read.tool_calls)
        if wrong or repaired:
            error = CANNOT if changed else wrong or "repaired"
            return Outcome(case.id, case.kind, right=False, error=error, step=number, wrote=text)
        results = case.results[number] if number < len(case.results) else ["done"] * len(calls)
        answers = [
            Message.tool(result, call_id=call.id, name=call.name)
            for call, result in zip(calls, results, strict=True)
        ]
        conversation = conversation.append(answer, *answers)
    return Outcome(case.id, case.kind, right=True)


def _read_back(
    conversation: Conversation, answer: Message, format: Format
) -> tuple[str, Message, bool]:
    """What a model would write to say this, the message that is read from it, and whether the
    family says that it could not write all of it."""
    prompt = format.render(conversation, generate=True)
    whole = format.render(conversation.append(answer))
    start = prompt.start
    if whole.text.startswith(prompt.text):
        text = whole.text[len(prompt.text) :]
    else:  # the family writes history otherwise than it is generated
        index = len(conversation.messages)
        written = [p for p in whole.pieces if p.message == index and p.author == "written"]
        text, start = "".join(p.text for p in written), "content"
    ends = [text.index(stop) for stop in format.stop if stop in text]
    text = text[: min(ends)] if ends else text
    read = format.parse(text, tools=conversation.tools, start=start)
    return text, read, len(conversation.messages) in whole.changed
