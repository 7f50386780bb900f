"""What can be run: an agent, or a strategy around agents.

Running, going on, waiting in plain code and being a tool are the same for all of them; what differs
is who is in the middle (`Runnable.root`) and how a run goes (`Runnable.course`).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from antiphon.agent._course import Course
from antiphon.agent._nested import Paused
from antiphon.agent._run import Input, Run, RunResult
from antiphon.agent._start import ApproveFunction, Decision, Start
from antiphon.agent._telling import Shown
from antiphon.errors import ToolError
from antiphon.events import Trajectory
from antiphon.messages import Message, ToolResult
from antiphon.store import Store
from antiphon.tools import RunContext, Tool, tool, valid_name

if TYPE_CHECKING:
    from antiphon.agent._agent import Agent


class Runnable(ABC):
    """An agent or a strategy.  It is a value: it opens nothing and remembers nothing."""

    name: str
    """Who the record says it is."""
    description: str
    """What it is for, as agents that may ask it or hand over to it read it."""

    @property
    @abstractmethod
    def root(self) -> "Agent":
        """The agent in the middle."""

    @abstractmethod
    def course(self, start: Start, shown: Shown) -> Course:
        """How a run of it goes.

        Args:
            start: What it begins with, or goes on from.
            shown: Awaited after each event.
        """

    def run(
        self,
        input: Input,
        *,
        history: Sequence[Message] = (),
        deps: object = None,
        state: dict[str, Any] | None = None,
        approve: ApproveFunction | None = None,
        metadata: Mapping[str, Any] | None = None,
        store: Store | None = None,
        session: str = "",
    ) -> Run:
        """Begin a run; it starts when it is awaited or iterated.

        Args:
            input: The question: text, a message, or messages.
            history: What was said before, for example `RunResult.messages` of an earlier run. Calls
                left open in it are answered as interrupted.
            deps: What tools get as `RunContext.deps`.
            state: Context variables, shared by tools and callable instructions; changed in place.
            approve: Asked about calls of tools that need a person's consent. Without it such a call
                ends the run with stop reason ``pending``; see `resume`.
            metadata: Kept in the trajectory.
            store: Where the run is kept as it happens, so that `resume` can go on from it.
            session: In a store, the conversation that the run belongs to: what its earlier runs
                said comes before `history`.

        Returns:
            A Run: await it for the result, iterate it for the events, ``.wait()`` in plain code.
        """
        return Run.begin(
            self,
            input,
            history=history,
            deps=deps,
            state=state,
            approve=approve,
            metadata=metadata,
            store=store,
            session=session,
        )

    def stream(self, input: Input, **options: Any) -> Run:
        """Another name of `run`, for ``async for event in agent.stream(...)``.

        Args:
            input: The question.
            options: As for `run`.
        """
        return self.run(input, **options)

    def run_sync(self, input: Input, **options: Any) -> RunResult:
        """Run to the end from plain code.

        Args:
            input: The question.
            options: As for `run`.

        Raises:
            RunError: An event loop is already running in this thread; await `run` there.
        """
        return self.run(input, **options).wait()

    def resume(
        self,
        trajectory: Trajectory | str,
        decisions: Mapping[str, bool | Decision] | None = None,
        *,
        deps: object = None,
        state: dict[str, Any] | None = None,
        approve: ApproveFunction | None = None,
        store: Store | None = None,
    ) -> Run:
        """Go on with a run that paused or broke off, in this or another process.

        Finished calls are not executed again.  A call that was under way when the process died is
        executed again only if its tool is idempotent; else the model is told that its outcome is
        unknown.

        Args:
            trajectory: The record so far, or a run's id in `store`; this agent, or one it may hand
                over to, was speaking.
            decisions: By call id, for calls that wait for a person.
            deps: As for `run`.
            state: As for `run`; what the record holds where ``None``.
            approve: As for `run`.
            store: Where the run is kept, when it is named by its id.

        Raises:
            UsageError: The run is finished, or a decision names no waiting call.
            RunError: Another process is running it.
        """
        return Run.again(
            self,
            trajectory,
            decisions or {},
            deps=deps,
            state=state,
            approve=approve,
            store=store,
        )

    def as_tool(self, *, name: str = "", description: str = "") -> Tool[..., Any]:
        """This as a tool of an agent: it answers one question and does not take over.

        Args:
            name: The tool's name; its own where empty.
            description: What the agent's model reads; its own where empty.
        """

        async def ask(context: RunContext[Any], question: str) -> Any:
            result = await Run.within(self, question, context)
            if result.stop_reason in ("answer", "stopped_by_tool", "error"):
                return result.output
            if result.stop_reason == "pending":
                waits = f"{self.name} waits for a person."
                return ToolResult(
                    context.call_id, context.tool, waits, value=Paused(result.pending)
                )
            raise ToolError(f"{self.name} gave no answer: {result.stop_reason}. {result.text}")

        return tool(
            ask,
            name=name or valid_name(self.name),
            description=description or self.description or f"Asks {self.name}.",
            timeout=None,
        )
