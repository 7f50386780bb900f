"""What a run begins with, and what a person may decide on its way."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from antiphon.events import Trajectory
from antiphon.messages import JsonObject, JsonValue, Message, ToolCall
from antiphon.store import Journal, PatientJournal

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent


@dataclass(frozen=True, slots=True)
class Decision:
    """What a person decided about a call."""

    approved: bool
    """Whether to execute it."""
    arguments: "JsonObject | None" = None
    """What to call it with instead, where the person changed the arguments."""
    reason: str = ""
    """Why not, as the model reads it."""


ApproveFunction: TypeAlias = Callable[[ToolCall], bool | Decision | Awaitable[bool | Decision]]
"""Asked about each call that needs a person's consent, in the calls' order."""


@dataclass(slots=True)
class Start:
    """What a run begins with, or goes on from."""

    agent: "Agent"
    """The agent that begins."""
    messages: list[Message] = field(default_factory=list[Message])
    """What is said before the first step, the question last; fit to be sent."""
    question: str = ""
    """The question as text, for the record."""
    deps: object = None
    """For tools."""
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    """Context variables."""
    approve: ApproveFunction | None = None
    """Asked about calls that need consent."""
    metadata: JsonObject = field(default_factory=dict[str, JsonValue])
    """Kept in the record."""
    earlier: Trajectory | None = None
    """The record of a run that goes on."""
    decisions: Mapping[str, Decision] = field(default_factory=dict[str, Decision])
    """By call id, for calls that wait."""
    journal: Journal | None = None
    """Where to keep what happens as it happens."""
    session: str = ""
    """The conversation that the run belongs to, in a store."""
    run_id: str = ""
    """The run's id; a new one where empty."""
    patient: PatientJournal | None = field(init=False, default=None)
    """The journal, where it need not hold up the event loop."""

    def __post_init__(self) -> None:
        if isinstance(self.journal, PatientJournal):
            self.patient = self.journal

    def keep(self, kind: str, row: JsonObject) -> None:
        """Write an entry into the journal, if there is one; a patient one is to be waited for."""
        if self.patient is not None:
            self.patient.put(kind, row)
        elif self.journal is not None:
            self.journal.append(kind, row)
