"""A task that calls a tool: a person may be asked, hooks look, time and attempts are limited.

The same rules as for a call that a model makes in a run (`antiphon.agent`), for calls that stand in
a plan.
"""

import asyncio
import inspect
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import Any, cast

from antiphon.agent import Agent, ApproveFunction, Decision
from antiphon.agent._hooks import Ask, Stop, Stopped, settled
from antiphon.events import ApprovalEvent, DecisionEvent
from antiphon.messages import ToolCall, ToolResult
from antiphon.strategies._course import StrategyCourse
from antiphon.tools import RunContext, Tool


@dataclass(frozen=True, slots=True)
class Waits:
    """Calls wait for a person."""

    calls: tuple[ToolCall, ...]
    """The calls, at least one."""


async def call_tool(
    course: StrategyCourse,
    agent: Agent,
    known: Tool[..., Any],
    call: ToolCall,
    *,
    timeout: float | None = None,
    max_attempts: int = 1,
) -> ToolResult | Waits:
    """Call a tool for a task.

    Args:
        course: The run it belongs to.
        agent: Whose tool it is.
        known: The tool.
        call: What is called, with an id of its own.
        timeout: Seconds until it has failed.
        max_attempts: How often a call that failed is made.

    Raises:
        Stopped: A hook ended the run.
    """
    context: RunContext[Any] = RunContext(
        deps=course.start.deps, state=course.start.state, agent=agent.name
    ).for_call(call.name, call.id)
    looked = await _before(agent, context, call)
    if isinstance(looked, ToolResult):
        return replace(looked, call_id=call.id)
    asked, call = looked
    if asked or known.needs_approval(call.arguments):
        decision = await _decided(course, call)
        if decision is None:
            return Waits((call,))
        if not decision.approved:
            why = f": {decision.reason}" if decision.reason else ""
            text = f"a person refused this call{why}; it was not executed"
            return ToolResult(call.id, call.name, text, is_error=True)
        if decision.arguments is not None:
            call = replace(call, arguments=decision.arguments)
    result = await within(known, call, context, timeout)
    for _ in range(max_attempts - 1):
        if not result.is_error:
            break
        result = await within(known, call, context, timeout)
    for hooks in agent.hooks:
        if hooks.after_tool is not None:
            match await settled(hooks.after_tool(context, call, result)):
                case Stop(reason):
                    raise Stopped(reason)
                case ToolResult() as changed:
                    result = replace(changed, call_id=call.id)
                case None:
                    pass
    return result


async def _before(
    agent: Agent, context: RunContext[Any], call: ToolCall
) -> tuple[bool, ToolCall] | ToolResult:
    """What hooks make of a call: whether a person is to be asked, and the call; or its answer."""
    asked = False
    for hooks in agent.hooks:
        if hooks.before_tool is None:
            continue
        match await settled(hooks.before_tool(context, call)):
            case Stop(reason):
                raise Stopped(reason)
            case Ask():
                asked = True
            case ToolCall() as changed:
                call = replace(changed, id=call.id)
            case ToolResult() as result:
                return result
            case None:
                pass
    return asked, call


async def _decided(course: StrategyCourse, call: ToolCall) -> Decision | None:
    """What a person says; ``None`` where nobody is there to say it."""
    if not any(isinstance(e, ApprovalEvent) and e.call.id == call.id for e in course.record.events):
        await course.emit(ApprovalEvent(0, call))
    decision = course.start.decisions.get(call.id)
    approve = course.approver()
    if decision is None and approve is not None:
        decision = await _asked(approve, call)
    if decision is not None:
        made = DecisionEvent(0, call.id, decision.approved, decision.arguments, decision.reason)
        await course.emit(made)
    return decision


async def _asked(approve: ApproveFunction, call: ToolCall) -> Decision:
    made = approve(call)
    answer = await cast("Awaitable[Any]", made) if inspect.isawaitable(made) else made
    return answer if isinstance(answer, Decision) else Decision(bool(answer))


async def within(
    known: Tool[..., Any], call: ToolCall, context: RunContext[Any] | None, timeout: float | None
) -> ToolResult:
    """What a tool answers in time.

    Args:
        known: The tool.
        call: What is called.
        context: The run's context.
        timeout: Seconds until it has failed.
    """
    deadline = asyncio.timeout(timeout)
    try:
        async with deadline:
            return await known.call(call.arguments, context, call.id)
    except TimeoutError:
        if not deadline.expired():
            raise
        text = f"timeout: {call.name} gave no answer within {timeout:g} s"
        return ToolResult(call.id, call.name, text, is_error=True)
