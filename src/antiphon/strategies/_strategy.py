"""What every strategy offers, as an agent does: a run, its events, resumption, itself as a tool.

A strategy is a value: it opens nothing and remembers nothing.  Wherever this library takes "an
agent or a strategy" (a plan's task, an attempt, a tool) it takes a `Runnable`.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeAlias

from antiphon.agent import Agent, ApproveFunction, Decision, Input, Run, RunResult
from antiphon.agent._course import Course
from antiphon.agent._start import Start
from antiphon.events import Trajectory
from antiphon.messages import Message
from antiphon.store import Store
from antiphon.tools import RunContext, Tool, ToolError, tool, valid_name

Shown: TypeAlias = Callable[[], Awaitable[None]]
"""Awaited after each event."""


class Strategy(ABC):
    """A way of reaching a goal with agents."""

    name: str
    """Who the record says it is."""
    description: str
    """What it is for, as agents that may ask it read it."""

    @property
    @abstractmethod
    def root(self) -> Agent:
        """The agent that the strategy is built around."""

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
            input: The goal: text, a message, or messages.
            history: What was said before.
            deps: What tools get as `RunContext.deps`.
            state: Context variables, shared by all parts; changed in place.
            approve: Asked about calls of tools that need a person's consent. Without it the run
                goes on as far as it can and ends as ``pending``; see `resume`.
            metadata: Kept in the trajectory.
            store: Where the run is kept as it happens.
            session: In a store, the conversation that the run belongs to.

        Returns:
            A Run: await it for the result, iterate it for the events, ``.wait()`` in plain code.
        """
        return Run.begin(
            self.root,
            input,
            history=history,
            deps=deps,
            state=state,
            approve=approve,
            metadata=metadata,
            store=store,
            session=session,
            course=self.course,
        )

    def stream(self, input: Input, **options: Any) -> Run:
        """Another name of `run`, for ``async for event in strategy.stream(...)``.

        Args:
            input: The goal.
            options: As for `run`.
        """
        return self.run(input, **options)

    def run_sync(self, input: Input, **options: Any) -> RunResult:
        """Run to the end from plain code.

        Args:
            input: The goal.
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
        approve: ApproveFunction | None = None,
        store: Store | None = None,
    ) -> Run:
        """Go on with a run that paused or broke off, in this or another process.

        What is done stays done.  A call that was under way when the process died is made again only
        if its tool is idempotent; else its task failed and its outcome is unknown.

        Args:
            trajectory: The record so far, or a run's id in `store`.
            decisions: By call id, for calls that wait for a person.
            deps: As for `run`.
            approve: As for `run`.
            store: Where the run is kept, when it is named by its id.

        Raises:
            UsageError: The run is finished, or a decision names no waiting call.
            RunError: Another process is running it.
        """
        return Run.again(
            self.root,
            trajectory,
            decisions or {},
            deps=deps,
            approve=approve,
            store=store,
            course=self.course,
        )

    def as_tool(self, *, name: str = "", description: str = "") -> Tool[..., Any]:
        """This strategy as a tool of an agent.

        Args:
            name: The tool's name; the strategy's where empty.
            description: What the agent's model reads; the strategy's own where empty.
        """

        async def ask(context: RunContext[Any], question: str) -> Any:
            run = self.run(question, deps=context.deps, state=context.state)
            result = await run.under(context.call_id)
            if result.stop_reason in ("answer", "stopped_by_tool"):
                return result.output
            raise ToolError(f"{self.name} gave no answer: {result.stop_reason}. {result.text}")

        return tool(
            ask,
            name=name or valid_name(self.name),
            description=description or self.description or f"Asks {self.name}.",
            timeout=None,
        )


Runnable: TypeAlias = Agent | Strategy
"""An agent, or a strategy around agents."""


def root_of(runnable: Runnable) -> Agent:
    """The agent in the middle."""
    return runnable if isinstance(runnable, Agent) else runnable.root
