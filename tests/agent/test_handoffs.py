"""Handoffs, context variables, and agents that are tools of other agents."""

import asyncio
from typing import Any

import pytest

from antiphon.agent import Agent, Handoff
from antiphon.errors import UsageError
from antiphon.events import HandoffEvent, LimitEvent
from antiphon.messages import Completion, Conversation, Message, ToolCall, Usage
from antiphon.models import ScriptedModel
from antiphon.tools import RunContext


def asks(*calls: tuple[str, dict[str, Any]]) -> Message:
    return Message.assistant(
        tool_calls=[ToolCall(name, args, f"c{i}") for i, (name, args) in enumerate(calls)]
    )


def refunds(*answers: Any, **options: Any) -> Agent:
    return Agent(
        name="refunds",
        instructions="You refund.",
        description="Gives money back.",
        model=ScriptedModel(answers or ["Refunded."]),
        **options,
    )


def test_a_handoff_is_a_tool_that_the_model_calls() -> None:
    target = refunds()
    model = ScriptedModel([asks(("transfer_to_refunds", {}))])

    result = Agent(name="triage", model=model, handoffs=[target]).run_sync("Money back!")

    assert (result.output, result.agent) == ("Refunded.", target)
    assert model.conversations[0].tools[0].description == (
        "Hand the conversation over to refunds. Gives money back."
    )
    assert [step.agent for step in result.trajectory.steps] == ["triage", "refunds"]


def test_the_next_agent_sees_its_own_instructions_and_the_whole_conversation() -> None:
    target = refunds()
    triage = Agent(
        name="triage",
        instructions="You route.",
        model=ScriptedModel([asks(("transfer_to_refunds", {}))]),
        handoffs=[target],
    )

    triage.run_sync("Money back!")

    model = target.model
    assert isinstance(model, ScriptedModel)
    shown = model.conversations[0]
    assert [m.role for m in shown.messages] == ["system", "user", "assistant", "tool"]
    assert shown.messages[0].text == "You refund."
    assert shown.tools == ()


def test_a_tool_that_returns_an_agent_hands_over() -> None:
    """Swarm's routine: the function is the handoff."""
    target = refunds()

    def to_refunds() -> Agent:
        """Pass on whoever wants money back."""
        return target

    triage = Agent(
        name="triage", model=ScriptedModel([asks(("to_refunds", {}))]), tools=[to_refunds]
    )
    result = triage.run_sync("Money back!")

    assert result.agent is target
    handoffs = [e for e in result.trajectory.events if isinstance(e, HandoffEvent)]
    assert [(e.source, e.target) for e in handoffs] == [("triage", "refunds")]


def test_a_tool_beside_a_handoff_is_executed_and_keeps_its_result() -> None:
    """langchain-ai/langgraph-swarm-py#69."""

    def look_up() -> str:
        return "order 7"

    target = refunds()
    triage = Agent(
        name="triage",
        model=ScriptedModel([asks(("transfer_to_refunds", {}), ("look_up", {}))]),
        tools=[look_up],
        handoffs=[target],
    )
    result = triage.run_sync("Money back!")

    tools = [m for m in result.messages if m.role == "tool"]
    assert [m.tool_call_id for m in tools] == ["c0", "c1"]
    assert tools[1].text == "order 7"
    assert result.agent is target


def test_of_two_handoffs_in_a_reply_the_first_counts_and_the_other_is_told() -> None:
    first, second = refunds(), Agent(name="sales", model=ScriptedModel([]))
    triage = Agent(
        name="triage",
        model=ScriptedModel([asks(("transfer_to_refunds", {}), ("transfer_to_sales", {}))]),
        handoffs=[first, second],
    )
    result = triage.run_sync("Hello")

    tools = [m for m in result.messages if m.role == "tool"]
    assert result.agent is first
    assert [m.is_error for m in tools] == [False, True]
    assert "already taken over" in tools[1].text


def test_agents_that_name_each_other_hand_back() -> None:
    def back() -> Agent:
        return triage

    expert = Agent(
        name="expert", model=ScriptedModel([asks(("transfer_to_triage", {}))]), handoffs=[back]
    )
    triage = Agent(
        name="triage",
        model=ScriptedModel([asks(("transfer_to_expert", {})), "Back again."]),
        handoffs=[expert],
    )

    result = triage.run_sync("Hello")

    assert (result.output, result.agent) == ("Back again.", triage)
    ids = [m.tool_call_id for m in result.messages if m.role == "tool"]
    assert len(set(ids)) == 2


def test_a_circle_of_handoffs_is_bounded() -> None:
    def pong_agent() -> Agent:
        return pong

    ping = Agent(
        name="ping",
        model=ScriptedModel(lambda _: asks(("transfer_to_pong", {}))),
        handoffs=[pong_agent],
        max_handoffs=3,
    )
    pong = Agent(
        name="pong", model=ScriptedModel(lambda _: asks(("transfer_to_ping", {}))), handoffs=[ping]
    )

    result = ping.run_sync("Hello")

    assert result.stop_reason == "handoff_limit"
    assert len([e for e in result.trajectory.events if isinstance(e, HandoffEvent)]) == 3
    assert [e.limit for e in result.trajectory.events if isinstance(e, LimitEvent)] == [
        "max_handoffs"
    ]


