"""What a check says of a row, and what becomes of the row.

A verdict is about the whole row or about one message.  A wrong message gets the loss 0 and stays as
context; a wrong row is dropped.  Both keep every verdict, so that a later run can choose again
without asking again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self, cast

from antiphon.datasets import read_row
from antiphon.errors import DataError
from antiphon.events import Trajectory
from antiphon.messages import Conversation, JsonObject, JsonValue, Message, conversation_to_row
from antiphon.synthesis import Task

Outcome = Literal["pass", "fail", "unsure"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one check says."""

    layer: str
    """Which layer of checks: ``format``, ``execution``, ``answer``, ``tests``, ``judge``,
    ``set``."""
    check: str
    """Which check."""
    outcome: Outcome
    """``fail``: wrong; ``unsure``: the check cannot tell."""
    reason: str = ""
    """Why, with what was found; empty where it passed."""
    message: int | None = None
    """The message that it is about; ``None`` for the row."""
    usage: JsonObject = field(default_factory=dict[str, JsonValue])
    """What models cost that were asked, by name."""

    def to_row(self) -> JsonObject:
        """The verdict as JSON; what is empty is left out."""
        row = cast("JsonObject", asdict(self))
        return {k: v for k, v in row.items() if v not in ("", None, {})}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """Read a verdict."""
        return cls(**row)


def passed(layer: str, check: str) -> Verdict:
    """A verdict without a fault."""
    return Verdict(layer, check, "pass")


@dataclass(frozen=True, slots=True)
class Sample:
    """A row to be checked."""

    row: JsonObject
    """The row as it is written again: a trajectory as it was, any other spelling in ours."""
    conversation: Conversation
    """Its conversation."""
    trajectory: Trajectory | None = None
    """The record, where the row is one."""
    task: Task | None = None
    """What was asked and what is right, where a synthesis made the row."""

    @classmethod
    def read(cls, row: JsonObject) -> Self:
        """Read a row.

        Raises:
            DataError: The row is malformed.
        """
        if "antiphon" not in row or "steps" not in row:
            conversation = read_row(row)
            return cls(conversation_to_row(conversation), conversation)
        trajectory = Trajectory.from_row(row)
        return cls(row, trajectory.conversation, trajectory, _task_of(trajectory))

    @property
    def kind(self) -> str:
        """What kind of task it was; empty where nobody says."""
        return self.task.kind if self.task else ""

    @property
    def question(self) -> str:
        """Everything that the user says."""
        return "\n".join(m.text for m in self.conversation.messages if m.role == "user")


def _task_of(trajectory: Trajectory) -> Task | None:
    task = trajectory.metadata.get("task")
    if not isinstance(task, dict):
        return None
    specs = {spec.name: spec.to_openai() for spec in trajectory.conversation.tools}
    sources = cast("dict[str, dict[str, Any]]", task.get("sources") or {})
    tools = [
        {"name": name, "spec": specs[name], **source}
        for name, source in sources.items()
        if name in specs
    ]
    return Task.from_row({**task, "id": trajectory.id, "tools": tools})


def turns_of(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Where each turn begins and ends: a user message and what follows it, ``[start, end)``."""
    starts = [i for i, m in enumerate(messages) if m.role == "user"]
    return list(zip(starts, [*starts[1:], len(messages)], strict=True))


def decided(sample: Sample, verdicts: Sequence[Verdict]) -> tuple[JsonObject, str]:
    """The row with its verdicts and losses, and why it is dropped; empty where it is kept."""
    wrong = {v.message for v in verdicts if v.outcome == "fail" and v.message is not None}
    messages = [dict(cast("JsonObject", m)) for m in _messages(sample)]
    for index in wrong:
        messages[index]["loss"] = 0.0
    reason = _reason(sample, verdicts, wrong)
    score = sum(v.outcome == "pass" for v in verdicts) / max(1, len(verdicts))
    outcome: JsonObject = {
        "status": "dropped" if reason else "kept",
        "score": round(score, 4),
        "checks": [v.to_row() for v in verdicts],
    }
    if reason:
        outcome["reason"] = reason
    row: JsonObject = dict(sample.row)
    row["messages"] = list[JsonValue](messages)
    row["outcome"] = outcome
    return row, reason


def _messages(sample: Sample) -> list[JsonValue]:
    messages = sample.row["messages"]
    if not isinstance(messages, list):
        raise DataError("the row has no list of messages")
    return messages


def _reason(sample: Sample, verdicts: Sequence[Verdict], wrong: set[int]) -> str:
    failed = next((v for v in verdicts if v.outcome == "fail" and v.message is None), None)
    if failed is not None:
        return f"{failed.layer}/{failed.check}: {failed.reason}"
    answers = [
        i
        for i, m in enumerate(sample.conversation.messages)
        if m.role == "assistant" and m.loss != 0.0
    ]
    if answers and set(answers) <= wrong:
        return "no message is left that is right"
    return ""
