"""The record of a Run: a row of messages and tools, and what was measured of it.

A Trajectory is a plain value; its JSON spelling (design §5) stands below it, that of events in
`_json.py`.  A prompt is told by what it adds to the one before, a step's answer by its place among
the messages, so that a record grows linearly.  Nothing here runs or draws.  Times are seconds since
the run began.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast, get_args

from antiphon.errors import DataError, clip
from antiphon.events._event import Event, ResultEvent, RunStopReason
from antiphon.events._json import (
    dump_row,
    event_from_row,
    event_to_row,
    result_from_row,
    result_to_row,
    take,
    take_rows,
    take_texts,
    usage_from_row,
    usage_to_row,
)
from antiphon.events._whole import written_whole
from antiphon.messages import (
    Completion,
    Conversation,
    JsonObject,
    JsonValue,
    Message,
    StopReason,
    TokenLogprob,
    ToolResult,
    Usage,
    conversation_from_row,
    conversation_to_row,
    message_from_row,
    message_to_row,
)


@dataclass(frozen=True, slots=True)
class Step:
    """One model call and the results of its calls."""

    agent: str
    """Whose step it was."""
    n_prompt_messages: int
    """The model was shown `system` and then the first so many messages of the conversation, the
    conversation's own leading system message not counted; its answer is the message after them."""
    completion: Completion
    """What came back, with its exact text and tokens where known."""
    results: tuple[ToolResult, ...] = ()
    """The answers of its calls, in the calls' order."""
    system: str = ""
    """The instructions shown in this step, which are the agent's and not the conversation's."""
    started: float = 0.0
    """Seconds since the run began."""
    ended: float = 0.0
    """Seconds since the run began."""
    tools: tuple[str, ...] = ()
    """Names of the tools that were on offer, in the order shown."""
    shown: tuple[Message, ...] | None = None
    """What the model was shown after `system`, where compaction made it differ from the
    conversation."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """The record of a run: everything that happened, enough to show, replay and train on."""

    conversation: Conversation
    """All messages in order and the tools on offer. The first message is the first agent's system
    message, where it has instructions."""
    steps: tuple[Step, ...] = ()
    """The model calls, in order."""
    events: tuple[Event, ...] = ()
    """Everything that was streamed, in order."""
    stop_reason: RunStopReason = "answer"
    """Why the run ended."""
    output: str = ""
    """The last answer, as text."""
    usage: Usage = field(default_factory=Usage)
    """What all model calls cost together."""
    agents: tuple[JsonObject, ...] = ()
    """Each agent that took part: name, instructions, model spec, tool names."""
    id: str = ""
    """The run's id."""
    started_at: str = ""
    """When it began: ISO 8601, UTC."""
    error: str = ""
    """What went wrong, when `stop_reason` is ``error``."""
    metadata: JsonObject = field(default_factory=dict[str, JsonValue])
    """Anything else; survives a round trip."""
    state: JsonObject = field(default_factory=dict[str, JsonValue])
    """The context variables at the end, as far as they are JSON."""
    children: tuple["Trajectory", ...] = ()
    """Runs that tools of this run made, in the order they ended."""
    call_id: str = ""
    """For a child: the call of its parent that it answers."""

    @property
    def n_steps(self) -> int:
        """How many model calls there were."""
        return len(self.steps)

    @property
    def total_usage(self) -> Usage:
        """What the run and all its children cost together."""
        return sum((child.total_usage for child in self.children), self.usage)

    def to_row(self) -> JsonObject:
        """The record as one JSON object (design §5)."""
        return _trajectory_to_row(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """The record as JSON text that every reader accepts: no NaN, no lone surrogate.

        Args:
            indent: Spaces a level, for people; one line without.
        """
        return dump_row(self.to_row(), indent=indent)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "Trajectory":
        """Read a record; a plain row of messages is one without steps.

        Raises:
            DataError: The row is no trajectory, or of a later version.
        """
        return _trajectory_from_row(row)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Trajectory":
        """Read a record from JSON text.

        Raises:
            DataError: The text is not JSON, or no trajectory.
        """
        return _trajectory_from_json(text)

    def save(self, path: Path | str) -> None:
        """Write the record to a file, whole or not at all.

        Raises:
            DataError: The file cannot be written.
        """
        _save(self.to_json(), Path(path))

    @classmethod
    def load(cls, path: Path | str) -> "Trajectory":
        """Read a record from a file.

        Raises:
            DataError: The file cannot be read, or is no trajectory.
        """
        return _load(Path(path))


VERSION = 1
"""The version of the record that this library writes."""

_OWN_KEYS = (
    {"antiphon", "id", "call_id", "started_at", "stop_reason", "output", "error", "usage"}
    | {
        "agents",
        "models",
        "format",
        "state",
        "messages",
        "tools",
        "steps",
        "events",
        "children",
    }
    | {"metadata", "conversation"}
)


def _trajectory_to_row(trajectory: Trajectory) -> JsonObject:
    conversation = trajectory.conversation
    beside = {k: v for k, v in conversation.metadata.items() if k not in _OWN_KEYS}
    hidden = {k: v for k, v in conversation.metadata.items() if k in _OWN_KEYS}
    row: JsonObject = {
        "antiphon": VERSION,
        "id": trajectory.id,
        "started_at": trajectory.started_at,
        "stop_reason": trajectory.stop_reason,
        "output": trajectory.output,
        "error": trajectory.error,
        "usage": usage_to_row(trajectory.usage),
        "agents": list(trajectory.agents),
        "models": list(dict.fromkeys(s.completion.model for s in trajectory.steps)),
        "format": next((s.completion.format for s in trajectory.steps if s.completion.format), ""),
    }
    row |= conversation_to_row(Conversation(conversation.messages, conversation.tools))
    row["steps"] = _steps_to_rows(trajectory)
    row["events"] = _events_to_rows(trajectory)
    if trajectory.call_id:
        row["call_id"] = trajectory.call_id
    if trajectory.state:
        row["state"] = trajectory.state
    if trajectory.children:
        row["children"] = [_trajectory_to_row(child) for child in trajectory.children]
    if trajectory.metadata:
        row["metadata"] = trajectory.metadata
    if hidden:
        row["conversation"] = hidden
    return row | beside


def _steps_to_rows(trajectory: Trajectory) -> list[JsonValue]:
    messages = body_of(trajectory.conversation)
    rows: list[JsonValue] = []
    last: Step | None = None
    for step in trajectory.steps:
        row = step_to_row(step, last)
        n = step.n_prompt_messages
        if n < len(messages) and messages[n] == step.completion.message:
            del row["message"]
        rows.append(row)
        last = step
    return rows


def step_to_row(step: Step, last: Step | None = None) -> JsonObject:
    """A step as one JSON object, told by how it differs from the step before.

    Args:
        step: The step.
        last: The step before it, if there is one.
    """
    row: JsonObject = {
        "agent": step.agent,
        "n_prompt_messages": step.n_prompt_messages,
        "started": step.started,
        "ended": step.ended,
    }
    if last is None or step.system != last.system:
        row["system"] = step.system
    if last is None or step.tools != last.tools:
        row["tools"] = list(step.tools)
    if step.shown is not None:
        row["shown"] = [message_to_row(message) for message in step.shown]
    row["completion"] = _completion_to_row(step.completion, last.completion if last else None)
    row["message"] = message_to_row(step.completion.message)
    if step.results:
        row["results"] = [result_to_row(result) for result in step.results]
    return row


def _completion_to_row(completion: Completion, last: Completion | None) -> JsonObject:
    row: JsonObject = {
        "stop_reason": completion.stop_reason,
        "usage": usage_to_row(completion.usage),
        "model": completion.model,
    }
    optional: JsonObject = {
        "format": completion.format or None,
        "sampling": completion.sampling or None,
        "text": completion.text,
        "time_to_first_token": completion.time_to_first_token,
        "duration": completion.duration,
    }
    row |= {key: value for key, value in optional.items() if value is not None}
    if completion.prompt is not None:
        row["prompt"] = _shared(completion.prompt, last.prompt if last else None)
    if completion.prompt_ids is not None:
        row["prompt_ids"] = _shared(completion.prompt_ids, last.prompt_ids if last else None)
    if completion.tokens is not None:
        row["tokens"] = _tokens_to_row(completion.tokens)
    if completion.logprobs is not None:
        row["logprobs"] = _tokens_to_row(completion.logprobs)
    return row


def _tokens_to_row(tokens: Sequence[TokenLogprob]) -> JsonObject:
    row: JsonObject = {
        "ids": [token.token_id for token in tokens],
        "logprobs": [token.logprob for token in tokens],
        "texts": [token.text for token in tokens],
    }
    if any(token.top for token in tokens):
        row["top"] = [_tokens_to_row(token.top) for token in tokens]
    return row


def _shared(value: str | tuple[int, ...], last: str | tuple[int, ...] | None) -> JsonValue:
    """A prompt, told by how much of the prompt before it stays, so that a record grows linearly."""
    n = 0 if last is None else _n_common(value, last)
    rest: JsonValue = value[n:] if isinstance(value, str) else list(value[n:])
    return rest if n == 0 else {"shared": n, "rest": rest}


def _n_common(a: str | tuple[int, ...], b: str | tuple[int, ...]) -> int:
    low, high = 0, min(len(a), len(b))
    while low < high:
        middle = (low + high + 1) // 2
        if a[low:middle] == b[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _events_to_rows(trajectory: Trajectory) -> list[JsonValue]:
    """Events as rows; a result that a step holds is named there by its call, not told again."""
    told = {r.call_id: r for step in trajectory.steps for r in step.results}
    rows: list[JsonValue] = []
    for event in trajectory.events:
        if isinstance(event, ResultEvent) and told.get(event.result.call_id) == event.result:
            row = event_to_row(replace(event, result=ToolResult("", "", "")))
            row["result"] = event.result.call_id
        else:
            row = event_to_row(event)
        rows.append(row)
    return rows


def _trajectory_from_row(row: Mapping[str, Any]) -> Trajectory:
    version = row.get("antiphon", VERSION)
    if version != VERSION:
        raise DataError(
            f"this is version {clip(version)} of the record and this antiphon reads version "
            f"{VERSION}; upgrade antiphon to read it"
        )
    hidden = take(row, "conversation", Mapping, {})
    beside = {k: v for k, v in row.items() if k not in _OWN_KEYS}
    conversation = conversation_from_row(
        {"messages": row.get("messages"), "tools": row.get("tools")}
    )
    conversation = replace(conversation, metadata=beside | dict(hidden))
    stop = take(row, "stop_reason", str, "answer")
    if stop not in get_args(RunStopReason):
        raise DataError(
            f"unknown stop_reason {stop!r}; known: {', '.join(get_args(RunStopReason))}"
        )
    steps = _steps_from_rows(take_rows(row, "steps"), body_of(conversation))
    return Trajectory(
        conversation=conversation,
        steps=steps,
        events=_events_from_rows(take_rows(row, "events"), steps),
        stop_reason=cast("RunStopReason", stop),
        output=take(row, "output", str, ""),
        usage=usage_from_row(take(row, "usage", Mapping, {})),
        agents=tuple(dict(agent) for agent in take_rows(row, "agents")),
        id=take(row, "id", str, ""),
        started_at=take(row, "started_at", str, ""),
        error=take(row, "error", str, ""),
        metadata=dict(take(row, "metadata", Mapping, {})),
        state=dict(take(row, "state", Mapping, {})),
        children=tuple(_trajectory_from_row(child) for child in take_rows(row, "children")),
        call_id=take(row, "call_id", str, ""),
    )


def _steps_from_rows(
    rows: Sequence[Mapping[str, Any]], messages: tuple[Message, ...]
) -> tuple[Step, ...]:
    steps: list[Step] = []
    for index, row in enumerate(rows):
        last = steps[-1] if steps else None
        try:
            steps.append(step_from_row(row, last, messages))
        except DataError as error:
            raise DataError(f"step {index}: {error}") from error
    return tuple(steps)


def step_from_row(
    row: Mapping[str, Any], last: Step | None = None, messages: tuple[Message, ...] = ()
) -> Step:
    """Read a step.

    Args:
        row: The row.
        last: The step before it, if there is one.
        messages: The conversation's body, for a step whose answer is told by its place in it.

    Raises:
        DataError: A field is missing or has the wrong type.
    """
    n: int = take(row, "n_prompt_messages", int, 0)
    message: Message
    if "message" in row:
        message = message_from_row(take(row, "message", Mapping, {}))
    elif 0 <= n < len(messages):
        message = messages[n]
    else:
        raise DataError(f"its answer should be message {n}, and there are {len(messages)}")
    shown = [message_from_row(m) for m in take_rows(row, "shown")] if "shown" in row else None
    system = last.system if last is not None and "system" not in row else ""
    tools = last.tools if last is not None and "tools" not in row else take_texts(row, "tools")
    completion = take(row, "completion", Mapping, {})
    return Step(
        agent=take(row, "agent", str, ""),
        n_prompt_messages=n,
        completion=_completion_from_row(completion, message, last.completion if last else None),
        results=tuple(result_from_row(result) for result in take_rows(row, "results")),
        system=take(row, "system", str, system),
        started=take(row, "started", float, 0.0),
        ended=take(row, "ended", float, 0.0),
        tools=tools,
        shown=None if shown is None else tuple(shown),
    )


def _completion_from_row(
    row: Mapping[str, Any], message: Message, last: Completion | None
) -> Completion:
    stop = take(row, "stop_reason", str, "stop")
    if stop not in get_args(StopReason):
        raise DataError(f"unknown stop_reason {stop!r}; known: {', '.join(get_args(StopReason))}")
    return Completion(
        message=message,
        stop_reason=cast("StopReason", stop),
        usage=usage_from_row(take(row, "usage", Mapping, {})),
        model=take(row, "model", str, ""),
        format=take(row, "format", str, ""),
        prompt=cast("str | None", _unshared(row, "prompt", "", last.prompt if last else None)),
        text=take(row, "text", str, None),
        prompt_ids=cast(
            "tuple[int, ...] | None",
            _unshared(row, "prompt_ids", (), last.prompt_ids if last else None),
        ),
        tokens=_tokens_from_row(row, "tokens"),
        sampling=dict(take(row, "sampling", Mapping, {})),
        time_to_first_token=take(row, "time_to_first_token", float, None),
        duration=take(row, "duration", float, None),
        logprobs=_tokens_from_row(row, "logprobs"),
    )


def _unshared(row: Mapping[str, Any], key: str, empty: Any, last: Any) -> Any:
    value: Any = row.get(key)
    if value is None:
        return None
    n, rest = 0, value
    if isinstance(value, dict):
        shared = cast("dict[str, Any]", value)
        n, rest = take(shared, "shared", int, 0), shared.get("rest")
    before: Any = empty if last is None else last
    if not isinstance(rest, str if empty == "" else list) or not 0 <= n <= len(before):
        raise DataError(f"{key!r} does not fit the step before it: {clip(cast('object', value))}")
    return before[:n] + type(empty)(cast("Any", rest))


def _tokens_from_row(row: Mapping[str, Any], key: str) -> tuple[TokenLogprob, ...] | None:
    if row.get(key) is None:
        return None
    tokens = take(row, key, Mapping, {})
    ids, texts = take(tokens, "ids", list, []), take_texts(tokens, "texts")
    logprobs = take(tokens, "logprobs", list, [])
    nothing: JsonObject = {}
    top = take_rows(tokens, "top") or [nothing for _ in texts]
    if not len(ids) == len(logprobs) == len(texts) == len(top):
        raise DataError(
            f"{key}: {len(ids)} ids, {len(logprobs)} logprobs, {len(texts)} texts and likeliest "
            f"tokens for {len(top)}; there must be as many of each"
        )
    return tuple(
        TokenLogprob(
            take({"token_id": i}, "token_id", int, 0),
            take({"logprob": p}, "logprob", float, None),
            t,
            _tokens_from_row({"top": likely}, "top") or (),
        )
        for i, p, t, likely in zip(ids, logprobs, texts, top, strict=True)
    )


def _events_from_rows(
    rows: Sequence[Mapping[str, Any]], steps: tuple[Step, ...]
) -> tuple[Event, ...]:
    told = {r.call_id: r for step in steps for r in step.results}
    events: list[Event] = []
    for index, row in enumerate(rows):
        result = row.get("result")
        try:
            if isinstance(result, str):
                if result not in told:
                    raise DataError(f"no step has a result for call {result!r}")
                event = event_from_row({**row, "result": {}})
                events.append(replace(cast("ResultEvent", event), result=told[result]))
            else:
                events.append(event_from_row(row))
        except DataError as error:
            raise DataError(f"event {index}: {error}") from error
    return tuple(events)


def body_of(conversation: Conversation) -> tuple[Message, ...]:
    """The messages without the leading system message, as `Step.n_prompt_messages` counts them."""
    messages = conversation.messages
    return messages[1:] if messages and messages[0].role == "system" else messages


def _trajectory_from_json(text: str | bytes) -> Trajectory:
    try:
        row: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"not a trajectory: the text is not JSON ({error})") from error
    if not isinstance(row, dict) or "messages" not in row:
        raise DataError(
            "not a trajectory: expected one JSON object with 'messages', "
            f"got {clip(cast('object', row))}; write one with: antiphon run QUESTION --out FILE"
        )
    return _trajectory_from_row(cast("dict[str, Any]", row))


def _load(path: Path) -> Trajectory:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", path=path) from error
    try:
        return _trajectory_from_json(text)
    except DataError as error:
        raise DataError(str(error), path=path) from error


def _save(text: str, path: Path) -> None:
    try:
        with written_whole(path) as beside:
            beside.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror}", path=path) from error