def test_context_variables_are_read_and_written_and_never_shown() -> None:
    def sign_in(context: RunContext[Any], name: str) -> str:
        context.state["user"] = name
        return "signed in"

    def whoami(context: RunContext[Any]) -> str:
        return f"{context.state['user']}, asked by {context.agent}"

    model = ScriptedModel([asks(("sign_in", {"name": "Ada"})), asks(("whoami", {})), "ok"])
    result = Agent(name="clerk", model=model, tools=[sign_in, whoami]).run_sync("Hello")

    assert [m.text for m in result.messages if m.role == "tool"] == [
        "signed in",
        "Ada, asked by clerk",
    ]
    assert result.trajectory.state == {"user": "Ada"}
    assert "context" not in model.conversations[0].tools[0].parameters["properties"]


def test_an_input_filter_chooses_what_the_next_agent_sees_and_the_record_keeps_all() -> None:
    target = refunds()
    triage = Agent(
        name="triage",
        model=ScriptedModel([asks(("transfer_to_refunds", {}))]),
        handoffs=[Handoff(target, input_filter=lambda messages: messages[:1])],
    )

    result = triage.run_sync("Money back!")

    model = target.model
    assert isinstance(model, ScriptedModel)
    assert [m.role for m in model.conversations[0].messages] == ["system", "user"]
    assert [m.role for m in result.messages] == ["user", "assistant", "tool", "assistant"]
    assert result.trajectory.steps[1].shown == (Message.user("Money back!"),)


def test_a_handoff_named_like_a_tool_is_refused() -> None:
    def transfer_to_refunds() -> str:
        return "no"

    agent = Agent(tools=[transfer_to_refunds], handoffs=[refunds()], model=ScriptedModel(["x"]))

    with pytest.raises(UsageError, match="named 'transfer_to_refunds'"):
        agent.run_sync("Hello")


def test_an_agents_name_in_any_script_becomes_a_tool_name_every_api_takes() -> None:
    model = ScriptedModel(["ok"])

    Agent(model=model, handoffs=[Agent(name="张三 & co", model="local")]).run_sync("Hello")

    assert model.conversations[0].tools[0].name.isascii()


def test_agents_as_tools_work_together_and_their_cost_counts() -> None:
    """openai/openai-agents-python#1520 and #2056."""
    all_here = asyncio.Barrier(3)
    cost = Usage(11, 7, 0, 1)

    async def meet() -> str:
        await all_here.wait()
        return "met"

    def sub(name: str) -> Agent:
        model = ScriptedModel(
            [
                Completion(asks(("meet", {})), "tool_calls", cost, "small"),
                Completion(Message.assistant(f"{name} says hi"), "stop", cost, "small"),
            ]
        )
        return Agent(name=name, model=model, tools=[meet])

    subs = [sub(name) for name in ("a", "b", "c")]
    main = Agent(
        name="main",
        model=ScriptedModel(
            [
                Completion(
                    asks(*((s.name, {"question": "hi?"}) for s in subs)), "tool_calls", cost, "big"
                ),
                Completion(Message.assistant("All said hi."), "stop", cost, "big"),
            ]
        ),
        tools=[s.as_tool() for s in subs],
        timeout=5,
    )

    result = main.run_sync("Ask them.")

    assert [m.text for m in result.messages if m.role == "tool"] == [
        f"{name} says hi" for name in "abc"
    ]
    assert result.usage == Usage(88, 56, 0, 8)
    assert result.usage_by_agent["a"] == Usage(22, 14, 0, 2)
    assert result.usage_by_model == {"big": Usage(22, 14, 0, 2), "small": Usage(66, 42, 0, 6)}
    assert sorted(child.call_id for child in result.trajectory.children) == ["c0", "c1", "c2"]


def test_a_failing_agent_as_a_tool_is_an_error_the_model_reads() -> None:
    from antiphon.errors import ModelConnectionError

    helper = Agent(name="oracle", model=ScriptedModel([ModelConnectionError("no server")]))
    main = Agent(
        model=ScriptedModel([asks(("oracle", {"question": "?"})), "Sorry."]),
        tools=[helper.as_tool(description="Knows all.")],
    )

    result = main.run_sync("Ask.")

    assert result.messages[2].is_error
    assert "no server" in result.messages[2].text


def test_a_child_that_stops_at_a_limit_says_so() -> None:
    def again(_: Conversation) -> Message:
        return asks(("nothing", {}))

    helper = Agent(name="oracle", model=ScriptedModel(again), max_steps=1)
    main = Agent(
        model=ScriptedModel([asks(("oracle", {"question": "?"})), "Sorry."]),
        tools=[helper.as_tool()],
    )

    result = main.run_sync("Ask.")

    assert "step_limit" in result.messages[2].text
