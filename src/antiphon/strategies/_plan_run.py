"""A plan of tool calls, carried out without any model."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from antiphon.errors import PlanError
from antiphon.messages import JsonObject, ToolCall
from antiphon.strategies._plan import Plan, Task
from antiphon.strategies._plan_checks import check_arguments, value_of
from antiphon.strategies._references import ReferenceFailed, substitute
from antiphon.strategies._schedule import Lanes, Schedule
from antiphon.strategies._tool_tasks import within
from antiphon.tools import RunContext, Tool


async def run_plan(
    plan: Plan,
    tools: Sequence[Tool[..., Any]],
    max_parallel: int | None,
    task_timeout: float | None,
    context: RunContext[Any] | None,
) -> Plan:
    """The plan with its tasks as they ended; see `Plan.run`."""
    known = {item.name: item for item in tools}
    plan.check(tools=known)
    for task in plan.tasks:
        if not task.tool:
            raise PlanError(f"task {task.id!r} is in words; a plan by itself has no agent for it")
        check_arguments(task, known)
    clock = asyncio.get_running_loop().time
    begun = clock()

    async def perform(task: Task) -> Task:
        started = clock() - begun
        results = {id: schedule.tasks[id].result for id in task.needs}
        try:
            arguments = cast("JsonObject", substitute(task.arguments, results))
        except ReferenceFailed as failed:
            return replace(task, status="failed", reason=str(failed))
        timeout = task_timeout if task.timeout is None else task.timeout
        call = ToolCall(task.tool, arguments, task.id)
        result = await within(known[task.tool], call, context, timeout)
        return replace(
            task,
            status="failed" if result.is_error else "completed",
            reason=result.text if result.is_error else "",
            result=None if result.is_error else value_of(result),
            started=started,
            ended=clock() - begun,
        )

    lanes = Lanes(known)
    async with Schedule(perform, max_parallel=max_parallel, lane_of=lanes.of) as schedule:
        for task in plan.tasks:
            schedule.add(task)
    return plan.with_tasks(schedule.tasks.values())
