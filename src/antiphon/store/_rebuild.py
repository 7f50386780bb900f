"""A Trajectory from the entries of a run's journal, whole or broken off anywhere.

Kinds of entries: ``start`` (what the run was given), ``agent`` (who may speak, with tools),
``event`` (before it is shown), ``step`` (a model call, before its reply is acted on), ``result`` (a
call's answer, as soon as there is one), ``state`` (context variables), ``child`` (a tool's run).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from antiphon.errors import DataError
from antiphon.events import (
    Event,
    FeedbackEvent,
    HandoffEvent,
    ResultEvent,
    RunEnd,
    Step,
    StepEnd,
    Trajectory,
    event_from_row,
    result_from_row,
    step_from_row,
)
from antiphon.messages import (
    Conversation,
    JsonObject,
    JsonValue,
    Message,
    ToolResult,
    ToolSpec,
    Usage,
    message_from_row,
)

Entry: TypeAlias = tuple[str, Mapping[str, Any]]
"""An entry's kind and its row."""


@dataclass(slots=True)
class _Run:
    """A run as far as its entries tell."""

    head: Mapping[str, Any] = field(default_factory=dict[str, Any])
    messages: list[Message] = field(default_factory=list[Message])
    events: list[Event] = field(default_factory=list[Event])
    steps: list[Step] = field(default_factory=list[Step])
    results: dict[int, dict[str, ToolResult]] = field(
        default_factory=dict[int, dict[str, ToolResult]]
    )
    said: set[int] = field(default_factory=set[int])
    agents: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    specs: dict[str, ToolSpec] = field(default_factory=dict[str, ToolSpec])
    state: JsonObject = field(default_factory=dict[str, JsonValue])
    children: list[Trajectory] = field(default_factory=list[Trajectory])


def rebuild(entries: Iterable[Entry]) -> Trajectory:
    """The record of a run.

    A last step that has no end has its known results in `Step.results` and only its reply among the
    messages.

    Args:
        entries: The run's journal, in order.

    Raises:
        DataError: An entry is damaged, or there is none.
    """
    run = _Run()
    for kind, row in entries:
        _TAKE.get(kind, _ignore)(run, row)
    if not run.head:
        raise DataError("the run has no start in its journal")
    if run.steps:
        last = len(run.steps) - 1
        run.steps[last] = replace(run.steps[last], results=_ordered(run, last))
    end = run.events[-1] if run.events else None
    over = isinstance(end, RunEnd)
    return Trajectory(
        conversation=_conversation(run),
        steps=tuple(run.steps),
        events=tuple(run.events),
        stop_reason=end.stop_reason if over else "cancelled",
        output=end.output if over else "",
        error=end.error if over else "",
        usage=sum((_usage(step) for step in run.steps), Usage()),
        agents=tuple(run.agents.values()),
        id=str(run.head.get("id", "")),
        started_at=str(run.head.get("started_at", "")),
        metadata=dict(run.head.get("metadata") or {}),
        state=run.state,
        children=tuple(run.children),
    )


def _conversation(run: _Run) -> Conversation:
    messages = list(run.messages)
    system = run.steps[0].system if run.steps else ""
    leads = bool(messages) and messages[0].role == "system" and messages[0].text == system
    if system and not leads:
        messages.insert(0, Message.system(system))
    end = run.events[-1] if run.events else None
    if isinstance(end, RunEnd) and end.output and end.stop_reason != "pending" and _is_told(run):
        messages.append(Message.assistant(end.output))
    return Conversation(tuple(messages), tuple(run.specs.values()))


def _is_told(run: _Run) -> bool:
    """Whether the answer is a strategy's, whose parts have the steps that wrote it."""
    last = len(run.steps) - 1
    parts = {child.call_id for child in run.children}
    given = {call.id for call in run.steps[last].completion.message.tool_calls} if run.steps else ()
    handed = any(isinstance(e, HandoffEvent) and e.step == last for e in run.events)
    return not run.steps or (handed and any(id in parts for id in given))


def _usage(step: Step) -> Usage:
    usage = step.completion.usage
    return usage if usage.n_requests else replace(usage, n_requests=1)


def _ignore(run: _Run, row: Mapping[str, Any]) -> None:
    """An entry of a later version says something that this one has no use for."""


def _start(run: _Run, row: Mapping[str, Any]) -> None:
    run.head = row
    run.messages = [message_from_row(message) for message in row.get("messages", ())]


def _agent(run: _Run, row: Mapping[str, Any]) -> None:
    agent = cast("JsonObject", row.get("agent", {}))
    run.agents[str(agent.get("name"))] = agent
    for spec in row.get("tools", ()):
        made = ToolSpec.from_openai(spec)
        run.specs[made.name] = replace(made, original=None)


def _event(run: _Run, row: Mapping[str, Any]) -> None:
    event = event_from_row(row)
    if run.events and isinstance(run.events[-1], RunEnd):
        run.events.pop()  # the run paused here and went on
    run.events.append(event)
    match event:
        case ResultEvent(step=step, result=result):
            run.results.setdefault(step, {})[result.call_id] = result
        case FeedbackEvent(step=step, text=text):
            _say_results(run, step)
            run.messages.append(Message.user(text))
        case StepEnd(step=step, time=time) if step < len(run.steps):
            _say_results(run, step)
            run.steps[step] = replace(run.steps[step], ended=time)
        case _:
            pass


def _step(run: _Run, row: Mapping[str, Any]) -> None:
    step = step_from_row(row, run.steps[-1] if run.steps else None)
    run.steps.append(step)
    message = step.completion.message
    if message.parts or message.tool_calls or message.invalid_tool_calls:
        run.messages.append(message)


def _result(run: _Run, row: Mapping[str, Any]) -> None:
    result = result_from_row(row["result"])
    run.results.setdefault(int(row["step"]), {})[result.call_id] = result
    run.state.update(row.get("state") or {})


def _state(run: _Run, row: Mapping[str, Any]) -> None:
    run.state = dict(row)


def _child(run: _Run, row: Mapping[str, Any]) -> None:
    child = Trajectory.from_row(row)
    run.children = [one for one in run.children if one.id != child.id]  # paused, and gone on with
    run.children.append(child)


def _say_results(run: _Run, step: int) -> None:
    if step in run.said or step >= len(run.steps):
        return
    run.said.add(step)
    results = _ordered(run, step)
    run.steps[step] = replace(run.steps[step], results=results)
    run.messages.extend(Message.from_result(result) for result in results)


def _ordered(run: _Run, step: int) -> tuple[ToolResult, ...]:
    message = run.steps[step].completion.message
    known = run.results.get(step, {})
    calls = (*message.tool_calls, *message.invalid_tool_calls)
    return tuple(known[call.id] for call in calls if call.id in known)


_TAKE = {
    "start": _start,
    "agent": _agent,
    "event": _event,
    "step": _step,
    "result": _result,
    "state": _state,
    "child": _child,
}
