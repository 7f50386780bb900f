"""Who plans and who answers: the agents that a plan's strategy asks besides its executors."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from antiphon.agent import Agent, Guardrail, RunResult
from antiphon.strategies._course import text_of
from antiphon.strategies._prompts import (
    JOINER,
    JOINER_MAY_INSERT,
    JOINER_MAY_REPLAN,
    planner_instructions,
)
from antiphon.tools import Tool, tool

if TYPE_CHECKING:
    from antiphon.strategies._plan_and_execute import PlanAndExecute


def planner_of(
    how: "PlanAndExecute", tools: Sequence[Tool[..., Any]], *guardrails: Guardrail
) -> Agent:
    """Who plans.

    Args:
        how: The strategy.
        tools: What tasks may call.
        guardrails: What looks at each plan.
    """
    given, agent = how.planner, how.agent
    told = planner_instructions(
        how.dialect,
        [item.spec for item in tools],
        [(one.name, one.description) for one in how.agents],
        "" if isinstance(given, Agent) else text_of(agent),
    )
    if isinstance(given, Agent):
        return replace(
            given,
            instructions=f"{text_of(given)}\n\n{told}".strip(),
            guardrails=(*given.guardrails, *guardrails),
            max_mends=how.max_plan_repairs,
        )
    return Agent(
        name="planner",
        instructions=told,
        model=agent.model if given is None else given,
        guardrails=(*(g for g in agent.guardrails if g.on == "input"), *guardrails),
        max_mends=how.max_plan_repairs,
        settings=replace(agent.settings, response_schema=None, response_pattern=None),
        max_steps=how.max_plan_repairs + 1,
        timeout=agent.timeout,
    )


def joiner_of(how: "PlanAndExecute", *, may_replan: bool) -> Agent:
    """Who answers.

    Args:
        how: The strategy.
        may_replan: Whether it may ask for further tasks instead.
    """
    given, agent = how.joiner, how.agent
    offered = [_replan_tool()] if may_replan else []
    names = [item.name for item in offered]
    about = text_of(given) if isinstance(given, Agent) else text_of(agent)
    parts = [about, JOINER, JOINER_MAY_REPLAN if may_replan else ""]
    if agent.insert_results:
        parts.append(JOINER_MAY_INSERT)
    told = "\n\n".join(part for part in parts if part)
    if isinstance(given, Agent):
        return replace(
            given,
            instructions=told,
            tools=(*given.tools, *offered),
            final_tools=(*given.final_tools, *names),
        )
    return Agent(
        name="joiner",
        instructions=told,
        model=agent.model if given is None else given,
        tools=offered,
        final_tools=names,
        settings=agent.settings,
        timeout=agent.timeout,
        output_type=agent.output_type,
        output_mode=agent.output_mode,
        guardrails=[g for g in agent.guardrails if g.on == "output"],
    )


def _replan_tool() -> Tool[..., Any]:
    def replan(feedback: str) -> str:
        """Ask for further tasks, because the results do not answer the goal.

        Args:
            feedback: What is missing.
        """
        return feedback

    return tool(replan, threaded=False, idempotent=True)


def asks_to_replan(result: RunResult) -> bool:
    """Whether a joiner asked for further tasks."""
    if result.stop_reason != "stopped_by_tool":
        return False
    steps = result.trajectory.steps
    return any(r.name == "replan" and not r.is_error for r in steps[-1].results)
