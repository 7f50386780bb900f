"""Having a plan: the planner writes it, it is read and checked, and a person may look at it.

With streaming, tasks start while the planner still writes; then reading a plan and carrying it out
are one.
"""

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from antiphon.agent import Again, Agent, Guardrail, RunResult
from antiphon.agent._hooks import Stopped
from antiphon.errors import PlanError
from antiphon.events import Event, PlanEvent, ReplanEvent, RetryEvent, TextEvent
from antiphon.models._formatted import tokens_under_grammar
from antiphon.strategies._course import StrategyCourse, answered, no_answer_reason
from antiphon.strategies._executing import Executing
from antiphon.strategies._held import Room, held
from antiphon.strategies._plan import Plan
from antiphon.strategies._progress import Progress
from antiphon.strategies._prompts import planner_request
from antiphon.strategies._roles import planner_of
from antiphon.strategies._written import Written
from antiphon.tools import RunContext, Tool

if TYPE_CHECKING:
    from antiphon.strategies._plan_and_execute import Opinion

_MAX_REVIEWS = 10
"""How often a person may turn plans down before the run ends as refused."""

_CUT = "The last plan was cut at the token limit; write a shorter one."


class Planning:
    """How a run of `PlanAndExecute` comes to its plans."""

    def __init__(self, course: StrategyCourse, progress: Progress, executing: Executing) -> None:
        """Set up.

        Args:
            course: The run it belongs to.
            progress: How the plan stands.
            executing: Carries out what streams.
        """
        self._course = course
        self._progress = progress
        self._executing = executing
        self._how = progress.how
        self._more = False

    async def make_plan(self, reason: str, *, anew: bool = False, more: bool = False) -> bool:
        """Have a valid plan that nobody objects to; whether there is one.

        Args:
            reason: Why another plan is needed.
            anew: Whether it is another one.
            more: Whether further tasks were asked for, so that a plan of none would not do.

        Raises:
            PlanError: The planner wrote none.
        """
        progress = self._progress
        self._more = more
        if anew:
            await self._course.emit(ReplanEvent(reason, progress.n_plans))
        for _ in range(_MAX_REVIEWS):
            progress.objection = ""
            if self._how.streaming and self._how.review is None:
                await self._plan_while_executing(reason)
                return not progress.refused
            await self._ask_planner(reason)
            opinion = await self._reviewed()
            if isinstance(opinion, bool):
                return opinion
            reason = f"a person turned the plan down: {opinion}"
        return False

    async def _reviewed(self) -> bool | str:
        """What a person says of the plan: whether it runs, or why not."""
        plan = self._progress.plan
        assert plan is not None
        if self._how.review is None:
            return True
        made = self._how.review(plan)
        opinion: Opinion = await made if inspect.isawaitable(made) else made
        if isinstance(opinion, Plan):
            await self._executing.take_edited(opinion)
            return True
        if opinion is True:
            return True
        reason = opinion if isinstance(opinion, str) else ""
        await self._course.emit(PlanEvent("refused", plan.to_row(), reason))
        return reason or False

    async def _take(self, plan: Plan) -> None:
        self._progress.take(plan)
        await self._course.emit(PlanEvent("proposed", plan.to_row()))

    def _planner(self, *guardrails: Guardrail) -> Agent:
        """Who plans, held to what can be carried out as far as its model can be held."""
        offered = self._offered()
        planner = planner_of(self._how, offered, *guardrails)
        settings = planner.settings
        tokens = tokens_under_grammar(self._course.open_model(planner.model), settings)
        if settings.response_schema is not None or (tokens is None and planner.tools):
            return planner  # an outline that a server holds would leave no place for calls
        room = Room(
            [item.spec for item in offered],
            [one.name for one in self._how.agents],
            known=list(self._progress.known),
            done=self._progress.done(),
            min_tasks=int(self._more),
            max_tasks=self._how.max_tasks,
            tokens=tokens,
        )
        return replace(planner, settings=held(settings, self._how.dialect, room))

    def _offered(self) -> list[Tool[..., Any]]:
        """The tools that a planner is told of: all, or those that fit the goal where it is many."""
        select, tools = self._how.agent.select, self._progress.tools
        if select is None or len(tools) <= select.threshold:
            return list(tools.values())
        index = select.index or self._how.agent.tool_index
        names = [*select.always, *index.search(self._course.goal, 2 * select.k)]
        return [tools[name] for name in dict.fromkeys(names) if name in tools]

    async def _ask(self, planner: Agent, reason: str, **options: Any) -> RunResult:
        progress, course = self._progress, self._course
        request = await planner_request(
            course.goal, progress.so_far(), reason, self._how.result_tokens
        )
        key = f"planner:{progress.n_plans}"
        result = await course.ask(
            planner, request, role="planner", key=key, history=course.before, **options
        )
        progress.n_plans += 1
        return result

    async def _ask_planner(self, reason: str) -> None:
        """Have the planner write a plan, and mend it where it is none.

        Raises:
            PlanError: It is none after the last mend.
        """
        found: list[Plan] = []
        wrong: list[str] = []
        progress, course = self._progress, self._course

        async def check(_context: RunContext[Any], text: str) -> Again | None:
            reader = progress.reader()
            try:
                plan = progress.merged(course.goal, [*reader.feed(text), *reader.finish()])
            except PlanError as error:
                wrong.append(str(error))
                await course.emit(PlanEvent("rejected", reason=str(error)))
                return Again(f"This is no plan that can be carried out: {error}. Write it again.")
            found.append(plan)
            return None

        planner = self._planner(Guardrail(check=check, on="output"))
        result = await self._ask(planner, reason)
        for _ in range(self._how.max_plan_repairs):
            if result.stop_reason != "token_limit":
                break
            await course.emit(PlanEvent("rejected", reason=_CUT))
            result = await self._ask(planner, f"{reason}\n{_CUT}".strip())
        if result.stop_reason == "refused":
            raise Stopped(result.text)
        if not found or not answered(result):
            if wrong:
                raise PlanError(wrong[-1])
            if result.error is not None:
                raise result.error
            raise PlanError(f"the planner wrote no plan: {no_answer_reason(result)}")
        await self._take(found[-1])

    async def _plan_while_executing(self, reason: str) -> None:
        """Start tasks while the planner writes them.

        A plan that cannot go on as it was written keeps what ran and is written anew, as often as
        plans may be mended.

        Raises:
            PlanError: It is none after the last mend.
        """
        for n_left in reversed(range(self._how.max_plan_repairs + 1)):
            problem = await self._plan_and_execute_once(reason)
            if not problem:
                return
            await self._course.emit(PlanEvent("rejected", reason=problem))
            if not n_left:
                raise PlanError(problem)
            reason = f"{reason}\nThe last plan cannot be carried out: {problem}".strip()

    async def _plan_and_execute_once(self, reason: str) -> str:
        """Read a plan and run it as it comes; what is wrong with it."""
        written = Written(self._progress)
        goal = self._course.goal
        async with self._executing.new_schedule() as schedule:

            async def read(event: Event) -> None:
                if isinstance(event, RetryEvent):
                    written.begin_again()
                elif isinstance(event, TextEvent):
                    written.feed(event.text, schedule)

            result = await self._ask(self._planner(), reason, shows=read)
            problem = written.finish(schedule) if answered(result) else ""
            if not answered(result):
                problem = f"the planner's answer broke off: {no_answer_reason(result)}"
            if not problem:
                tasks = tuple(schedule.tasks.values())
                await self._take(Plan(goal, tasks, self._progress.n_plans - 1))
            else:
                schedule.drain()
        self._progress.keep(goal, schedule.tasks.values())
        if problem and not schedule.tasks and result.error is not None:
            raise result.error
        return problem
