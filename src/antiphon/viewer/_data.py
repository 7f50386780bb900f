"""What the page shows of a Trajectory, as one JSON object.

All that needs thought is done here, where it is typed and tested: which result answers which call,
what ran beside what, what a prompt shares with the one before.  The page's script only draws.
Numbers are finite, texts are exact, arguments are JSON text (a browser would round long integers).
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from antiphon.events import CompactionEvent, ResultEvent, RetryEvent, RunEnd, Trajectory, body_of
from antiphon.messages import (
    InvalidToolCall,
    JsonObject,
    JsonValue,
    Message,
    ToolCall,
    ToolResult,
    dump_json,
)
from antiphon.viewer._encoding import Encoding
from antiphon.viewer._plan import plan_row
from antiphon.viewer._steps import encoding_row, event_rows, notice, step_rows, usage_row
from antiphon.viewer._timeline import finite, lanes


@dataclass(frozen=True, slots=True)
class Record:
    """A trajectory to show, under a name."""

    trajectory: Trajectory
    """What happened."""
    name: str = ""
    """What the list of records calls it."""
    encodings: tuple[Encoding, ...] = ()
    """Its conversation, or conversations, as a trainer would see them, where somebody prepared
    that."""


def page_data(records: Iterable[Record]) -> JsonObject:
    """Everything the page shows, children of a run behind it."""
    rows: list[JsonValue] = []
    for record in records:
        rows.extend(_record_rows(record, depth=0))
    return {"records": rows}


def _record_rows(record: Record, *, depth: int) -> Iterator[JsonValue]:
    yield _record_row(record, depth)
    for index, child in enumerate(record.trajectory.children):
        agent = child.steps[0].agent if child.steps else ""
        name = f"{agent or 'run'} for call {child.call_id or index}"
        yield from _record_rows(Record(child, name), depth=depth + 1)


def _record_row(record: Record, depth: int) -> JsonObject:
    trajectory = record.trajectory
    return {
        "name": record.name,
        "depth": depth,
        "summary": _summary(trajectory),
        "tools": [
            {
                "name": spec.name,
                "description": spec.description,
                "parameters": dump_json(spec.parameters),
            }
            for spec in trajectory.conversation.tools
        ],
        "agents": [
            {"name": str(agent.get("name", "")), "detail": dump_json(agent)}
            for agent in trajectory.agents
        ],
        "items": conversation_items(trajectory),
        "lanes": lanes(trajectory),
        "plan": plan_row(trajectory),
        "steps": step_rows(trajectory),
        "events": event_rows(trajectory.events),
        "encodings": [encoding_row(encoding) for encoding in record.encodings],
        "beside": {key: dump_json(value) for key, value in _beside(trajectory).items() if value},
    }


def _beside(trajectory: Trajectory) -> JsonObject:
    """What a record says besides: of the conversation, of the run, and the state at its end."""
    return {
        **trajectory.conversation.metadata,
        "metadata": trajectory.metadata,
        "state": trajectory.state,
    }


def _summary(trajectory: Trajectory) -> JsonObject:
    messages = trajectory.conversation.messages
    completions = [step.completion for step in trajectory.steps]
    ends = [e.time for e in trajectory.events if isinstance(e, RunEnd)]
    ends += [step.ended for step in trajectory.steps]
    return {
        "question": next((m.text for m in messages if m.role == "user"), ""),
        "output": trajectory.output,
        "recorded": bool(trajectory.steps or trajectory.children),
        "stop_reason": trajectory.stop_reason if trajectory.steps or trajectory.events else "",
        "error": trajectory.error,
        "id": trajectory.id,
        "started_at": trajectory.started_at,
        "models": _unique(c.model for c in completions),
        "formats": _unique(c.format for c in completions),
        "agents": _unique(step.agent for step in trajectory.steps),
        "n_messages": len(messages),
        "n_steps": len(trajectory.steps),
        "n_calls": sum(len(m.tool_calls) for m in messages),
        "n_invalid": sum(len(m.invalid_tool_calls) for m in messages),
        "n_errors": sum(m.role == "tool" and m.is_error for m in messages),
        "usage": usage_row(trajectory.usage if trajectory.steps else trajectory.total_usage),
        "duration": finite(max(ends, default=None)),
    }


def _unique(texts: Iterable[str]) -> list[JsonValue]:
    return list(dict.fromkeys(text for text in texts if text))


@dataclass(slots=True)
class _Items:
    """The conversation as cards: results beside their calls, notices where they happened."""

    trajectory: Trajectory
    timings: dict[tuple[int, str], ResultEvent] = field(init=False)
    notices: dict[tuple[int, bool], list[JsonValue]] = field(init=False)
    step_of: dict[int, int] = field(init=False)

    def __post_init__(self) -> None:
        events = self.trajectory.events
        self.timings = {(e.step, e.result.call_id): e for e in events if isinstance(e, ResultEvent)}
        self.notices = {}
        for event in events:
            text = notice(event)
            if text:
                step = getattr(event, "step", len(self.trajectory.steps) - 1)
                late = not isinstance(event, RetryEvent | CompactionEvent)
                row: JsonObject = {"kind": "notice", "what": event.type, "text": text}
                self.notices.setdefault((step, late), []).append(row)
        body = body_of(self.trajectory.conversation)
        offset = len(self.trajectory.conversation.messages) - len(body)
        self.step_of = {
            step.n_prompt_messages + offset: index
            for index, step in enumerate(self.trajectory.steps)
            if step.n_prompt_messages < len(body)
            and body[step.n_prompt_messages].role == "assistant"
        }

    def rows(self) -> list[JsonValue]:
        messages = self.trajectory.conversation.messages
        rows: list[JsonValue] = []
        index = 0
        while index < len(messages):
            message = messages[index]
            step = self.step_of.get(index)
            if step is not None:
                rows.extend(self.notices.pop((step, False), []))
            if message.role == "assistant":
                end = index + 1
                while end < len(messages) and messages[end].role == "tool":
                    end += 1
                results = list(messages[index + 1 : end])
                rows.extend(self._turn(message, step, results))
                index = end
            else:
                rows.append(self._message(message))
                index += 1
            if step is not None:
                rows.extend(self.notices.pop((step, True), []))
        for place in sorted(self.notices):
            rows.extend(self.notices[place])
        return rows

    def _message(self, message: Message) -> JsonObject:
        return {
            "kind": "message",
            "role": message.role,
            "name": message.name,
            "text": message.text,
            "media": _media(message),
            "is_error": message.is_error,
            "loss": message.loss,
            "call_id": message.tool_call_id,
        }

    def _turn(
        self, message: Message, step: int | None, results: list[Message]
    ) -> Iterator[JsonValue]:
        row = self._message(message)
        record = None if step is None else self.trajectory.steps[step]
        row["step"] = step
        row["reasoning"] = message.reasoning
        row["name"] = message.name or (record.agent if record else "")
        answers = _answers(message.tool_calls, results)
        row["calls"] = [
            {
                "name": call.name,
                "id": call.id,
                "arguments": dump_json(call.arguments),
                "raw": call.raw,
                "repairs": list(call.repairs),
                "result": None if answer is None else self._result(answer, call, step),
            }
            for call, answer in zip(message.tool_calls, answers, strict=True)
        ]
        taken = {id(answer) for answer in answers}
        left = [result for result in results if id(result) not in taken]
        row["invalid"] = [
            self._invalid(call, _take(left, call.id)) for call in message.invalid_tool_calls
        ]
        yield row
        yield from (self._message(result) for result in left)

    def _result(self, message: Message, call: ToolCall, step: int | None) -> JsonObject:
        event = self.timings.get((-1 if step is None else step, call.id or message.tool_call_id))
        full = self._full_text(message, step)
        return {
            "text": message.text,
            "is_error": message.is_error,
            "media": _media(message),
            "duration": None if event is None else finite(event.duration),
            "full_text": full,
        }

    def _full_text(self, message: Message, step: int | None) -> str | None:
        """The uncapped text of a result, where the model was shown less of it."""
        results: tuple[ToolResult, ...] = ()
        if step is not None:
            results = self.trajectory.steps[step].results
        return next((r.full_text for r in results if r.call_id == message.tool_call_id), None)

    def _invalid(self, call: InvalidToolCall, answer: Message | None) -> JsonObject:
        return {
            "name": call.name,
            "raw": call.raw,
            "reason": call.reason,
            "answer": None if answer is None else answer.text,
        }


def conversation_items(trajectory: Trajectory) -> list[JsonValue]:
    """The conversation as cards: results beside their calls."""
    return _Items(trajectory).rows()


def _answers(calls: Sequence[ToolCall], results: Sequence[Message]) -> list[Message | None]:
    """For each call its result: the one with its id, else the next that has no id."""
    left = list(results)
    answers: list[Message | None] = [_take(left, call.id) for call in calls]
    unnamed = iter([result for result in left if not result.tool_call_id])
    return [answer if answer is not None else next(unnamed, None) for answer in answers]


def _media(message: Message) -> list[JsonValue]:
    """What is shown or heard beside the text: its kind and where it is, a film's frames in turn."""
    found: list[JsonValue] = []
    for part in message.media:
        sources = part.source if isinstance(part.source, tuple) else (part.source,)
        for source in sources:
            found.append({"kind": part.kind, "source": source})
    return found


def _take(results: list[Message], call_id: str) -> Message | None:
    for index, result in enumerate(results):
        if call_id and result.tool_call_id == call_id:
            return results.pop(index)
    return None


def dump_for_script(data: JsonObject) -> str:
    """JSON text that is inert inside a script element, whatever the texts in it hold.

    Every ``<``, ``>`` and ``&`` is escaped, so that no text can end the element or open a comment;
    everything beyond ASCII is too, line separators and lone surrogates included.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
