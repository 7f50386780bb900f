"""Scenarios that users of other runtimes reported, where no other test here has them."""

import asyncio
import threading
from typing import Any

import pytest

from antiphon.agent import Agent, run_sync
from antiphon.events import CallEvent, Event, TextEvent, ThinkingEvent
from antiphon.formats import get_format
from antiphon.messages import Message, ToolCall
from antiphon.models import ScriptedModel
from antiphon.tools import tool


@tool(idempotent=True)
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


TWO_CALLS = {
    "hermes": [
        'Both:\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>\n'
        '<tool_call>\n{"name": "add", "arguments": {"a": 3, "b": 4}}\n</tool_call>',
        "3 and 7.",
    ],
    "react_en": [
        'Action: add\nAction Input: {"a": 1, "b": 2}\n'
        'Action: add\nAction Input: {"a": 3, "b": 4}\n',
        "Thought: I now know the final answer\nFinal Answer: 3 and 7.",
    ],
}


@pytest.mark.parametrize("family", TWO_CALLS)
def test_two_calls_written_as_text_run_in_one_turn_in_order(family: str) -> None:
    """huggingface/smolagents#1899."""
    model = ScriptedModel(TWO_CALLS[family], format=get_format(family))

    result = Agent(model=model, tools=[add]).run_sync("1+2 and 3+4?")

    assert [m.text for m in result.messages if m.role == "tool"] == ["3", "7"]
    assert (result.output, len(result.trajectory.steps)) == ("3 and 7.", 2)


@pytest.mark.parametrize("chunk_chars", [1, 3, 7])
def test_no_piece_of_a_call_written_as_text_is_shown_as_text(chunk_chars: int) -> None:
    """QwenLM/Qwen-Agent#229."""

    def agent() -> Agent:
        model = ScriptedModel(
            TWO_CALLS["hermes"], format=get_format("hermes"), chunk_chars=chunk_chars
        )
        return Agent(model=model, tools=[add])

    async def streamed() -> tuple[list[Event], Any]:
        run = agent().run("go")
        return [event async for event in run], await run

    events, result = asyncio.run(streamed())
    text = "".join(e.text for e in events if isinstance(e, TextEvent | ThinkingEvent))
    assert text.replace("\n", "") == "Both:3 and 7."
    assert [e.call.name for e in events if isinstance(e, CallEvent)] == ["add", "add"]
    assert result.messages == agent().run_sync("go").messages


def test_a_heartbeat_beats_while_plain_tools_wait() -> None:
    """openai/openai-agents-python#2386: plain tools wait for what only a free loop can do."""
    beaten = threading.Event()

    def wait() -> str:
        return f"waited: {beaten.wait(10)}"

    async def beat() -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        beaten.set()

    async def main() -> Any:
        heart = asyncio.create_task(beat())
        calls = [ToolCall("wait", {}, f"c{i}") for i in range(8)]
        script = [Message.assistant(tool_calls=calls), "ok"]
        result = await Agent(model=ScriptedModel(script), tools=[wait]).run("go")
        await heart
        return result

    result = asyncio.run(main())

    tools = [m for m in result.messages if m.role == "tool"]
    assert [m.text for m in tools] == ["waited: True"] * 8
    assert [m.tool_call_id for m in tools] == [f"c{i}" for i in range(8)]


def test_a_tool_that_fails_once_is_retried_within_the_step() -> None:
    """pydantic/pydantic-ai#928."""
    tries: list[int] = []

    @tool(idempotent=True, retries=2)
    def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("429")
        return "fine"

    model = ScriptedModel([Message.assistant(tool_calls=[ToolCall("flaky", {}, "c1")]), "ok"])
    result = run_sync(Agent(model=model, tools=[flaky]).run("go"))

    assert [m.text for m in result.messages if m.role == "tool"] == ["fine"]
    assert (len(tries), len(model.conversations)) == (2, 2)


def test_the_cost_of_a_step_does_not_grow_with_the_steps_before_it() -> None:
    """Each step shows the model the same message objects as the one before, and adds its own."""
    script = [Message.assistant(tool_calls=[ToolCall("add", {"a": i, "b": 1})]) for i in range(40)]
    model = ScriptedModel([*script, "done"])

    Agent(model=model, tools=[add], max_steps=50).run_sync("go")

    for before, after in zip(model.conversations, model.conversations[1:], strict=False):
        assert all(a is b for a, b in zip(before.messages, after.messages, strict=False))
        assert after.tools is before.tools
