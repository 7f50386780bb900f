"""Steps, events and encoded text of a Trajectory, as rows for the page."""

from collections.abc import Sequence

from antiphon.events import (
    ApprovalEvent,
    AttemptEvent,
    CallDeltaEvent,
    CallEvent,
    CompactionEvent,
    DecisionEvent,
    Event,
    FeedbackEvent,
    HandoffEvent,
    InsertionEvent,
    InvalidCallEvent,
    LimitEvent,
    PlanEvent,
    ReflectionEvent,
    ReplanEvent,
    ResultEvent,
    RetryEvent,
    RunEnd,
    RunStart,
    StepEnd,
    StepStart,
    TaskEvent,
    TextEvent,
    ThinkingEvent,
    Trajectory,
)
from antiphon.messages import JsonObject, JsonValue, Usage, dump_json
from antiphon.viewer._encoding import Encoding
from antiphon.viewer._timeline import finite


def step_rows(trajectory: Trajectory) -> list[JsonValue]:
    """Each model call with its exact texts, tokens and times."""
    rows: list[JsonValue] = []
    before = ""
    for step in trajectory.steps:
        completion = step.completion
        prompt = completion.prompt
        n_shared = 0 if prompt is None else n_shared_chars(before, prompt)
        rows.append(
            {
                "agent": step.agent,
                "model": completion.model,
                "format": completion.format,
                "stop_reason": completion.stop_reason,
                "usage": usage_row(completion.usage),
                "first": finite(completion.time_to_first_token),
                "duration": finite(completion.duration),
                "started": finite(step.started),
                "ended": finite(step.ended),
                "system": step.system,
                "n_prompt_messages": step.n_prompt_messages,
                "n_shown": None if step.shown is None else len(step.shown),
                "sampling": dump_json(completion.sampling) if completion.sampling else "",
                # A prompt is told by what it adds, so that the page grows as the conversation does.
                "prompt": None if prompt is None else prompt[n_shared:],
                "n_shared": 0 if prompt is None else n_utf16(prompt[:n_shared]),
                "n_prompt_tokens": (
                    None if completion.prompt_ids is None else len(completion.prompt_ids)
                ),
                "text": completion.text,
                "tokens": None
                if completion.tokens is None
                else [
                    [token.text, token.token_id, finite(token.logprob)]
                    for token in completion.tokens
                ],
            }
        )
        before = prompt or ""
    return rows


def n_shared_chars(before: str, after: str) -> int:
    """How many characters two prompts share at their beginning, whole lines only.

    >>> n_shared_chars("a\\nbc\\n", "a\\nbd\\n")
    2
    """
    low, high = 0, min(len(before), len(after))
    while low < high:  # slices are compared at the speed of memory, characters are not
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return after.rfind("\n", 0, low) + 1


def n_utf16(text: str) -> int:
    """The length of a text as JavaScript counts it.

    >>> n_utf16("a🌦")
    3
    """
    return len(text) + sum(char > "\uffff" for char in text)


def event_rows(events: Sequence[Event]) -> list[JsonValue]:
    """Events as lines; deltas of one kind that follow each other are one line."""
    rows: list[JsonValue] = []
    last: JsonObject | None = None
    for event in events:
        if isinstance(event, TextEvent | ThinkingEvent | CallDeltaEvent):
            text = event.arguments if isinstance(event, CallDeltaEvent) else event.text
            if last is not None and last["type"] == event.type and last["step"] == event.step:
                last["text"] = f"{last['text']}{text}"
                last["count"] = int(str(last["count"])) + 1
                continue
            last = {
                "type": event.type,
                "time": finite(event.time),
                "step": event.step,
                "text": text,
                "count": 1,
            }
            rows.append(last)
            continue
        last = None
        rows.append(
            {
                "type": event.type,
                "time": finite(event.time),
                "step": getattr(event, "step", None),
                "text": _event_text(event),
                "count": 1,
            }
        )
    return rows


def _event_text(event: Event) -> str:
    match event:
        case RunStart(agent=agent, model=model, input=text):
            return f"{agent} ({model}): {text}"
        case StepStart(agent=agent):
            return agent
        case CallEvent(call=call):
            return f"{call.name}({dump_json(call.arguments)})"
        case InvalidCallEvent(call=call):
            return f"{call.reason}: {call.raw}"
        case ResultEvent(result=result):
            return f"{result.name}: {result.text}"
        case StepEnd(stop_reason=reason):
            return reason
        case RunEnd(stop_reason=reason, output=output):
            return f"{reason}: {output}"
        case _:
            return notice(event)


def encoding_row(encoding: Encoding) -> JsonObject:
    """Spans as short arrays: text, weight, author's place in the list, token id, special."""
    authors = ("frame", "given", "written")
    return {
        "format": encoding.format,
        "policy": encoding.policy,
        "tokenizer": encoding.tokenizer,
        "spans": [
            [
                span.text,
                finite(span.weight) or 0.0,
                authors.index(span.author),
                span.token_id,
                span.special,
            ]
            for span in encoding.spans
        ],
    }


def usage_row(usage: Usage) -> JsonObject:
    """Token counts, short names."""
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cached": usage.cached_tokens,
        "requests": usage.n_requests,
    }


def notice(event: Event) -> str:
    """One sentence about an event that the conversation itself does not show."""
    match event:
        case HandoffEvent(source=source, target=target):
            return f"{source} hands over to {target}"
        case RetryEvent(reason=reason):
            return f"The model call broke and was made again: {reason}"
        case LimitEvent(limit=limit, value=value):
            return f"The limit {limit} = {value:g} was reached"
        case CompactionEvent(method=method, n_messages=n):
            return f"Compaction by {method}: {n} messages are no longer shown as they were"
        case ApprovalEvent(call=call):
            return f"{call.name} waits for approval"
        case DecisionEvent(approved=approved, reason=reason):
            return ("Approved" if approved else "Refused") + (f": {reason}" if reason else "")
        case FeedbackEvent(text=text):
            return f"Feedback: {text}"
        case InsertionEvent(call_id=id, found=found):
            return f"The result of {id} was put in" if found else f"There is no result {id}"
        case PlanEvent(state=state, reason=reason):
            return f"Plan {state}" + (f": {reason}" if reason else "")
        case TaskEvent(task=id, status=status, reason=reason):
            said = f"Task {id}: {status.replace('_', ' ')}"
            return said + (f": {reason}" if reason else "")
        case ReplanEvent(reason=reason):
            return f"A new plan is asked for: {reason}"
        case AttemptEvent(attempt=n, verdict=verdict, score=score, feedback=feedback):
            said = f"Attempt {n} {verdict}, score {score:g}"
            return said + (f": {feedback}" if feedback else "")
        case ReflectionEvent(attempt=n, text=text):
            return f"Learned from attempt {n}: {text}"
        case RunEnd(error=error) if error:
            return f"The run ended with an error: {error}"
        case RunEnd(stop_reason=reason) if reason != "answer":
            return f"The run ended: {reason.replace('_', ' ')}"
        case _:
            return ""
