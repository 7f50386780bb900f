"""What must come of a scenario: each expectation of a case, and what was found instead."""

from collections import Counter
from typing import Any

from antiphon.events import InsertionEvent, PlanEvent, ReplanEvent, TaskEvent, Trajectory
from antiphon.strategies import model_calls
from strategies.scenarios import Json, Played, n_tokens

STATUS = {
    "answer": "success",
    "stopped_by_tool": "success",
    "step_limit": "max_steps",
    "refused": "aborted",
}


def differences(case: Json, played: Played) -> list[str]:
    """Where prompts or outcome are not as the case has them."""
    found = list(played.complaints)
    for key, wanted in case["expect"].items():
        got = outcome(key, played, wanted)
        if got != wanted:
            found.append(f"{key}: {got!r}, expected {wanted!r}")
    return found


def outcome(key: str, played: Played, wanted: Any) -> Any:
    """What came of one expectation; `wanted` itself where it is met without being equal."""
    record = played.trajectory
    match key:
        case "status":
            return STATUS.get(record.stop_reason, record.stop_reason)
        case "answer":
            return record.output or wanted if not wanted else record.output
        case "error":
            return played.error
        case "reason_contains":
            return wanted if all(word in record.error for word in wanted) else record.error
        case "wall_units":
            return played.wall
        case "tool_calls":
            return _matched_calls(played.calls, wanted)
        case "tool_counts":
            return dict(Counter(call["tool"] for call in played.calls))
        case "model_calls":
            return dict(played.model_calls)
        case "max_concurrency":
            return wanted if played.most_at_once <= wanted else played.most_at_once
        case "min_concurrency":
            return wanted if played.most_at_once >= wanted else played.most_at_once
        case "events":
            return plan_events(record)
        case "step_status":
            states = {e.task: e.status for e in record.events if isinstance(e, TaskEvent)}
            return {id: states.get(id) for id in wanted}
        case "step_reason_contains":
            return _matched_reasons(record, wanted)
        case "trials":
            return sum(child.call_id.startswith("attempt:") for child in record.children)
        case "raw_answer":
            return record.steps[-1].completion.message.text
        case "unknown_placeholders":
            events = [e for e in record.events if isinstance(e, InsertionEvent)]
            return [e.call_id for e in events if not e.found]
        case "stored_bytes":
            kept = {r.call_id: r.full_text for step in record.steps for r in step.results}
            return {id: len(text.encode()) for id, text in kept.items() if text is not None}
        case "shown_max_tokens":
            most = max(n_tokens(m.text) for m in record.conversation.messages if m.role == "tool")
            return wanted if most <= wanted else most
        case "shown_contains":
            shown = "\n".join(m.text for m in played.last_prompt.messages)
            return [text for text in wanted if text in shown]
        case "roles":
            return [message.role for message in played.last_prompt.messages]
        case "orphans":
            messages = played.last_prompt.messages
            called = {call.id for m in messages for call in m.tool_calls}
            return sorted(called ^ {m.tool_call_id for m in messages if m.role == "tool"})
        case "samples":
            return len(model_calls(record))
        case _:
            raise AssertionError(f"unknown expectation {key}")


def _matched_calls(calls: list[Json], wanted: list[Json]) -> list[Json]:
    left = list(calls)
    for want in wanted:
        match = next((c for c in left if all(c.get(k) == v for k, v in want.items())), None)
        if match is None:
            return calls
        left.remove(match)
    return wanted


def _matched_reasons(record: Trajectory, wanted: Json) -> Json:
    reasons = {e.task: e.reason for e in record.events if isinstance(e, TaskEvent)}
    for id, words in wanted.items():
        texts: list[str] = [words] if isinstance(words, str) else words
        if not all(text in reasons.get(id, "") for text in texts):
            return reasons
    return wanted


def plan_events(record: Trajectory) -> list[str]:
    """What became of plans, in the words of the cases."""
    return [
        f"plan_{e.state}" if isinstance(e, PlanEvent) else "replan"
        for e in record.events
        if isinstance(e, PlanEvent | ReplanEvent)
    ]
